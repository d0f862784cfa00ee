import type { Knex } from './core/knex.ts';

/** Whoever adds a webhook to a tenant is alone there until the transaction ends, so that they can be counted. */
export const lockWebhooks = async (trx: Knex, tenantId: string): Promise<void> =>
  void (await trx.raw(`SELECT pg_advisory_xact_lock(hashtextextended('webhooks:' || ?, 0))`, [
    tenantId,
  ]));
