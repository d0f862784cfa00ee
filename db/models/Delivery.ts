import { Model, snakeCaseMappers } from 'objection';
import type { DeliveryStatus } from '../../domain/webhooks/webhooks.ts';

/** A row of `deliveries`: one event for one webhook. */
export class Delivery extends Model {
  static override tableName = 'deliveries';
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  /** The webhook's tenant. */
  declare tenantId: string;
  declare webhookId: string;
  declare eventId: string;
  /** The job that makes it, the last one when there were several; null until its webhook has room. */
  declare jobId: string | null;
  declare status: DeliveryStatus;
  /** Why it was cancelled or failed. */
  declare reason: string | null;
  /** Takes a place of its webhook: it is being sent, or about to be. */
  declare underWay: boolean;
  /** Since when it is to be made; later than `createdAt` when it is to be made again. */
  declare owedAt: Date;
  /** The replay that last asked for it. */
  declare replayedBy: string | null;
  declare createdAt: Date;
  declare updatedAt: Date;
}
