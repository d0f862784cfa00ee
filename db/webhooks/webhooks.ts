import type { QueryBuilder } from 'objection';
import { ALL_EVENT_TYPES } from '../../domain/events/events.ts';
import { lockNameUntilCommit } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';
import type { Webhook } from '../models/Webhook.ts';

/**
 * Makes transactions that add webhooks to a tenant wait for each other, so that the limit of
 * webhooks holds. The lock ends with the transaction.
 */
export const lockWebhooks = (trx: Knex, tenantId: string): Promise<void> =>
  lockNameUntilCommit(trx, 'tenantWebhooks', tenantId);

/** Narrows a query to the webhooks that subscribe to an event type, by name or with `*`. */
export const whereSubscribedTo = (query: QueryBuilder<Webhook>, eventType: string): void =>
  void query.whereRaw('event_types && ?::text[]', [[eventType, ALL_EVENT_TYPES]]);
