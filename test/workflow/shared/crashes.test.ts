import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { WebhookRecord } from '../../../api/webhooks/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { startCrashingWorkers } from '../../support/crashingWorkers.ts';
import { killRounds } from '../../support/effort.ts';
import { killAll } from '../../support/processes.ts';
import { startSink, type Sink } from '../../support/sink.ts';

/** `KILL_ROUNDS=20 npm test -- fanout` is the long run. */
const EVENTS = 24 * killRounds();
const KILLS = killRounds();
const WRITERS = 8;
/** Long enough for a worker to start and to work before it may be killed. */
const KILL_EVERY_MS = 1_500;

let app: TestApp;
let sink: Sink;
beforeAll(async () => {
  // This application only writes and reads; the workers that are killed do everything else.
  [app, sink] = await Promise.all([startApp({}, { idle: true }), startSink()]);
});
afterAll(async () => {
  await killAll();
  await app.stop();
  await sink.stop();
});

test('every event reaches every webhook, although workers are killed all the time', async () => {
  const { db } = app.deps;
  const client = app.client.as({ tenant: 'f' });
  const register = async (endpointUrl: string, more: object = {}) => {
    const webhook = await client
      .post<WebhookRecord>('/api/webhooks', {
        endpointUrl,
        eventTypes: ['webhook.updated'],
        retryPolicy: { maxIntervalSeconds: 0.5 },
        ...more,
      })
      .expect(201);
    return webhook.id;
  };
  const subject = await register('https://example.net/', { enabled: false });
  // One endpoint fails every fifth request, so that deliveries are retried while workers are killed.
  sink.respond('/2', (_request, response, nth) =>
    response.writeHead(nth % 5 === 0 ? 500 : 204).end(),
  );
  const webhookIds = [
    await register(sink.url('/0')),
    await register(sink.url('/1')),
    await register(sink.url('/2')),
  ];

  const workers = await startCrashingWorkers(app);
  let written = 0;
  const crashes = workers.crash(KILLS, KILL_EVERY_MS);
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      while (written < EVENTS) {
        written += 1;
        await client
          .put(`/api/webhooks/${subject}`, { description: `change ${written}` })
          .expect(200);
        await sleep(20);
      }
    }),
  );
  await crashes;

  const findUnfinished = async (): Promise<unknown> =>
    (await db('events').whereNull('sequence').first('id')) ??
    (await db('deliveries').where({ status: 'pending' }).first('id'));
  await eventually(findUnfinished, (row) => row === undefined, { withinMs: 280_000 });

  const ids: string[] = await db('events')
    .where({ type: 'webhook.updated', subject_id: subject })
    .orderBy('id')
    .pluck('id');
  expect(ids).toHaveLength(written);
  for (const [n, hook] of webhookIds.entries()) {
    const deliveries: { event_id: string; status: string }[] = await db('deliveries')
      .where({ webhook_id: hook })
      .orderBy('event_id');
    expect(deliveries.map(({ event_id }) => event_id)).toEqual(ids);
    expect(new Set(deliveries.map(({ status }) => status))).toEqual(new Set(['succeeded']));
    // Each event is received at least once; a repeated message has the same id and body.
    const byEventId = Map.groupBy(
      sink.requestsTo(`/${n}`),
      (received) => received.headers['webhook-id'] as string,
    );
    expect([...byEventId.keys()].sort()).toEqual(ids);
    for (const same of byEventId.values())
      expect(new Set(same.map(({ body }) => body)).size).toBe(1);
  }
  expect(await db('jobs').where({ type: 'webhook.deliver' })).toHaveLength(
    webhookIds.length * ids.length,
  );
}, 500_000);
