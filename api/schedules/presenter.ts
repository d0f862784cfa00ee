import { CRON_FIELDS } from '../../domain/schedules/cron.ts';
import { stateOf } from '../../domain/schedules/schedules.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import { upcomingOf, type Preview } from '../../services/schedules/fields.ts';
import type { ScheduleWithRun } from '../../services/schedules.ts';
import type {
  PreviewRecord,
  RunRecord,
  ScheduleRecord,
  ScheduleSummary,
  UpcomingRecord,
} from './schemas.ts';
import { time } from '../jobs/presenter.ts';

type Run = NonNullable<ScheduleWithRun['lastRun']>;
type Upcoming = Preview['upcoming'][number];

const SHOWN_RUNS = 5;

export const runRecord = (run: Run): RunRecord => ({
  id: run.id,
  scheduleId: run.scheduleId,
  tenantId: run.tenantId,
  kind: run.kind,
  dueAt: run.dueAt.toISOString(),
  outcome: run.outcome,
  reason: run.reason,
  caughtUp: run.caughtUp,
  jobId: run.jobId,
  actorId: run.actorId,
  decidedAt: run.decidedAt.toISOString(),
});

const twoDigits = (value: number) => String(value).padStart(2, '0');

/** +05:45 */
function offset(offsetMs: number): string {
  const minutes = Math.abs(offsetMs) / 60_000;
  return `${offsetMs < 0 ? '-' : '+'}${twoDigits(Math.floor(minutes / 60))}:${twoDigits(Math.floor(minutes % 60))}`;
}

const upcomingRecord = ({ at, wallMs, offsetMs, daylight }: Upcoming): UpcomingRecord => ({
  at: time(at),
  localTime: new Date(wallMs).toISOString().slice(0, 19),
  utcOffset: offsetMs === null ? null : offset(offsetMs),
  daylightSaving: daylight,
});

export const previewRecord = ({
  timing: { cron, timezone },
  upcoming,
}: Preview): PreviewRecord => ({
  timezone,
  fields: Object.fromEntries(CRON_FIELDS.map((field) => [field, [...cron[field]]])),
  days: cron.days,
  nextRuns: upcoming.map(upcomingRecord),
});

const summary = ({ schedule, lastRun }: ScheduleWithRun): ScheduleSummary => ({
  id: schedule.id,
  tenantId: schedule.tenantId,
  name: schedule.name,
  description: schedule.description,
  cronExpression: schedule.cronExpression,
  timezone: schedule.timezone,
  jobType: schedule.jobType,
  retryPolicy: schedule.retryPolicy,
  enabled: schedule.enabled,
  overlapPolicy: schedule.overlapPolicy,
  catchupWindowSeconds: schedule.catchupWindowSeconds,
  jitterSeconds: schedule.jitterSeconds,
  startAt: time(schedule.startAt),
  endAt: time(schedule.endAt),
  maxRuns: schedule.maxRuns,
  runCount: schedule.runCount,
  state: stateOf(schedule),
  pausedAt: time(schedule.pausedAt),
  pausedBy: schedule.pausedBy,
  pauseReason: schedule.pauseReason,
  owner: schedule.owner.actorId,
  nextRuns: upcomingOf(schedule, new Date(), SHOWN_RUNS).map(upcomingRecord),
  lastRun: lastRun && runRecord(lastRun),
  temporalScheduleId: `schedule:${schedule.id}`,
  createdBy: schedule.createdBy,
  createdAt: schedule.createdAt.toISOString(),
  updatedAt: schedule.updatedAt.toISOString(),
  version: schedule.version,
});

/** Schedules as callers see them. */
export const schedulePresenter = (jobTypes: JobTypes) => ({
  summary,
  record: (found: ScheduleWithRun): ScheduleRecord => ({
    ...summary(found),
    payload: jobTypes.find(found.schedule.jobType)?.redact(found.schedule.payload) ?? {},
  }),
});
