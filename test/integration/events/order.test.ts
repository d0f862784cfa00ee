import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Knex } from '../../../db/core/knex.ts';
import { emptyUnitOfWork, writeUnitOfWork, type UnitOfWork } from '../../../db/core/unitOfWork.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { createIds } from '../../../platform/ids.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { withClockAhead } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';

const HOUR_MS = 3_600_000;

let app: TestApp;
let db: Knex;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  db = app.deps.db;
});
afterAll(() => app.stop());

const DATA = {
  webhookId: 'whk_x',
  endpointOrigin: 'https://example.net',
  eventTypes: ['job.failed'],
  enabled: false,
};
const subject = { type: 'webhook', id: 'whk_x' };
const ids = createIds();

/** What a commit writes that has one event. */
const eventOf = (id: string): UnitOfWork => ({
  ...emptyUnitOfWork(),
  events: [
    { id, type: 'webhook.deleted', tenantId: 'platform', subject, actorId: 'alice', data: DATA },
  ],
});

/** The ids of two events, the first of which is written by a process whose clock is ahead. */
async function idsOfTwoClocks(): Promise<[string, string]> {
  const first = await withClockAhead(HOUR_MS, () => Promise.resolve(createIds().next('evt')));
  return [first, ids.next('evt')];
}

const publishedOf = async (found: string[]): Promise<string[]> => {
  await app.deps.relay.flush();
  return db('events').whereIn('id', found).orderBy('sequence').pluck('id');
};

/** A change of a row, for which others wait until its transaction ends. */
const CHANGE = 'UPDATE access_state SET version = version RETURNING version';
const change = {
  sql: (name: string) => `${name} AS (${CHANGE})`,
  bindings: [],
  topics: [],
};

const areWaiting = async (): Promise<number> => {
  const { rows } = await db.raw<{ rows: object[] }>(
    `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
  );
  return rows.length;
};

test('events are published in the order in which they are written, whatever the clocks', async () => {
  const [first, second] = await idsOfTwoClocks();
  await writeUnitOfWork(db, eventOf(first));
  await writeUnitOfWork(db, eventOf(second));
  expect(await publishedOf([first, second])).toEqual([first, second]);
});

test('a change that waits for another of the same record has its event after that', async () => {
  const [first, second] = await idsOfTwoClocks();
  const trx = await db.transaction();
  await trx.raw(CHANGE);
  const later = writeUnitOfWork(db, { ...eventOf(second), changes: [change] });
  await eventually(areWaiting, (count) => count > 0);
  await writeUnitOfWork(trx, eventOf(first));
  await trx.commit();
  await later;
  expect(await publishedOf([first, second])).toEqual([first, second]);
});

test('the time of an event is that of its writing, not that at which a long commit began', async () => {
  const id = 'order-of-time';
  const writtenFrom = await app.deps.commit(systemCaller('platform', id), async (work) => {
    work.audit('webhook.delete', { ...subject, id });
    work.emit('webhook.deleted', { ...subject, id }, DATA);
    await delay(20);
    return new Date();
  });
  const [createdAt] = await db('events').where({ subject_id: id }).pluck('created_at');
  expect(Number(createdAt)).toBeGreaterThanOrEqual(Number(writtenFrom));
});
