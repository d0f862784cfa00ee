import { setTimeout as sleep } from 'node:timers/promises';
import { applyDifferences, lockForRestore } from '../../db/backups/applyRestore.ts';
import {
  findChangedTenants,
  NO_CHANGES,
  type TenantChanges,
} from '../../db/backups/changedTenants.ts';
import { resumeSchedules } from '../../db/backups/resumeSchedules.ts';
import { queryIn } from '../../db/backups/sql.ts';
import { cancelOnAbort } from '../../db/core/cancelOnAbort.ts';
import type { Commit, Work } from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import { isBusy } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { lockIfCurrentAttempt } from '../../db/jobs/jobs.ts';
import { Backup, RestoreRun } from '../../db/models/Backup.ts';
import { Job } from '../../db/models/Job.ts';
import type { Section } from '../../domain/backups/backups.ts';
import { syncSchedule } from '../../domain/dispatch/tasks.ts';
import type { EventData } from '../../domain/events/events.ts';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Ids } from '../../platform/ids.ts';
import type { StepTools } from '../jobs/multiStep.ts';
import { backupRecord } from './backupAudit.ts';
import type { ConcurrencyLimit } from './concurrencyLimit.ts';
import { assertPlanHash, describeViolation, restoreInvalid, Rollback } from './restoreFailures.ts';
import type { RestorePayload, RestoreRunSteps } from './restoreRun.ts';

type Deps = {
  db: Knex;
  commit: Commit;
  ids: Ids;
  concurrencyLimit: ConcurrencyLimit;
  steps: Pick<RestoreRunSteps, 'loadPlan' | 'evaluate'>;
  /** From how many changed rows of a table on it is restored in bulk. */
  bulkRows?: number | undefined;
};

/** An attempt waits this long for writers. */
const LOCK_TIMEOUT_MS = 5_000;
const MAX_LOCK_ATTEMPTS = 5;
const LOCK_RETRY_MS = 300;

/** The number of Temporal Schedules to update after the commit; the reconciler updates the rest. */
const MAX_SCHEDULE_SYNCS = 1_000;

export type ApplyRestore = ReturnType<typeof createApplyRestore>;

/**
 * The step of a restore that changes records: all of them or none. Repeating it after success
 * changes nothing. Errors: `restore_invalid`, `restore_stale`, `restore_conflict`, `lock_timeout`,
 * `job_ended`, and those of `evaluate`.
 */
export function createApplyRestore({
  db,
  commit,
  ids,
  concurrencyLimit,
  steps: { loadPlan, evaluate },
  bulkRows,
}: Deps) {
  async function applyOnce(tools: StepTools): Promise<void> {
    const { backupId } = await RestoreRun.query(db).findById(tools.jobId).throwIfNotFound();
    const backup = await Backup.query(db).findById(backupId).throwIfNotFound();
    const job = await Job.query(db).findById(tools.jobId).throwIfNotFound();
    await commit({ ...tools.caller, tenantId: backup.tenantId }, (work) =>
      applyInCommit(work, tools, { backup, job }),
    ).catch((error: unknown) => {
      if (error instanceof Rollback) return;
      throw toApplyFailure(error);
    });
    tools.log('info', 'The records are restored');
  }

  /** Throws `Rollback` when an earlier attempt has applied the restore. */
  async function applyInCommit(
    work: Work,
    tools: StepTools,
    { backup, job }: { backup: Backup; job: Job },
  ): Promise<void> {
    const trx = await work.trx();
    const run = await RestoreRun.query(trx).findById(job.id).forUpdate().throwIfNotFound();
    if (run.outcome?.error !== undefined) throw jobEnded('The restore has already failed');
    if (run.outcome) throw new Rollback();
    const planned = await loadPlan(trx, tools);
    const { plan } = planned;
    const caller = { ...tools.caller, tenantId: backup.tenantId };
    const { report, planHash, tenants, effects } = await cancelOnAbort(
      db,
      trx,
      tools.signal,
      async () => {
        await lockForRestore(trx, plan, LOCK_TIMEOUT_MS);
        const evaluation = await evaluate(trx, tools, planned);
        if (!evaluation.report.valid) throw restoreInvalid(evaluation.report);
        assertPlanHash((tools.payload as RestorePayload).planHash, evaluation.planHash);
        return {
          ...evaluation,
          tenants: await findChangedTenants(queryIn(trx, tools.signal), plan),
          effects: await applyDifferences(trx, plan, {
            author: { caller, entryIdAt: (time) => ids.at('aud', time) },
            signal: tools.signal,
            bulkRows,
          }),
        };
      },
    );
    const { schedules, followers, ...ended } = effects;
    await resumeSchedules(trx, schedules, await readDatabaseTime(trx));
    await assertCurrentAttempt(trx, job);
    for (const { id } of schedules.slice(0, MAX_SCHEDULE_SYNCS))
      work.dispatch(syncSchedule({ id, tenantId: job.tenantId }));
    const { created, changed, deleted } = report.preview.counts;
    const outcome = {
      backupId: backup.id,
      sections: plan.sections,
      includes: report.preview.includes,
      created,
      changed,
      deleted,
      planHash,
      preRestoreBackupId: run.preRestoreBackupId,
      ...ended,
    };
    await RestoreRun.query(trx).findById(job.id).patch({ outcome, doneAt: work.now });
    backupRecord.acted(work, 'restore', backup, { extra: { jobId: job.id, ...outcome } });
    const data = restoreEventData(backup, run, plan.sections);
    const counted = { ...data, created, changed, deleted, error: null };
    work.emit('restore.completed', backupRecord.subject(backup), counted);
    const others = withFollowers(tenants, followers);
    others.delete(backup.tenantId);
    recordInTenants(work, backup.id, { jobId: job.id, sections: plan.sections, tenants: others });
  }

  /**
   * Retries when writers do not release their locks in time. A writer may itself wait for a lock of
   * the restore; after the rollback both can continue.
   */
  async function applyWithRetry(tools: StepTools): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await applyOnce(tools);
        return;
      } catch (error) {
        const isLockTimeout = error instanceof JobFailure && error.code === 'lock_timeout';
        if (!isLockTimeout || attempt === MAX_LOCK_ATTEMPTS) throw error;
        await sleep(attempt * LOCK_RETRY_MS, undefined, { signal: tools.signal });
      }
    }
  }

  return (tools: StepTools): Promise<void> => concurrencyLimit(tools, () => applyWithRetry(tools));
}

/**
 * Locks the job, late in the transaction so that other writers of the job wait only briefly. Error:
 * `job_ended` when the job has ended or another attempt has replaced this one.
 */
async function assertCurrentAttempt(trx: Knex.Transaction, job: Job): Promise<void> {
  const attempt = {
    jobId: job.id,
    runId: assertDefined(job.runId, 'job.runId'),
    attempt: job.attempts,
  };
  if (!(await lockIfCurrentAttempt(trx, attempt))) throw jobEnded('The job has ended');
}

const jobEnded = (message: string) => new JobFailure('job_ended', message, { retryable: false });

/** What a restore changes in each tenant, with the records that follow others. */
function withFollowers(
  tenants: ReadonlyMap<string, TenantChanges>,
  followers: ReadonlyMap<string, number>,
): Map<string, TenantChanges> {
  const all = new Map(tenants);
  for (const [tenantId, records] of followers) {
    const changes = all.get(tenantId) ?? NO_CHANGES;
    all.set(tenantId, { ...changes, changed: changes.changed + records });
  }
  return all;
}

type RestoredTenants = {
  jobId: string | null;
  sections: Section[];
  tenants: ReadonlyMap<string, TenantChanges>;
};

/**
 * Records in each tenant that a restore of the whole installation has changed its records: an audit entry, and the event
 * by which its consumers know that they have to read their copies again.
 */
export function recordInTenants(
  work: Pick<Work, 'audit' | 'emit'>,
  backupId: string,
  { jobId, sections, tenants }: RestoredTenants,
): void {
  const subject = backupRecord.subject({ id: backupId });
  for (const [tenantId, { created, changed, deleted }] of tenants) {
    const data = { backupId, jobId, sections, created, changed, deleted };
    work.audit('backup.restore', subject, { after: data, tenantId });
    const details = { preRestoreBackupId: null, error: null };
    work.emit('restore.completed', subject, { ...data, ...details }, { tenantId });
  }
}

/** The fields that all events about a restore have. */
export const restoreEventData = (
  { id }: Backup,
  { jobId, preRestoreBackupId }: RestoreRun,
  sections: Section[],
): Pick<
  EventData<'restore.completed'>,
  'backupId' | 'jobId' | 'sections' | 'preRestoreBackupId'
> => ({ backupId: id, jobId, sections, preRestoreBackupId });

/** Translates errors of PostgreSQL to failures of the job; other errors remain as they are. */
function toApplyFailure(error: unknown): unknown {
  if (isBusy(error))
    return new JobFailure('lock_timeout', 'Writers did not release their locks in time');
  const violation = describeViolation(error);
  if (!violation) return error;
  return new JobFailure('restore_conflict', violation.message, { retryable: false });
}
