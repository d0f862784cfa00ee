import { Type, type Static } from 'typebox';
import { JOB_TYPE_PATTERN } from '../../domain/access/jobTypePatterns.ts';
import { MAX_JOB_TYPE_NAME } from '../../domain/jobs/jobTypeNames.ts';
import { ERROR_CODE, JOB_STATUSES, LOG_LEVELS } from '../../domain/jobs/jobs.ts';
import { TARGET_KINDS } from '../../domain/jobs/targets.ts';
import {
  MAX_ANNOUNCED_TYPES,
  MAX_DEFINITION_BYTES,
  POOL_NAME,
  RemoteTypeDefinition,
} from '../../domain/runners/definition.ts';
import { MAX_COUNTED_JOBS, MAX_UNANSWERED, TYPE_STATES } from '../../domain/runners/records.ts';
import {
  ACCEPTS_ANY_TEXT,
  Actor,
  closed,
  Id,
  JsonObject,
  Name,
  Nullable,
  Timestamp,
} from '../http/schemas.ts';

export const PoolName = Type.String({
  title: 'PoolName',
  pattern: POOL_NAME,
  'x-rule': 'must be 1 to 63 lower-case letters, digits and hyphens, a letter first',
  examples: ['default'],
});

const Digest = Type.String({
  pattern: '^[0-9a-f]{64}$',
  'x-rule': 'must be a SHA-256 in hexadecimal digits',
  description: 'SHA-256 of the declaration of a type and of its code.',
});

const poolFields = {
  description: Type.Optional(Type.String({ maxLength: 1_000 })),
  acceptTypes: Type.Optional(
    Type.Array(
      Type.String({
        pattern: JOB_TYPE_PATTERN,
        maxLength: MAX_JOB_TYPE_NAME,
        'x-rule': 'must be the name of a job type, an area such as net.*, or *',
      }),
      {
        maxItems: 50,
        description:
          'Names and areas of types that need no acceptance when runners of the pool announce them.',
      },
    ),
  ),
  tenantSharePercent: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 1,
        maximum: 100,
        description:
          'The share of the free slots that one tenant can take. Null: `HOLDFAST_TENANT_SHARE_PERCENT`.',
      }),
    ),
  ),
};
export const PoolRequest = Type.Object(
  { name: PoolName, ...poolFields },
  { title: 'PoolRequest', ...closed },
);
export const PoolChange = Type.Object(poolFields, { title: 'PoolChange', ...closed });
export const PoolRecord = Type.Object(
  {
    id: Type.String({ description: 'The name, which never changes.' }),
    name: PoolName,
    description: Type.String(),
    acceptTypes: Type.Array(Type.String()),
    tenantSharePercent: Nullable(Type.Integer()),
    runners: Type.Integer({ description: 'Runners that have reported in the last 30 seconds.' }),
    slots: Type.Integer({ description: 'How many jobs these can run at a time.' }),
    runningJobs: Type.Integer(),
    queuedJobs: Type.Integer({
      description: `Jobs of all tenants that wait for the pool, counted up to ${MAX_COUNTED_JOBS}.`,
    }),
    createdBy: Actor(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    version: Type.Integer(),
  },
  { title: 'Pool', ...closed },
);
export type PoolRecord = Static<typeof PoolRecord>;

export const RunnerRecord = Type.Object(
  {
    id: Id('rnr'),
    pool: PoolName,
    name: Type.String({ description: 'The name that the process has announced, its host.' }),
    version: Type.String(),
    slots: Type.Integer({ description: 'How many jobs it runs at a time.' }),
    runningJobs: Type.Integer({ description: 'Jobs that it runs now.' }),
    types: Type.Record(Type.String(), Type.String(), {
      description: 'The digests of the types that it can run, by name.',
    }),
    tokenId: Id('tok'),
    address: Nullable(Type.String()),
    alive: Type.Boolean({ description: 'It has reported in the last 30 seconds.' }),
    reachesTemporal: Type.Boolean({
      description:
        'False: it has said that it does not reach Temporal. It takes no jobs then, and does not count as a living runner of its pool.',
    }),
    startedAt: Timestamp,
    seenAt: Timestamp,
  },
  { title: 'Runner', ...closed },
);
export type RunnerRecord = Static<typeof RunnerRecord>;

export const AcceptRequest = Type.Object(
  {
    digest: Type.Optional(
      Type.String({ ...Digest, description: 'The version to accept; by default the newest.' }),
    ),
  },
  { title: 'JobTypeAcceptance', ...closed },
);

const ProcessId = Type.String({
  pattern: '^[0-9a-f-]{36}$',
  'x-rule': 'must be a UUID',
  description: 'A UUID that the process makes when it starts.',
});

/** Types in one announcement, with those that are one too many. */
const MAX_SENT_TYPES = 1_000;

const reachesTemporal = Type.Optional(
  Type.Boolean({
    default: true,
    description: 'False: the runner does not reach Temporal, and takes no jobs now.',
  }),
);

export const AnnounceRequest = Type.Object(
  {
    runnerId: ProcessId,
    name: Name({ description: 'The name of the host.' }),
    version: Name(),
    slots: Type.Integer({ minimum: 1, maximum: 1_000 }),
    pool: PoolName,
    reachesTemporal,
    types: Type.Array(
      Type.Object(
        { digest: Digest, definition: RemoteTypeDefinition },
        { title: 'AnnouncedJobType', ...closed },
      ),
      {
        maxItems: MAX_SENT_TYPES,
        description: `Of these, the first ${MAX_ANNOUNCED_TYPES} are announced. The others, and those that are not as described here or have more than ${MAX_DEFINITION_BYTES} bytes, are \`refused\` in the answer, and the rest is announced.`,
      },
    ),
  },
  { title: 'RunnerAnnouncement', ...closed },
);
/** An announcement before its types are checked one by one. */
export const UncheckedAnnouncement = Type.Object(
  {
    ...AnnounceRequest.properties,
    types: Type.Array(Type.Unknown(), { maxItems: MAX_SENT_TYPES }),
  },
  closed,
);
export const AnnouncedState = Type.Object(
  {
    name: Type.String(),
    digest: Type.String(),
    state: Type.Enum([...TYPE_STATES, 'refused'], { title: 'AnnouncedJobTypeState' }),
    reason: Type.Optional(Type.String()),
  },
  { title: 'AnnouncedJobTypeStatus', ...closed },
);
export const AnnounceAnswer = Type.Object(
  {
    runner: Id('rnr'),
    taskQueue: Type.String({ description: 'Where the runner polls Temporal.' }),
    namespace: Type.String(),
    everySeconds: Type.Integer({ description: 'How often it reports that it is alive.' }),
    types: Type.Array(AnnouncedState),
  },
  { title: 'RunnerAnnouncementAnswer', ...closed },
);

export const AliveRequest = Type.Object(
  { runnerId: ProcessId, pool: PoolName, reachesTemporal },
  { title: 'RunnerReport', ...closed },
);
export const LeaveRequest = Type.Object(
  { runnerId: ProcessId, pool: PoolName },
  { title: 'RunnerLeave', ...closed },
);
export const AliveAnswer = Type.Object(
  { types: Type.Array(AnnouncedState) },
  { title: 'RunnerReportAnswer', ...closed },
);

export const BeginRequest = Type.Object(
  {
    runnerId: ProcessId,
    workflowRunId: Type.String({
      minLength: 1,
      maxLength: 100,
      description: 'The id of the run of the workflow, from the information about the activity.',
    }),
    digest: Type.Optional(
      Type.String({
        ...Digest,
        description:
          'SHA-256 of the declaration of the type and of its code. A runner that does not have the type omits it: the job then keeps no slot of the pool, and waits for another runner.',
      }),
    ),
    attemptToken: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9_-]{43}$',
        'x-rule': 'must be 32 random bytes in base64url',
        description:
          'The token of the attempt, which the runner makes for each attempt that it wants to begin. A repeated request with the same token gets the same attempt. By default, the API makes one.',
      }),
    ),
    unanswered: Type.Optional(
      Type.Array(
        Type.String({
          pattern: '^[0-9a-f]{64}$',
          'x-rule': 'must be a SHA-256 in hexadecimal digits',
        }),
        {
          maxItems: MAX_UNANSWERED,
          description:
            'SHA-256 of the attempt tokens of requests for this job that were not answered. An attempt that one of them has started has reached no runner; this request gets it.',
        },
      ),
    ),
  },
  { title: 'RunnerBegin', ...closed },
);
const outcome = <T extends string>(value: T) => ({ outcome: Type.Literal(value) });
export const RunnerTarget = Type.Object(
  {
    kind: Type.Enum(TARGET_KINDS.filter((kind) => kind !== 'none')),
    id: Type.String(),
    name: Type.String(),
    tenantId: Type.String(),
    siteId: Nullable(Type.String({ description: 'The site of a device, if it has one.' })),
  },
  { title: 'RunnerTarget', additionalProperties: true },
);
export const BeginAnswer = Type.Union(
  [
    Type.Object(
      {
        ...outcome('started'),
        attempt: Type.Integer(),
        attemptToken: Type.String({
          description: 'For the header `Attempt-Token`; good for this attempt only.',
        }),
        type: Type.String(),
        digest: Digest,
        payload: JsonObject(),
        target: Nullable(RunnerTarget),
        secrets: Type.Record(Type.String(), Type.String(), {
          description:
            'The values of the named secrets that the type asks for, by the names that its code reads.',
        }),
        deadline: Timestamp,
        timeoutMs: Type.Integer(),
        leaseMs: Type.Integer({
          description: 'The attempt is lost after so long without a report.',
        }),
        maxAttempts: Type.Integer({
          description:
            'The number of the last attempt: none follows it, so that the work may go on without a lease.',
        }),
        remainingLines: Type.Integer({ description: 'Lines that the log has space for.' }),
        tenantId: Type.String(),
        createdBy: Type.String(),
      },
      { title: 'RunnerStarted', ...closed },
    ),
    Type.Object(outcome('ended'), {
      title: 'RunnerJobEnded',
      description: 'There is nothing to do: the activity completes.',
      ...closed,
    }),
    Type.Object(
      { ...outcome('wait'), code: Type.String(), retryInMs: Type.Integer() },
      {
        title: 'RunnerMustWait',
        description: 'The activity fails, and its next attempt follows after `retryInMs`.',
        ...closed,
      },
    ),
    Type.Object(
      { ...outcome('failed'), code: Type.String() },
      {
        title: 'RunnerJobFailed',
        description: 'The activity fails with the code, without a further attempt.',
        ...closed,
      },
    ),
  ],
  { title: 'RunnerBeginAnswer' },
);

export const LinesQuery = Type.Object(
  {
    firstLine: Type.Integer({
      minimum: 1,
      maximum: 1_000_000_000,
      description: 'The number of the first line, counted from 1 in each attempt.',
    }),
    progress: Type.Optional(Type.Number({ minimum: 0, maximum: 100 })),
    progressMessage: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  },
  closed,
);
export const Lines = Type.Array(
  Type.Object(
    {
      level: Type.Enum([...LOG_LEVELS]),
      message: Type.String({ maxLength: 65_536 }),
      data: Type.Optional(JsonObject()),
      at: Type.Optional(Type.String({ maxLength: 40 })),
    },
    closed,
  ),
  { maxItems: 2_000 },
);
export const LinesAnswer = Type.Object(
  {
    have: Type.Integer({ description: 'How many lines of the attempt were received.' }),
    cancel: Type.Boolean({ description: 'true: the work is to be stopped.' }),
    leaseMs: Type.Integer(),
    remainingLines: Type.Integer(),
  },
  { title: 'RunnerLinesAnswer', ...closed },
);

export const EndRequest = Type.Object(
  {
    result: Type.Optional(
      JsonObject({ ...ACCEPTS_ANY_TEXT, description: 'The attempt has succeeded.' }),
    ),
    failure: Type.Optional(
      Type.Object(
        {
          code: Type.String({
            pattern: ERROR_CODE,
            'x-rule': 'must be an error code: a to z, 0 to 9 and underscores',
          }),
          message: Type.String({ maxLength: 65_536 }),
          retryable: Type.Optional(
            Type.Boolean({ description: 'Whether another attempt may follow; by default true.' }),
          ),
          retryAfterSeconds: Type.Optional(Type.Number({ minimum: 0, maximum: 86_400 })),
        },
        {
          ...ACCEPTS_ANY_TEXT,
          title: 'RunnerFailure',
          description: 'The attempt has failed.',
          ...closed,
        },
      ),
    ),
    cancelled: Type.Optional(
      Type.Boolean({ description: 'true: the work was stopped, as requested.' }),
    ),
    droppedLines: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'Lines that the runner did not send, because the log was full or the API was not reached for too long. The log says how many.',
      }),
    ),
  },
  {
    title: 'RunnerEnd',
    description:
      'Exactly one of `result`, `failure` and `cancelled`. NUL characters and halves of surrogate pairs are replaced by U+FFFD.',
    ...closed,
  },
);
export const EndAnswer = Type.Object(
  {
    status: Type.Enum([...JOB_STATUSES, 'retrying'], { title: 'RunnerEndStatus' }),
    code: Nullable(Type.String()),
    retryInMs: Nullable(Type.Integer({ description: 'When the next attempt is due.' })),
  },
  { title: 'RunnerEndAnswer', ...closed },
);
