import { expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { PLATFORM, type ResourceScope } from '../../../domain/access/scope.ts';
import { freezePlan } from '../../../domain/inventory/frozenPlan.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { StalePlan, AttemptNotCurrent } from '../../../services/inventory/approvedChanges.ts';
import { withApprovals } from '../../support/approvals.ts';
import { eventually } from '../../support/eventually.ts';

const { fixture } = withApprovals({}, { idle: true });

const platform: ResourceScope = { tenantId: PLATFORM };

/** Creates a job that a run has claimed, with this number of attempts. */
async function claimJob(attempts: number) {
  const { db, ids } = fixture.app.deps;
  const body = { type: 'core.echo', payload: {} };
  const { id: jobId } = await fixture.app.client.post<JobRecord>('/api/jobs', body).expect(201);
  const runId = ids.next('req');
  await db('jobs').where({ id: jobId }).update({ status: 'running', run_id: runId, attempts });
  const caller = systemCaller('platform', `job:${jobId}`);
  const signal = AbortSignal.timeout(30_000);
  return {
    jobId,
    attempt: (number: number) => ({ caller, jobId, runId, attempt: number, signal }),
  };
}
const create = (cidr: string) => [{ resource: 'prefixes', operation: 'create', record: { cidr } }];
const findPrefixes = (cidr: string) =>
  fixture.app.deps.db<{ id: string; cidr: string }>('prefixes').where({ cidr });
const count = async (cidr: string) => (await findPrefixes(cidr)).length;

const approved = (outcome: Parameters<typeof freezePlan>[0], resourceScope = platform) => ({
  plan: freezePlan(outcome),
  resourceScope,
});

type Mutations = Parameters<typeof fixture.app.deps.inventory.questions.dryRun>[1];

/**
 * Runs two attempts of one job concurrently: the first holds its locks and waits for the test while
 * the second starts. Returns the result that both report.
 */
async function applyTwice(mutations: Mutations, withPlan: boolean) {
  const {
    db,
    inventory: { approvedChanges, questions },
  } = fixture.app.deps;
  const { attempt } = await claimJob(1);
  const plan = withPlan ? approved(await questions.dryRun(attempt(1).caller, mutations)) : null;
  const apply = () => approvedChanges.apply(attempt(1), mutations, plan);
  const untilBlocked = (lock: string) =>
    eventually(
      async () => {
        const { rows }: { rows: { n: number }[] } = await db.raw(
          `SELECT count(*) AS n FROM pg_locks WHERE NOT granted AND ${lock}`,
        );
        return rows[0]?.n ?? 0;
      },
      (n) => n > 0,
    );
  const trx = await db.transaction();
  await trx.raw('LOCK TABLE inventory_apply_results IN SHARE MODE');
  const first = apply();
  await untilBlocked("relation = 'inventory_apply_results'::regclass");
  const second = apply();
  await untilBlocked("(locktype = 'advisory' OR locktype = 'transactionid' OR locktype = 'tuple')");
  await trx.rollback();
  const [one, other] = await Promise.all([first, second]);
  expect(other).toEqual(one);
  expect(await apply()).toEqual(one);
  return one;
}

test.each([true, false])(
  'concurrent attempts of a job apply its changes once and report the same (with a plan: %s)',
  async (withPlan) => {
    const cidr = withPlan ? '10.1.0.0/16' : '10.2.0.0/16';
    const created = await applyTwice(create(cidr), withPlan);
    expect(created.changes).toMatchObject([{ action: 'create', resource: 'prefixes' }]);
    const [row] = await findPrefixes(cidr);
    expect(await count(cidr)).toBe(1);
    const id = row?.id;
    const update = {
      resource: 'prefixes',
      operation: 'update',
      record: { id, description: 'once' },
    };
    expect((await applyTwice([update], withPlan)).changes).toEqual([
      { action: 'update', resource: 'prefixes', id, version: 2 },
    ]);
    const remove = { resource: 'prefixes', operation: 'delete', record: { id } };
    expect((await applyTwice([remove], withPlan)).changes).toMatchObject([
      { action: 'delete', id },
    ]);
  },
);

test('an attempt that is superseded, cancelled or of a finished job changes nothing', async () => {
  const {
    db,
    inventory: { approvedChanges },
  } = fixture.app.deps;
  const { jobId, attempt } = await claimJob(2);
  const mutations = create('10.3.0.0/16');
  await expect(approvedChanges.apply(attempt(1), mutations, null)).rejects.toThrow(
    AttemptNotCurrent,
  );
  await db('jobs').where({ id: jobId }).update({ status: 'failed', finished_at: new Date() });
  await expect(approvedChanges.apply(attempt(2), mutations, null)).rejects.toThrow(
    AttemptNotCurrent,
  );
  const { attempt: another } = await claimJob(1);
  const cancelled = { ...another(1), signal: AbortSignal.abort(new Error('was cancelled')) };
  await expect(approvedChanges.apply(cancelled, mutations, null)).rejects.toThrow('was cancelled');
  expect(await count('10.3.0.0/16')).toBe(0);
});

test('changes that differ from the approved plan are not applied', async () => {
  const {
    inventory: { approvedChanges, questions },
  } = fixture.app.deps;
  const { attempt } = await claimJob(1);
  const plan = approved(await questions.dryRun(attempt(1).caller, create('10.4.0.0/16')));
  await expect(approvedChanges.apply(attempt(1), create('10.5.0.0/16'), plan)).rejects.toThrow(
    StalePlan,
  );
  expect([await count('10.4.0.0/16'), await count('10.5.0.0/16')]).toEqual([0, 0]);
});

test('changes outside the scope of their request are not applied', async () => {
  const {
    inventory: { approvedChanges, questions },
  } = fixture.app.deps;
  const { attempt } = await claimJob(1);
  const mutations = create('10.6.0.0/16');
  const outcome = await questions.dryRun(attempt(1).caller, mutations);
  const elsewhere = approved(outcome, { tenantId: 'elsewhere' });
  await expect(approvedChanges.apply(attempt(1), mutations, elsewhere)).rejects.toThrow(StalePlan);
  expect(await count('10.6.0.0/16')).toBe(0);
});
