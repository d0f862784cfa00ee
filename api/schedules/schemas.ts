import { Type, type Static } from 'typebox';
import { CRON_FIELDS } from '../../domain/schedules/cron.ts';
import { JOB_STATUSES } from '../../domain/jobs/jobs.ts';
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
import { choiceField, flagField, idField, textField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import {
  ACCEPTS_ANY_TEXT,
  Actor,
  closed,
  Id,
  JsonObject,
  Name,
  NewName,
  Nullable,
  Reference,
  referenceTo,
  TenantId,
  Timestamp,
  Warnings,
} from '../http/schemas.ts';
import { JobReference, JobTarget, TargetRequest } from '../jobs/schemas.ts';
import { BACKUP_JOB, VERIFY_JOB } from '../../domain/backups/backups.ts';
import { BackupPayload } from '../../services/jobTypes/backups/create.ts';

const time = (description: string) => Type.String({ format: 'date-time', description });
const timeOrNull = (description: string) => Nullable(time(description));

export const RunRecord = Type.Object(
  {
    id: Id('run'),
    scheduleId: referenceTo('schedules', Id('sch')),
    tenantId: Reference('tenants'),
    kind: Type.Enum([...RUN_KINDS], {
      title: 'ScheduleRunKind',
      description: 'An occurrence, a request to run now, or a backfilled occurrence.',
    }),
    dueAt: time('The scheduled time, or the time of the trigger.'),
    outcome: Type.Enum([...RUN_OUTCOMES], {
      title: 'ScheduleRunOutcome',
      description: 'A buffered run waits for a job of the schedule to end.',
    }),
    reason: Nullable(
      Type.Enum([...RUN_REASONS], {
        title: 'ScheduleRunReason',
        description: 'Why no job was created; null if one was.',
      }),
    ),
    caughtUp: Type.Boolean({
      description: 'True if the job was created more than 10 s after scheduled time and delay.',
    }),
    jobId: Nullable(referenceTo('jobs', Id('job'))),
    job: Nullable(JobReference('The job, and whether it is purged: nothing is known of it then.')),
    jobStatus: Nullable(
      Type.Enum([...JOB_STATUSES], {
        title: 'JobStatus',
        description: 'The status of the job now; null if no job was created, or it is purged.',
      }),
    ),
    jobErrorCode: Nullable(
      Type.String({ description: 'Why the job, or its last attempt, failed.' }),
    ),
    startedAt: timeOrNull('When the job started.'),
    finishedAt: timeOrNull('When the job finished; null while it is queued or running.'),
    actorId: Actor('Who requested the run; for an occurrence the owner of the schedule.'),
    decidedAt: time('When the outcome was decided.'),
  },
  { title: 'ScheduleRun', ...closed },
);
export type RunRecord = Static<typeof RunRecord>;

export const UpcomingRecord = Type.Object(
  {
    at: Nullable(
      Type.String({
        format: 'date-time',
        description: 'The instant in UTC; null for a local time that does not exist.',
      }),
    ),
    localTime: Type.String({
      description: 'The time on the wall clock of the time zone.',
      examples: ['2027-03-28T01:30:00'],
    }),
    utcOffset: Nullable(Type.String({ examples: ['+01:00'] })),
    daylightSaving: Nullable(
      Type.Enum(['skipped', 'first', 'second'], {
        title: 'DaylightSaving',
        description:
          'Clocks are set forward and skip this local time, or are set back and show it twice.',
      }),
    ),
  },
  { title: 'UpcomingRun', ...closed },
);
export type UpcomingRecord = Static<typeof UpcomingRecord>;

const policies = {
  overlapPolicy: Type.Enum([...OVERLAP_POLICIES], {
    title: 'OverlapPolicy',
    description: 'What to do at an occurrence while a job is unfinished; skip by default.',
  }),
  catchupWindowSeconds: Type.Integer({
    minimum: MIN_CATCHUP_SECONDS,
    maximum: MAX_CATCHUP_SECONDS,
    description:
      'How late an occurrence may still run, in seconds, in addition to its delay; ' +
      `${DEFAULT_CATCHUP_SECONDS} by default.`,
  }),
  jitterSeconds: Type.Integer({
    minimum: 0,
    maximum: MAX_JITTER_SECONDS,
    description: 'Each run is delayed by a random number of seconds up to this; 0 by default.',
  }),
};
const bounds = {
  startAt: timeOrNull('Earlier occurrences are ignored; null for no bound.'),
  endAt: timeOrNull('Later occurrences are ignored; null for no bound.'),
};
const MaxRuns = Nullable(
  Type.Integer({
    minimum: 1,
    maximum: 1_000_000_000,
    description: 'The number of jobs for occurrences after which the schedule has ended.',
  }),
);

const PartialRetryPolicy = Type.Partial(RetryPolicy, {
  title: 'PartialRetryPolicy',
  ...closed,
  description: 'Overrides fields of the retry policy of the job type.',
});

const { properties: retryFields } = RetryPolicy;
const RetryPolicyChange = Type.Partial(
  Type.Object({
    maxAttempts: Nullable(retryFields.maxAttempts),
    initialIntervalSeconds: Nullable(retryFields.initialIntervalSeconds),
    backoffCoefficient: Nullable(retryFields.backoffCoefficient),
    maxIntervalSeconds: Nullable(retryFields.maxIntervalSeconds),
    nonRetryableCodes: Nullable(retryFields.nonRetryableCodes),
    intervalsSeconds: Nullable(retryFields.intervalsSeconds),
    jitter: Nullable(retryFields.jitter),
  }),
  {
    title: 'RetryPolicyChange',
    ...closed,
    description:
      'Changes these overrides and no others. With null, the job type decides about the field again.',
  },
);

const summary = {
  id: Id('sch'),
  tenantId: Reference('tenants'),
  name: Type.String(),
  description: Type.String(),
  cronExpression: Type.String(),
  timezone: Type.String(),
  jobType: Type.String(),
  target: Nullable(JobTarget),
  retryPolicy: PartialRetryPolicy,
  enabled: Type.Boolean({ description: 'False while the schedule is paused.' }),
  ...policies,
  spreadSeconds: Type.Integer({
    description:
      'Each run is delayed by at least a random number of seconds up to this, since the tenant has ' +
      'many schedules; 0 for the first ones of a tenant.',
  }),
  ...bounds,
  maxRuns: MaxRuns,
  runCount: Type.Integer({
    description: 'The number of jobs created for occurrences, without triggers and backfills.',
  }),
  state: Type.Enum(['active', 'paused', 'ended'], {
    description: 'A schedule without a next occurrence has ended.',
  }),
  pausedAt: timeOrNull('When the schedule was paused.'),
  pausedBy: Nullable(Actor('The actor who paused the schedule.')),
  pauseReason: Nullable(Type.String()),
  owner: Actor('The actor whose permissions its jobs have.'),
  nextRuns: Type.Array(UpcomingRecord, {
    description: 'The next five occurrences, without delay, and skipped local times between them.',
  }),
  timingProblem: Nullable(
    Type.String({
      description:
        'Why the next occurrences are not known: this server does not know the time zone, or no longer accepts ' +
        'the expression.',
    }),
  ),
  lastRun: Nullable(RunRecord),
  temporalScheduleId: Type.String({ description: 'Id of the Temporal Schedule.' }),
  createdBy: Actor(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: Type.Integer(),
};
export const ScheduleSummary = Type.Object(summary, { title: 'ScheduleSummary', ...closed });
export type ScheduleSummary = Static<typeof ScheduleSummary>;

export const ScheduleRecord = Type.Object(
  {
    ...summary,
    warnings: Warnings,
    payload: Type.Object(
      {},
      { additionalProperties: true, description: 'The payload of its jobs. Secrets are masked.' },
    ),
  },
  { title: 'Schedule', ...closed },
);
export type ScheduleRecord = Static<typeof ScheduleRecord>;

const Text = (maxLength: number) =>
  Type.String({
    maxLength,
    pattern: '^[^\\u0000-\\u0008\\u000b-\\u001f\\u007f\\ud800-\\udfff]*$',
    'x-rule': 'must not contain control characters other than tabs and line feeds',
  });
const CronExpression = Type.String({
  minLength: 1,
  maxLength: 255,
  description: 'Five fields as in crontab(5), or a nickname such as @daily.',
  examples: ['30 2 * * mon-fri'],
});
const Timezone = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'A time zone of the tz database; UTC by default.',
  examples: ['Europe/London'],
});
const Payload = JsonObject<Record<string, unknown>>({
  ...ACCEPTS_ANY_TEXT,
  description: 'The payload of its jobs, validated against the schema of the job type.',
});

const optional = {
  description: Type.Optional(Text(1_000)),
  timezone: Type.Optional(Timezone),
  payload: Type.Optional(Payload),
  target: Type.Optional(
    Nullable(
      TargetRequest(
        'The site or the device that its jobs are about, for job types with `targets`: a record of the ' +
          'tenant of the schedule. Each run checks it again.',
      ),
    ),
  ),
  retryPolicy: Type.Optional(PartialRetryPolicy),
  enabled: Type.Optional(Type.Boolean()),
  overlapPolicy: Type.Optional(policies.overlapPolicy),
  catchupWindowSeconds: Type.Optional(policies.catchupWindowSeconds),
  jitterSeconds: Type.Optional(policies.jitterSeconds),
  startAt: Type.Optional(bounds.startAt),
  endAt: Type.Optional(bounds.endAt),
  maxRuns: Type.Optional(MaxRuns),
};

export const ScheduleRequest = Type.Object(
  {
    name: NewName(),
    cronExpression: CronExpression,
    jobType: Name({ description: 'A job type of GET /api/job-types.' }),
    ...optional,
  },
  { title: 'ScheduleRequest', ...closed },
);
export const ScheduleChange = Type.Object(
  {
    name: Type.Optional(NewName()),
    cronExpression: Type.Optional(CronExpression),
    jobType: Type.Optional(Name({ description: 'Another job type requires a payload.' })),
    ...optional,
    retryPolicy: Type.Optional(RetryPolicyChange),
    takeOver: Type.Optional(
      Type.Boolean({ description: 'Makes the caller the owner of the schedule.' }),
    ),
  },
  { title: 'ScheduleChange', ...closed },
);
export type ScheduleChange = Static<typeof ScheduleChange>;

export const BackupScheduleRequest = Type.Object(
  {
    name: NewName(),
    cronExpression: CronExpression,
    timezone: Type.Optional(Timezone),
    enabled: Type.Optional(Type.Boolean()),
    ...BackupPayload.properties,
    jobType: Type.Optional(
      Type.Enum([BACKUP_JOB, VERIFY_JOB], {
        title: 'BackupScheduleJobType',
        default: BACKUP_JOB,
        description: 'backup.verify does a test restore of the newest backup, of the label if set.',
      }),
    ),
  },
  { title: 'BackupScheduleRequest', ...closed },
);

const BackfillCount = (description: string) => Type.Integer({ minimum: 0, description });
export const BackfillPreviewRecord = Type.Object(
  {
    occurrences: BackfillCount('All occurrences of the interval.'),
    toRun: BackfillCount('Those for which a backfill would create a job.'),
    hasRun: BackfillCount('Those that have run or wait to run.'),
    pending: BackfillCount('Those that catch-up can still run.'),
    purged: BackfillCount('Those whose runs are purged: they may have run.'),
    held: BackfillCount('Those where a legal hold keeps the run of an earlier backfill.'),
  },
  { title: 'BackfillPreview', ...closed },
);

export const DaysQuery = Type.Object(
  {
    days: Type.Integer({
      minimum: 1,
      maximum: 366,
      default: 91,
      description: 'The number of days up to today.',
    }),
  },
  closed,
);
export const ScheduleDays = Type.Object(
  {
    timezone: Type.String({ description: 'The time zone of the schedule, in which days start.' }),
    days: Nullable(
      Type.Array(
        Type.Object(
          {
            date: Type.String({ format: 'date', examples: ['2026-11-21'] }),
            start: time('When the day starts in the time zone of the schedule.'),
            end: time('When the next day starts there: after 23 or 25 hours where clocks change.'),
            runs: Type.Array(
              Type.Object(
                {
                  outcome: RunRecord.properties.outcome,
                  reason: RunRecord.properties.reason,
                  jobStatus: RunRecord.properties.jobStatus,
                  count: Type.Integer({ minimum: 1 }),
                },
                { title: 'ScheduleRunCount', ...closed },
              ),
            ),
          },
          { title: 'ScheduleDay', ...closed },
        ),
        {
          description:
            'The earliest day first, also days without runs. Of a schedule with more than 50,000 runs, ' +
            'the days before them are left out. Null if counting took longer than a second.',
        },
      ),
    ),
  },
  { title: 'ScheduleDays', ...closed },
);

export const ReasonRequest = Type.Object(
  { reason: Type.Optional(Text(1_000)) },
  { title: 'ReasonRequest', ...closed },
);
export const BackfillRequest = Type.Object(
  {
    since: time('The first scheduled time.'),
    until: time('The last scheduled time, not in the future.'),
  },
  {
    title: 'BackfillRequest',
    description: 'An interval of the past; both bounds are inclusive.',
    ...closed,
  },
);

export const PreviewRequest = Type.Object(
  {
    cronExpression: CronExpression,
    timezone: Type.Optional(Timezone),
    startAt: Type.Optional(time('Earlier occurrences are ignored.')),
    endAt: Type.Optional(time('Later occurrences are ignored.')),
    after: Type.Optional(time('List occurrences after this time; defaults to now.')),
    count: Type.Integer({
      minimum: 1,
      maximum: 100,
      default: 10,
      description:
        'The number of occurrences; skipped local times are added. ' +
        'Occurrences more than 400 years later are left out.',
    }),
  },
  { title: 'SchedulePreviewRequest', ...closed },
);
export type PreviewRequest = Static<typeof PreviewRequest>;

const fields = Object.fromEntries(CRON_FIELDS.map((field) => [field, Type.Array(Type.Integer())]));
export const PreviewRecord = Type.Object(
  {
    timezone: Type.String(),
    fields: Type.Object(fields, {
      description: 'The values that each field matches. Sunday is 0.',
      ...closed,
    }),
    days: Type.Enum(['either', 'both'], {
      description:
        'Whether a day must match both dayOfMonth and dayOfWeek, or either of them, ' +
        'as when both are restricted.',
    }),
    nextRuns: Type.Array(UpcomingRecord),
  },
  { title: 'SchedulePreview', ...closed },
);
export type PreviewRecord = Static<typeof PreviewRecord>;

export const SCHEDULES = defineList({
  name: 'schedules',
  id: 'sch',
  item: ScheduleSummary,
  title: 'ScheduleList',
  fields: {
    id: idField(Id('sch'), { facet: false }),
    name: textField({ sort: true }),
    enabled: flagField(),
    jobType: textField({ facet: true }),
    timezone: textField({ facet: true }),
    tenantId: idField(TenantId()),
    createdBy: textField({ facet: true }),
    createdAt: timeField(),
    updatedAt: timeField({ sort: true }),
  },
});

export const RUNS = defineList({
  name: 'schedule-runs',
  id: 'run',
  item: RunRecord,
  title: 'ScheduleRunList',
  idTime: 'dueAt',
  fields: {
    scheduleId: idField(Id('sch')),
    tenantId: idField(TenantId()),
    kind: choiceField(RUN_KINDS, { title: 'ScheduleRunKind' }),
    outcome: choiceField(RUN_OUTCOMES, { title: 'ScheduleRunOutcome' }),
    reason: choiceField(RUN_REASONS, {
      title: 'ScheduleRunReason',
      nullable: true,
      none: ['none'],
    }),
    dueAt: timeField(),
  },
  own: {
    since: Type.Optional(time('Runs scheduled at this time or later.')),
    until: Type.Optional(time('Runs scheduled before this time.')),
  },
  aliases: { since: 'dueAt.gte', until: 'dueAt.lt' },
});
