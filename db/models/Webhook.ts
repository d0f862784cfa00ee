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
  declare description: string;
  /** Names of types, or `*` alone. */
  declare eventTypes: string[];
  declare enabled: boolean;
  declare retryPolicy: DeliveryRetryPolicy;
  /** Sealed by the vault. */
  declare secret: string;
  declare previousSecret: string | null;
  declare previousSecretUntil: Date | null;
  /** When it was last enabled: it is not told of what was before. */
  declare enabledAt: Date;
  /** Since when every attempt has failed. */
  declare failingSince: Date | null;
  declare disabledAt: Date | null;
  declare disabledReason: DisabledReason | null;
  /** Deliveries owed up to then and still waiting are to be cancelled, and why; null when none are left. */
  declare cancelBefore: Date | null;
  declare cancelReason: string | null;
  declare createdBy: string;
  declare createdAt: Date;
  declare updatedAt: Date;
  /** Kept without its secrets for the deliveries that refer to it. */
  declare deletedAt: Date | null;
  declare version: number;
}
