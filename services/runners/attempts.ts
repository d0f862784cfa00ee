import { randomBytes } from 'node:crypto';
import type { WriteUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { attemptGuard, claimAttempts, jobChange, writeJobChange } from '../../db/jobs/jobs.ts';
import { Job } from '../../db/models/Job.ts';
import {
  countConcurrent,
  countOlder,
  findRemoteAttempt,
  lockJob,
  lockRemoteAttempt,
  putAnswer,
  putRemoteAttempt,
  releaseSlot,
  type RemoteAttempt,
} from '../../db/runners/attempts.ts';
import { findOwnRunner } from '../../db/runners/runners.ts';
import { findVersion } from '../../db/runners/types.ts';
import { isFinal, MAX_LOG_LINES, type JobStatus } from '../../domain/jobs/jobs.ts';
import { JobFailure, type RemoteJobType } from '../../domain/jobs/jobType.ts';
import { shapeOf } from '../../domain/runners/shape.ts';
import type { JobData } from '../../domain/jobs/records.ts';
import type { Target } from '../../domain/jobs/targets.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { AppError, notFound } from '../../domain/shared/errors.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Log } from '../../platform/log.ts';
import { compileForeignSchema } from '../../platform/foreignSchema.ts';
import { hashToken } from '../auth/tokens.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { JobAttempts, JobRunRef } from '../jobs/attempts.ts';
import { claimReport } from '../jobs/claimReport.ts';
import { jobLogTopic } from '../jobs/jobAudit.ts';
import { AttemptFailed, serializeResult } from '../jobs/lifecycle.ts';
import { createRunLog, type RunLog } from '../jobs/runLog.ts';
import type { JobSlots } from '../jobs/slots.ts';
import type { SecretsForAttempt } from '../secrets/forAttempt.ts';
import type { RunnerIdentity } from './identity.ts';

export type RemoteAttempts = ReturnType<typeof createRemoteAttempts>;

/** What a runner asks to begin: which process asks, for which run, with which version of the type. */
export type BeginRequest = { runnerId: string; workflowRunId: string; digest: string };

/** The answer to a runner that asks to begin an attempt. */
export type BeginAnswer =
  | {
      outcome: 'started';
      job: JobData;
      type: RemoteJobType;
      /** The version of the type that the runner has. */
      digest: string;
      attemptToken: string;
      deadline: Date;
      /** What the job is about, as it is now. */
      target: Target | null;
      /** The values of the secrets that the type asks for, by the names that its code reads. */
      secrets: Record<string, string>;
    }
  /** There is nothing to do any more. */
  | { outcome: 'ended' }
  /** Not now, or not by this runner. */
  | { outcome: 'wait'; code: string; retryInMs: number }
  /** The job fails, or has to. */
  | { outcome: 'failed'; code: string };

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

type Deps = {
  db: Knex;
  ids: Ids;
  writeUnaudited: WriteUnaudited;
  jobTypes: JobTypes;
  jobSlots: Pick<JobSlots, 'claim'>;
  jobAttempts: Pick<JobAttempts, 'lifecycle' | 'finalizeAbandoned'>;
  secretsForAttempt: SecretsForAttempt;
  /** Called when the event of a first attempt is committed. Must not throw. */
  onEventsCommitted(): void;
  log: Log;
};

/** A runner reports the end of an attempt within this time after its limit. */
const END_MARGIN_MS = 60_000;

/** What cannot begin with this runner, or before someone acts, is asked for again after this time. */
const ASK_LATER_MS = 15_000;

/** Jobs that wait for others of their type ask again after so long for each older one. */
const PER_OLDER_JOB_MS = 1_000;
const MAX_OLDER = 60;

const MAX_FAILURE_CHARS = 4_000;

const wait = (code: string, retryInMs = ASK_LATER_MS): BeginAnswer => ({
  outcome: 'wait',
  code,
  retryInMs: Math.round(retryInMs * (0.75 + Math.random() / 2)),
});

const attemptLost = () =>
  new AppError(
    'attempt_lost',
    'This attempt does not count any more: another one may have started.',
  );

/** What the attempts of a type count together under, if they are limited. */
function concurrencyKey(
  { name, definition: { concurrency } }: RemoteJobType,
  { tenantId, targetSiteId, targetDeviceId }: Job,
): string | null {
  if (!concurrency) return null;
  if ((concurrency.per ?? 'type') === 'type') return name;
  const target = targetDeviceId ?? targetSiteId;
  return concurrency.per === 'target' && target !== null
    ? `${name}/${target}`
    : `${name}/${tenantId}`;
}

/** The attempts that runners make. Everything about them is decided from the record of the job. */
export function createRemoteAttempts({
  db,
  ids,
  writeUnaudited,
  jobTypes,
  jobSlots,
  jobAttempts: { lifecycle, finalizeAbandoned },
  secretsForAttempt,
  onEventsCommitted,
  log,
}: Deps) {
  /** Why a runner cannot begin a job now; null if it can. */
  async function obstacle(
    runner: RunnerIdentity,
    job: Job,
    type: RemoteJobType | undefined,
    { runnerId, digest }: BeginRequest,
  ): Promise<BeginAnswer | null> {
    if (isFinal(job.status)) return { outcome: 'ended' };
    if (job.cancelRequestedAt) return { outcome: 'failed', code: 'cancelled' };
    if (!type) return wait('unknown_job_type');
    if (!type.isEnabled) return wait('job_type_disabled');
    const known = await findOwnRunner(db, { ...runner, processId: runnerId, pool: job.pool });
    if (known?.types[job.type] !== digest) return wait('not_announced', 1_000);
    const version = await findVersion(db, job.type, digest);
    if (version?.shape !== shapeOf(type.definition)) return wait('not_accepted');
    if (job.sourceKind === 'approval' && job.typeDigest !== null && job.typeDigest !== digest)
      return wait('other_digest');
    if (jobTypes.isValidPayload(type, structuredClone(job.payload))) return null;
    await finalizeAbandoned({ jobId: job.id, runId: job.runId }, 'failed', 'invalid_payload');
    return { outcome: 'failed', code: 'invalid_payload' };
  }

  type Claim = { job: Job; attemptToken: string; lost: number | null } | BeginAnswer;

  /** Claims the next attempt within one transaction; undefined if the job has no slot or no attempt left. */
  const claim = (
    runner: RunnerIdentity,
    { id }: Job,
    type: RemoteJobType,
    request: BeginRequest,
  ): Promise<Claim | undefined> =>
    db.transaction(async (trx) => {
      const locked = await lockJob(trx, id);
      if (!locked) return undefined;
      const before = await findRemoteAttempt(trx, id);
      const isRunning = before?.isCurrent === true && before.answer === null;
      if (isRunning && before.leftMs > 0) return wait('leased', before.leftMs + 200);
      const full = await checkConcurrency(trx, locked, type);
      if (full) return full;
      const report = claimReport({ ids, jobTypes }, [id], 'remote');
      const [job] = await claimAttempts(trx, {
        ...report,
        jobIds: [id],
        runId: request.workflowRunId,
        needsSlot: true,
        now: new Date(),
      });
      if (!job) return undefined;
      const attemptToken = randomBytes(32).toString('base64url');
      await putRemoteAttempt(trx, {
        jobId: id,
        attempt: job.attempts,
        runId: request.workflowRunId,
        runnerId: request.runnerId,
        tokenId: runner.tokenId,
        tokenHash: hashToken(attemptToken),
        digest: request.digest,
        concurrencyKey: concurrencyKey(type, job),
        leaseMs: type.definition.lostAfterSeconds * 1_000,
        limitMs: type.timeoutMs + END_MARGIN_MS,
      });
      return { job, attemptToken, lost: isRunning ? before.attempt : null };
    });

  /** The answer for a job that must wait for others of its type, or fails since they run. */
  async function checkConcurrency(
    trx: Knex,
    job: Job,
    type: RemoteJobType,
  ): Promise<BeginAnswer | undefined> {
    const key = concurrencyKey(type, job);
    const { concurrency } = type.definition;
    if (key === null || !concurrency) return undefined;
    if ((await countConcurrent(trx, key, job.id)) < concurrency.limit) return undefined;
    if (concurrency.whenFull === 'refuse') return { outcome: 'failed', code: 'concurrency_limit' };
    await releaseSlot(trx, job.id);
    const older = await countOlder(trx, job, MAX_OLDER);
    return wait('concurrency', Math.max(older / concurrency.limit, 1) * PER_OLDER_JOB_MS);
  }

  /** Ends a job that has no attempt left, or says why it cannot begin. */
  async function withoutClaim(jobId: string, workflowRunId: string): Promise<BeginAnswer> {
    const job = await Job.query(db).findById(jobId);
    if (!job || isFinal(job.status)) return { outcome: 'ended' };
    if (job.runId !== null && job.runId !== workflowRunId) return { outcome: 'ended' };
    if (job.attempts < job.retryPolicy.maxAttempts) return wait('no_slot', 1_000);
    await finalizeAbandoned({ jobId, runId: job.runId }, 'failed', 'worker_lost');
    return { outcome: 'failed', code: 'worker_lost' };
  }

  async function noteLostAttempt(job: Job, attempt: number): Promise<void> {
    const line = {
      attempt: job.attempts,
      level: 'warn',
      message: `The runner of attempt ${attempt} was lost`,
      data: null,
      at: new Date(),
    } as const;
    const topics = [jobLogTopic(job.id)];
    const change = jobChange(job.id, attemptGuard(job), {}, [line], topics, { newVersion: false });
    await writeJobChange(db, change);
  }

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
    const type = jobTypes.find(job.type);
    const schema = type?.lane === 'remote' ? type.definition.result : undefined;
    const [error] = schema ? compileForeignSchema(schema)(structuredClone(result)) : [];
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
    /**
     * Begins the next attempt of a job for a runner. Error: `not_found` for a job that is not one of the
     * pools of the runner.
     */
    async begin(
      runner: RunnerIdentity,
      jobId: string,
      request: BeginRequest,
    ): Promise<BeginAnswer> {
      const job = await Job.query(db).findById(jobId);
      if (!job || !runner.pools.includes(job.pool)) throw notFound('job', jobId);
      await jobTypes.refreshUnknown(job.type);
      const found = jobTypes.find(job.type);
      const type = found?.lane === 'remote' ? found : undefined;
      const refusal = await obstacle(runner, job, type, request);
      if (refusal || !type) return refusal ?? wait('unknown_job_type');
      let claimed: Claim | undefined;
      try {
        claimed = await jobSlots.claim(jobId, () => claim(runner, job, type, request));
      } catch (error) {
        if (error instanceof AttemptFailed) return wait(error.code, error.retryInMs ?? 1_000);
        throw error;
      }
      if (!claimed) return withoutClaim(jobId, request.workflowRunId);
      if ('outcome' in claimed) {
        if (claimed.outcome === 'failed')
          await finalizeAbandoned({ jobId, runId: job.runId }, 'failed', claimed.code);
        return claimed;
      }
      return started({ ...claimed, digest: request.digest }, type);
    },

    /** The attempt with a token, locked until the transaction ends. Error: `attempt_lost`. */
    async requireCurrent(
      trx: Knex,
      runner: RunnerIdentity,
      jobId: string,
      attemptToken: string,
    ): Promise<RemoteAttempt> {
      const attempt = await lockRemoteAttempt(trx, jobId, hashToken(attemptToken));
      if (attempt?.tokenId !== runner.tokenId) throw attemptLost();
      if (!attempt.isCurrent || attempt.answer !== null) throw attemptLost();
      return attempt;
    },

    /**
     * Records the end of an attempt. A repeated call returns the same answer. Error: `attempt_lost`.
     */
    async end(
      runner: RunnerIdentity,
      jobId: string,
      attemptToken: string,
      request: EndRequest,
    ): Promise<EndAnswer> {
      const attempt = await lockRemoteAttempt(db, jobId, hashToken(attemptToken));
      if (attempt?.tokenId !== runner.tokenId) throw attemptLost();
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

  /**
   * Checks the rights of an attempt that was claimed, and returns what the runner gets: secrets only now,
   * so that no other attempt gets them.
   */
  async function started(
    {
      job,
      attemptToken,
      lost,
      digest,
    }: { job: Job; attemptToken: string; lost: number | null; digest: string },
    type: RemoteJobType,
  ): Promise<BeginAnswer> {
    if (job.attempts === 1) onEventsCommitted();
    if (lost !== null) await noteLostAttempt(job, lost);
    try {
      const { caller, target } = await lifecycle.contextForJob(job, type);
      const secrets = await secretsForAttempt(caller, {
        jobId: job.id,
        attempt: job.attempts,
        pool: job.pool,
        wanted: type.definition.secrets ?? {},
      });
      const deadline = new Date(Date.now() + type.timeoutMs);
      return { outcome: 'started', job, attemptToken, type, digest, deadline, target, secrets };
    } catch (error) {
      if (!(error instanceof JobFailure)) throw error;
      await using runLog = createRunLog({ writeUnaudited, log, job });
      await fail(job, runLog, error);
      return { outcome: 'failed', code: error.code };
    }
  }
}

/** Lines that the log of a job still has space for. */
export const remainingLines = ({ logCount }: Pick<JobData, 'logCount'>): number =>
  Math.max(MAX_LOG_LINES - logCount, 0);
