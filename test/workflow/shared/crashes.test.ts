import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { WebhookRecord } from '../../../api/webhooks/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { startCrashingWorkers } from '../../support/crashingWorkers.ts';
import { killRounds } from '../../support/effort.ts';
import { startFollower } from '../../support/eventStream.ts';
import { killAll, startProcess, type TestProcess } from '../../support/processes.ts';
import {
  backdateSchedule,
  createMinutelySchedule,
  minutesFromNow,
} from '../../support/schedules.ts';
import { startSink, type Sink } from '../../support/sink.ts';

/** `KILL_ROUNDS=20 npm test -- shared/crashes` is the long run. */
const KILLS = killRounds();
/** Long enough for a worker to start and to work before it may be killed. */
const KILL_EVERY_MS = 1_500;

const SCHEDULES = 16;
const MINUTES = 5;
const EVENTS = 24 * killRounds();
const WRITERS = 4;
/** Events are written until after the first kill. */
const WRITE_EVERY_MS = 300;

let app: TestApp;
let sink: Sink;
let until: Date;
let webhooks: Awaited<ReturnType<typeof registerWebhooks>>;
let follower: ReturnType<typeof startFollower>;
/** This application only writes and reads; the workers that are killed do everything else. */
beforeAll(async () => {
  const often = { HOLDFAST_CATCH_UP_SECONDS: '1', HOLDFAST_RECONCILE_SECONDS: '2' };
  [app, sink] = await Promise.all([startApp(often, { idle: true }), startSink()]);
  until = await createLateSchedules();
  webhooks = await registerWebhooks();
  const [workers, crashApi] = await Promise.all([startCrashingWorkers(app), followCrashingApi()]);
  await Promise.all([workers.crash(KILLS, KILL_EVERY_MS), webhooks.writeEvents(), crashApi()]);
}, 300_000);
afterAll(async () => {
  await follower.leave();
  await killAll();
  await app.stop();
  await sink.stop();
});

const query = async <T>(sql: string, bindings: readonly Date[] = []): Promise<T[]> =>
  (await app.deps.db.raw<{ rows: T[] }>(sql, bindings)).rows;

/** An API process, and a client that follows its events. Returns what kills the process and replaces it. */
async function followCrashingApi(): Promise<() => Promise<void>> {
  const launch = (): Promise<TestProcess> => startProcess({ ...app.env, HOLDFAST_ROLE: 'api' });
  let api = await launch();
  const { identity } = app.client.as({ tenant: 'f' });
  follower = startFollower(
    () => ({ base: api.base, identity }),
    '/api/events?follow&type=webhook.updated',
  );
  await eventually(follower.isConnected, (isConnected) => isConnected);
  return async () => {
    await eventually(
      () => follower.received.length,
      (count) => count > 0,
    );
    await api.kill();
    api = await launch();
  };
}

/** Schedules of every overlap policy with occurrences that nothing has decided. Returns the time of the last. */
async function createLateSchedules(): Promise<Date> {
  const client = app.client.as({ tenant: 'kill' });
  const policies = ['skip', 'bufferOne', 'allowAll', 'cancelOther'];
  const minute = minutesFromNow();
  for (let n = 0; n < SCHEDULES; n++) {
    const { id } = await createMinutelySchedule(client, {
      overlapPolicy: policies[n % policies.length],
      catchupWindowSeconds: 3_600,
    });
    await backdateSchedule(app, id, minute(-MINUTES));
  }
  return minute(0);
}

/** Three webhooks that get the events of a fourth. */
async function registerWebhooks() {
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
  const ids = [
    await register(sink.url('/0')),
    await register(sink.url('/1')),
    await register(sink.url('/2')),
  ];
  let written = 0;
  async function write(): Promise<void> {
    while (written < EVENTS) {
      written += 1;
      const change = { description: `change ${written}` };
      await client.put(`/api/webhooks/${subject}`, change).expect(200);
      await sleep(WRITE_EVERY_MS);
    }
  }
  return {
    subject,
    ids,
    written: () => written,
    writeEvents: () => Promise.all(Array.from({ length: WRITERS }, write)),
  };
}

test('an occurrence has one run and at most one job although workers crash', async () => {
  const { db } = app.deps;
  await eventually(
    () => query('SELECT id FROM schedules WHERE next_due_at <= ?', [until]),
    (pending) => pending.length === 0,
    { withinMs: 60_000 },
  );
  await eventually(
    () => db('schedule_runs').where({ outcome: 'buffered' }),
    (buffered) => buffered.length === 0,
    { withinMs: 30_000 },
  );
  await eventually(
    () => db('jobs').where({ source_kind: 'schedule' }).whereIn('status', ['queued', 'running']),
    (unfinished) => unfinished.length === 0,
    { withinMs: 60_000 },
  );

  const counts = await query<{ count: number }>(
    'SELECT count(*)::int FROM schedule_runs WHERE due_at <= ? GROUP BY schedule_id',
    [until],
  );
  expect(counts).toEqual(Array.from({ length: SCHEDULES }, () => ({ count: MINUTES + 1 })));
  // In one statement, since later occurrences go on.
  const [found] = await query<{ fired: number; withJob: number; jobs: number; events: number }>(
    `SELECT count(*) FILTER (WHERE outcome = 'fired')::int AS fired,
            count(DISTINCT job_id)::int AS "withJob",
            (SELECT count(*)::int FROM jobs WHERE source_kind = 'schedule') AS jobs,
            (SELECT count(*)::int FROM events WHERE type = 'schedule.fired') AS events
     FROM schedule_runs`,
  );
  const fired = found?.fired ?? 0;
  expect(fired).toBeGreaterThan(SCHEDULES);
  expect(found).toEqual({ fired, withJob: fired, jobs: fired, events: fired });
}, 240_000);

test('who follows the events misses none and gets none twice, although the API is killed', async () => {
  const { db } = app.deps;
  const written = await db('events')
    .where({ type: 'webhook.updated', tenant_id: 'f' })
    .orderBy('id');
  await eventually(
    () => follower.received.length,
    (count) => count >= written.length,
    { withinMs: 60_000 },
  );
  const published: { id: string }[] = await db('events')
    .where({ type: 'webhook.updated', tenant_id: 'f' })
    .orderBy('sequence');
  expect(follower.received.map(({ id }) => id)).toEqual(published.map(({ id }) => id));
  expect(follower.connections()).toBeGreaterThanOrEqual(2);
}, 120_000);

test('every event reaches every webhook, although workers are killed all the time', async () => {
  const { db } = app.deps;
  const findUnfinished = async (): Promise<unknown> =>
    (await db('events').whereNull('sequence').first('id')) ??
    (await db('event_fan_outs').first('tenant_id')) ??
    (await db('deliveries').where({ status: 'pending' }).first('id'));
  await eventually(findUnfinished, (row) => row === undefined, { withinMs: 280_000 });

  const ids: string[] = await db('events')
    .where({ type: 'webhook.updated', subject_id: webhooks.subject })
    .orderBy('id')
    .pluck('id');
  expect(ids).toHaveLength(webhooks.written());
  for (const [n, hook] of webhooks.ids.entries()) {
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
    webhooks.ids.length * ids.length,
  );
}, 500_000);
