import { recordOf } from '../../db/core/recordAudit.ts';
import type { Webhook } from '../../db/models/Webhook.ts';
import type { EventData } from '../../domain/events/events.ts';
import { originOf } from '../../domain/webhooks/webhooks.ts';

/** The fields of a webhook that audit entries and events need. */
export type WebhookView = Pick<
  Webhook,
  'id' | 'endpointUrl' | 'eventTypes' | 'enabled' | 'description' | 'retryPolicy' | 'disabledReason'
>;

type WebhookEvent = 'webhook.created' | 'webhook.updated' | 'webhook.deleted';

/** The data of events about a webhook. */
export const webhookEventData = ({
  id,
  endpointUrl,
  eventTypes,
  enabled,
}: WebhookView): EventData<WebhookEvent> => ({
  webhookId: id,
  endpointOrigin: originOf(endpointUrl),
  eventTypes,
  enabled,
});

/**
 * Audit entries and events about webhooks. Both contain only the origin of the endpoint's URL,
 * since path and query may contain secrets; `endpointChanged` of an update covers all of it.
 */
export const webhookAudit = recordOf<WebhookView, WebhookEvent>({
  type: 'webhook',
  auditView: ({ endpointUrl, eventTypes, enabled, description, retryPolicy, disabledReason }) => ({
    endpointOrigin: originOf(endpointUrl),
    eventTypes,
    enabled,
    description,
    retryPolicy,
    disabledReason,
  }),
  events: {
    created: 'webhook.created',
    updated: 'webhook.updated',
    deleted: 'webhook.deleted',
  },
  eventData: webhookEventData,
});
