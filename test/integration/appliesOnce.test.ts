import { expect, test } from '@jest/globals';
import { freeze } from '../../domain/inventory/frozenPlan.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { StalePlan, AttemptLost } from '../../services/inventory/applies.ts';
import { withApprovals } from '../support/approvals.ts';
import { eventually } from '../support/eventually.ts';

const { bed } = withApprovals({}, { idle: true });

/** A job that a run has claimed. */
async function claimed(attempts: number) {
  const { db, ids } = bed.app.deps;
  const { body } = await bed.app.client.post('/api/jobs', { type: 'core.echo', payload: {} });
  const runId = ids.next('req');
  await db('jobs').where({ id: body.id }).update({ status: 'running', run_id: runId, attempts });
  const caller = systemCaller('platform', `job:${body.id as string}`);
  return {
    jobId: body.id as string,
    attempt: (number: number) => ({
      caller,
      jobId: body.id as string,
      runId,
      attempt: number,
      signal: AbortSignal.timeout(30_000),
    }),
  };
}
const create = (cidr: string) => [{ resource: 'prefixes', operation: 'create', record: { cidr } }];
const count = async (cidr: string) => (await bed.app.deps.db('prefixes').where({ cidr })).length;

type Mutations = Parameters<typeof bed.app.deps.inventory.writes.rehearse>[1];

/** Two attempts of one job at once: the first holds its locks, and waits for the test, while the second begins. */
async function twice(mutations: Mutations, withPlan: boolean) {
  const {
    db,
    inventory: { applies, writes },
  } = bed.app.deps;
  const { attempt } = await claimed(1);
  const approved = withPlan ? freeze(await writes.rehearse(attempt(1).caller, mutations)) : null;
  const apply = () => applies.apply(attempt(1), mutations, approved);
  const waiting = (lock: string) =>
    eventually(
      async () =>
        (await db.raw(`SELECT count(*) AS n FROM pg_locks WHERE NOT granted AND ${lock}`)).rows[0]
          .n as number,
      (n) => n > 0,
    );
  const trx = await db.transaction();
  await trx.raw('LOCK TABLE inventory_applies IN SHARE MODE');
  const first = apply();
  await waiting("relation = 'inventory_applies'::regclass");
  const second = apply();
  await waiting("(locktype = 'advisory' OR locktype = 'transactionid' OR locktype = 'tuple')");
  await trx.rollback();
  const [one, other] = await Promise.all([first, second]);
  expect(other).toEqual(one);
  expect(await apply()).toEqual(one);
  return one;
}

test.each([true, false])(
  'two attempts of one job at once make its changes once, and both say the same (with a plan: %s)',
  async (withPlan) => {
    const cidr = withPlan ? '10.1.0.0/16' : '10.2.0.0/16';
    expect((await twice(create(cidr), withPlan)).changes).toMatchObject([
      { action: 'create', resource: 'prefixes' },
    ]);
    const [row] = await bed.app.deps.db('prefixes').where({ cidr });
    expect(await count(cidr)).toBe(1);
    expect(
      (
        await twice(
          [
            {
              resource: 'prefixes',
              operation: 'update',
              record: { id: row.id, description: 'once' },
            },
          ],
          withPlan,
        )
      ).changes,
    ).toEqual([{ action: 'update', resource: 'prefixes', id: row.id, version: 2 }]);
    expect(
      (
        await twice(
          [{ resource: 'prefixes', operation: 'delete', record: { id: row.id } }],
          withPlan,
        )
      ).changes,
    ).toMatchObject([{ action: 'delete', id: row.id }]);
  },
);

test('an attempt that was taken for dead, or whose job has ended, changes nothing', async () => {
  const {
    db,
    inventory: { applies },
  } = bed.app.deps;
  const { jobId, attempt } = await claimed(2);
  await expect(applies.apply(attempt(1), create('10.3.0.0/16'), null)).rejects.toThrow(AttemptLost);
  await db('jobs').where({ id: jobId }).update({ status: 'failed', finished_at: new Date() });
  await expect(applies.apply(attempt(2), create('10.3.0.0/16'), null)).rejects.toThrow(AttemptLost);
  const { attempt: cancelled } = await claimed(1);
  await expect(
    applies.apply(
      { ...cancelled(1), signal: AbortSignal.abort(new Error('told to stop')) },
      create('10.3.0.0/16'),
      null,
    ),
  ).rejects.toThrow('told to stop');
  expect(await count('10.3.0.0/16')).toBe(0);
});

test('what differs from what was approved is not made, nor any part of it', async () => {
  const {
    inventory: { applies, writes },
  } = bed.app.deps;
  const { attempt } = await claimed(1);
  const approved = freeze(await writes.rehearse(attempt(1).caller, create('10.4.0.0/16')));
  await expect(applies.apply(attempt(1), create('10.5.0.0/16'), approved)).rejects.toThrow(
    StalePlan,
  );
  expect([await count('10.4.0.0/16'), await count('10.5.0.0/16')]).toEqual([0, 0]);
});
