import { randomBytes } from 'node:crypto';
import type { WriteUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { attemptGuard, claimAttempts, jobChange, writeJobChange } from '../../db/jobs/jobs.ts';
import { Job } from '../../db/models/Job.ts';
import { findRemoteAttempt, lockJob, putRemoteAttempt } from '../../db/runners/attempts.ts';
import { findOwnRunner } from '../../db/runners/runners.ts';
import { findVersion } from '../../db/runners/types.ts';
import { isFinal } from '../../domain/jobs/jobs.ts';
import { JobFailure, type RemoteJobType } from '../../domain/jobs/jobType.ts';
import { notFound } from '../../domain/shared/errors.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Log } from '../../platform/log.ts';
import { hashToken } from '../auth/tokens.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { JobAttempts } from '../jobs/attempts.ts';
import { claimReport } from '../jobs/claimReport.ts';
import { jobLogTopic } from '../jobs/jobAudit.ts';
import { AttemptFailed } from '../jobs/lifecycle.ts';
import { createRunLog } from '../jobs/runLog.ts';
import type { JobSlots } from '../jobs/slots.ts';
import type { SecretsForAttempt } from '../secrets/forAttempt.ts';
import { wait, type BeginAnswer } from './beginAnswer.ts';
import { checkConcurrency, concurrencyKey } from './concurrency.ts';
import type { EndAttempt } from './endAttempt.ts';
import type { RunnerIdentity } from './identity.ts';

/** What a runner asks to begin: which process asks, for which run, with which version of the type. */
export type BeginRequest = { runnerId: string; workflowRunId: string; digest: string };

export type BeginDeps = {
  db: Knex;
  ids: Ids;
  writeUnaudited: WriteUnaudited;
  jobTypes: JobTypes;
  jobSlots: Pick<JobSlots, 'claim'>;
  jobAttempts: Pick<JobAttempts, 'lifecycle' | 'finalizeAbandoned'>;
  secretsForAttempt: SecretsForAttempt;
  endAttempt: Pick<EndAttempt, 'fail'>;
  /** Called when the event of a first attempt is committed. Must not throw. */
  onEventsCommitted(): void;
  log: Log;
};

/** A runner reports the end of an attempt within this time after its limit. */
const END_MARGIN_MS = 60_000;

/** Creates the function with which a runner begins the next attempt of a job. */
export function createBeginAttempt({
  db,
  ids,
  writeUnaudited,
  jobTypes,
  jobSlots,
  jobAttempts: { lifecycle, finalizeAbandoned },
  secretsForAttempt,
  endAttempt,
  onEventsCommitted,
  log,
}: BeginDeps) {
  /** Why a runner cannot begin a job of a type now; null if it can. */
  async function obstacle(
    runner: RunnerIdentity,
    job: Job,
    type: RemoteJobType,
    { runnerId, digest }: BeginRequest,
  ): Promise<BeginAnswer | null> {
    if (!type.isEnabled) return wait('job_type_disabled');
    const known = await findOwnRunner(db, { ...runner, processId: runnerId, pool: job.pool });
    if (known?.types[job.type] !== digest) return wait('not_announced', 1_000);
    const version = await findVersion(db, job.type, digest);
    if (version?.shape !== type.shape) return wait('not_accepted');
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
      await endAttempt.fail(job, runLog, error);
      return { outcome: 'failed', code: error.code };
    }
  }

  /**
   * Begins the next attempt of a job for a runner. Error: `not_found` for a job that is not one of the
   * pools of the runner.
   */
  async function begin(
    runner: RunnerIdentity,
    jobId: string,
    request: BeginRequest,
  ): Promise<BeginAnswer> {
    const job = await Job.query(db).findById(jobId);
    if (!job || !runner.pools.includes(job.pool)) throw notFound('job', jobId);
    if (isFinal(job.status)) return { outcome: 'ended' };
    if (job.cancelRequestedAt) return { outcome: 'failed', code: 'cancelled' };
    await jobTypes.refreshUnknown(job.type);
    const type = jobTypes.find(job.type);
    if (type?.lane !== 'remote') return wait('unknown_job_type');
    const refusal = await obstacle(runner, job, type, request);
    if (refusal) return refusal;
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
  }

  return begin;
}
