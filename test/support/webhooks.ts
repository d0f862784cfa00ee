import { afterAll, beforeAll } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import type {
  DeliveryRecord,
  WebhookRecord,
  WebhookWithDeliveries,
} from '../../api/webhooks/schemas.ts';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { startApp, type TestApp } from './app.ts';
import type { TestClient } from './client.ts';
import { eventually } from './eventually.ts';
import { startSink, type ReceivedRequest, type Sink } from './sink.ts';

/** Fast retries, for tests that are not about the retry plan. */
export const fastRetries = { retryPolicy: { maxAttempts: 3, maxIntervalSeconds: 0.05 } };

/** True when there are `count` deliveries and all have finished. */
export const allFinished =
  (count: number) =>
  (deliveries: readonly DeliveryRecord[]): boolean =>
    deliveries.length === count && deliveries.every(({ status }) => status !== 'pending');

/** Verifies the signature of a message with the library of Standard Webhooks; throws if it is wrong. */
export function verifyMessage(secret: string, request: ReceivedRequest | undefined): unknown {
  const { body, headers } = assertDefined(request, 'the request');
  return new Webhook(secret).verify(body, headers as Record<string, string>);
}

/**
 * Longer than in other tests: on a busy machine a heartbeat may be late, which interrupts an attempt
 * and frees its slot. These tests count attempts and slots.
 */
const HEARTBEAT_MS = '15000';

/** An application and a receiver for the tests of a file, and what the tests do with them. */
export function withWebhookReceiver(env: Record<string, string> = {}) {
  const fixture = {} as { app: TestApp; sink: Sink };
  beforeAll(async () => {
    [fixture.app, fixture.sink] = await Promise.all([
      startApp({ HOLDFAST_HEARTBEAT_MS: HEARTBEAT_MS, ...env }),
      startSink(),
    ]);
  });
  afterAll(async () => {
    await fixture.app.stop();
    await fixture.sink.stop();
  });

  let tenants = 0;
  const readWebhook = (client: TestClient, id: string) =>
    client.get<WebhookWithDeliveries>(`/api/webhooks/${id}`).expect(200);
  const getDeliveries = async (client: TestClient, id: string) =>
    (await readWebhook(client, id)).deliveries;
  const waitForDeliveries = (
    client: TestClient,
    id: string,
    isComplete: (deliveries: DeliveryRecord[]) => boolean,
  ) => eventually(() => getDeliveries(client, id), isComplete);
  return {
    fixture,
    /** An operator of a tenant that no other test uses. */
    asNewTenant: (): TestClient => fixture.app.client.as({ tenant: `t${tenants++}` }),
    register: (client: TestClient, path: string, more: object = {}) =>
      client
        .post<WebhookRecord>('/api/webhooks', {
          endpointUrl: fixture.sink.url(path),
          eventTypes: ['job.created'],
          ...more,
        })
        .expect(201),
    /** Creates a job, which emits `job.created`. */
    createJob: (client: TestClient) =>
      client.post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} }).expect(201),
    readWebhook,
    getDeliveries,
    waitForDeliveries,
    /** Waits for a webhook's deliveries, and returns the newest. */
    waitForDelivery: async (
      client: TestClient,
      id: string,
      isComplete: (deliveries: DeliveryRecord[]) => boolean = allFinished(1),
    ): Promise<DeliveryRecord> =>
      assertDefined((await waitForDeliveries(client, id, isComplete))[0], 'the delivery'),
    /** Changes the row of a webhook, where the API has no operation for it. */
    patchRow: (id: string, columns: object) =>
      fixture.app.deps.db('webhooks').where({ id }).update(columns),
  };
}
