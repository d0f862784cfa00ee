import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { startMortals } from '../support/crashingWorkers.ts';
import { killAll } from '../support/processes.ts';
import { startSink, type Sink } from '../support/sink.ts';

/** `FANOUT_EVENTS=2000 npm test -- fanout` is the long run. */
const EVENTS = Number(process.env.FANOUT_EVENTS ?? 150);
const WRITERS = 8;
const KILLS = Math.max(12, EVENTS / 50);

let app: TestApp;
let sink: Sink;
beforeAll(async () => {
  // It writes and reads, and leaves everything that follows a commit to the processes that die.
  [app, sink] = await Promise.all([startApp({}, { idle: true }), startSink()]);
});
afterAll(async () => {
  await killAll();
  await app.stop();
  await sink.stop();
});

test('every event reaches every webhook once, with processes killed every second', async () => {
  const {
    client,
    deps: { db },
  } = app;
  const register = async (endpointUrl: string, more: object = {}) =>
    (
      await client.as({ tenant: 'f' }).post('/api/webhooks', {
        endpointUrl,
        eventTypes: ['webhook.updated'],
        retryPolicy: { maxIntervalSeconds: 0.5 },
        ...more,
      })
    ).body.id as string;
  const subject = await register('https://example.net/', { enabled: false });
  // One of them fails now and then: its deliveries are tried again while processes die.
  sink.behave('/2', (_got, response, nth) => response.writeHead(nth % 5 === 0 ? 500 : 204).end());
  const hooks = [
    await register(sink.url('/0')),
    await register(sink.url('/1')),
    await register(sink.url('/2')),
  ];

  const mortals = await startMortals(app, 2);
  let written = 0;
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      while (written < EVENTS) {
        written += 1;
        await client
          .as({ tenant: 'f' })
          .put(`/api/webhooks/${subject}`, { description: `change ${written}` });
        await sleep(20);
      }
    }),
  );
  await eventually(mortals.kills, (kills) => kills >= KILLS, { withinMs: 120_000 });
  await mortals.spare();

  const count = async (query: Promise<{ count: number }[]>) => (await query)[0]?.count ?? 0;
  const left = async () =>
    (await count(db('deliveries').where({ status: 'pending' }).count() as never)) +
    (await count(db('events').whereNull('sequence').count() as never));
  await eventually(left, (open) => open === 0, { withinMs: 280_000 });

  const events = await db('events').where({ type: 'webhook.updated', subject_id: subject });
  expect(events).toHaveLength(written);
  const ids = events.map((event) => event.id as string).sort();
  for (const [n, hook] of hooks.entries()) {
    const deliveries = await db('deliveries').where({ webhook_id: hook });
    expect(deliveries.map((delivery) => delivery.event_id as string).sort()).toEqual(ids);
    expect(new Set(deliveries.map((delivery) => delivery.status as string))).toEqual(
      new Set(['succeeded']),
    );
    // Received at least once, and nothing else; again only under the same id and with the same body.
    const got = Map.groupBy(
      sink.at(`/${n}`),
      (received) => received.headers['webhook-id'] as string,
    );
    expect([...got.keys()].sort()).toEqual(ids);
    for (const same of got.values()) expect(new Set(same.map(({ body }) => body)).size).toBe(1);
  }
  expect(await db('jobs').where({ type: 'webhook.deliver' })).toHaveLength(
    hooks.length * ids.length,
  );
}, 500_000);
