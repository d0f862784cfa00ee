import type { Schedule } from '../db/models/Schedule.ts';
import type { EventData } from '../domain/events.ts';

/** A schedule as the subject of audit entries and events. */
export const scheduleSubject = ({ id }: { id: string }) => ({ type: 'schedule', id });

/** A schedule as the audit trail keeps it: without the payload, which may hold secrets. */
export const scheduleView = (schedule: Schedule) => ({
  name: schedule.name, description: schedule.description, cronExpression: schedule.cronExpression, timezone: schedule.timezone,
  jobType: schedule.jobType, retryPolicy: schedule.retryPolicy, overlapPolicy: schedule.overlapPolicy,
  catchupWindowSeconds: schedule.catchupWindowSeconds, jitterSeconds: schedule.jitterSeconds, startAt: schedule.startAt, endAt: schedule.endAt,
  maxRuns: schedule.maxRuns, enabled: schedule.enabled, pauseReason: schedule.pauseReason, owner: schedule.owner.actorId,
});

/** A schedule as an event tells of it. */
export const scheduleEvent = ({ id, name, jobType, cronExpression, timezone, enabled }: Schedule): EventData<'schedule.created'> => ({
  scheduleId: id, name, jobType, cronExpression, timezone, enabled,
});
