import { describe, expect, test } from '@jest/globals';
import type { Knex } from '../../../db/core/knex.ts';
import { announceWorker, isKnownToWorker, totalSlots } from '../../../db/jobs/workers.ts';
import {
  countByDigest,
  countRunners,
  findWaiting,
  isAnnounced,
  listOffered,
  poolCapacity,
  purgeRunners,
  readPoolLoads,
} from '../../../db/runners/runners.ts';
import { withDatabase } from '../../support/database.ts';
import { seedJobs } from '../../support/retention.ts';

let db: Knex;
withDatabase((opened) => (db = opened));

/** In a transaction that is rolled back: its clock does not move. */
async function atOneTime(work: (trx: Knex.Transaction) => Promise<void>): Promise<void> {
  const trx = await db.transaction();
  try {
    await work(trx);
  } finally {
    await trx.rollback();
  }
}

const secondsAgo = (seconds: number) => db.raw(`now() - ? * interval '1 second'`, [seconds]);
const HOUR = 3_600;

describe('a worker that was not heard of', () => {
  const insert = (trx: Knex, seconds: number, slots: number, jobTypes: string[]) =>
    trx('workers').insert({
      id: `worker-${seconds}`,
      activity_slots: slots,
      delivery_slots: slots,
      job_types: jobTypes,
      seen_at: secondsAgo(seconds),
    });

  test('for 30 seconds offers no slots and knows no job types', () =>
    atOneTime(async (trx) => {
      const fallback = { activity: 1, delivery: 1 };
      await insert(trx, 31, 10, ['core.old']);
      expect(await totalSlots(trx, fallback)).toEqual(fallback);
      await insert(trx, 29, 3, ['core.new']);
      expect(await totalSlots(trx, fallback)).toEqual({ activity: 3, delivery: 3 });
      const isKnown = (type: string) => isKnownToWorker(trx, type);
      expect([await isKnown('core.old'), await isKnown('core.new')]).toEqual([false, true]);
    }));

  test('for an hour is removed', () =>
    atOneTime(async (trx) => {
      await insert(trx, HOUR - 60, 1, []);
      await insert(trx, HOUR + 60, 1, []);
      await announceWorker(trx, 'worker-0', { activity: 1, delivery: 1 }, []);
      const ids = await trx('workers').orderBy('id').pluck('id');
      expect(ids).toEqual(['worker-0', `worker-${HOUR - 60}`]);
    }));
});

describe('a runner that was not heard of', () => {
  const POOL = 'hand';

  /** A runner of the pool with a type of its own, `hand.<seconds>`, which is accepted. */
  async function insert(trx: Knex, seconds: number, slots: number): Promise<void> {
    const type = `hand.${seconds}`;
    const digest = `digest of ${type}`;
    const at = { created_at: new Date(), updated_at: new Date() };
    await trx('pools')
      .insert({
        ...{ name: POOL, description: '', accept_types: [], created_by: 'ann', version: 1 },
        ...at,
      })
      .onConflict()
      .ignore();
    await trx('job_types').insert({
      ...{ name: type, pool: POOL, state: 'accepted', shape: 'shape', version: 1 },
      ...at,
    });
    await trx('job_type_versions').insert({
      ...{ name: type, digest, shape: 'shape', definition: '{}', first_seen_at: new Date() },
    });
    await trx('runners').insert({
      id: `runner-${seconds}`,
      process_id: `process-${seconds}`,
      pool: POOL,
      token_id: 'tok_1',
      name: 'host',
      version: '1',
      slots,
      types: JSON.stringify({ [type]: digest }),
      started_at: secondsAgo(seconds),
      seen_at: secondsAgo(seconds),
    });
  }

  /** A job that waits for a runner. */
  async function insertWaiting(trx: Knex, type: string): Promise<void> {
    const tenant = 'platform';
    const [id = ''] = await seedJobs(trx, { tenant, days: 1, type, status: 'running' });
    await trx('jobs').where({ id }).update({ status: 'queued', pool: POOL });
  }

  test('for 30 seconds offers nothing', () =>
    atOneTime(async (trx) => {
      await insert(trx, 31, 10);
      await insert(trx, 29, 3);
      expect(await poolCapacity(trx, POOL)).toMatchObject({ slots: 3 });
      expect((await readPoolLoads(trx, [POOL])).get(POOL)).toMatchObject({ slots: 3 });
      expect(await countRunners(trx, [POOL])).toEqual(new Map([[POOL, 1]]));
      const announced = (type: string) => isAnnounced(trx, POOL, type);
      expect([await announced('hand.31'), await announced('hand.29')]).toEqual([false, true]);
      const offered = { name: 'hand.29', digest: 'digest of hand.29' };
      expect(await listOffered(trx, POOL)).toEqual([offered]);
      expect(await countByDigest(trx)).toEqual([{ ...offered, runners: 1 }]);
      await insertWaiting(trx, 'hand.31');
      await insertWaiting(trx, 'hand.29');
      const waiting = await findWaiting(trx, 300, 10);
      expect(waiting.map(({ type }) => type)).toEqual(['hand.31']);
    }));

  test('for an hour is removed', () =>
    atOneTime(async (trx) => {
      await insert(trx, HOUR - 60, 1);
      await insert(trx, HOUR + 60, 1);
      await purgeRunners(trx);
      expect(await trx('runners').pluck('id')).toEqual([`runner-${HOUR - 60}`]);
    }));
});
