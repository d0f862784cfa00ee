import { Type, type Static } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import { JOB_STATUSES } from '../../domain/jobs/jobs.ts';
import { RetryPolicy } from '../../domain/jobs/retry.ts';
import type { FollowedLog } from '../../services/jobs/followLog.ts';
import type { JobFilter, Jobs, JobWithLogs } from '../../services/jobs.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import { accepted, created, ok } from '../kit/answer.ts';
import { eventStream, type ServerSentEvent } from '../http/eventStream.ts';
import { etagOf, expectedVersion } from '../kit/etag.ts';
import { decodeCursor, encodeCursor, listAnswer, listOf, pageQuery } from '../http/pagination.ts';
import type { Preferences } from '../http/prefer.ts';
import { dateOf } from '../kit/queryTime.ts';
import { route, type Route } from '../kit/route.ts';
import { jobPresenter, logView } from './presenter.ts';
import { JobRecord, JobSummary, JobTypeRecord, LogRecord } from './schemas.ts';
import { Id, Name, Timestamp } from '../http/schemas.ts';

const JobRequest = Type.Object(
  {
    type: Name({ description: 'A job type; GET /api/job-types lists them.' }),
    payload: Type.Record(Type.String(), Type.Unknown(), {
      description: 'Checked against the schema of the type.',
    }),
    createdBy: Type.Optional(
      Name({ description: 'Names another creator; needs job:impersonate.' }),
    ),
    retryPolicy: Type.Optional(
      Type.Partial(RetryPolicy, {
        additionalProperties: false,
        description: 'What is left out comes from the type.',
      }),
    ),
  },
  { additionalProperties: false, title: 'JobRequest' },
);

const JobQuery = Type.Object(
  {
    ...pageQuery,
    status: Type.Optional(Type.Array(Type.Enum([...JOB_STATUSES]), { maxItems: 5 })),
    type: Type.Optional(Type.Array(Name(), { maxItems: 20 })),
    tenantId: Type.Optional(Name()),
    createdBy: Type.Optional(Name()),
    createdAfter: Type.Optional(Timestamp),
    createdBefore: Type.Optional(Timestamp),
    retryOf: Type.Optional(Id('job')),
  },
  { additionalProperties: false },
);

const LogQuery = Type.Object(
  {
    limit: Type.Integer({ minimum: 1, maximum: 1_000, default: 200 }),
    cursor: pageQuery.cursor,
    follow: Type.Optional(
      Type.Boolean({ description: 'Stream the lines as server-sent events until the job ends.' }),
    ),
  },
  { additionalProperties: false },
);

const OneJob = Type.Object({ jobId: Id('job') }, { additionalProperties: false });

type Job = JobWithLogs['job'];

const pathOf = (job: { id: string }) => `/api/jobs/${job.id}`;

/** Log streams that one process serves at once. */
const MAX_STREAMS = 200;

export function jobRoutes(jobs: Jobs, jobTypes: JobTypes): Route[] {
  const present = jobPresenter(jobTypes);
  const streams = eventStream(MAX_STREAMS);

  const view = ({ job, logs }: JobWithLogs) => ({
    body: present.record(job, logs),
    headers: { etag: etagOf(job.version, job.updatedAt.getTime()) },
  });

  type Waiting = { caller: Caller; prefer: Preferences; signal: AbortSignal };

  /** The job as it is now, or as it is when it has ended if the request prefers to wait. */
  const afterWait = async (
    { caller, prefer: { waitMs }, signal }: Waiting,
    jobId: string,
    fresh = false,
  ) =>
    view(
      waitMs > 0
        ? await jobs.readAtEnd(caller, jobId, { waitMs, signal, fresh })
        : await jobs.read(caller, jobId),
    );

  /** The answer for a job that was just made; without a wait there is nothing to read about it. */
  async function afterCreation(request: Waiting, job: Job) {
    const { body, headers } =
      request.prefer.waitMs > 0 ? await afterWait(request, job.id, true) : view({ job, logs: [] });
    return created(pathOf(job), body, headers);
  }

  const recover = async (caller: Caller, id: string) => {
    const { body, headers } = view(await jobs.read(caller, id));
    return created(pathOf({ id }), body, headers);
  };

  return [
    route({
      method: 'POST',
      path: '/api/jobs',
      area: 'Jobs',
      permission: 'job:write',
      summary: 'Create a job and start it',
      body: JobRequest,
      answers: { 201: JobRecord },
      headers: ['Prefer'],
      recover,
      handle: async (request) =>
        afterCreation(request, await jobs.create(request.caller, request.body)),
    }),
    route({
      method: 'GET',
      path: '/api/jobs',
      area: 'Jobs',
      permission: 'job:read',
      summary: 'List jobs, newest first, without payload, result and log',
      query: JobQuery,
      answers: { 200: listOf(JobSummary, 'JobList') },
      handle: ({ caller, query }) =>
        listAnswer(
          'jobs',
          'job',
          query,
          (page) => jobs.list(caller, filterOf(query), page),
          present.summary,
        ),
    }),
    route({
      method: 'GET',
      path: '/api/jobs/{jobId}',
      area: 'Jobs',
      permission: 'job:read',
      summary: 'Read a job with the end of its log',
      params: OneJob,
      answers: { 200: JobRecord },
      headers: ['Prefer'],
      handle: async (request) => {
        const { body, headers } = await afterWait(request, request.params.jobId);
        return ok(body, headers);
      },
    }),
    route({
      method: 'GET',
      path: '/api/jobs/{jobId}/logs',
      area: 'Jobs',
      permission: 'job:read',
      summary: "Read a job's log, oldest line first, or follow it",
      params: OneJob,
      query: LogQuery,
      headers: ['Last-Event-ID'],
      answers: { 200: listOf(LogRecord, 'LogList') },
      watch: ({ caller, params: { jobId } }) => jobs.logs(caller, jobId, { after: 0, limit: 1 }),
      handle: async ({ caller, params: { jobId }, query, header, signal }) => {
        const cursor = decodeCursor(`logs:${jobId}`, query.cursor, /^\d{1,9}$/);
        const after = cursor === undefined ? lastEventId(header('last-event-id')) : Number(cursor);
        if (query.follow) {
          return streams.open(toEvents(await jobs.follow(caller, jobId, after, signal)));
        }
        const lines = await jobs.logs(caller, jobId, { after, limit: query.limit + 1 });
        const items = lines.slice(0, query.limit);
        const more = lines.length > query.limit ? items.at(-1) : undefined;
        return ok({
          items: items.map(logView),
          nextCursor: more ? encodeCursor(`logs:${jobId}`, String(more.line)) : null,
        });
      },
    }),
    route({
      method: 'POST',
      path: '/api/jobs/{jobId}/cancel',
      area: 'Jobs',
      permission: 'job:cancel',
      summary: 'Ask a job to stop',
      params: OneJob,
      answers: { 202: JobRecord },
      headers: ['Prefer', 'If-Match'],
      handle: async (request) => {
        const { caller, params, ifMatch } = request;
        await jobs.cancel(caller, params.jobId, expectedVersion(ifMatch));
        const { body, headers } = await afterWait(request, params.jobId);
        return accepted(body, headers);
      },
    }),
    route({
      method: 'POST',
      path: '/api/jobs/{jobId}/retry',
      area: 'Jobs',
      permission: 'job:write',
      summary: 'Run a job that has ended again, as a new job',
      params: OneJob,
      answers: { 201: JobRecord },
      headers: ['Prefer'],
      recover,
      handle: async (request) =>
        afterCreation(request, await jobs.retry(request.caller, request.params.jobId)),
    }),
    route({
      method: 'GET',
      path: '/api/job-types',
      area: 'Jobs',
      permission: 'job:read',
      summary: 'List the job types with their payload schemas',
      answers: { 200: listOf(JobTypeRecord, 'JobTypeList') },
      handle: () =>
        Promise.resolve(ok({ items: jobTypes.all.map(present.type), nextCursor: null })),
    }),
  ];
}

function filterOf({
  status,
  type,
  tenantId,
  createdBy,
  createdAfter,
  createdBefore,
  retryOf,
}: Static<typeof JobQuery>): JobFilter {
  return {
    ...(status && { status }),
    ...(type && { type }),
    ...(tenantId !== undefined && { tenantId }),
    ...(createdBy !== undefined && { createdBy }),
    ...(createdAfter !== undefined && { createdAfter: dateOf('createdAfter', createdAfter) }),
    ...(createdBefore !== undefined && { createdBefore: dateOf('createdBefore', createdBefore) }),
    ...(retryOf !== undefined && { retryOf }),
  };
}

function lastEventId(header: string | undefined): number {
  if (header === undefined) return 0;
  if (!/^\d{1,9}$/.test(header))
    throw invalidField('header', '/Last-Event-ID', 'format', 'must be the number of a line');
  return Number(header);
}

async function* toEvents(log: AsyncIterable<FollowedLog>): AsyncGenerator<ServerSentEvent> {
  for await (const item of log) {
    if (item.kind === 'line')
      yield { id: String(item.line.line), event: 'log', data: logView(item.line) };
    else if (item.kind === 'end') yield { event: 'end', data: { status: item.status } };
    else yield { comment: 'waiting' };
  }
}
