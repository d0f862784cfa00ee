import { cut } from '../../domain/shared/excerpt.ts';
import { storableJson } from '../../domain/shared/storableJson.ts';
import type { WriteUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { writeChanges } from '../../db/core/unitOfWork.ts';
import { attemptGuard, jobChange, writeJobChange } from '../../db/jobs/jobs.ts';
import { Job } from '../../db/models/Job.ts';
import { answerChange, findRemoteAttempt } from '../../db/runners/attempts.ts';
import { findVersion } from '../../db/runners/types.ts';
import { isFinal, runOf } from '../../domain/jobs/jobs.ts';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Log } from '../../platform/log.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { JobAttempts } from '../jobs/attempts.ts';
import {
  AttemptFailed,
  interruption,
  LEASE_CHECK_MS,
  planRetry,
  type JobLifecycle,
  type JobRunRef,
} from '../jobs/lifecycle.ts';
import { countedAttempts } from '../../domain/jobs/retry.ts';
import type { EndAnswer, EndRequest } from '../../domain/runners/protocol.ts';
import { logChange } from '../jobs/logChange.ts';
import { createRunLog } from '../jobs/runLog.ts';
import { serializeResult } from '../shared/serializeResult.ts';
import { TAKEN_OVER } from '../jobs/takeOver.ts';
import { attemptLost, requireOwn } from './currentAttempt.ts';
import type { RunnerIdentity } from './identity.ts';

export type EndAttempt = ReturnType<typeof createEndAttempt>;

export type EndDeps = {
  db: Knex;
  writeUnaudited: WriteUnaudited;
  jobTypes: JobTypes;
  jobLifecycle: JobLifecycle;
  jobAttempts: Pick<JobAttempts, 'finalizeAbandoned' | 'takeOver'>;
  log: Log;
};

const MAX_FAILURE_CHARS = 4_000;

/**
 * A run that waits until a command has stopped checks that again after this time at the latest. It is longer than
 * `localRetryThreshold` of the workflow, which then waits for a timer of Temporal.
 */
const MAX_STOP_CHECK_MS = 6_000;

/** The ends of the attempts that runners make. */
export function createEndAttempt({
  db,
  writeUnaudited,
  jobTypes,
  jobLifecycle: lifecycle,
  jobAttempts: { finalizeAbandoned, takeOver },
  log,
}: EndDeps) {
  /**
   * The answer to the end of an attempt that was recorded, or whose job has ended otherwise: it is noted that the
   * attempt has ended, too. Error: `attempt_lost`.
   */
  async function recordedEnd(jobId: string, attempt: number): Promise<EndAnswer> {
    const now = await findRemoteAttempt(db, jobId);
    if (now?.attempt === attempt && now.answer !== null) return now.answer as EndAnswer;
    const job = await Job.query(db).findById(jobId);
    if (job?.attempts !== attempt || !isFinal(job.status)) throw attemptLost();
    const answer = { status: job.status, code: job.error?.code ?? null, retryInMs: null };
    await writeChanges(db, [answerChange({ jobId, attempt }, answer)]);
    return answer;
  }

  /** What follows after the current attempt of a job has failed. */
  function planAfter(job: Job, failure: JobFailure) {
    // A runner that stops in order reports so.
    const interrupted = failure.code === 'interrupted' ? interruption(job) : {};
    const counted = countedAttempts({
      attempts: job.attempts,
      interruptions: job.interruptions,
      ...interrupted,
    });
    return { interrupted, ...planRetry(job.retryPolicy, job.attempts, failure, counted) };
  }

  /**
   * Records a failed attempt with the answer to its runner, and the end of the job if it was the last, in
   * one commit. Error: `attempt_lost`.
   */
  async function fail(job: Job, failure: JobFailure): Promise<EndAnswer> {
    await using runLog = createRunLog({ writeUnaudited, log, job });
    const { code, message } = failure;
    const { interrupted, retryInMs, line } = planAfter(job, failure);
    const error = { code, message };
    runLog.logSystem('error', line);
    const answer = { status: retryInMs === null ? 'failed' : 'retrying', code, retryInMs } as const;
    const also = answerChange({ jobId: job.id, attempt: job.attempts }, answer);
    if (retryInMs !== null) {
      const failed = { error, retryInMs, ...interrupted };
      const done = await lifecycle.recordRetry(job, 'remote', runLog.drain(), failed, also);
      return done ? answer : await recordedEnd(job.id, job.attempts);
    }
    runLog.logSystem('error', `Failed: ${code}`);
    const guard = attemptGuard(job);
    const ended = { status: 'failed', error, guard, also } as const;
    const done = await lifecycle.finish(job, runLog.drain(), ended);
    return done ? answer : await recordedEnd(job.id, job.attempts);
  }

  /** What the runner of an attempt has under the name of its type; after that was forgotten, the current version. */
  async function definitionOf({ type: name }: Job, digest: string) {
    const type = jobTypes.find(name);
    const current = type?.lane === 'remote' ? type : undefined;
    if (current?.digest === digest) return current.definition;
    return (await findVersion(db, name, digest))?.definition ?? current?.definition ?? {};
  }

  /** Error: `JobFailure` for a result that the version of the type which the runner has does not allow. */
  async function checkResult(job: Job, digest: string, result: object): Promise<string> {
    const definition = await definitionOf(job, digest);
    const [error] = jobTypes.resultErrors(definition, structuredClone(result));
    if (error)
      throw new JobFailure('invalid_result', `The result${error.pointer} ${error.message}`, {
        retryable: false,
      });
    return serializeResult(result);
  }

  async function succeed(job: Job, digest: string, result: object): Promise<EndAnswer> {
    let json: string;
    try {
      json = await checkResult(job, digest, result);
    } catch (error) {
      if (error instanceof JobFailure) return fail(job, error);
      throw error;
    }
    await using runLog = createRunLog({ writeUnaudited, log, job });
    runLog.logSystem('info', `Succeeded in attempt ${job.attempts}`);
    const answer = { status: 'succeeded', code: null, retryInMs: null } as const;
    const done = await lifecycle.finish(job, runLog.drain(), {
      status: 'succeeded',
      result: json,
      guard: attemptGuard(job),
      also: answerChange({ jobId: job.id, attempt: job.attempts }, answer),
    });
    return done ? answer : await recordedEnd(job.id, job.attempts);
  }

  /** Says in the log of a job how many lines it lacks. */
  const noteDropped = (job: Job, count: number): Promise<void> =>
    writeUnaudited((executor, at) => {
      const message = `Lines of attempt ${job.attempts} that were left out: ${count}`;
      const line = { attempt: job.attempts, level: 'warn', message, data: null, at } as const;
      const change = logChange({ jobId: job.id, guard: attemptGuard(job), lines: [line] });
      return writeJobChange(executor, change);
    });

  async function record(job: Job, digest: string, request: EndRequest): Promise<EndAnswer> {
    const { droppedLines = 0 } = request;
    if (droppedLines > 0) await noteDropped(job, droppedLines);
    if ('result' in request)
      return succeed(job, digest, storableJson(request.result) as typeof request.result);
    if ('failure' in request) {
      const { code, message, retryable = true, retryAfterSeconds = 0 } = request.failure;
      const text = cut(storableJson(message) as string, MAX_FAILURE_CHARS);
      const retryAfterMs = retryAfterSeconds * 1_000;
      return fail(job, new JobFailure(code, text, { retryable, retryAfterMs }));
    }
    return cancel(job);
  }

  /**
   * Records that an attempt was cancelled. If that was not requested of Holdfast, the workflow was cancelled in Temporal:
   * it ends the job, unless another attempt may follow.
   */
  async function cancel(job: Job): Promise<EndAnswer> {
    if (job.cancelRequestedAt) await finalizeAbandoned(runOf(job), 'cancelled', 'cancelled');
    else {
      const failure = new JobFailure('interrupted', 'The runner stopped the attempt');
      if (planAfter(job, failure).retryInMs !== null) return fail(job, failure);
    }
    const answer = { status: 'cancelled', code: 'cancelled', retryInMs: null } as const;
    await writeChanges(db, [answerChange({ jobId: job.id, attempt: job.attempts }, answer)]);
    return answer;
  }

  /**
   * Lets the runner of an attempt learn, from its next report, that the work is to be stopped: the workflow of the job
   * was cancelled in Temporal.
   */
  const requestStop = (job: Job): Promise<void> =>
    writeUnaudited((executor, now) => {
      const values = { cancel_requested_at: now, updated_at: now };
      const change = jobChange({ jobId: job.id, guard: attemptGuard(job), values });
      return writeJobChange(executor, change);
    });

  return {
    fail,

    /**
     * Records the end of an attempt. A repeated call returns the same answer. Error: `attempt_lost`.
     */
    async end(
      runner: RunnerIdentity,
      jobId: string,
      attemptToken: string,
      request: EndRequest,
    ): Promise<EndAnswer> {
      const attempt = await requireOwn(db, runner, jobId, attemptToken);
      if (attempt.answer !== null) return attempt.answer as EndAnswer;
      const job = assertDefined(await Job.query(db).findById(jobId), `job ${jobId}`);
      const isCurrent = attempt.isCurrent && job.attempts === attempt.attempt;
      return isCurrent ? record(job, attempt.digest, request) : recordedEnd(jobId, attempt.attempt);
    },

    /**
     * After the activity of a runner has completed: null if the job has ended, otherwise the milliseconds
     * until the next attempt. Error: `AttemptFailed` if there is none.
     */
    async finalize({ jobId, runId }: JobRunRef): Promise<number | null> {
      const job = await Job.query(db).findById(jobId);
      if (!job || isFinal(job.status)) return null;
      if (job.runId !== null && job.runId !== runId) {
        if (await takeOver({ jobId, runId })) throw TAKEN_OVER;
        return null;
      }
      if (job.cancelRequestedAt) throw new AttemptFailed('cancelled', null);
      const attempt = await findRemoteAttempt(db, jobId);
      const { status, retryInMs } = (attempt?.answer ?? {}) as Partial<EndAnswer>;
      if (attempt?.isCurrent && typeof retryInMs === 'number') return retryInMs;
      // Its runner says that it was cancelled, and its workflow was not.
      if (attempt?.isCurrent && status === 'cancelled')
        throw new AttemptFailed('interrupted', null);
      if (job.status === 'queued' || attempt?.isCurrent !== true)
        throw new AttemptFailed('not_reported', null);
      const failure = new JobFailure('not_reported', 'The runner did not report how it ended');
      return (await fail(job, failure)).retryInMs;
    },

    /**
     * Before a run ends its job as cancelled. Temporal may have dropped the activity, as in an outage, while its command
     * runs. Error: `AttemptFailed('leased')` until the attempt has ended, or its lease.
     */
    async requireStopped({ jobId, runId }: JobRunRef): Promise<void> {
      const attempt = await findRemoteAttempt(db, jobId);
      const mayRun = attempt?.isCurrent === true && attempt.answer === null && attempt.leftMs > 0;
      if (!mayRun || attempt.runId !== runId) return;
      const job = await Job.query(db).findById(jobId);
      if (job?.cancelRequestedAt === null) await requestStop(job);
      throw new AttemptFailed(
        'leased',
        Math.min(attempt.leftMs + LEASE_CHECK_MS, MAX_STOP_CHECK_MS),
      );
    },
  };
}
