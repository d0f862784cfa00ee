import { Model, snakeCaseMappers } from 'objection';
import type { RunKind, RunOutcome, RunReason } from '../../domain/schedules/schedules.ts';

/** A row of `schedule_runs`: what became of a time due, or of a run that was asked for. */
export class ScheduleRun extends Model {
  static override tableName = 'schedule_runs';
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare scheduleId: string;
  declare tenantId: string;
  declare kind: RunKind;
  declare dueAt: Date;
  declare outcome: RunOutcome;
  declare reason: RunReason | null;
  /** Decided to fire well after its time: nobody came with it before. */
  declare caughtUp: boolean;
  declare jobId: string | null;
  /** Who asked; for a time due the owner of the schedule. */
  declare actorId: string;
  declare decidedAt: Date;
}
