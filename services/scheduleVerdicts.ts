import type { Work } from '../db/commit.ts';
import type { Knex } from '../db/core/knex.ts';
import { Job } from '../db/models/Job.ts';
import type { Schedule } from '../db/models/Schedule.ts';
import { ScheduleRun } from '../db/models/ScheduleRun.ts';
import { bufferedRun, unfinishedJobs } from '../db/schedules/schedules.ts';
import { systemCaller, type Caller } from '../domain/shared/caller.ts';
import { permissionsFor } from '../domain/jobType.ts';
import type { Rights } from '../domain/access/scope.ts';
import { RUN_KINDS, type RunKind, type RunReason } from '../domain/schedules/schedules.ts';
import { temporalScheduleId, type DispatchTask } from '../temporal/contracts.ts';
import type { Access } from './access.ts';
import type { JobEnds } from './jobEnds.ts';
import type { JobStarts } from './jobStarts.ts';
import type { JobTypes } from './jobTypes/registry.ts';
import { tellRun } from './scheduleTrail.ts';

export type ScheduleVerdicts = ReturnType<typeof createScheduleVerdicts>;

type Hindrance = { outcome: 'skipped' | 'failed'; reason: RunReason };

/** What becomes of a run. A job is made only by `fired`. */
export type Verdict = { outcome: 'fired'; job: Job } | Hindrance | { outcome: 'buffered' };

type Deps = { access: Access; jobTypes: JobTypes; starts: JobStarts; ends: JobEnds };

/** A schedule's owner, who asked for all that it does when they saved it. */
export const asOwner = ({ id, tenantId, owner }: Schedule): Caller => ({
  ...systemCaller(tenantId, temporalScheduleId(id)),
  actorId: owner.actorId,
});

/** Decides what becomes of a run of a schedule whose row is locked. */
export function createScheduleVerdicts({ access, jobTypes, starts, ends }: Deps) {
  /** Why no job may be made of a schedule as it is; null when one may. `held` is what its owner holds now. */
  function hindrance({ jobType, payload, tenantId }: Schedule, held: Rights): Hindrance | null {
    const type = jobTypes.find(jobType);
    // No such type, or one of which jobs are made by an operation of its own.
    if (type?.onlyThrough !== null) return { outcome: 'failed', reason: 'unknown_job_type' };
    // The check fills in defaults: into a copy.
    if (!jobTypes.accepts(type, structuredClone(payload)))
      return { outcome: 'failed', reason: 'payload_invalid' };
    const allowed = permissionsFor(type).every((permission) =>
      access.holds(held, permission, { tenantId }),
    );
    return allowed ? null : { outcome: 'skipped', reason: 'owner_denied' };
  }

  /** Makes a job of a schedule in the transaction of `work`. */
  function makeJob(work: Work<DispatchTask>, schedule: Schedule): Job {
    const { jobType, payload, retryPolicy, owner } = schedule;
    const request = { type: jobType, payload, retryPolicy, createdBy: owner.actorId };
    return starts.add(work, jobTypes.get(jobType), request, asOwner(schedule), {
      source: { kind: 'schedule', id: schedule.id },
      authority: owner,
    });
  }

  /** Cancels the oldest of some jobs; true when that was all of them and none is left to wait for. */
  async function cancelSome(
    work: Work<DispatchTask>,
    trx: Knex,
    jobIds: readonly string[],
  ): Promise<boolean> {
    const some = jobIds.slice(0, CANCEL_AT_ONCE);
    const jobs = await Job.query(trx)
      .whereIn('id', some)
      .whereIn('status', ['queued', 'running'])
      .orderBy('id')
      .forUpdate();
    for (const job of jobs.filter(({ cancelRequestedAt }) => cancelRequestedAt === null)) {
      work.audit(
        'job.cancel',
        { type: 'job', id: job.id },
        { after: { overlapPolicy: 'cancelOther' } },
      );
      await ends.cancel(work, job);
    }
    return jobIds.length <= CANCEL_AT_ONCE && jobs.every(({ status }) => status === 'cancelled');
  }

  /** Ends the wait of a run, and tells of it. */
  async function dropBuffered(
    work: Work<DispatchTask>,
    trx: Knex,
    schedule: Schedule,
    reason: RunReason,
    kinds: readonly RunKind[] = RUN_KINDS,
  ): Promise<void> {
    const run = await bufferedRun(trx, schedule.id);
    if (!run || !kinds.includes(run.kind)) return;
    const ended = await ScheduleRun.query(trx).patchAndFetchById(run.id, {
      outcome: 'skipped',
      reason,
      decidedAt: work.now,
    });
    tellRun(work, schedule, ended);
  }

  /** Decides what a schedule does now, by its overlap policy. */
  async function decide(
    work: Work<DispatchTask>,
    trx: Knex,
    schedule: Schedule,
    held: Rights,
  ): Promise<Verdict> {
    const hindered = hindrance(schedule, held);
    if (hindered) return hindered;
    const policy = schedule.overlapPolicy;
    if (policy === 'allowAll') return { outcome: 'fired', job: makeJob(work, schedule) };
    const [unfinished, buffered] = [
      await unfinishedJobs(trx, schedule.id, CANCEL_AT_ONCE + 1),
      await bufferedRun(trx, schedule.id),
    ];
    if (unfinished.length === 0 && !buffered)
      return { outcome: 'fired', job: makeJob(work, schedule) };
    if (policy === 'skip' || (policy === 'bufferOne' && buffered))
      return { outcome: 'skipped', reason: 'overlap' };
    if (policy === 'bufferOne') return { outcome: 'buffered' };
    await dropBuffered(work, trx, schedule, 'overlap');
    return (await cancelSome(work, trx, unfinished))
      ? { outcome: 'fired', job: makeJob(work, schedule) }
      : { outcome: 'buffered' };
  }

  return { hindrance, makeJob, cancelSome, dropBuffered, decide };
}

/** Jobs that one decision cancels; what is left is cancelled when those have ended. */
export const CANCEL_AT_ONCE = 100;
