import { unlessNothing, type Commit, type Note } from '../db/commit.ts';
import type { Knex } from '../db/core/knex.ts';
import { claimAttempt, jobChange, noteJobChange, type JobGuard } from '../db/jobs/jobs.ts';
import { Job } from '../db/models/Job.ts';
import { systemCaller, type Caller } from '../domain/shared/caller.ts';
import { isFinal, MAX_RESULT_BYTES, type FinalJobStatus, type JobError } from '../domain/jobs/jobs.ts';
import { JobFailure, permissionsToRun, type JobType, type Lane } from '../domain/jobType.ts';
import { mayRetry, retryDelayMs } from '../domain/jobs/retry.ts';
import type { Rights } from '../domain/access/scope.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Metrics } from '../platform/metrics.ts';
import { jobWorkflowId, type DispatchTask } from '../temporal/contracts.ts';
import type { Access } from './access.ts';
import { createRunLog, type RunLog, type Taken } from './jobs/runLog.ts';
import type { JobEnds } from './jobEnds.ts';
import { auditView, jobEnded, jobLogged, subject } from './jobs/jobAudit.ts';
import type { JobTypes } from './jobTypes/registry.ts';
import { persistently } from './persistently.ts';
import type { UserRights } from './access/rights.ts';

export type JobRuns = ReturnType<typeof createJobRuns>;

/** An attempt that failed, and what Temporal shall do about it. `message` is only for PostgreSQL. */
export class AttemptFailed extends Error {
  readonly code: string;
  /** Milliseconds until the next attempt, or null when there is none. */
  readonly retryInMs: number | null;

  constructor(code: string, retryInMs: number | null) {
    super(code);
    this.name = 'AttemptFailed';
    this.code = code;
    this.retryInMs = retryInMs;
  }
}

/** The run of a job's workflow, as Temporal names it. */
export type RunOf = { jobId: string; runId: string };

/** Asked before an attempt is counted: null when it may begin, else how many milliseconds to wait. */
export type Admit = (jobId: string) => Promise<number | null>;

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  note: Note;
  access: Access;
  rights: UserRights;
  jobTypes: JobTypes;
  ends: JobEnds;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  /** By lane; what is not here is always admitted. */
  admit: Partial<Record<Lane, Admit>>;
};

/** A wait that a server asked for is honoured up to this. */
const MAX_ASKED_DELAY_MS = 3_600_000;

/** A job that waits for its next attempt is looked at by the reconciler when that is due, or after this. */
const MAX_UNCHECKED_MS = 3_600_000;

/** What the workflow of a job does to its record. Every step may be repeated: the second time changes nothing. */
export function createJobRuns({
  db,
  commit,
  note,
  access,
  rights,
  jobTypes,
  ends,
  clock,
  log,
  metrics,
  admit,
}: Deps) {
  /** Moves a job to its end; false when it has one already or another run has it. */
  async function finish(job: Job, { lines, progress }: Taken, end: JobEnd): Promise<boolean> {
    const error = end.error ?? null;
    const done = await commit(systemCaller(job.tenantId, jobWorkflowId(job.id)), async (work) => {
      work.change(
        jobChange(
          job.id,
          end.guard,
          {
            status: end.status,
            updated_at: work.now,
            finished_at: work.now,
            result: end.result ?? null,
            error: error && JSON.stringify(error),
            ...progress,
          },
          lines,
          [jobEnded(job.id), jobLogged(job.id)],
        ),
      );
      const ended = { ...view(job), status: end.status, error };
      work.audit(`job.${VERBS[end.status]}`, subject(job), {
        before: auditView(job),
        after: auditView(ended),
      });
      await ends.ended(work, ended);
      return true;
    }).catch(unlessNothing(false));
    if (!done) return false;
    metrics.jobsFinished.inc({ type: job.type, status: end.status });
    return true;
  }

  /**
   * Notes a failed attempt; the record keeps its error until an attempt succeeds. What Temporal is told afterwards
   * must not depend on whether this could be written: a failure that allows no further attempt stays one.
   */
  async function noteFailure(
    job: Job,
    lane: Lane,
    { lines, progress }: Taken,
    error: JobError,
    retryInMs: number,
  ): Promise<void> {
    const write = () =>
      note((on, now) =>
        noteJobChange(
          on,
          jobChange(
            job.id,
            { statuses: ['running'], attempt: attemptOf(job) },
            {
              error: JSON.stringify(error),
              updated_at: now,
              checked_at: new Date(now.getTime() + Math.min(retryInMs, MAX_UNCHECKED_MS)),
              ...progress,
            },
            lines,
            [jobLogged(job.id)],
          ),
        ),
      );
    await persistently(write, lane).catch((failure: unknown) => {
      log.error(
        { err: failure, jobId: job.id, code: error.code },
        'a failed attempt could not be recorded',
      );
    });
  }

  /** Ends an attempt that failed; `attempt` is its number, where that is not the job's. */
  async function failAttempt(
    job: Job,
    lane: Lane,
    run: RunLog,
    failure: JobFailure,
    attempt = job.attempts,
  ): Promise<never> {
    const retry = failure.retryable && mayRetry(job.retryPolicy, attempt, failure.code);
    const askedMs = Math.min(failure.retryAfterMs ?? 0, MAX_ASKED_DELAY_MS);
    const retryInMs = retry ? Math.max(retryDelayMs(job.retryPolicy, attempt), askedMs) : null;
    const next =
      retryInMs === null ? 'no further attempt' : `next attempt in ${retryInMs / 1_000} s`;
    run.note('error', `Attempt ${attempt} failed: ${failure.code}: ${failure.message}; ${next}`);
    await noteFailure(
      job,
      lane,
      run.take(),
      { code: failure.code, message: failure.message },
      retryInMs ?? 0,
    );
    throw new AttemptFailed(failure.code, retryInMs);
  }

  const mayRun = (held: Rights, job: Job, type: JobType): boolean =>
    type.checksRights ||
    permissionsToRun(type).every((permission) => access.holds(held, permission, job));

  /** Whom a job acts for, with the rights held now. Error: `JobFailure` where those are not enough any more. */
  async function callerOf(job: Job, type: JobType): Promise<Caller> {
    const held = await rights.ofAuthority(job.authority);
    if (!mayRun(held, job, type)) {
      throw new JobFailure(
        'permission_lost',
        `${job.authority.actorId} may no longer run ${job.type} here`,
        {
          retryable: false,
        },
      );
    }
    return {
      ...systemCaller(job.tenantId, jobWorkflowId(job.id)),
      actorId: job.authority.actorId,
      rights: held,
    };
  }

  async function perform(
    job: Job,
    type: JobType,
    run: RunLog,
    signal: AbortSignal,
  ): Promise<string> {
    if (type.lane === 'steps')
      throw new JobFailure('unexpected', 'The job is done in steps', { retryable: false });
    const caller = await callerOf(job, type);
    const limit = AbortSignal.timeout(type.timeoutMs);
    const result = await type
      .run(job.payload, {
        attempt: job.attempts,
        runId: job.runId ?? '',
        startedAt: job.startedAt ?? clock.now(),
        jobId: job.id,
        source: { kind: job.sourceKind, id: job.sourceId },
        caller,
        signal: AbortSignal.any([signal, limit]),
        log: run.log,
        progress: run.progress,
      })
      .catch((error: unknown) => {
        if (!limit.aborted) throw error;
        throw new JobFailure('timed_out', `The attempt took longer than ${type.timeoutMs} ms`);
      });
    return resultText(result);
  }

  /** Claims the next attempt, or says why there is none. */
  async function begin({ jobId, runId }: RunOf): Promise<Job | undefined> {
    const job = await note((on, now) => claimAttempt(on, { jobId, runId, now }));
    if (job) return job;
    const known = await Job.query(db).findById(jobId);
    const ours = known?.status === 'running' && known.runId === runId;
    // The last attempt that the policy allows died with its worker.
    if (ours) throw new AttemptFailed('worker_lost', null);
    return undefined;
  }

  return {
    /** What jobs in steps share with others. */
    parts: { callerOf, failAttempt, finish },

    /**
     * Makes one attempt of a job. Resolves when the job has its end or this run has nothing to do.
     * Errors: `AttemptFailed`; the reason of `signal` when that ended the attempt; database errors.
     */
    async attempt(of: RunOf, lane: Lane, signal: AbortSignal): Promise<void> {
      const waitMs = (await admit[lane]?.(of.jobId)) ?? null;
      if (waitMs !== null) throw new AttemptFailed('no_room', waitMs);
      const job = await begin(of);
      if (!job) return;
      await using run = createRunLog({ note, clock, log, job });
      const type = jobTypes.find(job.type);
      if (!type)
        return await failAttempt(
          job,
          'inline',
          run,
          new JobFailure('unknown_job_type', 'This worker does not know the type'),
        );
      let result: string;
      try {
        result = await perform(job, type, run, signal);
      } catch (error) {
        await run.settled();
        if (!signal.aborted)
          return await failAttempt(job, type.lane, run, toJobFailure(error, log, job));
        run.note('warn', `Attempt ${job.attempts} was interrupted`);
        await noteFailure(
          job,
          'inline',
          run.take(),
          { code: 'interrupted', message: MESSAGES.interrupted },
          0,
        );
        throw signal.reason;
      }
      await run.settled();
      run.note('info', `Succeeded in attempt ${job.attempts}`);
      const taken = run.take();
      const guard = { statuses: ['running'], attempt: attemptOf(job) };
      // The work is done: a database that is away for a moment must not make it be done again.
      await persistently(
        () => finish(job, taken, { status: 'succeeded', result, guard }),
        type.lane,
      );
    },

    /**
     * Gives a job whose workflow has ended without its attempt's doing the end that `status` and `code` say.
     * Does nothing to a job that has ended or that another run has.
     */
    async settle(
      { jobId, runId }: RunOf,
      status: 'failed' | 'cancelled',
      code: string,
    ): Promise<boolean> {
      const job = await Job.query(db).findById(jobId);
      if (!job || isFinal(job.status) || (job.runId !== null && job.runId !== runId)) return false;
      await using run = createRunLog({ note, clock, log, job });
      run.note(
        status === 'cancelled' ? 'warn' : 'error',
        status === 'cancelled' ? 'Cancelled' : `Failed: ${code}`,
      );
      const guard = { statuses: ['queued', 'running'] };
      if (status === 'cancelled') return await finish(job, run.take(), { status, guard });
      return await finish(job, run.take(), { status, guard, error: reasonOf(job, code) });
    },
  };
}

type JobEnd = {
  status: FinalJobStatus;
  /** JSON text. */
  result?: string;
  error?: JobError;
  guard: JobGuard;
};

const VERBS: Readonly<Record<FinalJobStatus, string>> = {
  succeeded: 'succeed',
  failed: 'fail',
  cancelled: 'cancel',
};

const attemptOf = (job: Job) => ({ runId: job.runId ?? '', number: job.attempts });

const MESSAGES: Readonly<Record<string, string>> & { interrupted: string } = {
  interrupted: 'The attempt was interrupted',
  worker_lost: 'The worker stopped during the last attempt that the retry policy allows',
  timed_out: 'The attempt took longer than its type allows',
  workflow_lost: 'The workflow that ran the job is gone',
  workflow_terminated: 'The workflow that ran the job was terminated',
  workflow_closed: 'The workflow that ran the job closed without an outcome',
};

/** An attempt's own words say more than the code with which its workflow ended. */
const reasonOf = (job: Job, code: string): JobError =>
  job.error?.code === code
    ? job.error
    : { code, message: MESSAGES[code] ?? `The job ended with ${code}` };

const view = ({
  id,
  type,
  tenantId,
  createdBy,
  retryPolicy,
  retryOf,
  attempts,
  sourceKind,
  sourceId,
}: Job) => ({
  id,
  type,
  tenantId,
  createdBy,
  retryPolicy,
  retryOf,
  attempts,
  sourceKind,
  sourceId,
});

/** A result as it is kept. Error: `JobFailure` for one that is too large. */
export function resultText(result: object): string {
  const json = JSON.stringify(result);
  if (Buffer.byteLength(json) <= MAX_RESULT_BYTES) return json;
  throw new JobFailure('result_too_large', `The result has more than ${MAX_RESULT_BYTES} bytes`, {
    retryable: false,
  });
}

export function toJobFailure(error: unknown, log: Log, job: Job): JobFailure {
  if (error instanceof JobFailure) return error;
  log.error(
    { err: error, jobId: job.id, jobType: job.type },
    'a job type threw an unexpected error',
  );
  return new JobFailure(
    'unexpected',
    'The job type failed unexpectedly; the log of the worker has the details',
  );
}
