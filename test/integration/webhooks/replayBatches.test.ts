import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobTools } from '../../../domain/jobs/jobType.ts';
import type { WebhookRecord } from '../../../api/webhooks/schemas.ts';
import { createReplayJobType } from '../../../services/jobTypes/webhooks/replay.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { seedEvents } from '../../support/retention.ts';

const EVENTS = 10_050;

let app: TestApp;
let sequences: number[];
beforeAll(async () => {
  // No worker: deliveries stay as they are queued.
  app = await startApp({}, { idle: true });
  const ids = await seedEvents(app.deps.db, { tenant: 'red', days: 1, count: EVENTS });
  sequences = await app.deps.db('events').whereIn('id', ids).orderBy('sequence').pluck('sequence');
});
afterAll(() => app.stop());

async function createWebhook(): Promise<string> {
  const webhook = { endpointUrl: 'https://example.net/', eventTypes: ['webhook.deleted'] };
  return (
    await app.client.as({ tenant: 'red' }).post<WebhookRecord>('/api/webhooks', webhook).expect(201)
  ).id;
}

/** Replays events of the seeded ones: those with an index from `from` to before `until`. */
async function replay(webhookId: string, from: number, until: number): Promise<object> {
  const type = createReplayJobType(app.deps);
  if (!('run' in type)) throw new Error('The job type has no code');
  const afterSequence = (sequences[from] ?? 0) - 1;
  const payload = { webhookId, afterSequence, upToSequence: sequences[until - 1] ?? 0 };
  const tools = {
    jobId: `job_from_${from}`,
    signal: new AbortController().signal,
    log: () => undefined,
    progress: () => undefined,
  };
  return type.run(payload, tools as unknown as JobTools);
}

/** The sequences of the events of a webhook's deliveries, in the order in which these were queued. */
const queued = (webhookId: string): Promise<number[]> =>
  app.deps
    .db('deliveries AS d')
    .join('events AS e', 'e.id', 'd.event_id')
    .where({ 'd.webhook_id': webhookId, 'd.status': 'pending' })
    .orderBy('d.id')
    .pluck('e.sequence');

test('a replay of several batches queues each event once, in order', async () => {
  const webhookId = await createWebhook();
  expect(await replay(webhookId, 0, 450)).toEqual({
    deliveries: 450,
    lastSequence: sequences[449],
    complete: true,
  });
  expect(await queued(webhookId)).toEqual(sequences.slice(0, 450));
});

test('a replay covers 10,000 events, and another one the rest', async () => {
  const webhookId = await createWebhook();
  expect(await replay(webhookId, 0, EVENTS)).toEqual({
    deliveries: 10_000,
    lastSequence: sequences[9_999],
    complete: false,
  });
  expect(await queued(webhookId)).toEqual(sequences.slice(0, 10_000));
  expect(await replay(webhookId, 10_000, EVENTS)).toMatchObject({ deliveries: 50, complete: true });
});
