import { Type, type Static } from 'typebox';
import { JOB_SOURCES, JOB_STATUSES, LOG_LEVELS } from '../../domain/jobs/jobs.ts';
import { MAX_POSITION } from '../../domain/jobs/queue.ts';
import { RetryPolicy } from '../../domain/jobs/retry.ts';
import { WAIT_REASONS } from '../../domain/runners/records.ts';
import {
  Actor,
  Id,
  JsonObject,
  Name,
  Nullable,
  Reference,
  referenceTo,
  Timestamp,
} from '../http/schemas.ts';

export const JobStatus = Type.Enum([...JOB_STATUSES], { title: 'JobStatus' });

/** A job that a record names. The name stays when retention has purged the job. */
export const JobReference = (description: string) =>
  Type.Object(
    { id: referenceTo('jobs', Id('job')), purged: Type.Boolean() },
    { title: 'JobReference', description },
  );

export const LogRecord = Type.Object(
  {
    line: Type.Integer({ description: 'Counts from 1 without gaps.' }),
    attempt: Type.Integer({ description: 'The attempt that wrote it; 0 before the first.' }),
    level: Type.Enum([...LOG_LEVELS]),
    message: Type.String(),
    data: Nullable(JsonObject()),
    at: Timestamp,
  },
  { title: 'LogLine', additionalProperties: false },
);
export type LogRecord = Static<typeof LogRecord>;

const TargetRecordKind = Type.Enum(['site', 'device'], { title: 'JobTargetKind' });

/** The record that a job is to be about, in a request. */
export const TargetRequest = (description: string) =>
  Type.Object(
    { kind: TargetRecordKind, id: Name({ description: 'The id of the site or the device.' }) },
    { title: 'JobTargetRequest', additionalProperties: false, description },
  );

/** The record that a job is about. */
export const JobTarget = Type.Object(
  { kind: TargetRecordKind, id: Type.String() },
  { title: 'JobTarget', 'x-subject': 'kind', additionalProperties: false },
);

const error = { code: Type.String(), message: Type.String() };

const FailedResponse = Type.Object(
  {
    status: Type.Integer(),
    contentType: Nullable(Type.String()),
    body: Type.String({
      description:
        'The first 4 KiB as text, with credentials masked and control characters escaped. The ' +
        'server controls this text: never render it as HTML.',
    }),
    truncated: Type.Boolean({ description: 'True when the response was longer.' }),
  },
  { title: 'FailedResponse', additionalProperties: false },
);

const summary = {
  id: Id('job'),
  type: Type.String({ description: 'The job type.' }),
  tenantId: Reference('tenants'),
  target: Nullable(JobTarget),
  siteId: Nullable(
    Reference(
      'sites',
      'The site that the job belongs to: that of its target. Null if the site belongs to another tenant now.',
    ),
  ),
  deviceId: Nullable(
    Reference(
      'devices',
      'The device that the job belongs to. Null if it belongs to another tenant now.',
    ),
  ),
  status: JobStatus,
  retryCount: Type.Integer({ description: 'Attempts after the first.' }),
  attempts: Type.Integer({ description: 'Attempts that have started.' }),
  interruptions: Type.Integer({
    description:
      'Attempts that ended because their worker was stopped. The retry policy does not count the first ten.',
  }),
  progress: Nullable(
    Type.Object(
      { percent: Type.Number(), message: Nullable(Type.String()) },
      { title: 'JobProgress' },
    ),
  ),
  error: Nullable(Type.Object(error, { title: 'JobError' })),
  retryPolicy: RetryPolicy,
  createdBy: Actor(),
  source: Type.Object(
    { kind: Type.Enum([...JOB_SOURCES], { title: 'JobSourceKind' }), id: Nullable(Type.String()) },
    { title: 'JobSource', 'x-subject': 'kind' },
  ),
  retryOf: Nullable(Reference('jobs', 'The job of which this one is a retry.')),
  workflowId: Nullable(
    Type.String({
      description:
        'The id of its workflow in Temporal. Short jobs that start at the same time may share one. ' +
        'Null for a delivery in its first attempt, and if that was accepted.',
    }),
  ),
  cancelRequestedAt: Nullable(Timestamp),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  startedAt: Nullable(Timestamp),
  finishedAt: Nullable(Timestamp),
  version: Type.Integer(),
};

export const JobSummary = Type.Object(summary, {
  title: 'JobSummary',
  additionalProperties: false,
});
export type JobSummary = Static<typeof JobSummary>;

export const JobRecord = Type.Object(
  {
    ...summary,
    target: Nullable(
      Type.Object(
        {
          kind: TargetRecordKind,
          id: Type.String(),
          name: Nullable(
            Type.String({
              description: 'Null for a record that you may not read, or that no longer exists.',
            }),
          ),
          tenantId: Reference('tenants'),
        },
        { title: 'JobTargetRecord', 'x-subject': 'kind', additionalProperties: false },
      ),
    ),
    error: Nullable(
      Type.Object(
        {
          ...error,
          response: Type.Optional(
            Type.Unsafe<Static<typeof FailedResponse>>({
              ...FailedResponse,
              description: 'What another server answered, for `http_status` of `http.request`.',
            }),
          ),
        },
        { title: 'JobErrorWithResponse' },
      ),
    ),
    payload: Type.Object(
      {},
      {
        additionalProperties: true,
        description:
          'The input. Secrets are masked; what only resembles a credential, such as the field ' +
          '`password` of any job type, is masked for callers other than the creator, here, in ' +
          'the result and in the log.',
      },
    ),
    result: Nullable(JsonObject()),
    logs: Type.Array(LogRecord, {
      description: 'The last 200 lines, fewer when they have 1 MiB, oldest first.',
    }),
    dataPurgedAt: Nullable(
      Type.String({
        ...Timestamp,
        description: 'When payload and result were purged; null while they exist.',
      }),
    ),
    logsPurged: Type.Boolean({ description: 'True when the log is purged.' }),
    retried: Nullable(
      JobReference('The job of which this one is a retry, and whether it is purged.'),
    ),
    waitingFor: Nullable(
      Type.Object(
        {
          pool: Type.String(),
          runners: Type.Integer({ description: 'Living runners of the pool that reach Temporal.' }),
          reason: Type.Enum([...WAIT_REASONS], {
            title: 'JobWaitReason',
            description:
              '`not_accepted`: no living runner has the accepted version of the type. `other_digest`: none has the version that was approved for the job. `no_slot`: the tenant has its share of the pool, the type its limit, or the job starts soon.',
          }),
          since: Timestamp,
        },
        {
          title: 'JobWaitingFor',
          description:
            'What a job of a type of runners waits for: a queued one, or a running one whose next attempt is due, because the last one has ended or has lost its runner; otherwise null.',
        },
      ),
    ),
    typeDigest: Nullable(
      Type.String({
        description:
          'The version of its type, of a job of runners: what ran it last, or what was approved.',
      }),
    ),
    queue: Nullable(
      Type.Object(
        {
          position: Type.Integer({
            minimum: 1,
            maximum: MAX_POSITION,
            description:
              'Its position among the queued jobs of its tenant, in the order of their creation; ' +
              'approximate in the response that created it.',
          }),
          oldestSeconds: Type.Integer({
            minimum: 0,
            description: 'For how long the oldest queued job of the tenant waits.',
          }),
        },
        {
          title: 'JobQueuePosition',
          description: 'Where a queued job waits. Null for other jobs, and where it was not read.',
        },
      ),
    ),
    workflowForgotten: Nullable(
      Type.Boolean({
        description:
          'True when the retention of Temporal has passed, so that it no longer has a workflow with this id; null when that is not known.',
      }),
    ),
  },
  { title: 'Job', additionalProperties: false },
);
export type JobRecord = Static<typeof JobRecord>;
