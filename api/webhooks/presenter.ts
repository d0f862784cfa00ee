import { hasWritten, type Caller } from '../../domain/shared/caller.ts';
import { maskText } from '../../domain/shared/credentials.ts';
import { MASK } from '../../domain/shared/mask.ts';
import type { Warning } from '../../domain/shared/warnings.ts';
import type { WebhookData } from '../../domain/webhooks/records.ts';
import type { DeliveryView } from '../../services/webhooks/deliveries.ts';
import type { ListedWebhook } from '../../services/webhooks/webhooks.ts';
import { jobWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import { isoOrNull, jobReference } from '../jobs/presenter.ts';
import type { DeliveryRecord, WebhookRecord } from './schemas.ts';

/** RFC 3339 in UTC, from a time as PostgreSQL writes it in JSON. */
const toIsoTime = (text: string) => new Date(text).toISOString();

/**
 * A webhook as callers see it. `secret` is shown only in the response that creates or rotates it.
 * Only the author of the URL sees credentials in it.
 */
export const webhookRecord = (
  caller: Caller,
  webhook: WebhookData,
  secret: string | null = null,
  warnings: readonly Warning[] = [],
): WebhookRecord => ({
  id: webhook.id,
  tenantId: webhook.tenantId,
  endpointUrl: hasWritten(caller, webhook.endpointAuthor)
    ? webhook.endpointUrl
    : maskText(webhook.endpointUrl),
  description: webhook.description,
  eventTypes: webhook.eventTypes,
  enabled: webhook.enabled,
  secret: secret ?? MASK,
  retryPolicy: webhook.retryPolicy,
  previousSecretUntil: isoOrNull(webhook.previousSecretUntil),
  failingSince: isoOrNull(webhook.failingSince),
  disabledAt: isoOrNull(webhook.disabledAt),
  disabledReason: webhook.disabledReason,
  createdBy: webhook.createdBy,
  createdAt: webhook.createdAt.toISOString(),
  updatedAt: webhook.updatedAt.toISOString(),
  version: webhook.version,
  ...(warnings.length > 0 && { warnings: [...warnings] }),
});

/** A webhook in a list. */
export const listedWebhook = (
  caller: Caller,
  { webhook, lastDelivery }: ListedWebhook,
): WebhookRecord => ({
  ...webhookRecord(caller, webhook),
  lastDelivery: lastDelivery && {
    id: lastDelivery.id,
    status: lastDelivery.status,
    reason: lastDelivery.reason,
    httpStatus: lastDelivery.httpStatus,
    errorCode: lastDelivery.errorCode,
    updatedAt: lastDelivery.updatedAt.toISOString(),
  },
});

/** A delivery as callers see it, with the attempts that the view contains. */
export const deliveryRecord = ({
  hasWorkflow,
  jobPurged,
  ...delivery
}: DeliveryView): DeliveryRecord => ({
  ...delivery,
  job: jobReference(delivery.jobId, { jobPurged }),
  workflowId: delivery.jobId !== null && hasWorkflow ? jobWorkflowId(delivery.jobId) : null,
  createdAt: delivery.createdAt.toISOString(),
  updatedAt: delivery.updatedAt.toISOString(),
  attempts: delivery.attempts.map(({ jobPurged: isPurged, ...attempt }) => ({
    ...attempt,
    job: jobReference(attempt.jobId, { jobPurged: isPurged }),
    startedAt: toIsoTime(attempt.startedAt),
    finishedAt: attempt.finishedAt === null ? null : toIsoTime(attempt.finishedAt),
  })),
});
