import { Model, snakeCaseMappers } from 'objection';
import type { Authority } from '../../domain/shared/caller.ts';
import type { RetryPolicy } from '../../domain/jobs/retry.ts';
import type { OverlapPolicy } from '../../domain/schedules/schedules.ts';

/** A row of `schedules`. */
export class Schedule extends Model {
  static override tableName = 'schedules';
  static override jsonAttributes = ['payload', 'retryPolicy', 'owner'];
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
  /** What its jobs have instead of the policy of their type. */
  declare retryPolicy: Partial<RetryPolicy>;
  declare overlapPolicy: OverlapPolicy;
  declare catchupWindowSeconds: number;
  declare jitterSeconds: number;
  declare startAt: Date | null;
  declare endAt: Date | null;
  declare maxRuns: number | null;
  /** Jobs made for times due. */
  declare runCount: number;
  declare enabled: boolean;
  declare pausedAt: Date | null;
  declare pausedBy: string | null;
  declare pauseReason: string | null;
  /** Who its jobs act for. */
  declare owner: Authority;
  /** The first time due that has no run yet; null when nothing is due any more. */
  declare nextDueAt: Date | null;
  declare lastRunId: string | null;
  /** When it was last compared with its mirror in Temporal. */
  declare checkedAt: Date;
  declare createdBy: string;
  declare createdAt: Date;
  declare updatedAt: Date;
  /** Kept for the runs that refer to it. */
  declare deletedAt: Date | null;
  declare version: number;
}
