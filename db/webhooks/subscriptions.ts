import type { QueryBuilder } from 'objection';
import { ALL_EVENT_TYPES } from '../../domain/events/events.ts';
import type { Webhook } from '../models/Webhook.ts';

/** Narrows a query to the webhooks that subscribe to one of these event types, by name or with `*`. */
export const whereSubscribedTo = (
  query: QueryBuilder<Webhook>,
  eventTypes: readonly string[],
): void => void query.whereRaw('event_types && ?::text[]', [[...eventTypes, ALL_EVENT_TYPES]]);
