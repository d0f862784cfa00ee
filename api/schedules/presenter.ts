import { temporalScheduleId } from '../../domain/dispatch/workflowIds.ts';
import { CRON_FIELDS } from '../../domain/schedules/cron.ts';
import type { UpcomingOccurrence } from '../../domain/schedules/occurrences.ts';
import type { ScheduleData, ScheduleRunWithJob } from '../../domain/schedules/records.ts';
import { stateOf, timingProblemOf, upcomingOf } from '../../domain/schedules/schedules.ts';
import { hasWritten, type Caller } from '../../domain/shared/caller.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import type { Preview } from '../../services/schedules/fields.ts';
import type { RunDay } from '../../services/schedules/runHistory.ts';
import type {
  PreviewRecord,
  RunRecord,
  ScheduleRecord,
  ScheduleSummary,
  UpcomingRecord,
} from './schemas.ts';
import { isoOrNull, jobReference } from '../jobs/presenter.ts';

type ScheduleWithLastRun<S = ScheduleData> = { schedule: S; lastRun: ScheduleRunWithJob | null };

/** A list reads schedules without their payload. */
type ScheduleSummaryData = Omit<ScheduleData, 'payload' | 'payloadAuthor'>;

const NEXT_RUNS_SHOWN = 5;

export const runRecord = (run: ScheduleRunWithJob): RunRecord => ({
  id: run.id,
  scheduleId: run.scheduleId,
  tenantId: run.tenantId,
  kind: run.kind,
  dueAt: run.dueAt.toISOString(),
  outcome: run.outcome,
  reason: run.reason,
  caughtUp: run.caughtUp,
  jobId: run.jobId,
  job: jobReference(run.jobId, { jobPurged: run.job === null }),
  jobStatus: run.job?.status ?? null,
  jobErrorCode: run.job?.errorCode ?? null,
  startedAt: isoOrNull(run.job?.startedAt ?? null),
  finishedAt: isoOrNull(run.job?.finishedAt ?? null),
  actorId: run.actorId,
  decidedAt: run.decidedAt.toISOString(),
});

export const dayRecord = ({ date, start, end, runs }: RunDay) => ({
  date,
  start: start.toISOString(),
  end: end.toISOString(),
  runs,
});

const twoDigits = (value: number) => String(value).padStart(2, '0');

/** An offset as in `+05:45`. */
function formatOffset(offsetMs: number): string {
  const minutes = Math.abs(offsetMs) / 60_000;
  const sign = offsetMs < 0 ? '-' : '+';
  return `${sign}${twoDigits(Math.floor(minutes / 60))}:${twoDigits(Math.floor(minutes % 60))}`;
}

const upcomingRecord = ({
  at,
  wallMs,
  offsetMs,
  daylight,
}: UpcomingOccurrence): UpcomingRecord => ({
  at: isoOrNull(at),
  localTime: new Date(wallMs).toISOString().slice(0, 19),
  utcOffset: offsetMs === null ? null : formatOffset(offsetMs),
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

const summary = ({
  schedule,
  lastRun,
}: ScheduleWithLastRun<ScheduleSummaryData>): ScheduleSummary => ({
  id: schedule.id,
  tenantId: schedule.tenantId,
  name: schedule.name,
  description: schedule.description,
  cronExpression: schedule.cronExpression,
  timezone: schedule.timezone,
  jobType: schedule.jobType,
  target: schedule.target,
  retryPolicy: schedule.retryPolicy,
  enabled: schedule.enabled,
  overlapPolicy: schedule.overlapPolicy,
  catchupWindowSeconds: schedule.catchupWindowSeconds,
  jitterSeconds: schedule.jitterSeconds,
  spreadSeconds: schedule.spreadSeconds,
  startAt: isoOrNull(schedule.startAt),
  endAt: isoOrNull(schedule.endAt),
  maxRuns: schedule.maxRuns,
  runCount: schedule.runCount,
  state: stateOf(schedule),
  pausedAt: isoOrNull(schedule.pausedAt),
  pausedBy: schedule.pausedBy,
  pauseReason: schedule.pauseReason,
  owner: schedule.owner.actorId,
  nextRuns: upcomingOf(schedule, new Date(), NEXT_RUNS_SHOWN).map(upcomingRecord),
  timingProblem: timingProblemOf(schedule),
  lastRun: lastRun && runRecord(lastRun),
  temporalScheduleId: temporalScheduleId(schedule.id),
  createdBy: schedule.createdBy,
  createdAt: schedule.createdAt.toISOString(),
  updatedAt: schedule.updatedAt.toISOString(),
  version: schedule.version,
});

/** Presents schedules. Only the author of the payload sees credentials in it. */
export const schedulePresenter = (jobTypes: JobTypes) => ({
  summary,
  async record(found: ScheduleWithLastRun, caller: Caller): Promise<ScheduleRecord> {
    const { jobType, payload, payloadAuthor } = found.schedule;
    const isAuthor = hasWritten(caller, payloadAuthor);
    return { ...summary(found), payload: await jobTypes.show(jobType, payload, { isAuthor }) };
  },
});
