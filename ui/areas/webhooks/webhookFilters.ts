import { findEventTypes } from '../../app/eventTypes.ts';
import type { Filter } from '../../parts/list/search.ts';
import { findWebhooks } from './findWebhooks.ts';

export const WEBHOOK_FILTERS = [
  {
    id: 'enabled',
    label: 'State',
    kind: 'choice',
    inline: true,
    facet: true,
    choices: [
      { value: 'true', label: 'Enabled' },
      { value: 'false', label: 'Disabled' },
    ],
  },
  // The list sends the present time with it.
  { id: 'failingSince', label: 'Failing', kind: 'flag', on: null },
  {
    id: 'disabledReason',
    label: 'Why disabled',
    kind: 'choice',
    facet: true,
    choices: [
      { value: 'request', label: 'By a user' },
      { value: 'failing', label: 'It failed for five days' },
      { value: 'endpoint_removed', label: 'The endpoint answered 410' },
    ],
  },
  { id: 'eventType', label: 'Subscribes to', kind: 'reference', find: findEventTypes },
  { id: 'createdBy', label: 'Created by', kind: 'choice', facet: true },
  { id: 'tenantId', label: 'Tenant', kind: 'choice', facet: true },
] as const satisfies readonly Filter[];

const STATUS = {
  id: 'status',
  label: 'Status',
  kind: 'choice',
  inline: true,
  facet: true,
  choices: [
    { value: 'pending', label: 'Pending' },
    { value: 'succeeded', label: 'Succeeded' },
    { value: 'failed', label: 'Failed' },
    { value: 'cancelled', label: 'Cancelled' },
  ],
} as const satisfies Filter;
const CREATED = { id: 'createdAt', label: 'Time', kind: 'time' } as const satisfies Filter;
const EVENT = {
  id: 'eventId',
  label: 'Event',
  kind: 'text',
  example: 'evt_01jd0cmxk5e5v8kyzwq0q8s3rt',
} as const satisfies Filter;

/** Filters for the deliveries of one webhook. */
export const OWN_DELIVERY_FILTERS = [STATUS, CREATED, EVENT] as const satisfies readonly Filter[];

/** Filters for the deliveries of all webhooks. */
export const DELIVERY_FILTERS = [
  STATUS,
  { id: 'webhookId', label: 'Webhook', kind: 'reference', of: 'webhooks', find: findWebhooks },
  { id: 'tenantId', label: 'Tenant', kind: 'choice', facet: true },
  CREATED,
  EVENT,
] as const satisfies readonly Filter[];
