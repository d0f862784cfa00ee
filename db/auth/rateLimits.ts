import type { Knex } from '../core/knex.ts';

/** Deletes the counted login attempts of an account, at all addresses. */
export const deleteLoginCounts = async (db: Knex, accountKey: string): Promise<void> =>
  void (await db('rate_limits')
    .whereRaw('key = ? OR starts_with(key, ?)', [`account:${accountKey}`, `pair:${accountKey}.`])
    .delete());
