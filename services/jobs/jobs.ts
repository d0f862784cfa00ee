import type { Commit } from '../../db/core/commit.ts';
import { createdAtSql } from '../../db/core/listConditions.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Notifications } from '../../db/core/notifications.ts';
import { scopedRepository } from '../../db/core/scopedRepository.ts';
import { whereJobs } from '../../db/jobs/jobFilter.ts';
import { findWithLogs, JOB_SCOPE, JOB_SUMMARY_COLUMNS, logLinesAfter } from '../../db/jobs/jobs.ts';
import { Job } from '../../db/models/Job.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import { isFinal, type JobFilter } from '../../domain/jobs/jobs.ts';
import { permissionsToCreate } from '../../domain/jobs/jobType.ts';
import type { QueuePosition } from '../../domain/jobs/queue.ts';
import type { JobData, JobLogData, JobSummaryData } from '../../domain/jobs/records.ts';
import { scopeOfTarget, targetOf, type TargetRef } from '../../domain/jobs/targets.ts';
import { refuseBuiltInNames } from '../../domain/shared/builtInActors.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { HOUR_MS } from '../../domain/shared/durations.ts';
import { AppError, notFound } from '../../domain/shared/errors.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import type { Slots } from '../../platform/slots.ts';
import type { Access } from '../access/access.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { createWaitForEnd, type WaitLimits } from '../shared/waitForEnd.ts';
import type { JobCompletion } from './completion.ts';
import type { JobFactory } from './createJob.ts';
import { followLog, type LogStreamItem } from './followLog.ts';
import { jobFinishedTopic, jobRecord } from './jobAudit.ts';
import type { JobOrigin, NewJob } from './newJob.ts';
import type { JobReferences } from './payloadReferences.ts';
import type { JobQueue } from './queue.ts';
import type { JobTargets } from './targets.ts';
import { createReadWaitingFor, type WaitingFor } from './waitingFor.ts';

export type Jobs = ReturnType<typeof createJobs>;

/** A job that a caller asks for. */
export type JobRequest = Pick<NewJob, 'payload' | 'createdBy' | 'retryPolicy'> & {
  type: string;
  target?: TargetRef | null;
};

/** A job with the last lines of its log, oldest first. */
export type JobWithLogs = {
  job: JobData;
  logs: JobLogData[];
  /** Temporal keeps the workflow no longer; null: not known. Undefined for a job just created. */
  workflowForgotten?: boolean | null;
  /** Whether the job of which this one is a retry is purged. */
  retriedPurged?: boolean;
  /** The name of its target, for callers who may read that. */
  targetName?: string | null;
  /** What a queued job of runners waits for. */
  waitingFor?: WaitingFor | null;
  /** Where a queued job is in the queue of its tenant. */
  queue?: QueuePosition | null;
};

/** A job that was just created. */
export type CreatedJob = { job: JobData; queue: QueuePosition };

type Deps = {
  db: Knex;
  commit: Commit;
  access: Access;
  jobTypes: JobTypes;
  notifications: Notifications;
  /** How long Temporal keeps workflows after their end; null when that is not known. */
  readRunRetention(): Promise<number | null>;
  slots: { waits: Slots };
  jobFactory: JobFactory;
  jobTargets: JobTargets;
  jobReferences: JobReferences;
  jobCompletion: JobCompletion;
  jobQueue: JobQueue;
};

/** Temporal keeps every workflow at least this long after its end. */
const SHORTEST_RUN_RETENTION_MS = HOUR_MS;

/** Log lines that a read of a job includes. The whole log is under `/logs`. */
const EMBEDDED_LOG_LINES = 200;

/**
 * Most milliseconds between `createdAt` of a job and the time in its id. `createdAt` is when the commit
 * began; the id is generated later, after the commit has waited for its locks.
 */
const ID_TIMES = { toleranceMs: 5_000, laterMs: 60_000 };

/** The operations of callers on jobs. `attempts.ts` has those of the job workflow. */
export function createJobs({
  db,
  commit,
  access,
  jobTypes,
  notifications,
  readRunRetention,
  slots,
  jobFactory,
  jobTargets,
  jobReferences,
  jobCompletion,
  jobQueue,
}: Deps) {
  const readWaitingFor = createReadWaitingFor({ db, jobTypes });
  const waitForEnd = createWaitForEnd({ notifications, slots });
  const repository = scopedRepository<Job>(Job, {
    db,
    commit,
    access,
    kind: 'job',
    readPermission: 'job:read',
    columns: JOB_SUMMARY_COLUMNS,
    scopeColumns: JOB_SCOPE,
    lockBefore: jobCompletion.lockSource,
  });

  /**
   * Creates a job at its target, or at the caller's tenant, and starts it. Errors: `invalid_request`
   * (type, target, payload), `permission_denied` (`job:write`, the type's own permission, a role that
   * names the type, `job:impersonate`), `queue_full`, `server_busy`; what `JobType.check` returns.
   */
  async function create(
    caller: Caller,
    request: JobRequest,
    origin: JobOrigin = {},
  ): Promise<CreatedJob> {
    await jobTypes.refreshUnknown(request.type);
    const type = jobTypes.getPublic(request.type);
    const target = await jobTargets.resolve(caller, type, request.target);
    const scope = target ? scopeOfTarget(target) : { tenantId: caller.tenantId };
    await access.requireJobType(caller, type, scope);
    for (const permission of permissionsToCreate(type))
      await access.require(caller, permission, scope);
    if (request.createdBy !== undefined && request.createdBy !== caller.actorId) {
      await access.require(caller, 'job:impersonate', scope);
      refuseBuiltInNames('body', { '/createdBy': request.createdBy });
    }
    const tenantCaller = { ...caller, tenantId: scope.tenantId };
    const [lack] = await jobTypes.checkPayload(type, request.payload, tenantCaller);
    if (lack) throw lack;
    await jobReferences.check(caller, type, request.payload);

    await jobQueue.admit(scope.tenantId);
    const created = await commit(tenantCaller, (work) => {
      const { payload, createdBy, retryPolicy } = request;
      const job = jobFactory.create(work, {
        ...origin,
        type,
        payload,
        target,
        createdBy,
        retryPolicy,
        caller: tenantCaller,
      });
      work.result(job.id);
      return job;
    });
    return { job: created, queue: jobQueue.added(created) };
  }

  /**
   * One job with the end of its log. With `actedWith`, also one that the caller has just created or
   * acted on with this permission. Error: `not_found`.
   */
  async function read(
    caller: Caller,
    jobId: string,
    actedWith: Permission = 'job:read',
  ): Promise<JobWithLogs> {
    const scope = access.scope(caller, 'job:read', actedWith);
    const found = await findWithLogs(db, jobId, scope, EMBEDDED_LOG_LINES);
    if (!found) throw notFound('job', jobId);
    const { retryOf } = found.job;
    const target = targetOf(found.job);
    return {
      ...found,
      targetName: target && (await jobTargets.nameOf(caller, target)),
      waitingFor: await readWaitingFor(found.job),
      queue: await jobQueue.positionOf(found.job),
      workflowForgotten: await isForgotten(found.job.finishedAt),
      retriedPurged: retryOf !== null && !(await Job.query(db).findById(retryOf).select('id')),
    };
  }

  /** Whether Temporal keeps the workflow of a job no longer; null when that is not known. */
  async function isForgotten(finishedAt: Date | null): Promise<boolean | null> {
    const ageMs = finishedAt === null ? 0 : Date.now() - finishedAt.getTime();
    if (ageMs < SHORTEST_RUN_RETENTION_MS) return false;
    const retentionMs = await readRunRetention();
    return retentionMs === null ? null : ageMs > retentionMs;
  }

  /** Log lines after a line. Error: `log_purged`. */
  async function linesAfter(
    job: JobSummaryData,
    after: number,
    limit: number,
  ): Promise<{ lines: JobLogData[]; hasMore: boolean }> {
    const { items: lines, hasMore } = await logLinesAfter(db, job.id, after, { limit });
    const first = lines[0]?.line ?? job.logCount + 1;
    // Lines have no gaps, and those that the job had when it was read are visible.
    if (first > after + 1 && job.logCount > after && limit > 0)
      throw new AppError('log_purged', `Lines before ${first} of the log are purged.`, {
        oldestLine: first,
      });
    return { lines, hasMore };
  }

  return {
    create,

    read,

    /** Jobs inside the caller's scope. */
    list: (
      caller: Caller,
      filter: JobFilter,
      request: ListRequest,
    ): Promise<ListAnswer<JobSummaryData>> =>
      repository.list(caller, request, {
        columns: { source: 'source_kind' },
        condition: (condition) =>
          condition.field === 'createdAt' ? createdAtSql('job', condition, ID_TIMES) : undefined,
        refine: (query) => whereJobs(query, filter),
      }),

    /**
     * A job with its log lines after line number `after`, oldest first, at most `limit`, fewer when they
     * have the size of a page. Error: `not_found`, `log_purged`.
     */
    async logs(
      caller: Caller,
      jobId: string,
      { after, limit }: { after: number; limit: number },
    ): Promise<{ job: JobSummaryData; lines: JobLogData[]; hasMore: boolean }> {
      const job = await repository.find(caller, jobId);
      return { job, ...(await linesAfter(job, after, limit)) };
    },

    /**
     * Requests the cancellation of a job. A queued job is cancelled immediately, a running job when
     * its attempt has stopped.
     * Errors: `not_found`, `permission_denied`, `job_already_finished`, `version_conflict`.
     */
    async cancel(caller: Caller, jobId: string, expectedVersion?: number): Promise<void> {
      const found = await repository.findToAct(caller, jobId, 'job:cancel');
      await access.requireTypeOfToken(caller, found.type);
      await repository.commitLocked(caller, found, expectedVersion, async (work, job) => {
        if (isFinal(job.status))
          throw new AppError('job_already_finished', `The job has finished: ${job.status}.`);
        const before = job.$clone();
        await jobCompletion.requestCancel(work, job);
        const extra = { cancelRequested: true };
        jobRecord.acted(work, 'cancel', job, { before, after: job, extra });
      });
    },

    /**
     * Creates a new job with the type, payload and retry policy of a finished job. `retryOf` of the
     * new job is the id of the old one.
     * Errors: `not_found`, `permission_denied`, `job_still_running`, `job_not_retryable`.
     */
    async retry(caller: Caller, jobId: string): Promise<CreatedJob> {
      const { id } = await repository.findToAct(caller, jobId, 'job:write');
      const job = await Job.query(db).findById(id).throwIfNotFound();
      const { type, payload, retryPolicy, status, tenantId } = job;
      if (!isFinal(status)) throw new AppError('job_still_running', `The job is ${status}.`);
      if (job.dataPurgedAt) throw notRetryable('The payload of the job is purged.');
      await jobTypes.refreshUnknown(type);
      // An approved job runs once, exactly as it was planned.
      if (job.sourceKind === 'approval')
        throw notRetryable('The job was approved to run once. Create another approval request.');
      const known = jobTypes.find(type);
      const createdOnlyBy = known?.createdOnlyBy ?? null;
      if (createdOnlyBy !== null)
        throw notRetryable(`Jobs of the type ${type} are created by ${createdOnlyBy}.`);
      const target = targetOf(job);
      if (target && !(await jobTargets.find(caller.rights, target, tenantId)))
        throw notRetryable(
          `The ${target.kind} of the job no longer exists, or you may not read it.`,
        );
      if (known && !(await jobReferences.areReadable(caller.rights, known, payload)))
        throw notRetryable(
          'The payload names a record that no longer exists, or that you may not read.',
        );
      const request = { type, payload, retryPolicy, target };
      return create({ ...caller, tenantId }, request, { retryOf: jobId }).catch(asNotRetryable);
    },

    /**
     * Waits until a job has finished, at most `waitMs`, and returns the job as it is then. With
     * `justCreated`, the first read waits for a notification. `actedWith` as in `read`.
     */
    readWhenFinished: (
      caller: Caller,
      jobId: string,
      limits: WaitLimits,
      actedWith?: Permission,
    ): Promise<JobWithLogs> =>
      waitForEnd(
        caller,
        {
          topic: jobFinishedTopic(jobId),
          read: () => read(caller, jobId, actedWith),
          isFinished: ({ job }) => isFinal(job.status),
          hasEnded: async () => isFinal((await repository.find(caller, jobId, actedWith)).status),
        },
        limits,
      ),

    /**
     * Follows a log: yields the lines after line number `after` as they are written, then the final
     * status. Errors before the first line: `not_found`, `log_purged`.
     */
    async follow(
      caller: Caller,
      jobId: string,
      after: number,
      signal: AbortSignal,
    ): Promise<{ job: JobSummaryData; log: AsyncIterable<LogStreamItem> }> {
      const job = await repository.find(caller, jobId);
      await linesAfter(job, after, 1);
      return { job, log: followLog({ db, notifications }, jobId, after, signal) };
    },
  };
}

const notRetryable = (reason: string) => new AppError('job_not_retryable', reason);

/** The type does not allow a job any more: the request has none of the fields that the error names. */
function asNotRetryable(error: unknown): never {
  const [field] = error instanceof AppError ? (error.extra.errors ?? []) : [];
  if (!field) throw error;
  const at = field.pointer.slice(1).replaceAll('/', '.');
  throw notRetryable(`The job cannot be created again: ${at}: ${field.message}`);
}
