import type { Knex } from '../knex.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { tableOf } from './tables.ts';

/**
 * Look-ups of a plan are many small ones by key, whatever the statistics of a table that has just been filled say: each
 * goes through an index.
 */
const BY_INDEX = ['enable_hashjoin', 'enable_mergejoin', 'enable_seqscan', 'jit'].map((name) => `set_config('${name}', 'off', true)`).join(', ');

/** Prepares a transaction for planning. */
export const preferIndexes = async (trx: Knex): Promise<void> => void (await trx.raw(`SELECT ${BY_INDEX}`));

/** Holds the address space of VRFs until the transaction ends: whoever else plans a change in one of them waits. */
export async function lockVrfs(trx: Knex, vrfs: ReadonlySet<string>): Promise<void> {
  if (vrfs.size === 0) return;
  const keys = [...vrfs].sort().map((vrf) => `inventory:vrf:${vrf}`);
  await trx.raw('SELECT pg_advisory_xact_lock(key) FROM (SELECT DISTINCT hashtextextended(name, 0) AS key FROM unnest(?::text[]) AS name ORDER BY 1) AS keys', [keys]);
}

/** The VRFs in which records lie now. */
export async function findVrfs(trx: Knex, name: ResourceName, ids: readonly string[]): Promise<string[]> {
  return trx(tableOf(RESOURCES[name])).whereIn('id', ids).distinct().pluck('vrf_key');
}
