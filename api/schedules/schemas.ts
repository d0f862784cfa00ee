import { Type, type Static } from 'typebox';
import { CRON_FIELDS } from '../../domain/schedules/cron.ts';
import { RetryPolicy } from '../../domain/jobs/retry.ts';
import {
  DEFAULT_CATCHUP_SECONDS,
  MAX_CATCHUP_SECONDS,
  MAX_JITTER_SECONDS,
  MIN_CATCHUP_SECONDS,
  OVERLAP_POLICIES,
  RUN_KINDS,
  RUN_OUTCOMES,
  RUN_REASONS,
} from '../../domain/schedules/schedules.ts';
import { pageQuery } from '../http/pagination.ts';
import { TenantId } from '../access/schemas.ts';
import { Id, Name, Nullable, Timestamp } from '../http/schemas.ts';
import { BACKUP_JOB, VERIFY_JOB } from '../../domain/backups.ts';
import { BackupPayload } from '../../services/jobTypes/backups/create.ts';

const closed = { additionalProperties: false };

export const RunRecord = Type.Object(
  {
    id: Id('run'),
    scheduleId: Id('sch'),
    tenantId: Type.String(),
    kind: Type.Enum([...RUN_KINDS], { description: 'A time due, or what was asked for.' }),
    dueAt: Timestamp,
    outcome: Type.Enum([...RUN_OUTCOMES], {
      description: 'buffered: waits for a job of the schedule to end.',
    }),
    reason: Nullable(Type.Enum([...RUN_REASONS], { description: 'Why no job was made.' })),
    caughtUp: Type.Boolean({
      description: 'Decided to fire more than 10 s after its time and jitter.',
    }),
    jobId: Nullable(Id('job')),
    actorId: Type.String({ description: 'Who asked; for a time due the owner.' }),
    decidedAt: Timestamp,
  },
  { title: 'ScheduleRun', ...closed },
);
export type RunRecord = Static<typeof RunRecord>;

export const UpcomingRecord = Type.Object(
  {
    at: Nullable(
      Type.String({
        format: 'date-time',
        description: 'In UTC; null where the clock skips this time and nothing runs.',
      }),
    ),
    localTime: Type.String({
      description: 'On the wall clock of the zone.',
      examples: ['2027-03-28T01:30:00'],
    }),
    utcOffset: Nullable(Type.String({ examples: ['+01:00'] })),
    daylightSaving: Nullable(
      Type.Enum(['skipped', 'first', 'second'], {
        description: 'The wall clock skips this time, or shows it twice; null on other days.',
      }),
    ),
  },
  { title: 'UpcomingRun', ...closed },
);
export type UpcomingRecord = Static<typeof UpcomingRecord>;

const DateOrNull = Nullable(Timestamp);
const policies = {
  overlapPolicy: Type.Enum([...OVERLAP_POLICIES]),
  catchupWindowSeconds: Type.Integer({
    minimum: MIN_CATCHUP_SECONDS,
    maximum: MAX_CATCHUP_SECONDS,
    description: `How late a time due may still run; ${DEFAULT_CATCHUP_SECONDS} unless given.`,
  }),
  jitterSeconds: Type.Integer({
    minimum: 0,
    maximum: MAX_JITTER_SECONDS,
    description: 'Up to so much is added to each time, as Temporal chooses.',
  }),
};
const MaxRuns = Nullable(
  Type.Integer({
    minimum: 1,
    maximum: 1_000_000_000,
    description: 'Jobs for times due, after which the schedule has ended.',
  }),
);

const PartOfPolicy = Type.Partial(RetryPolicy, {
  ...closed,
  description: 'For its jobs; what is left out comes from their type.',
});

const summary = {
  id: Id('sch'),
  tenantId: Type.String(),
  name: Type.String(),
  description: Type.String(),
  cronExpression: Type.String(),
  timezone: Type.String(),
  jobType: Type.String(),
  retryPolicy: PartOfPolicy,
  enabled: Type.Boolean(),
  ...policies,
  startAt: DateOrNull,
  endAt: DateOrNull,
  maxRuns: MaxRuns,
  runCount: Type.Integer({ description: 'Jobs made for times due.' }),
  state: Type.Enum(['active', 'paused', 'ended'], {
    description: 'ended: nothing is due any more.',
  }),
  pausedAt: DateOrNull,
  pausedBy: Nullable(Type.String()),
  pauseReason: Nullable(Type.String()),
  owner: Type.String({ description: 'With whose rights its jobs are made.' }),
  nextRuns: Type.Array(UpcomingRecord, {
    description: 'The next five, without jitter, and the skipped ones between them.',
  }),
  lastRun: Nullable(RunRecord),
  temporalScheduleId: Type.String({ description: 'The Temporal Schedule.' }),
  createdBy: Type.String(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: Type.Integer(),
};
export const ScheduleSummary = Type.Object(summary, { title: 'ScheduleSummary', ...closed });
export type ScheduleSummary = Static<typeof ScheduleSummary>;

export const ScheduleRecord = Type.Object(
  {
    ...summary,
    payload: Type.Object({}, { additionalProperties: true, description: 'Secrets masked.' }),
  },
  { title: 'Schedule', ...closed },
);
export type ScheduleRecord = Static<typeof ScheduleRecord>;

const Text = (maxLength: number) =>
  Type.String({ maxLength, pattern: '^[^\\u0000-\\u0008\\u000b-\\u001f\\u007f\\ud800-\\udfff]*$' });
const CronExpression = Type.String({
  minLength: 1,
  maxLength: 255,
  description: 'Five fields, or @daily and the like.',
  examples: ['30 2 * * mon-fri'],
});
const Timezone = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'A name of the tz database.',
  examples: ['Europe/London'],
});
const Payload = Type.Record(Type.String(), Type.Unknown(), {
  description: 'Checked against the schema of the job type.',
});

const optional = {
  description: Type.Optional(Text(1_000)),
  timezone: Type.Optional(Timezone),
  payload: Type.Optional(Payload),
  retryPolicy: Type.Optional(PartOfPolicy),
  enabled: Type.Optional(Type.Boolean()),
  overlapPolicy: Type.Optional(policies.overlapPolicy),
  catchupWindowSeconds: Type.Optional(policies.catchupWindowSeconds),
  jitterSeconds: Type.Optional(policies.jitterSeconds),
  startAt: Type.Optional(DateOrNull),
  endAt: Type.Optional(DateOrNull),
  maxRuns: Type.Optional(MaxRuns),
};

export const ScheduleRequest = Type.Object(
  {
    name: Name(),
    cronExpression: CronExpression,
    jobType: Name({ description: 'GET /api/job-types lists them.' }),
    ...optional,
  },
  { title: 'ScheduleRequest', ...closed },
);
export const ScheduleChange = Type.Object(
  {
    name: Type.Optional(Name()),
    cronExpression: Type.Optional(CronExpression),
    jobType: Type.Optional(Name({ description: 'Together with its payload.' })),
    ...optional,
    takeOver: Type.Optional(
      Type.Boolean({ description: 'From now on its jobs are made with your rights.' }),
    ),
  },
  { title: 'ScheduleChange', ...closed },
);
export type ScheduleChange = Static<typeof ScheduleChange>;

export const BackupScheduleRequest = Type.Object(
  {
    name: Name(),
    cronExpression: CronExpression,
    timezone: Type.Optional(Timezone),
    ...BackupPayload.properties,
    jobType: Type.Optional(
      Type.Enum([BACKUP_JOB, VERIFY_JOB], {
        default: BACKUP_JOB,
        description: 'backup.verify proves the newest backup, of this label where one is given.',
      }),
    ),
  },
  { title: 'BackupScheduleRequest', ...closed },
);

export const ReasonRequest = Type.Object(
  { reason: Type.Optional(Text(1_000)) },
  { title: 'ReasonRequest', ...closed },
);
export const BackfillRequest = Type.Object(
  { since: Timestamp, until: Timestamp },
  { title: 'BackfillRequest', description: 'Both ends belong to the range.', ...closed },
);

export const PreviewRequest = Type.Object(
  {
    cronExpression: CronExpression,
    timezone: Type.Optional(Timezone),
    startAt: Type.Optional(Timestamp),
    endAt: Type.Optional(Timestamp),
    after: Type.Optional(
      Type.String({ format: 'date-time', description: 'From when on; now unless given.' }),
    ),
    count: Type.Integer({
      minimum: 1,
      maximum: 100,
      default: 10,
      description: 'How many runs; skipped times come in addition.',
    }),
  },
  { title: 'PreviewRequest', ...closed },
);
export type PreviewRequest = Static<typeof PreviewRequest>;

const fields = Object.fromEntries(CRON_FIELDS.map((field) => [field, Type.Array(Type.Integer())]));
export const PreviewRecord = Type.Object(
  {
    timezone: Type.String(),
    fields: Type.Object(fields, {
      description: 'The values of each field. Sunday is 0.',
      ...closed,
    }),
    days: Type.Enum(['either', 'both'], {
      description:
        'Whether a day must match dayOfMonth or dayOfWeek, or both: both restricted means either, as in Vixie cron.',
    }),
    nextRuns: Type.Array(UpcomingRecord),
  },
  { title: 'SchedulePreview', ...closed },
);
export type PreviewRecord = Static<typeof PreviewRecord>;

export const ScheduleQuery = Type.Object(
  {
    enabled: Type.Optional(Type.Boolean()),
    jobType: Type.Optional(Name()),
    tenantId: Type.Optional(TenantId()),
    ...pageQuery,
  },
  closed,
);
export const RunQuery = Type.Object(
  {
    scheduleId: Type.Optional(Id('sch')),
    tenantId: Type.Optional(TenantId()),
    kind: Type.Optional(Type.Enum([...RUN_KINDS])),
    outcome: Type.Optional(
      Type.Array(Type.Enum([...RUN_OUTCOMES]), { maxItems: RUN_OUTCOMES.length }),
    ),
    reason: Type.Optional(Type.Enum([...RUN_REASONS])),
    since: Type.Optional(
      Type.String({ format: 'date-time', description: 'Times due from here on.' }),
    ),
    until: Type.Optional(
      Type.String({ format: 'date-time', description: 'Times due before this.' }),
    ),
    ...pageQuery,
  },
  closed,
);
export type RunQuery = Static<typeof RunQuery>;
