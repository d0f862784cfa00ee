import type { Log } from '../platform/log.ts';
import type { ScheduleFires } from '../services/scheduleFires.ts';
import type { ScheduleMirrors } from '../services/scheduleMirrors.ts';
import type { FireResult } from '../temporal/contracts.ts';
import { beating, withoutData } from './withoutData.ts';

export type ScheduleActivities = ReturnType<typeof createScheduleActivities>;

export const createScheduleActivities = ({
  fires,
  mirrors,
  log,
}: {
  fires: ScheduleFires;
  mirrors: ScheduleMirrors;
  log: Log;
}) => ({
  fireDue: (scheduleId: string, dueAt: string): Promise<FireResult> =>
    withoutData(log, () => fires.fire(scheduleId, new Date(dueAt))),

  releaseBuffered: (scheduleId: string): Promise<FireResult> =>
    withoutData(log, () => fires.release(scheduleId)),

  compareSchedules: (): Promise<number> => beating(log, (signal) => mirrors.compare(signal)),
});
