import { setTimeout as sleep } from 'node:timers/promises';
import { applyDifferences, lockForSwap } from '../../db/backups/swap.ts';
import type { Commit } from '../../db/commit.ts';
import { isBusy } from '../../db/core/constraints.ts';
import { hasAttempt } from '../../db/jobs/jobs.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Backup, RestoreRun } from '../../db/models/Backup.ts';
import { Job } from '../../db/models/Job.ts';
import type { Section } from '../../domain/backups.ts';
import type { EventData } from '../../domain/events/events.ts';
import { JobFailure } from '../../domain/jobType.ts';
import { mirrorSchedule, type DispatchTask } from '../../temporal/contracts.ts';
import type { StepTools } from '../jobSteps.ts';
import {
  invalid,
  mustBe,
  refusalOf,
  Undo,
  type RestorePayload,
  type RestoreSteps,
} from './restoreSteps.ts';
import { resumeSchedules } from './resumeSchedules.ts';
import type { Room } from './room.ts';
import { backupSubject } from './trail.ts';

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  room: Room;
  steps: Pick<RestoreSteps, 'planIn' | 'look'>;
};

/** A swap waits so long for writers; after that it tries again. */
const LOCK_MS = 5_000;
const LOCK_TRIES = 5;
const LOCK_PAUSE_MS = 300;
/** Mirrors that are brought in line at once; the others are found by the reconciler. */
const MAX_MIRRORS_TOLD = 1_000;

export type RestoreSwap = ReturnType<typeof createRestoreSwap>;

/** The step of a restore that changes records. */
export function createRestoreSwap({ db, commit, room, steps: { planIn, look } }: Deps) {
  /** Makes the records what the archive says, all or nothing. */
  async function swap(tools: StepTools): Promise<void> {
    const { backupId } = await RestoreRun.query(db).findById(tools.jobId).throwIfNotFound();
    const backup = await Backup.query(db).findById(backupId).throwIfNotFound();
    const job = await Job.query(db).findById(tools.jobId).throwIfNotFound();
    await commit({ ...tools.caller, tenantId: backup.tenantId }, async (work) => {
      const trx = await work.trx();
      const run = await RestoreRun.query(trx).findById(job.id).forUpdate().throwIfNotFound();
      if (run.outcome?.error !== undefined)
        throw new JobFailure('job_ended', 'The restore was ended before', { retryable: false });
      if (run.outcome) throw new Undo();
      const on = trx as Knex.Transaction;
      const planned = await planIn(on, tools);
      const { plan } = planned;
      await lockForSwap(on, plan, LOCK_MS);
      const { report, planHash } = await look(on, tools, planned);
      if (!report.valid) throw invalid(report);
      mustBe((tools.payload as RestorePayload).planHash, planHash);
      const { schedules, sessionsEnded, jobsEnded } = await applyDifferences(on, plan);
      await resumeSchedules(trx, schedules, work.now);
      // Last, so that others who write to the job wait a moment only: an attempt that was taken for dead changes nothing.
      if (!(await hasAttempt(on, { jobId: job.id, runId: job.runId ?? '', attempt: job.attempts })))
        throw new JobFailure('job_ended', 'The job has ended', { retryable: false });
      for (const { id } of schedules.slice(0, MAX_MIRRORS_TOLD)) work.dispatch(mirrorSchedule(id));
      const { created, changed, deleted } = report.preview.counts;
      const outcome = {
        backupId: backup.id,
        sections: plan.sections,
        includes: report.preview.includes,
        created,
        changed,
        deleted,
        planHash,
        safetyBackupId: run.safetyBackupId,
        sessionsEnded,
        jobsEnded,
      };
      await RestoreRun.query(trx).findById(job.id).patch({ outcome, doneAt: work.now });
      work.audit('backup.restore', backupSubject(backup), { after: { jobId: job.id, ...outcome } });
      work.emit('restore.completed', backupSubject(backup), {
        ...told(backup, job.id, run, plan.sections),
        created,
        changed,
        deleted,
        error: null,
      });
    }).catch((error: unknown) => {
      if (error instanceof Undo) return;
      throw asRefusal(error);
    });
    tools.log('info', 'The records are what they were');
  }

  /** Writers that are waited for may wait for this one: whoever is ended for it tries again soon. */
  async function swapSoon(tools: StepTools): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await swap(tools);
        return;
      } catch (error) {
        if (!(error instanceof JobFailure) || error.code !== 'locked' || tries === LOCK_TRIES)
          throw error;
        await sleep(tries * LOCK_PAUSE_MS, undefined, { signal: tools.signal });
      }
    }
  }

  return (tools: StepTools): Promise<void> => room(tools.signal, () => swapSoon(tools));
}

/** A restore as an event tells of it. */
export const told = (
  backup: Backup,
  jobId: string,
  run: RestoreRun,
  sections: Section[],
): Pick<EventData<'restore.completed'>, 'backupId' | 'jobId' | 'sections' | 'safetyBackupId'> => ({
  backupId: backup.id,
  jobId,
  sections,
  safetyBackupId: run.safetyBackupId,
});

/** A failure of the swap as its job tells it. */
function asRefusal(error: unknown): unknown {
  if (isBusy(error)) return new JobFailure('locked', 'Writers did not make room in time');
  const refusal = refusalOf(error);
  return refusal
    ? new JobFailure('restore_conflict', refusal.message, { retryable: false })
    : error;
}
