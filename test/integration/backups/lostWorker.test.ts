import { describe, expect, test } from '@jest/globals';
import { lockForRestore } from '../../../db/backups/applyRestore.ts';
import { withBackupConnection } from '../../../db/backups/backupConnection.ts';
import { planRestore } from '../../../db/backups/restorePlan.ts';
import { removeTimeouts } from '../../../db/backups/restoreRuns.ts';
import { queryIn, queryOn } from '../../../db/backups/sql.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { SECTIONS } from '../../../domain/backups/backups.ts';
import { JobFailure } from '../../../domain/jobs/jobType.ts';
import type { TestApp } from '../../support/app.ts';
import { backupCreator, restorer, withBackups } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';

let app: TestApp;
let root: TestClient;
withBackups((fixture) => void ({ app, root } = fixture));

const planOfAll = async (trx: Knex) =>
  planRestore(queryIn(trx), {
    schema: 'public',
    scope: { tenantId: null },
    sections: SECTIONS,
    archived: SECTIONS.flatMap((section) => [{ section, name: 'sites', columns: ['id'] }]),
  });

test('writers wait for a restore whose worker stops only until the server ends its transaction', async () => {
  const { db } = app.deps;
  const trx = await db.transaction();
  await lockForRestore(trx, await planOfAll(trx), 5_000, 700);
  // From here on the worker says nothing.
  const { status } = await root.post('/api/inventory/sites', { name: 'written' });
  expect(status).toBe(201);
  await expect(trx.raw('SELECT 1')).rejects.toThrow();
  await trx.rollback().catch(() => undefined);
});

test('a comparison whose worker stops ends, and a backup may pause', async () => {
  const { db } = app.deps;
  const IDLE = `SELECT current_setting('idle_in_transaction_session_timeout') AS idle`;
  await db.transaction(async (trx) => {
    await removeTimeouts(trx);
    expect(await queryIn(trx)(IDLE)).toEqual([{ idle: '1min' }]);
  });
  await withBackupConnection(app.databaseUrl, new AbortController().signal, async (connection) => {
    expect(await queryOn(connection)(IDLE)).toEqual([{ idle: '0' }]);
  });
});

test.each([
  ['cancelled', 'cancelled', null],
  ['permission_lost', 'failed', '{"code":"permission_lost","message":"lost"}'],
  ['workflow_lost', 'succeeded', null],
])(
  'a restore whose job ended without its workflow has the error %s',
  async (code, status, error) => {
    const { db, backups } = app.deps;
    const backup = await backupCreator(() => root)({ mode: 'partial', sections: ['settings'] });
    const { jobId } = await restorer(() => root)({ backupId: backup.id });
    await db('jobs').where({ id: jobId }).update({ status, error });
    await db('restore_runs').where({ job_id: jobId }).update({ outcome: null, done_at: null });
    await backups.reconcile(AbortSignal.timeout(10_000));
    const run = await db('restore_runs').where({ job_id: jobId }).first();
    expect(run.outcome).toEqual({ error: code });
  },
);

describe('a step', () => {
  /** Runs a step of a job that waits until its signal aborts. Returns its error, and how it is repeated. */
  async function runStep(attempt: { lost?: number; signal?: AbortSignal }) {
    const { db, multiStepJobs } = app.deps;
    const { jobId } = await backupCreator(() => root)({ mode: 'partial', sections: ['settings'] });
    await db('jobs').where({ id: jobId }).update({ status: 'running', finished_at: null });
    const signal = attempt.signal ?? new AbortController().signal;
    let hasStarted = false;
    const error: unknown = await multiStepJobs
      .runStep(
        {
          jobId: jobId ?? '',
          failures: 0,
          lost: 0,
          onCounted: () => undefined,
          ...attempt,
          signal,
        },
        () => {
          hasStarted = true;
          return signal.aborted ? Promise.reject(new Error('cancelled')) : Promise.resolve();
        },
      )
      .catch((thrown: unknown) => thrown);
    const lines = await db('job_logs').where({ job_id: jobId }).pluck<string[]>('message');
    await db('jobs').where({ id: jobId }).update({ status: 'succeeded', finished_at: new Date() });
    return { error, hasStarted, lines };
  }

  test('that several workers have not survived fails, and does not start again', async () => {
    const fourth = await runStep({ lost: 4 });
    expect([fourth.hasStarted, fourth.error]).toEqual([true, undefined]);
    expect(fourth.lines).toContainEqual(expect.stringContaining('(4 of at most 5 times)'));
    const fifth = await runStep({ lost: 5 });
    expect(fifth.error).toMatchObject({ code: 'worker_lost', retryInMs: null });
    expect(fifth.hasStarted).toBe(false);
  });

  test('that has taken too long is a failed attempt', async () => {
    const signal = AbortSignal.abort(new JobFailure('timed_out', 'The step took too long'));
    const { error, lines } = await runStep({ signal });
    expect(error).toMatchObject({ code: 'timed_out', retryInMs: 5_000 });
    expect(lines).toContainEqual(expect.stringMatching(/^Attempt 1 failed: timed_out/));
  });

  test('ends by its record while Temporal cannot be reached', async () => {
    const { db, multiStepJobs } = app.deps;
    const end = async (record: object) => {
      const { jobId } = await backupCreator(() => root)({
        mode: 'partial',
        sections: ['settings'],
      });
      const id = jobId ?? '';
      await db('jobs').where({ id }).update({ status: 'running', finished_at: null });
      const error: unknown = await multiStepJobs
        .runStep(
          {
            jobId: id,
            failures: 0,
            lost: 0,
            onCounted: () => undefined,
            signal: AbortSignal.timeout(20_000),
          },
          async ({ signal }) => {
            await db('jobs').where({ id }).update(record);
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
            throw new Error('interrupted');
          },
        )
        .catch((thrown: unknown) => thrown);
      const job = await db('jobs').where({ id }).first();
      return { code: (error as { code?: string }).code, status: job.status as string };
    };
    expect(await end({ cancel_requested_at: new Date() })).toEqual({
      code: 'cancelled',
      status: 'cancelled',
    });
    expect(await end({ status: 'succeeded', finished_at: new Date() })).toEqual({
      code: 'job_ended',
      status: 'succeeded',
    });
  });
});
