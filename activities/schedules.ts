import type { Log } from '../platform/log.ts';
import type { ScheduleRunner } from '../services/schedules/scheduleRunner.ts';
import type { TemporalSync } from '../services/schedules/temporalSync.ts';
import type { ScheduleRunResult } from '../domain/dispatch/tasks.ts';
import { withHeartbeat } from './heartbeat.ts';
import { sanitizeErrors } from './sanitizeErrors.ts';

export type ScheduleActivities = ReturnType<typeof createScheduleActivities>;

export const createScheduleActivities = ({
  runner,
  temporalSync,
  log,
}: {
  runner: ScheduleRunner;
  temporalSync: TemporalSync;
  log: Log;
}) => ({
  fireOccurrence: (scheduleId: string, dueAt: string): Promise<ScheduleRunResult> =>
    sanitizeErrors(log, () =>
      runner.fireOccurrence(scheduleId, new Date(dueAt), { isDelayed: true }),
    ),

  releaseBuffered: (scheduleId: string): Promise<ScheduleRunResult> =>
    sanitizeErrors(log, () => runner.releaseBuffered(scheduleId)),

  syncSchedules: (): Promise<number> =>
    withHeartbeat(log, (signal) => temporalSync.reconcile(signal)),
});
