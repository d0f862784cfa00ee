import type { Knex } from '../db/core/knex.ts';
import type { Commit } from '../db/commit.ts';
import type { Changes } from '../db/core/notifications.ts';
import { findWithLogs, JOB_SUMMARY_COLUMNS } from '../db/jobs/jobs.ts';
import { keysetPage, whereGiven, type Page, type PageRequest } from '../db/core/keyset.ts';
import { Job } from '../db/models/Job.ts';
import { JobLog } from '../db/models/JobLog.ts';
import { whereInScope } from '../db/core/scopeSql.ts';
import type { Caller } from '../domain/shared/caller.ts';
import { AppError, checkVersion, notFound } from '../domain/shared/errors.ts';
import { isFinal, type JobStatus } from '../domain/jobs/jobs.ts';
import { permissionsFor } from '../domain/jobType.ts';
import type { Permission } from '../domain/access/permissions.ts';
import { firstIdAt } from '../platform/ids.ts';
import type { Clock } from '../platform/clock.ts';
import type { DispatchTask } from '../temporal/contracts.ts';
import type { Access } from './access.ts';
import type { JobTypes } from './jobTypes/registry.ts';
import type { JobEnds } from './jobEnds.ts';
import { followLog } from './jobs/followLog.ts';
import { auditView, jobEnded, subject } from './jobs/jobAudit.ts';
import type { JobStarts } from './jobStarts.ts';
import type { JobOrigin, JobRequest } from './jobs/newJob.ts';
import { createWaitForEnd, type WaitLimits } from './waitForEnd.ts';

export type Jobs = ReturnType<typeof createJobs>;

export type JobFilter = {
  status?: readonly JobStatus[];
  type?: readonly string[];
  tenantId?: string;
  createdBy?: string;
  createdAfter?: Date;
  createdBefore?: Date;
  retryOf?: string;
};

/** A job with the last lines of its log, oldest first. */
export type JobWithLogs = { job: Job; logs: JobLog[] };

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  access: Access;
  jobTypes: JobTypes;
  clock: Clock;
  changes: Changes;
  starts: JobStarts;
  ends: JobEnds;
};

/** Log lines that come with a read of a job; all of them are under `/logs`. */
const EMBEDDED_LOG_LINES = 200;

/** What callers do with jobs. What runs do with them is in `jobRuns.ts`. */
export function createJobs({ db, commit, access, jobTypes, clock, changes, starts, ends }: Deps) {
  const waitForEnd = createWaitForEnd({ changes, clock });

  async function create(caller: Caller, request: JobRequest, from: JobOrigin = {}) {
    const type = jobTypes.getDirect(request.type);
    for (const permission of permissionsFor(type)) await access.require(caller, permission, caller);
    if (request.createdBy !== undefined && request.createdBy !== caller.actorId) {
      await access.require(caller, 'job:impersonate', caller);
    }
    jobTypes.checkPayload(type, request.payload);

    return commit(caller, (work) => starts.add(work, type, request, caller, from));
  }

  async function find(caller: Caller, jobId: string, permission: Permission): Promise<Job> {
    const query = Job.query(db).findById(jobId).select(JOB_SUMMARY_COLUMNS);
    whereInScope(query, access.scope(caller, permission));
    const job = await query;
    if (!job) throw notFound('job', jobId);
    return job;
  }

  async function read(caller: Caller, jobId: string): Promise<JobWithLogs> {
    const found = await findWithLogs(
      db,
      jobId,
      access.scope(caller, 'job:read'),
      EMBEDDED_LOG_LINES,
    );
    if (!found) throw notFound('job', jobId);
    return found;
  }

  /** A job that the caller sees, to be acted on with another permission held where the job stands. */
  async function findToAct(caller: Caller, jobId: string, permission: Permission): Promise<Job> {
    const job = await find(caller, jobId, 'job:read');
    await access.require(caller, permission, job);
    return job;
  }

  return {
    /**
     * Creates a job at the caller's tenant and starts it. Errors: `invalid_request` (type, payload),
     * `permission_denied` (`job:write`, the type's own permission, `job:impersonate`).
     */
    create,

    /** One job with the end of its log. Error: `not_found`. */
    read,

    /** Jobs inside the caller's scope, newest first. */
    async list(caller: Caller, filter: JobFilter, page: PageRequest): Promise<Page<Job>> {
      const query = Job.query(db).select(JOB_SUMMARY_COLUMNS);
      whereInScope(query, access.scope(caller, 'job:read'));
      if (filter.status) void query.whereIn('status', [...filter.status]);
      if (filter.type) void query.whereIn('type', [...filter.type]);
      whereGiven(query, {
        tenant_id: filter.tenantId,
        created_by: filter.createdBy,
        retry_of: filter.retryOf,
      });
      if (filter.createdAfter) {
        void query
          .where('created_at', '>=', filter.createdAfter)
          .where('id', '>=', idBound(filter.createdAfter, -ID_SLACK_MS));
      }
      if (filter.createdBefore) {
        void query
          .where('created_at', '<', filter.createdBefore)
          .where('id', '<', idBound(filter.createdBefore, ID_SLACK_MS));
      }
      return keysetPage(query, page);
    },

    /** Log lines after line number `after`, oldest first, at most `limit`. Error: `not_found`. */
    async logs(
      caller: Caller,
      jobId: string,
      { after, limit }: { after: number; limit: number },
    ): Promise<JobLog[]> {
      await find(caller, jobId, 'job:read');
      return JobLog.query(db)
        .where({ job_id: jobId })
        .where('line', '>', after)
        .orderBy('line')
        .limit(limit);
    },

    /**
     * Asks a job to stop. One that has not begun is cancelled at once; a running one when its attempt has
     * cleaned up. Errors: `not_found`, `permission_denied`, `job_finished`, `version_stale`.
     */
    async cancel(caller: Caller, jobId: string, expectedVersion?: number): Promise<void> {
      const found = await findToAct(caller, jobId, 'job:cancel');
      const { id, tenantId } = found;
      checkVersion(found, expectedVersion);
      // The trail of a record belongs to the record's tenant, wherever the caller stands.
      return commit({ ...caller, tenantId }, async (work) => {
        await ends.lockSource(work, found);
        const job = await Job.query(await work.trx())
          .findById(id)
          .forUpdate()
          .throwIfNotFound();
        checkVersion(job, expectedVersion);
        if (isFinal(job.status))
          throw new AppError('job_finished', `The job has already ended: ${job.status}.`);
        const before = auditView(job);
        await ends.cancel(work, job);
        work.audit('job.cancel', subject(job), {
          before,
          after: { ...auditView(job), cancelRequested: true },
        });
      });
    },

    /**
     * Creates a new job with the type, payload and policy of one that has ended, linked by `retryOf`.
     * Errors: `not_found`, `permission_denied`, `job_not_finished`, `job_not_retryable`.
     */
    async retry(caller: Caller, jobId: string): Promise<Job> {
      const { id } = await findToAct(caller, jobId, 'job:write');
      const { type, payload, retryPolicy, status, tenantId, sourceKind } = await Job.query(db)
        .findById(id)
        .throwIfNotFound();
      if (!isFinal(status)) throw new AppError('job_not_finished', `The job is still ${status}.`);
      const through = jobTypes.find(type)?.onlyThrough ?? null;
      // What was approved runs once, and only as it was planned.
      if (sourceKind === 'approval')
        throw new AppError(
          'job_not_retryable',
          'The job was approved to run once; make another request.',
        );
      if (through !== null)
        throw new AppError('job_not_retryable', `Jobs of the type ${type} are made by ${through}.`);
      return create({ ...caller, tenantId }, { type, payload, retryPolicy }, { retryOf: jobId });
    },

    /**
     * Waits at most `waitMs` for a job's end and returns the job as it is then. One that was just made (`fresh`)
     * is not looked at before there is news of it.
     */
    readAtEnd: (caller: Caller, jobId: string, limits: WaitLimits): Promise<JobWithLogs> =>
      waitForEnd(
        {
          topic: jobEnded(jobId),
          read: () => read(caller, jobId),
          isEnd: ({ job }) => isFinal(job.status),
          hasEnded: async () => isFinal((await find(caller, jobId, 'job:read')).status),
        },
        limits,
      ),

    /**
     * Follows a log: yields the lines after line number `after` as they are written, then the final status.
     * Errors before the first line: `not_found`.
     */
    async follow(caller: Caller, jobId: string, after: number, signal: AbortSignal) {
      await find(caller, jobId, 'job:read');
      return followLog({ db, changes }, jobId, after, signal);
    },
  };
}

/** An id and its record's `createdAt` are made at nearly the same time; so much may lie between. */
const ID_SLACK_MS = 5_000;

/** Ids carry their time, so the key that the list is read by narrows it to a time as well. */
const idBound = (time: Date, slackMs: number) =>
  firstIdAt('job', new Date(time.getTime() + slackMs));
