import type { Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { isKnownToWorker, WORKER_MEMORY_SECONDS } from '../../db/jobs/workers.ts';
import type { Job } from '../../db/models/Job.ts';
import type { Schedule } from '../../db/models/Schedule.ts';
import { ScheduleRun } from '../../db/models/ScheduleRun.ts';
import {
  findBufferedRun,
  listUnfinishedJobs,
  lockUnfinishedJobs,
} from '../../db/schedules/schedules.ts';
import { systemCaller, type Caller } from '../../domain/shared/caller.ts';
import type { AppError } from '../../domain/shared/errors.ts';
import { mayCreateJob } from '../../domain/jobs/jobRights.ts';
import { scopeOfTarget, type Target } from '../../domain/jobs/targets.ts';
import type { Rights } from '../../domain/access/scope.ts';
import { RUN_KINDS, type RunKind, type RunReason } from '../../domain/schedules/schedules.ts';
import { temporalScheduleId } from '../../domain/dispatch/workflowIds.ts';
import type { JobCompletion } from '../jobs/completion.ts';
import type { JobFactory } from '../jobs/createJob.ts';
import type { JobReferences } from '../jobs/payloadReferences.ts';
import type { JobTargets } from '../jobs/targets.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { recordRun } from './scheduleAudit.ts';

export type RunDecisions = ReturnType<typeof createRunDecisions>;

/** Jobs that one decision cancels. The rest is cancelled when these have ended. */
export const MAX_CANCELLED_PER_DECISION = 100;

/** How long a run waits for a worker that knows its job type, if none has said so. */
const OTHERS_DECIDE_MS = 600_000;

/** Why a schedule cannot run as it is. */
type RunBlocker = { outcome: 'skipped' | 'failed'; reason: RunReason };

/** What the job of a schedule that can run is about. */
type Runnable = { target: Target | null };

/** The outcome of a run; `fired` with the job that was created. */
export type RunDecision = { outcome: 'fired'; job: Job } | RunBlocker | { outcome: 'buffered' };

type Deps = {
  jobTypes: JobTypes;
  jobTargets: JobTargets;
  jobReferences: JobReferences;
  jobFactory: JobFactory;
  jobCompletion: JobCompletion;
};

/**
 * A decision about a run, made with the row of the schedule locked by `trx`. `ownerRights` are the
 * current rights of the owner.
 */
export type DecisionContext = {
  work: Work;
  trx: Knex;
  schedule: Schedule;
  ownerRights: Rights;
  /** The quota that the job would exceed, found when an earlier decision was committed. */
  exceeded?: AppError;
};

/** The caller for runs that no request asked for: the owner of the schedule. */
export const callerForOwner = ({ id, tenantId, owner }: Schedule): Caller => ({
  ...systemCaller(tenantId, temporalScheduleId(id)),
  actorId: owner.actorId,
});

/** Decides the outcome of runs. */
export function createRunDecisions({
  jobTypes,
  jobTargets,
  jobReferences,
  jobFactory,
  jobCompletion,
}: Deps) {
  /**
   * True while a run that is due is left to workers of another version: this one does not know the job
   * type. When no such worker has reported for some time, the type has been removed. `now`: by the clock of the database.
   * After an outage, workers announce themselves later than the first of them decides.
   */
  const isLeftToOthers = async (
    on: Knex,
    { jobType }: Schedule,
    { since, now }: { since: Date; now: Date },
  ): Promise<boolean> =>
    !jobTypes.find(jobType) &&
    (now.getTime() - since.getTime() < OTHERS_DECIDE_MS ||
      (await isKnownToWorker(on, jobType, WORKER_MEMORY_SECONDS)));

  /** Why no job can be created; if one can, what it is about. */
  async function examine({
    trx,
    schedule,
    ownerRights,
    exceeded,
  }: DecisionContext): Promise<RunBlocker | Runnable> {
    const { jobType, payload, tenantId } = schedule;
    const type = jobTypes.find(jobType);
    // This version has no such type, or it has become an internal type.
    if (type?.createdOnlyBy !== null) return { outcome: 'failed', reason: 'unknown_job_type' };
    if (type.lane === 'remote' && !type.isEnabled)
      return { outcome: 'failed', reason: 'job_type_disabled' };
    if (jobTypes.payloadError(type, payload) !== null)
      return { outcome: 'failed', reason: 'payload_invalid' };
    const target = await jobTargets.findFor(type, ownerRights, schedule, trx);
    if (target === undefined) return { outcome: 'failed', reason: 'target_not_found' };
    if (!mayCreateJob(ownerRights, type, target ? scopeOfTarget(target) : { tenantId }))
      return { outcome: 'skipped', reason: 'owner_denied' };
    if (!(await jobReferences.areReadable(ownerRights, type, payload, trx)))
      return { outcome: 'failed', reason: 'reference_not_found' };
    return exceeded ? { outcome: 'failed', reason: 'quota_exceeded' } : { target };
  }

  /** Creates a job of a schedule in the commit. */
  function createJob({ work, schedule, ownerRights }: DecisionContext, { target }: Runnable): Job {
    const { jobType, payload, retryPolicy, owner } = schedule;
    return jobFactory.create(work, {
      type: jobTypes.get(jobType),
      payload,
      target,
      retryPolicy,
      createdBy: owner.actorId,
      caller: { ...callerForOwner(schedule), rights: ownerRights },
      source: { kind: 'schedule', id: schedule.id },
      authority: owner,
    });
  }

  /**
   * Cancels the oldest of the unfinished jobs. True when that cancelled all of them and none is
   * left to wait for.
   */
  async function cancelOldest(
    { work, trx }: DecisionContext,
    jobIds: readonly string[],
  ): Promise<boolean> {
    const jobs = await lockUnfinishedJobs(trx, jobIds.slice(0, MAX_CANCELLED_PER_DECISION));
    for (const job of jobs.filter(({ cancelRequestedAt }) => cancelRequestedAt === null)) {
      work.audit(
        'job.cancel',
        { type: 'job', id: job.id },
        { after: { overlapPolicy: 'cancelOther' } },
      );
      await jobCompletion.requestCancel(work, job);
    }
    return (
      jobIds.length <= MAX_CANCELLED_PER_DECISION &&
      jobs.every(({ status }) => status === 'cancelled')
    );
  }

  /** Skips the buffered run of a schedule, if there is one of these kinds that is not `except`. */
  async function skipBuffered(
    work: Work,
    trx: Knex,
    schedule: Schedule,
    reason: RunReason,
    { kinds = RUN_KINDS, except }: { kinds?: readonly RunKind[]; except?: string } = {},
  ): Promise<void> {
    const run = await findBufferedRun(trx, schedule.id);
    if (!run || !kinds.includes(run.kind) || run.id === except) return;
    const skippedRun = await ScheduleRun.query(trx).patchAndFetchById(run.id, {
      outcome: 'skipped',
      reason,
      decidedAt: work.now,
    });
    recordRun(work, schedule, skippedRun);
  }

  /** Decides the outcome of a run by the overlap policy. Creates the job of outcome `fired`. */
  async function decide(context: DecisionContext): Promise<RunDecision> {
    const { work, trx, schedule } = context;
    const { id, overlapPolicy } = schedule;
    const found = await examine(context);
    if ('reason' in found) return found;
    const fire = (): RunDecision => ({ outcome: 'fired', job: createJob(context, found) });
    if (overlapPolicy === 'allowAll') return fire();
    const unfinished = await listUnfinishedJobs(trx, id, MAX_CANCELLED_PER_DECISION + 1);
    const buffered = await findBufferedRun(trx, id);
    if (unfinished.length === 0 && !buffered) return fire();
    if (overlapPolicy === 'skip' || (overlapPolicy === 'bufferOne' && buffered))
      return { outcome: 'skipped', reason: 'overlap' };
    if (overlapPolicy === 'bufferOne') return { outcome: 'buffered' };
    await skipBuffered(work, trx, schedule, 'overlap');
    return (await cancelOldest(context, unfinished)) ? fire() : { outcome: 'buffered' };
  }

  return { isLeftToOthers, examine, createJob, cancelOldest, skipBuffered, decide };
}
