import { Model, snakeCaseMappers } from 'objection';
import type { ScheduleRunData } from '../../domain/schedules/records.ts';
import type { RunKind, RunOutcome, RunReason } from '../../domain/schedules/schedules.ts';

/** A row of `schedule_runs`: the outcome of an occurrence, a trigger or a backfilled occurrence. */
export class ScheduleRun extends Model implements ScheduleRunData {
  static override tableName = 'schedule_runs';
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare scheduleId: string;
  declare tenantId: string;
  declare kind: RunKind;
  declare dueAt: Date;
  declare outcome: RunOutcome;
  declare reason: RunReason | null;
  /** The job was created well after the scheduled time: no process decided the run before. */
  declare caughtUp: boolean;
  declare jobId: string | null;
  /** Who requested the run; for an occurrence the owner of the schedule. */
  declare actorId: string;
  declare decidedAt: Date;
}
