import type { Work } from '../../db/core/commit.ts';
import { recordOf } from '../../db/core/recordAudit.ts';
import type { Schedule } from '../../db/models/Schedule.ts';
import type { ScheduleRun } from '../../db/models/ScheduleRun.ts';
import type { EventData } from '../../domain/events/events.ts';
import type { RunKind, RunReason } from '../../domain/schedules/schedules.ts';
import { assertDefined } from '../../domain/shared/assert.ts';

type ScheduleEvent =
  'schedule.created' | 'schedule.updated' | 'schedule.deleted' | 'schedule.ended';

/** Audit entries do not keep the payload: it may contain secrets. */
const auditView = (schedule: Schedule) => ({
  name: schedule.name,
  description: schedule.description,
  cronExpression: schedule.cronExpression,
  timezone: schedule.timezone,
  jobType: schedule.jobType,
  target: schedule.target,
  retryPolicy: schedule.retryPolicy,
  overlapPolicy: schedule.overlapPolicy,
  catchupWindowSeconds: schedule.catchupWindowSeconds,
  jitterSeconds: schedule.jitterSeconds,
  startAt: schedule.startAt,
  endAt: schedule.endAt,
  maxRuns: schedule.maxRuns,
  enabled: schedule.enabled,
  pauseReason: schedule.pauseReason,
  owner: schedule.owner.actorId,
});

const eventData = (schedule: Schedule): EventData<ScheduleEvent> => ({
  scheduleId: schedule.id,
  name: schedule.name,
  jobType: schedule.jobType,
  ...(schedule.target && { target: schedule.target }),
  cronExpression: schedule.cronExpression,
  timezone: schedule.timezone,
  enabled: schedule.enabled,
});

/** Audit entries and events about schedules. */
export const scheduleRecord = recordOf<Schedule, ScheduleEvent>({
  type: 'schedule',
  auditView,
  events: {
    created: 'schedule.created',
    updated: 'schedule.updated',
    deleted: 'schedule.deleted',
  },
  eventData,
});

/**
 * Records that a schedule has had its last occurrence, if the change of its next one says so. Whatever
 * changes the next occurrence calls it, but for the deletion. Returns true if the schedule ends.
 */
export function recordIfEnded(
  work: Work,
  schedule: Schedule,
  { from, to }: { from: Date | null; to: Date | null },
): boolean {
  if (from === null || to !== null) return false;
  work.audit('schedule.end', scheduleRecord.subject(schedule));
  scheduleRecord.emit(work, 'schedule.ended', schedule);
  return true;
}

/** A run as the subject of audit entries. */
export const runSubject = (runId: string) => ({ type: 'schedule_run', id: runId });

type ScheduleIdentity = Pick<Schedule, 'id' | 'name' | 'jobType'>;

/** Occurrences that were skipped together, for one reason: the first, the last and how many. */
type SkippedOccurrences = {
  kind: RunKind;
  reason: RunReason;
  occurrences: number;
  first: Date;
  last: Date;
};

const identityOf = ({ id, name, jobType }: ScheduleIdentity) => ({ scheduleId: id, name, jobType });

/**
 * Adds one audit entry and one event `schedule.skipped` to a commit. A paused schedule gets no
 * event: the pause itself has one already.
 */
export function recordSkipped(
  work: Work,
  schedule: ScheduleIdentity,
  { kind, occurrences, reason, first, last }: SkippedOccurrences,
): void {
  const subject = scheduleRecord.subject(schedule);
  const data = {
    kind,
    reason,
    occurrences,
    dueAt: first.toISOString(),
    lastDueAt: last.toISOString(),
  };
  work.audit('schedule.skip', subject, { after: data });
  if (reason === 'paused') return;
  work.emit('schedule.skipped', subject, { ...identityOf(schedule), ...data });
}

/** Adds the audit entry and the event of a decided run to a commit. A buffered run has no event. */
export function recordRun(work: Work, schedule: ScheduleIdentity, run: ScheduleRun): void {
  const { id: runId, kind, outcome } = run;
  const subject = scheduleRecord.subject(schedule);
  const data = { kind, dueAt: run.dueAt.toISOString(), runId };
  if (outcome === 'skipped') {
    const reason = assertDefined(run.reason, 'scheduleRun.reason');
    recordSkipped(work, schedule, {
      kind,
      reason,
      occurrences: 1,
      first: run.dueAt,
      last: run.dueAt,
    });
  } else if (outcome === 'failed') {
    const failure = { ...data, reason: assertDefined(run.reason, 'scheduleRun.reason') };
    work.audit('schedule.fail', subject, { after: failure });
    work.emit('schedule.failed', subject, { ...identityOf(schedule), ...failure });
  } else if (outcome === 'fired') {
    const fired = { ...data, jobId: assertDefined(run.jobId, 'scheduleRun.jobId') };
    work.audit('schedule.fire', subject, { after: fired });
    work.emit('schedule.fired', subject, { ...identityOf(schedule), ...fired });
  } else {
    work.audit('schedule.buffer', subject, { after: data });
  }
}
