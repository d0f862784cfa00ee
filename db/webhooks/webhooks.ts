import type { QueryBuilder } from 'objection';
import { ALL_EVENT_TYPES } from '../../domain/events/events.ts';
import type { Webhook } from '../models/Webhook.ts';

/** Narrows a query to the webhooks that subscribe to an event type, by name or with `*`. */
export const whereSubscribedTo = (query: QueryBuilder<Webhook>, eventType: string): void =>
  void query.whereRaw('event_types && ?::text[]', [[eventType, ALL_EVENT_TYPES]]);
