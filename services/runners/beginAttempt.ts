import { randomBytes } from 'node:crypto';
import type { Knex } from '../../db/core/knex.ts';
import { claimAttempts } from '../../db/jobs/jobs.ts';
import { Job } from '../../db/models/Job.ts';
import {
  findRemoteAttempt,
  lockJob,
  putRemoteAttempt,
  releaseSlot,
} from '../../db/runners/attempts.ts';
import { findOwnRunner, hasVersion, isAnnounced } from '../../db/runners/runners.ts';
import { findTypeWithVersion } from '../../db/runners/types.ts';
import { STALE_TYPE } from '../../domain/approvals/approvals.ts';
import { isFinal, runOf } from '../../domain/jobs/jobs.ts';
import { JobFailure, type RemoteJobType } from '../../domain/jobs/jobType.ts';
import { mayRunVersion } from '../../domain/jobs/records.ts';
import { countedAttempts } from '../../domain/jobs/retry.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { notFound } from '../../domain/shared/errors.ts';
import { END_MARGIN_MS, type BeginRequest } from '../../domain/runners/protocol.ts';
import type { Ids } from '../../platform/ids.ts';
import { hashToken } from '../auth/hashToken.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { JobAttempts } from '../jobs/attempts.ts';
import { claimReport } from '../jobs/claimReport.ts';
import { AttemptFailed, type JobLifecycle } from '../jobs/lifecycle.ts';
import type { JobSlots } from '../jobs/slots.ts';
import { TAKEN_OVER, TAKEN_OVER_MS } from '../jobs/takeOver.ts';
import type { SecretsForAttempt } from '../secrets/forAttempt.ts';
import { askAgain, type BeginAnswer } from './beginAnswer.ts';
import { checkConcurrency, concurrencyKey } from './concurrency.ts';
import { decideBegin, reachOf, waitForLease, type RequestTokens } from './decideBegin.ts';
import type { EndAttempt } from './endAttempt.ts';
import type { RunnerIdentity } from './identity.ts';
import { noteLostAttempt } from './lostAttempt.ts';
import { toJobType } from './remoteTypes.ts';

/** A request with what the API has added to it. */
type Asked = BeginRequest & RequestTokens;

/** A request of a runner that has the type. */
type AskedWithType = Asked & { digest: string };

export type BeginDeps = {
  db: Knex;
  ids: Ids;
  jobTypes: JobTypes;
  jobSlots: Pick<JobSlots, 'claim' | 'wake'>;
  jobLifecycle: JobLifecycle;
  jobAttempts: Pick<JobAttempts, 'finalizeAbandoned' | 'takeOver'>;
  secretsForAttempt: SecretsForAttempt;
  endAttempt: Pick<EndAttempt, 'fail'>;
  /** Called when the event of a first attempt is committed. Must not throw. */
  onEventsCommitted(): void;
};

/** A runner that has not announced the type: another one of the pool may have it, or may get it. */
const OTHER_RUNNER_MS = 1_000;
const NO_RUNNER_MS = 5_000;

/** The runner has another version than the one with which the job was approved. */
const OTHER_DIGEST = 'other_digest';

const VERSION_MISSING = {
  code: STALE_TYPE,
  message: 'No runner has the version of the job type that was approved any more',
};

/** Creates the function with which a runner begins the next attempt of a job. */
export function createBeginAttempt({
  db,
  ids,
  jobTypes,
  jobSlots,
  jobLifecycle: lifecycle,
  jobAttempts: { finalizeAbandoned, takeOver },
  secretsForAttempt,
  endAttempt,
  onEventsCommitted,
}: BeginDeps) {
  /**
   * The type of a job as its runner has it; or why the runner cannot begin the job now. Other processes change
   * types: they are read as they are, and limits are those of the version that runs.
   */
  async function versionFor(
    runner: RunnerIdentity,
    job: Job,
    { runnerId, digest }: BeginRequest,
  ): Promise<RemoteJobType | BeginAnswer> {
    const version = await findTypeWithVersion(db, job.type, digest ?? '');
    if (!version) return askAgain('unknown_job_type');
    if (version.state !== 'accepted') return askAgain('job_type_disabled');
    const known = await findOwnRunner(db, { ...runner, processId: runnerId, pool: job.pool });
    if (digest === undefined || known?.types[job.type] !== digest) {
      const others = await isAnnounced(db, job.pool, job.type);
      return askAgain('not_announced', others ? OTHER_RUNNER_MS : NO_RUNNER_MS);
    }
    if (version.shape === null || version.shape !== version.acceptedShape)
      return askAgain('not_accepted');
    return mayRunVersion(job, digest) ? toJobType(version) : askAgain(OTHER_DIGEST);
  }

  /** True if the version with which a job was approved no longer exists, so that the job waits for nothing. */
  const isVersionMissing = async ({ pool, type, typeDigest }: Job, answer: BeginAnswer) =>
    answer.outcome === 'wait' &&
    answer.code === OTHER_DIGEST &&
    !(await hasVersion(db, { pool, type, digest: typeDigest ?? '' }));

  type Claim = { job: Job } | BeginAnswer;

  /** Claims the next attempt within one transaction; undefined if the job has no slot or no attempt left. */
  const claim = (
    runner: RunnerIdentity,
    { id }: Job,
    type: RemoteJobType,
    request: AskedWithType,
  ): Promise<Claim | undefined> =>
    db.transaction(async (trx) => {
      const locked = await lockJob(trx, id);
      if (!locked) return undefined;
      const decision = decideBegin(locked, await findRemoteAttempt(trx, id), request);
      if (!decision.begins) {
        if (decision.releasesSlot === true) await releaseSlot(trx, id);
        return decision.answer;
      }
      const { continues, isLeased, lost } = decision;
      if (!isLeased) {
        const full = await checkConcurrency(trx, locked, type, { keepsSlot: continues });
        if (full) return full;
      }
      const job = continues ? locked : await claimNext(trx, locked, request.workflowRunId);
      if (!job) return undefined;
      if (lost !== null) await noteLostAttempt(trx, job, lost);
      await putRemoteAttempt(trx, {
        jobId: id,
        attempt: job.attempts,
        runId: request.workflowRunId,
        runnerId: request.runnerId,
        tokenId: runner.tokenId,
        tokenHash: hashToken(request.attemptToken),
        digest: request.digest,
        concurrencyKey: concurrencyKey(type, job),
        leaseMs: type.definition.lostAfterSeconds * 1_000,
        limitMs: type.timeoutMs + END_MARGIN_MS,
      });
      return { job };
    });

  async function claimNext(trx: Knex, { id }: Job, runId: string): Promise<Job | undefined> {
    const report = claimReport({ ids, jobTypes }, [id], 'remote');
    const claim = { ...report, jobIds: [id], runId, needsSlot: true, now: new Date() };
    return (await claimAttempts(trx, claim))[0];
  }

  /** Ends a job that has no attempt left, or says why it cannot begin. */
  async function withoutClaim(jobId: string, workflowRunId: string): Promise<BeginAnswer> {
    const job = await Job.query(db).findById(jobId);
    if (!job || isFinal(job.status)) return { outcome: 'ended' };
    if (job.runId !== null && job.runId !== workflowRunId)
      return (await takeOver({ jobId, runId: workflowRunId }))
        ? askAgain(TAKEN_OVER.code, TAKEN_OVER_MS)
        : { outcome: 'ended' };
    if (countedAttempts(job) < job.retryPolicy.maxAttempts) return askAgain('no_slot', 1_000);
    await finalizeAbandoned(runOf(job), 'failed', 'worker_lost');
    return { outcome: 'failed', code: 'worker_lost' };
  }

  /**
   * The answer for a job that cannot begin with this runner, or before someone acts. It keeps no slot, since
   * others would wait for it; when it can begin, it asks for one. A last attempt that is lost ends the job.
   */
  async function withoutSlot(job: Job, request: Asked, answer: BeginAnswer): Promise<BeginAnswer> {
    const attempt = await findRemoteAttempt(db, job.id);
    const isLost =
      attempt?.attempt === job.attempts &&
      job.status === 'running' &&
      attempt.answer === null &&
      attempt.leftMs === 0 &&
      reachOf(attempt, request) === undefined;
    if (isLost && countedAttempts(job) >= job.retryPolicy.maxAttempts)
      return withoutClaim(job.id, request.workflowRunId);
    if (await db.transaction((trx) => releaseSlot(trx, job.id))) jobSlots.wake();
    return answer;
  }

  /** The answer for a job that is to end with a code: an attempt of another runner ends before the job does. */
  async function endAfterLease(job: Job, request: Asked, code: string): Promise<BeginAnswer> {
    const attempt = await findRemoteAttempt(db, job.id);
    const runs = attempt?.isCurrent === true && attempt.answer === null && attempt.leftMs > 0;
    return runs && reachOf(attempt, request) === undefined
      ? waitForLease(attempt)
      : { outcome: 'failed', code };
  }

  /** Ends a job that can never run as its type is now. */
  async function endUnrunnable(
    job: Job,
    request: Asked,
    { code, message }: { code: string; message: string },
  ): Promise<BeginAnswer> {
    const answer = await endAfterLease(job, request, code);
    if (answer.outcome === 'failed')
      await finalizeAbandoned(runOf(job), 'failed', code, { message });
    return answer;
  }

  /**
   * Checks the rights of an attempt that was claimed, and returns what the runner gets: secrets only now,
   * so that no other attempt gets them.
   */
  async function started(
    job: Job,
    { attemptToken, digest }: { attemptToken: string; digest: string },
    type: RemoteJobType,
  ): Promise<BeginAnswer> {
    if (job.attempts === 1) onEventsCommitted();
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
      await endAttempt.fail(job, error);
      return { outcome: 'failed', code: error.code };
    }
  }

  /**
   * Begins the next attempt of a job for a runner. A job without a record has ended: PostgreSQL has lost it, and its
   * workflow would ask for ever. Error: `not_found` for a job that is not one of the pools of the runner.
   */
  return async (
    runner: RunnerIdentity,
    jobId: string,
    asked: BeginRequest,
  ): Promise<BeginAnswer> => {
    const request: Asked = { attemptToken: newToken(), unanswered: [], ...asked };
    const job = await Job.query(db).findById(jobId);
    if (!job) return { outcome: 'ended' };
    if (!runner.pools.includes(job.pool)) throw notFound('job', jobId);
    if (isFinal(job.status)) return { outcome: 'ended' };
    if (job.cancelRequestedAt) return endAfterLease(job, request, 'cancelled');
    await jobTypes.refreshUnknown(job.type);
    if (jobTypes.find(job.type)?.lane !== 'remote')
      return withoutSlot(job, request, askAgain('unknown_job_type'));
    const type = await versionFor(runner, job, request);
    if ('outcome' in type)
      return (await isVersionMissing(job, type))
        ? endUnrunnable(job, request, VERSION_MISSING)
        : withoutSlot(job, request, type);
    const invalid = jobTypes.payloadError(type, job.payload);
    if (invalid !== null)
      return endUnrunnable(job, request, { code: 'payload_invalid', message: invalid });
    const withType = { ...request, digest: assertDefined(request.digest, 'request.digest') };
    let claimed: Claim | undefined;
    try {
      claimed = await jobSlots.claim(jobId, () => claim(runner, job, type, withType));
    } catch (error) {
      if (error instanceof AttemptFailed) return askAgain(error.code, error.retryInMs ?? 1_000);
      throw error;
    }
    if (!claimed) return withoutClaim(jobId, request.workflowRunId);
    if ('outcome' in claimed) {
      if (claimed.outcome === 'failed') await finalizeAbandoned(runOf(job), 'failed', claimed.code);
      return claimed;
    }
    return started(claimed.job, withType, type);
  };
}

const newToken = () => randomBytes(32).toString('base64url');
