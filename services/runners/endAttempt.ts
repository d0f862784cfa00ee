import type { WriteUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { attemptGuard } from '../../db/jobs/jobs.ts';
import { Job } from '../../db/models/Job.ts';
import { findRemoteAttempt, putAnswer, type RemoteAttempt } from '../../db/runners/attempts.ts';
import { isFinal, type JobStatus } from '../../domain/jobs/jobs.ts';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Log } from '../../platform/log.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { JobAttempts, JobRunRef } from '../jobs/attempts.ts';
import { AttemptFailed, serializeResult } from '../jobs/lifecycle.ts';
import { createRunLog, type RunLog } from '../jobs/runLog.ts';
import { attemptLost, requireOwn } from './currentAttempt.ts';
import type { RunnerIdentity } from './identity.ts';

export type EndAttempt = ReturnType<typeof createEndAttempt>;

/** How an attempt has ended, as its runner says. */
export type EndRequest =
  | { result: object }
  | { failure: { code: string; message: string; retryable?: boolean; retryAfterSeconds?: number } }
  | { cancelled: true };

/** What follows. `retryInMs`: when the next attempt is due; null if there is none. */
export type EndAnswer = {
  status: JobStatus | 'retrying';
  code: string | null;
  retryInMs: number | null;
};

export type EndDeps = {
  db: Knex;
  writeUnaudited: WriteUnaudited;
  jobTypes: JobTypes;
  jobAttempts: Pick<JobAttempts, 'lifecycle' | 'finalizeAbandoned'>;
  log: Log;
};

const MAX_FAILURE_CHARS = 4_000;

/** The ends of the attempts that runners make. */
export function createEndAttempt({
  db,
  writeUnaudited,
  jobTypes,
  jobAttempts: { lifecycle, finalizeAbandoned },
  log,
}: EndDeps) {
  /** Records a failed attempt, and the end of the job if it was the last. */
  async function fail(job: Job, runLog: RunLog, failure: JobFailure): Promise<EndAnswer> {
    try {
      return await lifecycle.failAttempt(job, 'remote', runLog, failure);
    } catch (error) {
      if (!(error instanceof AttemptFailed)) throw error;
      const { code, retryInMs } = error;
      if (retryInMs !== null) return { status: 'retrying', code, retryInMs };
      await finalizeAbandoned({ jobId: job.id, runId: job.runId }, 'failed', code);
      return { status: 'failed', code, retryInMs };
    }
  }

  /** Error: `JobFailure` for a result that the type does not allow. */
  function checkResult(job: Job, result: object): string {
    const [error] = jobTypes.resultErrors(job.type, structuredClone(result));
    if (error)
      throw new JobFailure('invalid_result', `The result${error.pointer} ${error.message}`, {
        retryable: false,
      });
    return serializeResult(result);
  }

  async function succeed(job: Job, runLog: RunLog, result: object): Promise<EndAnswer> {
    let json: string;
    try {
      json = checkResult(job, result);
    } catch (error) {
      if (error instanceof JobFailure) return fail(job, runLog, error);
      throw error;
    }
    runLog.logSystem('info', `Succeeded in attempt ${job.attempts}`);
    const guard = attemptGuard(job);
    const done = await lifecycle.finish(job, runLog.drain(), {
      status: 'succeeded',
      result: json,
      guard,
    });
    if (!done) throw attemptLost();
    return { status: 'succeeded', code: null, retryInMs: null };
  }

  async function record(job: Job, request: EndRequest): Promise<EndAnswer> {
    await using runLog = createRunLog({ writeUnaudited, log, job });
    if ('result' in request) return await succeed(job, runLog, request.result);
    if ('failure' in request) {
      const { code, message, retryable = true, retryAfterSeconds = 0 } = request.failure;
      const text = message.replaceAll('\0', '\uFFFD').slice(0, MAX_FAILURE_CHARS);
      const retryAfterMs = retryAfterSeconds * 1_000;
      return await fail(job, runLog, new JobFailure(code, text, { retryable, retryAfterMs }));
    }
    if (!job.cancelRequestedAt)
      return await fail(
        job,
        runLog,
        new JobFailure('interrupted', 'The runner stopped the attempt'),
      );
    await finalizeAbandoned({ jobId: job.id, runId: job.runId }, 'cancelled', 'cancelled');
    return { status: 'cancelled', code: 'cancelled', retryInMs: null };
  }

  /** The answer to the end of an attempt that was recorded, but not answered. Error: `attempt_lost`. */
  function recordedEnd({ attempt }: RemoteAttempt, job: Job): EndAnswer {
    if (job.attempts !== attempt || !isFinal(job.status)) throw attemptLost();
    return { status: job.status, code: job.error?.code ?? null, retryInMs: null };
  }

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
      const answer = attempt.isCurrent ? await record(job, request) : recordedEnd(attempt, job);
      await putAnswer(db, attempt, answer);
      return answer;
    },

    /**
     * After the activity of a runner has completed: null if the job has ended, otherwise the milliseconds
     * until the next attempt. Error: `AttemptFailed` if there is none.
     */
    async finalize({ jobId, runId }: JobRunRef): Promise<number | null> {
      const job = await Job.query(db).findById(jobId);
      if (!job || isFinal(job.status)) return null;
      if (job.runId !== null && job.runId !== runId) return null;
      if (job.cancelRequestedAt) throw new AttemptFailed('cancelled', null);
      const attempt = await findRemoteAttempt(db, jobId);
      const { retryInMs } = (attempt?.answer ?? {}) as Partial<EndAnswer>;
      if (attempt?.isCurrent && typeof retryInMs === 'number') return retryInMs;
      if (job.status === 'queued' || attempt?.isCurrent !== true)
        throw new AttemptFailed('not_reported', null);
      const failure = new JobFailure('not_reported', 'The runner did not report how it ended');
      await using runLog = createRunLog({ writeUnaudited, log, job });
      const answer = await fail(job, runLog, failure);
      await putAnswer(db, attempt, answer);
      return answer.retryInMs;
    },
  };
}
