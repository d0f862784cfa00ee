import { DAY_MS } from '../shared/durations.ts';

/**
 * What is deleted after a time. `byJobType`: a job type may have a period of its own.
 */
export const RETENTION = {
  jobLogs: { fallbackDays: 90, byJobType: true, of: 'log lines of jobs' },
  jobData: { fallbackDays: 90, byJobType: true, of: 'payloads and results of jobs' },
  jobs: { fallbackDays: 400, byJobType: true, of: 'jobs' },
  scheduleRuns: { fallbackDays: 400, byJobType: false, of: 'runs of schedules' },
  events: { fallbackDays: 90, byJobType: false, of: 'events' },
  deliveries: { fallbackDays: 30, byJobType: false, of: 'deliveries with their attempts' },
  importRows: { fallbackDays: 30, byJobType: false, of: 'rows of imports' },
} as const satisfies Record<string, { fallbackDays: number; byJobType: boolean; of: string }>;

export type RetentionKind = keyof typeof RETENTION;

export const RETENTION_KINDS = Object.keys(RETENTION) as readonly RetentionKind[];

/** The periods that can be set: those of what is deleted, and when audit entries are archived. */
export const PERIODS = {
  ...Object.fromEntries(
    RETENTION_KINDS.map((kind) => [
      kind,
      {
        fallbackDays: RETENTION[kind].fallbackDays,
        text: `Days for which ${RETENTION[kind].of} are kept; null: for ever.`,
      },
    ]),
  ),
  auditArchive: {
    fallbackDays: 0,
    text: 'Days after which audit entries move to an archive; null: never.',
  },
} as Readonly<Record<PeriodName, { fallbackDays: number; text: string }>>;

export type PeriodName = RetentionKind | 'auditArchive';
export const PERIOD_NAMES = Object.keys(PERIODS) as readonly PeriodName[];

/** The kinds for which a job type may have a period of its own. */
export const JOB_KINDS = ['jobLogs', 'jobData', 'jobs'] as const satisfies RetentionKind[];
export type JobKind = (typeof JOB_KINDS)[number];

const isJobKind = (kind: RetentionKind): kind is JobKind => RETENTION[kind].byJobType;

/** The shortest and the longest period that can be set, in days. */
export const MIN_DAYS = 1;
export const MAX_DAYS = 36_500;

/** The most job types for which a tenant may have periods. */
export const MAX_JOB_TYPES = 100;

/** A number of days, or null: kept for ever. */
export type Days = number | null;
export type RetentionDays = Readonly<Record<PeriodName, Days>>;
type JobTypeDays = Readonly<Partial<Record<JobKind, Days>>>;

/** What differs from the defaults of the installation. */
export type RetentionOverrides = {
  days: Readonly<Partial<RetentionDays>>;
  jobTypes: Readonly<Record<string, JobTypeDays>>;
};

export const NO_OVERRIDES: RetentionOverrides = { days: {}, jobTypes: {} };

/** A value for each period, from a function of its name. */
export const forEachPeriod = <T>(valueOf: (name: PeriodName) => T): Record<PeriodName, T> =>
  Object.fromEntries(PERIOD_NAMES.map((name) => [name, valueOf(name)])) as Record<PeriodName, T>;

/** The periods of a tenant. */
export const daysOf = (defaults: RetentionDays, { days }: RetentionOverrides): RetentionDays =>
  forEachPeriod((name) => {
    const own = days[name];
    return own === undefined ? defaults[name] : own;
  });

const shorter = (one: Days, other: Days): Days =>
  one === null ? other : other === null ? one : Math.min(one, other);

/**
 * The period of one kind of a tenant's records, for a job type if the kind has them. Nothing of a
 * job is kept longer than the job.
 */
function effectiveDays(
  days: RetentionDays,
  { jobTypes }: RetentionOverrides,
  kind: RetentionKind,
  jobType: string,
): Days {
  const of = (each: RetentionKind): Days => {
    const own = isJobKind(each) ? jobTypes[jobType]?.[each] : undefined;
    return own === undefined ? days[each] : own;
  };
  return kind === 'jobLogs' || kind === 'jobData' ? shorter(of(kind), of('jobs')) : of(kind);
}

/** Until when records are due to be purged: those created before. Null: none are. */
export type Cutoffs = {
  /** For all job types without a cutoff of their own. */
  other: Date | null;
  jobTypes: Readonly<Record<string, Date | null>>;
};

/** Records become due once a day, at midnight UTC. */
export const startOfDay = (now: Date): Date =>
  new Date(Math.floor(now.getTime() / DAY_MS) * DAY_MS);

/** The cutoffs of one kind of a tenant's records. */
export function cutoffsOf(
  defaults: RetentionDays,
  overrides: RetentionOverrides,
  kind: RetentionKind,
  now: Date,
): Cutoffs {
  const days = daysOf(defaults, overrides);
  const before = (count: Days) =>
    count === null ? null : new Date(startOfDay(now).getTime() - count * DAY_MS);
  const types = isJobKind(kind) ? Object.keys(overrides.jobTypes) : [];
  return {
    other: before(effectiveDays(days, overrides, kind, '')),
    jobTypes: Object.fromEntries(
      types.map((type) => [type, before(effectiveDays(days, overrides, kind, type))]),
    ),
  };
}

/** The latest of the cutoffs; null when nothing is due. */
export function latestCutoff({ other, jobTypes }: Cutoffs): Date | null {
  const times = [other, ...Object.values(jobTypes)].flatMap((at) => (at ? [at.getTime()] : []));
  return times.length === 0 ? null : new Date(Math.max(...times));
}

/** The earliest of all cutoffs; null when some records are kept for ever. */
export function earliestCutoff(cutoffs: readonly Cutoffs[]): Date | null {
  const all = cutoffs.flatMap(({ other, jobTypes }) => [other, ...Object.values(jobTypes)]);
  return all.includes(null) ? null : new Date(Math.min(...all.map((at) => at?.getTime() ?? 0)));
}

/** Always kept: the last runs of a schedule, and the last jobs of a type. */
export const KEPT_OF_EACH = 20;

export const PURGE_JOB_TYPE = 'retention.purge';
