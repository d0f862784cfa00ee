import { afterAll, beforeAll } from '@jest/globals';
import { startApp, type TestApp } from './app.ts';
import type { TestClient } from './client.ts';
import { eventually } from './eventually.ts';
import { startSink, type Sink } from './sink.ts';

/** Fast retries, for webhooks whose plan is not what the test is about. */
export const quick = { retryPolicy: { maxAttempts: 3, maxIntervalSeconds: 0.05 } };

/** True when a webhook has that many deliveries and all have ended. */
export const ended =
  (count: number) =>
  (deliveries: any[]): boolean =>
    deliveries.length === count && deliveries.every((d) => d.status !== 'pending');

/** The product and an endpoint, for all tests of a file, and what they do with both. */
export function withSink(env: Record<string, string> = {}) {
  const bed = {} as { app: TestApp; sink: Sink };
  beforeAll(async () => {
    [bed.app, bed.sink] = await Promise.all([startApp(env), startSink()]);
  });
  afterAll(async () => {
    await bed.app.stop();
    await bed.sink.stop();
  });

  let tenants = 0;
  const deliveriesOf = async (client: TestClient, id: string) =>
    (await client.get(`/api/webhooks/${id}`)).body.deliveries as any[];
  return {
    bed,
    /** An operator of a tenant that no other test has. */
    inTenant: (): TestClient => bed.app.client.as({ tenant: `t${tenants++}` }),
    async register(client: TestClient, path: string, more: object = {}): Promise<any> {
      const answer = await client.post('/api/webhooks', {
        endpointUrl: bed.sink.url(path),
        eventTypes: ['job.created'],
        ...more,
      });
      if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
      return answer.body;
    },
    /** Something that happens: the job that was created. */
    echo: async (client: TestClient): Promise<any> =>
      (await client.post('/api/jobs', { type: 'core.echo', payload: {} })).body,
    deliveriesOf,
    untilDeliveries: (client: TestClient, id: string, isEnough: (deliveries: any[]) => boolean) =>
      eventually(() => deliveriesOf(client, id), isEnough),
  };
}
