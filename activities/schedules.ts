import type { Log } from '../platform/log.ts';
import type { ScheduleFires } from '../services/scheduleFires.ts';
import type { ScheduleSweep } from '../services/scheduleSweep.ts';
import type { FireResult } from '../temporal/contracts.ts';
import { beating, withoutData } from './withoutData.ts';

export type ScheduleActivities = ReturnType<typeof createScheduleActivities>;

export const createScheduleActivities = ({ fires, sweep, log }: { fires: ScheduleFires; sweep: ScheduleSweep; log: Log }) => ({
  fireDue: (scheduleId: string, dueAt: string): Promise<FireResult> => withoutData(log, () => fires.fire(scheduleId, new Date(dueAt))),

  releaseBuffered: (scheduleId: string): Promise<FireResult> => withoutData(log, () => fires.release(scheduleId)),

  accountForSchedules: (): Promise<number> => beating(log, async (signal) => (await sweep.account(signal)) + (await sweep.release(signal))),

  compareSchedules: (): Promise<number> => beating(log, (signal) => sweep.mirrors(signal)),
});
