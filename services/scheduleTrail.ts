import type { Work } from '../db/commit.ts';
import type { Schedule } from '../db/models/Schedule.ts';
import type { ScheduleRun } from '../db/models/ScheduleRun.ts';
import type { EventData } from '../domain/events/events.ts';
import type { RunReason } from '../domain/schedules/schedules.ts';
import type { DispatchTask } from '../temporal/contracts.ts';

/** A schedule as the subject of audit entries and events. */
export const scheduleSubject = ({ id }: { id: string }) => ({ type: 'schedule', id });

/** A schedule as the audit trail keeps it: without the payload, which may hold secrets. */
export const scheduleView = (schedule: Schedule) => ({
  name: schedule.name,
  description: schedule.description,
  cronExpression: schedule.cronExpression,
  timezone: schedule.timezone,
  jobType: schedule.jobType,
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

/** A schedule as an event tells of it. */
export const scheduleEvent = ({
  id,
  name,
  jobType,
  cronExpression,
  timezone,
  enabled,
}: Schedule): EventData<'schedule.created'> => ({
  scheduleId: id,
  name,
  jobType,
  cronExpression,
  timezone,
  enabled,
});

/** A run as the subject of audit entries. */
export const runSubject = (runId: string) => ({ type: 'schedule_run', id: runId });

type Named = Pick<Schedule, 'id' | 'name' | 'jobType'>;
type Skipped = Pick<EventData<'schedule.skipped'>, 'kind' | 'outcome' | 'times'> & {
  reason: RunReason;
  first: Date;
  last: Date;
};

/** Adds to a commit that times due made no job. A pause is no news: anybody can see it. */
export function tellSkipped(
  work: Work<DispatchTask>,
  schedule: Named,
  { kind, outcome, times, reason, first, last }: Skipped,
): void {
  const [dueAt, lastDueAt] = [first.toISOString(), last.toISOString()];
  work.audit('schedule.skip', scheduleSubject(schedule), {
    after: { kind, outcome, reason, times, dueAt, lastDueAt },
  });
  if (reason === 'disabled') return;
  work.emit('schedule.skipped', scheduleSubject(schedule), {
    scheduleId: schedule.id,
    name: schedule.name,
    jobType: schedule.jobType,
    kind,
    dueAt,
    outcome,
    reason,
    times,
    lastDueAt,
  });
}

/** Adds to a commit what became of a run. */
export function tellRun(
  work: Work<DispatchTask>,
  schedule: Named,
  { id: runId, kind, dueAt, outcome, reason, jobId }: ScheduleRun,
): void {
  const at = scheduleSubject(schedule);
  if (reason !== null && outcome !== 'fired' && outcome !== 'buffered')
    return tellSkipped(work, schedule, {
      kind,
      outcome,
      reason,
      times: 1,
      first: dueAt,
      last: dueAt,
    });
  work.audit(outcome === 'fired' ? 'schedule.fire' : 'schedule.buffer', at, {
    after: { runId, kind, dueAt: dueAt.toISOString(), jobId },
  });
  if (jobId !== null)
    work.emit('schedule.fired', at, {
      scheduleId: schedule.id,
      name: schedule.name,
      jobType: schedule.jobType,
      kind,
      dueAt: dueAt.toISOString(),
      runId,
      jobId,
    });
}
