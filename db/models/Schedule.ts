import { Model, snakeCaseMappers } from 'objection';
import type { Authority } from '../../domain/shared/caller.ts';
import type { RetryPolicy } from '../../domain/jobs/retry.ts';
import type { TargetRef } from '../../domain/jobs/targets.ts';
import type { ScheduleData } from '../../domain/schedules/records.ts';
import type { OverlapPolicy } from '../../domain/schedules/schedules.ts';

/** A row of `schedules`. */
export class Schedule extends Model implements ScheduleData {
  static override tableName = 'schedules';
  static override jsonAttributes = ['payload', 'target', 'retryPolicy', 'owner'];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare tenantId: string;
  declare name: string;
  declare description: string;
  declare cronExpression: string;
  /** As the tz database spells it. */
  declare timezone: string;
  declare jobType: string;
  declare payload: Record<string, unknown>;
  /** What its jobs are about; null for a job type without targets. */
  declare target: TargetRef | null;
  declare payloadAuthor: string | null;
  /** Overrides the retry policy of the job type. */
  declare retryPolicy: Partial<RetryPolicy>;
  declare overlapPolicy: OverlapPolicy;
  declare catchupWindowSeconds: number;
  declare jitterSeconds: number;
  /** Over how long its runs are spread: see `spreadSecondsOf`. */
  declare spreadSeconds: number;
  declare startAt: Date | null;
  declare endAt: Date | null;
  declare maxRuns: number | null;
  /** The number of jobs created for occurrences; triggers and backfills do not count. */
  declare runCount: number;
  declare enabled: boolean;
  declare pausedAt: Date | null;
  declare pausedBy: string | null;
  declare pauseReason: string | null;
  /** The authority that its jobs act with. */
  declare owner: Authority;
  /** The first occurrence that has no run yet; null when the schedule has ended. */
  declare nextDueAt: Date | null;
  declare lastRunId: string | null;
  /** When it was last compared with its Temporal Schedule. */
  declare checkedAt: Date;
  declare createdBy: string;
  declare createdAt: Date;
  declare updatedAt: Date;
  /** Deleted rows stay, since runs refer to them. */
  declare deletedAt: Date | null;
  declare version: number;
}
