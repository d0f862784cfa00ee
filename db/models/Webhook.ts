import { Model, snakeCaseMappers } from 'objection';
import type { DeliveryRetryPolicy, DisabledReason } from '../../domain/webhooks/webhooks.ts';

/** A row of `webhooks`. */
export class Webhook extends Model {
  static override tableName = 'webhooks';
  static override jsonAttributes = ['retryPolicy'];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare tenantId: string;
  declare endpointUrl: string;
  declare endpointAuthor: string | null;
  declare description: string;
  /** Event types, or `*` alone. */
  declare eventTypes: string[];
  declare enabled: boolean;
  declare retryPolicy: DeliveryRetryPolicy;
  /** Encrypted by the vault. */
  declare secret: string;
  declare previousSecret: string | null;
  declare previousSecretUntil: Date | null;
  /** When it was last enabled. */
  declare enabledAt: Date;
  /**
   * The last sequence that was assigned then: it gets the events after it. A trigger stores it. Null if it was
   * enabled before this column existed: then `enabledAt` decides.
   */
  declare enabledSequence: number | null;
  /** Since when every attempt has failed; null after a success. */
  declare failingSince: Date | null;
  /** Since when no attempt had a usable answer (`isUsableAnswer`); null after one, which may be a rejection. */
  declare unreachableSince: Date | null;
  /** When the queue has last started a delivery beyond those that may be open. */
  declare probedAt: Date | null;
  declare disabledAt: Date | null;
  declare disabledReason: DisabledReason | null;
  /** Pending deliveries queued up to then are being cancelled; null when none are left. */
  declare cancelBefore: Date | null;
  declare cancelReason: string | null;
  declare createdBy: string;
  declare createdAt: Date;
  declare updatedAt: Date;
  /** A deleted webhook is kept without its secrets for the deliveries that refer to it. */
  declare deletedAt: Date | null;
  declare version: number;
}
