import type { Webhook } from '../db/models/Webhook.ts';
import type { EventData } from '../domain/events/events.ts';
import { originOf } from '../domain/webhooks/webhooks.ts';

/** A webhook as the subject of audit entries and events. */
export const webhookSubject = ({ id }: { id: string }) => ({ type: 'webhook', id });

/** A webhook as the trail keeps it: of its URL the origin, since the rest may hold secrets. */
export const webhookView = ({
  endpointUrl,
  eventTypes,
  enabled,
  description,
  retryPolicy,
  disabledReason,
}: Webhook) => ({
  endpointOrigin: originOf(endpointUrl),
  eventTypes,
  enabled,
  description,
  retryPolicy,
  disabledReason,
});

/** A webhook as an event tells of it. */
export const webhookEvent = ({
  id,
  endpointUrl,
  eventTypes,
  enabled,
}: Webhook): EventData<'webhook.created'> => ({
  webhookId: id,
  endpointOrigin: originOf(endpointUrl),
  eventTypes,
  enabled,
});
