import { Type } from 'typebox';
import type { Permission } from '../../domain/access/permissions.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import { JOB_SOURCES, JOB_STATUSES, type JobFilter } from '../../domain/jobs/jobs.ts';
import type { JobLogData } from '../../domain/jobs/records.ts';
import { RetryPolicy } from '../../domain/jobs/retry.ts';
import { targetOf } from '../../domain/jobs/targets.ts';
import type { LogStreamItem } from '../../services/jobs/followLog.ts';
import type { CreatedJob, Jobs } from '../../services/jobs/jobs.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import { accepted, created, ok, type HttpResponse } from '../http/response.ts';
import type { Slots } from '../../platform/slots.ts';
import { createEventStreams, EVENT_STREAM, type ServerSentEvent } from '../http/eventStream.ts';
import { expectedVersion } from '../http/etag.ts';
import { decodeCursor, encodeCursor, listSchema, pageQuery } from '../http/pagination.ts';
import { choiceField, idField, severalOf, textField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import type { Preferences } from '../http/prefer.ts';
import { presentAll } from '../http/presentAll.ts';
import { route, type Route } from '../http/route.ts';
import { PoolName } from '../runners/schemas.ts';
import { jobPresenter, jobState, logPresenter } from './presenter.ts';
import { JobRecord, JobSummary, LogRecord, TargetRequest } from './schemas.ts';
import {
  ACCEPTS_ANY_TEXT,
  Id,
  InventoryId,
  Name,
  Nullable,
  TenantId,
  Timestamp,
} from '../http/schemas.ts';

const JobRequest = Type.Object(
  {
    type: Name({ description: 'A job type, as `GET /api/job-types` lists them.' }),
    payload: Type.Record(Type.String(), Type.Unknown(), {
      ...ACCEPTS_ANY_TEXT,
      description: 'The input of the job. It must satisfy the payload schema of the type.',
    }),
    target: Type.Optional(
      Nullable(
        TargetRequest(
          'The site or the device that the job is about, for types with `targets`. The job belongs to ' +
            'it, so that rights at the site or the device suffice, and to its tenant.',
        ),
      ),
    ),
    createdBy: Type.Optional(
      Name({
        description: 'Records another creator. Needs the permission `job:impersonate`.',
      }),
    ),
    retryPolicy: Type.Optional(
      Type.Partial(RetryPolicy, {
        title: 'PartialRetryPolicy',
        additionalProperties: false,
        description: 'Overrides parts of the retry policy of the type.',
      }),
    ),
  },
  { additionalProperties: false, title: 'JobRequest' },
);

const JOBS = defineList({
  name: 'jobs',
  id: 'job',
  item: JobSummary,
  title: 'JobList',
  fields: {
    id: idField(Id('job'), { facet: false }),
    status: choiceField(JOB_STATUSES, { title: 'JobStatus' }),
    type: textField({ description: 'Jobs of one of these types.', facet: true }),
    tenantId: idField(TenantId(), { description: 'Jobs of this tenant.' }),
    siteId: idField(InventoryId('sit'), {
      nullable: true,
      description: 'Jobs that belong to this site, those about its devices included.',
    }),
    deviceId: idField(InventoryId('dev'), {
      nullable: true,
      description: 'Jobs that belong to this device.',
    }),
    pool: textField({
      schema: PoolName,
      description: 'Jobs of types of runners of this pool.',
    }),
    createdBy: textField({ description: 'Jobs of this creator.', facet: true }),
    source: choiceField(JOB_SOURCES, {
      title: 'JobSourceKind',
      description: 'Jobs that these have created.',
    }),
    retryOf: idField(Id('job'), { nullable: true, facet: false }),
    createdAt: timeField(),
    finishedAt: timeField(),
  },
  own: {
    internal: Type.Optional(
      Type.Boolean({
        description:
          'false: without deliveries and other jobs of the system, which nobody has asked for.',
      }),
    ),
    createdAfter: Type.Optional(Timestamp),
    createdBefore: Type.Optional(Timestamp),
    scheduleId: severalOf(Id('sch'), 'Jobs that one of these schedules created.'),
    approvalId: severalOf(Id('apr'), 'Jobs that one of these approval requests created.'),
    webhookId: severalOf(Id('whk'), 'Jobs that send deliveries to one of these webhooks.'),
  },
  aliases: { createdAfter: 'createdAt.gte', createdBefore: 'createdAt.lt' },
});

const LogQuery = Type.Object(
  {
    limit: Type.Integer({ minimum: 1, maximum: 1_000, default: 200 }),
    cursor: pageQuery.cursor,
    follow: Type.Optional(
      Type.Boolean({
        description:
          'Streams the lines as server-sent events until the job has finished. `limit` is refused.',
      }),
    ),
  },
  { additionalProperties: false },
);

const JobParams = Type.Object({ jobId: Id('job') }, { additionalProperties: false });

const pathOf = (job: { id: string }) => `/api/jobs/${job.id}`;

export function jobRoutes(jobs: Jobs, jobTypes: JobTypes, streamSlots: Slots): Route[] {
  const present = jobPresenter(jobTypes);
  const streams = createEventStreams(streamSlots);

  type WaitRequest = { caller: Caller; prefer: Preferences; signal: AbortSignal };

  /** The job now, or when it has finished if the request prefers to wait (`Prefer: wait`). */
  const readAfterWait = async (
    { caller, prefer: { waitMs }, signal }: WaitRequest,
    jobId: string,
    { justCreated = false, actedWith }: { justCreated?: boolean; actedWith?: Permission } = {},
  ) =>
    present.record(
      waitMs > 0
        ? await jobs.readWhenFinished(caller, jobId, { waitMs, signal, justCreated }, actedWith)
        : await jobs.read(caller, jobId, actedWith),
      caller,
    );

  /** The response with a job. For how long the oldest one waits runs with the clock. */
  const jobResponse = (body: JobRecord): HttpResponse => ({
    ...ok(body),
    ...(body.queue && { taggedAs: { ...body, queue: body.queue.position } }),
  });

  /** The response for a new job. Without a wait its log is empty, so nothing is read. */
  async function createdResponse(request: WaitRequest, { job, queue }: CreatedJob) {
    const body =
      // A new job without a target is shown as it was written.
      request.prefer.waitMs > 0 || targetOf(job)
        ? await readAfterWait(request, job.id, { justCreated: true, actedWith: 'job:write' })
        : await present.record({ job, logs: [], queue }, request.caller);
    return created(pathOf(job), body);
  }

  const replayResponse = async (caller: Caller, id: string) =>
    created(pathOf({ id }), await present.record(await jobs.read(caller, id, 'job:write'), caller));

  return [
    route({
      method: 'POST',
      path: '/api/jobs',
      tag: 'Jobs',
      permission: 'job:write',
      operationId: 'createJob',
      summary: 'Create a job and start it',
      description:
        'The job belongs to its `target`, otherwise to your tenant: `job:write` is needed there. The response is sent when the job is committed. With `Prefer: wait=<seconds>`, it is sent when the job has finished.',
      example: { type: 'core.echo', payload: { hello: 'world' } },
      body: JobRequest,
      responses: { 201: JobRecord },
      // A backup without a store.
      problems: [501],
      headers: ['Prefer'],
      replayResponse,
      handle: async (request) =>
        createdResponse(request, await jobs.create(request.caller, request.body)),
    }),
    route({
      method: 'GET',
      path: '/api/jobs',
      tag: 'Jobs',
      permission: 'job:read',
      operationId: 'listJobs',
      summary: 'List jobs, without payload, result and log',
      query: JOBS.query,
      responses: { 200: JOBS.schema },
      handle: ({ caller, query }) =>
        JOBS.respond(
          query,
          (request, own) => jobs.list(caller, toJobFilter(own), request),
          (job) => present.summary(job, caller),
        ),
    }),
    route({
      method: 'GET',
      path: '/api/jobs/{jobId}',
      tag: 'Jobs',
      permission: 'job:read',
      operationId: 'getJob',
      summary: 'Get a job with the last lines of its log',
      params: JobParams,
      responses: { 200: JobRecord },
      headers: ['Prefer'],
      handle: async (request) => jobResponse(await readAfterWait(request, request.params.jobId)),
    }),
    route({
      method: 'GET',
      path: '/api/jobs/{jobId}/logs',
      tag: 'Jobs',
      permission: 'job:read',
      operationId: 'listJobLogs',
      summary: 'Get the log of a job, oldest line first, or follow it',
      description:
        'With `follow`, a stream of server-sent events: `log` for each line, with its number as the event id, `job` with `status`, `attempt` and `progress` of the job, first and whenever one of them has changed, then `end` with the final status. A stream that ends early has `error` with a problem as its last message. 410 `log_purged`: lines after the given one are purged.',
      params: JobParams,
      query: LogQuery,
      headers: ['Last-Event-ID'],
      responses: { 200: listSchema(LogRecord, 'LogList') },
      produces: [EVENT_STREAM],
      problems: [410],
      notWithFollow: ['limit'],
      recheckAccess: ({ caller, params: { jobId } }) =>
        jobs.logs(caller, jobId, { after: 0, limit: 1 }),
      handle: async ({ caller, params: { jobId }, query, header, signal }) => {
        const cursor = decodeCursor(`logs:${jobId}`, query.cursor, /^\d{1,9}$/);
        const start = Number(cursor ?? 0);
        if (query.follow) {
          // A client that connects again sends its first query with it.
          const after = lastEventId(header('last-event-id')) ?? start;
          return streams.open(caller, async () => {
            const { job, log } = await jobs.follow(caller, jobId, after, signal);
            let present = logPresenter(job, caller);
            return {
              messages: toEvents(log, (line) => present(line)),
              recheck: (current) => void (present = logPresenter(job, current)),
            };
          });
        }
        const { limit } = query;
        const { job, lines, hasMore } = await jobs.logs(caller, jobId, { after: start, limit });
        const more = hasMore ? lines.at(-1) : undefined;
        return ok({
          items: await presentAll(lines, logPresenter(job, caller)),
          nextCursor: more ? encodeCursor(`logs:${jobId}`, String(more.line)) : null,
        });
      },
    }),
    route({
      method: 'POST',
      path: '/api/jobs/{jobId}/cancel',
      tag: 'Jobs',
      permission: 'job:cancel',
      operationId: 'cancelJob',
      summary: 'Cancel a job',
      description:
        'A queued job is cancelled immediately, a running job when its attempt has stopped.',
      params: JobParams,
      responses: { 202: JobRecord },
      headers: ['Prefer', 'If-Match'],
      handle: async (request) => {
        const { caller, params, ifMatch } = request;
        await jobs.cancel(caller, params.jobId, expectedVersion(ifMatch));
        const body = await readAfterWait(request, params.jobId, { actedWith: 'job:cancel' });
        return accepted(pathOf(body), body);
      },
    }),
    route({
      method: 'POST',
      path: '/api/jobs/{jobId}/retry',
      tag: 'Jobs',
      permission: 'job:write',
      operationId: 'retryJob',
      summary: 'Run a finished job again, as a new job',
      params: JobParams,
      responses: { 201: JobRecord },
      problems: [501],
      headers: ['Prefer'],
      replayResponse,
      handle: async (request) =>
        createdResponse(request, await jobs.retry(request.caller, request.params.jobId)),
    }),
  ];
}

function toJobFilter({
  internal,
  scheduleId,
  approvalId,
  webhookId,
}: {
  internal?: boolean;
  scheduleId?: string[];
  approvalId?: string[];
  webhookId?: string[];
}): JobFilter {
  const sources = [
    { kind: 'schedule' as const, ids: scheduleId },
    { kind: 'approval' as const, ids: approvalId },
    { kind: 'webhook' as const, ids: webhookId },
  ].flatMap(({ kind, ids }) => (ids === undefined ? [] : [{ kind, ids }]));
  return { sources, internal };
}

function lastEventId(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (!/^\d{1,9}$/.test(header))
    throw invalidField('header', '/Last-Event-ID', 'format', 'must be a line number');
  return Number(header);
}

async function* toEvents(
  log: AsyncIterable<LogStreamItem>,
  logView: (line: JobLogData) => Promise<LogRecord>,
): AsyncGenerator<ServerSentEvent> {
  for await (const item of log) {
    if (item.kind === 'line')
      yield { id: String(item.line.line), event: 'log', data: await logView(item.line) };
    else if (item.kind === 'job') yield { event: 'job', data: jobState(item.job) };
    else if (item.kind === 'end') yield { event: 'end', data: { status: item.status } };
    else yield { comment: 'waiting' };
  }
}
