import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { EventList, EventRecord } from '../../../api/events/schemas.ts';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import type { TestApp } from '../../support/app.ts';
import { backupCreator, recover, withBackups, type BackupFixture } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { expectProblem } from '../../support/problem.ts';
import { createIdleWebhook } from '../../support/retention.ts';

const rootOf = (app: TestApp) =>
  app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' });

let fixture: BackupFixture;
withBackups((started) => void (fixture = started));

let backup: BackupRecord;
/** The last sequence that a follower had before the database was lost. */
let lost: number;
let recovered: Awaited<ReturnType<typeof recover>>;
let client: TestClient;
/** The last event of the archive. */
let known: number;
beforeAll(async () => {
  const root = rootOf(fixture.app);
  await createIdleWebhook(root);
  await createIdleWebhook(
    fixture.app.client.as({ actor: 'kim', roles: 'platform-admin', tenant: 'acme' }),
  );
  backup = await backupCreator(() => root)();
  await createIdleWebhook(root);
  ({ lastSequence: lost } = await root.get<EventList>('/api/events').expect(200));
  recovered = await recover(fixture, backup);
  client = rootOf(recovered.app);
  const [last] = await recovered.app.deps
    .db('events')
    .whereNotNull('sequence')
    .orderBy('sequence', 'desc')
    .limit(1)
    .pluck<number[]>('sequence');
  known = last ?? 0;
});
afterAll(() => recovered.stop());

const listAfter = (after: number) =>
  client.get<EventList>(`/api/events?after=${after}`).expect(200);
const lastEvent = async (): Promise<EventRecord | undefined> =>
  (await client.get<EventList>('/api/events?limit=1').expect(200)).items[0];

test('a follower of events that are lost learns where to continue', async () => {
  expect(known).toBeLessThan(lost);
  const refused = await expectProblem(
    client.get(`/api/events?after=${lost}`),
    410,
    'events_purged',
  );
  const followed = client.get('/api/events?follow', { 'last-event-id': String(lost) });
  const { oldestSequence } = refused;
  expect(await expectProblem(followed, 410, 'events_purged')).toMatchObject({ oldestSequence });
  const { id } = await client
    .post<{ id: string }>('/api/webhooks', {
      endpointUrl: 'https://example.net/',
      eventTypes: ['job.failed'],
    })
    .expect(201);
  const replay = (from: object) => client.post(`/api/webhooks/${id}/replay`, from);
  await expectProblem(replay({ afterSequence: lost }), 410, 'events_purged');
  const { items } = await listAfter(Number(oldestSequence) - 1);
  expect(items.map(({ subject }) => subject.id)).toContain(id);
  expect(items[0]?.sequence).toBeGreaterThan(lost);
  // Events of the archive can still be sent again.
  for (const from of [{ afterSequence: 0 }, { since: '2020-01-01T00:00:00Z' }])
    expect((await replay(from)).status).toBe(202);
});

test('a follower who has seen no event that is lost continues, before new events and after them', async () => {
  expect((await listAfter(known)).items.map(({ sequence }) => sequence > lost)).not.toContain(
    false,
  );
  await createIdleWebhook(client);
  const newest = await lastEvent();
  const { items, lastSequence } = await listAfter(known);
  expect(items.at(-1)).toEqual(newest);
  expect((await listAfter(0)).items.length).toBeGreaterThan(items.length);
  expect((await listAfter(lastSequence)).items).toEqual([]);
});

test('a second recovery from the same archive does not assign the sequences of the first one', async () => {
  const seen = (await lastEvent())?.sequence ?? 0;
  const second = await recover(fixture, backup);
  try {
    const [head] = await second.app.deps.db('event_head').pluck<number[]>('sequence');
    expect(head).toBeGreaterThan(seen);
  } finally {
    await second.stop();
  }
});

test('consumers of every tenant learn that their records are those of the archive', async () => {
  const { db } = recovered.app.deps;
  const events = await db('events')
    .where({ type: 'restore.completed' })
    .orderBy('tenant_id')
    .select('tenant_id', 'data');
  expect(events.map(({ tenant_id }) => tenant_id as string)).toEqual(['acme', 'platform']);
  expect(events[0]?.data).toMatchObject({ backupId: backup.id, jobId: null, created: 1 });
  const entries = await db('audit_entries')
    .where({ action: 'backup.restore', subject_id: backup.id })
    .orderBy('tenant_id')
    .pluck<string[]>('tenant_id');
  expect(entries).toEqual(['acme', 'platform']);
});
