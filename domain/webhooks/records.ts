import type { DeliveryRetryPolicy, DisabledReason } from './webhooks.ts';

/** A webhook as it is stored, without its secrets. */
export type WebhookData = {
  id: string;
  tenantId: string;
  endpointUrl: string;
  /** Who wrote the URL: see `writerKeyOf`. Null if unknown. */
  endpointAuthor: string | null;
  description: string;
  /** Event types, or `*` alone. */
  eventTypes: string[];
  enabled: boolean;
  retryPolicy: DeliveryRetryPolicy;
  /** Until when the secret before the present one signs, too; null if it was never rotated. */
  previousSecretUntil: Date | null;
  /** Since when every attempt has failed; null after a success. */
  failingSince: Date | null;
  disabledAt: Date | null;
  disabledReason: DisabledReason | null;
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
  version: number;
};
