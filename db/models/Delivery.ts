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
  /** The job that sends it, the last of several; null until its webhook has a free slot. */
  declare jobId: string | null;
  declare status: DeliveryStatus;
  /** Code: why it failed or was cancelled. */
  declare reason: string | null;
  /** Occupies a slot of its webhook: it is being sent, or its job is about to send it. */
  declare inFlight: boolean;
  /** Until when its first attempt belongs to a worker; null when none makes it. */
  declare leasedUntil: Date | null;
  /** Since when it is to be sent; later than `createdAt` after a redelivery or replay. */
  declare queuedAt: Date;
  /** The job of the last replay that queued it. */
  declare replayJobId: string | null;
  declare createdAt: Date;
  declare updatedAt: Date;
}
