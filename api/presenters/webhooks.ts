import { MASK } from '../../domain/mask.ts';
import type { Deliveries } from '../../services/webhooks/deliveries.ts';
import type { EventWithDeliveries } from '../../services/events.ts';
import type { WebhookWithSecret } from '../../services/webhooks.ts';
import type { DeliveryRecord, EventRecord, WebhookRecord } from '../webhooks/schemas.ts';
import { time, workflowIdOf } from '../jobs/presenter.ts';

type Webhook = WebhookWithSecret['webhook'];
type Event = EventWithDeliveries['event'];
type Delivery = Awaited<ReturnType<Deliveries['read']>>;

/** Times that came as JSON of the database. */
const iso = (text: string) => new Date(text).toISOString();

/** A webhook as callers see it: its secret only where it was made. */
export const webhookRecord = (webhook: Webhook, secret: string | null = null): WebhookRecord => ({
  id: webhook.id,
  tenantId: webhook.tenantId,
  endpointUrl: webhook.endpointUrl,
  description: webhook.description,
  eventTypes: webhook.eventTypes,
  enabled: webhook.enabled,
  secret: secret ?? MASK,
  retryPolicy: webhook.retryPolicy,
  failingSince: time(webhook.failingSince),
  disabledAt: time(webhook.disabledAt),
  disabledReason: webhook.disabledReason,
  createdBy: webhook.createdBy,
  createdAt: webhook.createdAt.toISOString(),
  updatedAt: webhook.updatedAt.toISOString(),
  version: webhook.version,
});

export const deliveryRecord = (delivery: Delivery): DeliveryRecord => ({
  ...delivery,
  workflowId: delivery.jobId === null ? null : workflowIdOf(delivery.jobId),
  createdAt: delivery.createdAt.toISOString(),
  updatedAt: delivery.updatedAt.toISOString(),
  attempts: delivery.attempts.map((attempt) => ({
    ...attempt,
    startedAt: iso(attempt.startedAt),
    finishedAt: attempt.finishedAt === null ? null : iso(attempt.finishedAt),
  })),
});

export const eventRecord = (event: Event): EventRecord => ({
  id: event.id,
  sequence: event.sequence ?? 0,
  type: event.type,
  tenantId: event.tenantId,
  subject: { type: event.subjectType, id: event.subjectId },
  actorId: event.actorId,
  data: event.data,
  createdAt: event.createdAt.toISOString(),
});
