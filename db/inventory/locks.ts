import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { tableOf } from './tables.ts';

/**
 * Look-ups of a plan are many small ones by key, whatever the statistics of a table that has just been filled say: each
 * goes through an index.
 */
const BY_INDEX = [
  ...['enable_hashjoin', 'enable_mergejoin', 'enable_seqscan', 'jit'].map(
    (name) => `set_config('${name}', 'off', true)`,
  ),
  // To plan a look-up anew each time costs ten times what it does.
  "set_config('plan_cache_mode', 'force_generic_plan', true)",
].join(', ');

const LOCK_VRFS = `(SELECT count(pg_advisory_xact_lock(key)) FROM (
  SELECT DISTINCT hashtextextended('inventory:vrf:' || name, 0) AS key FROM unnest(?::text[]) AS name ORDER BY 1) AS keys)`;

/** Prepares a transaction that only looks. */
export const prepareToSee = async (trx: Knex): Promise<void> =>
  void (await prepared(trx, `SELECT ${BY_INDEX}`, []));

/**
 * Prepares a transaction that is to write: the definitions of custom fields stay what they are, or are nobody else's
 * where it changes them, and the VRFs are held.
 */
export const prepareToWrite = async (
  trx: Knex,
  { vrfs, definitions }: { vrfs: ReadonlySet<string>; definitions: boolean },
): Promise<void> =>
  void (await prepared(
    trx,
    `SELECT ${BY_INDEX}, pg_advisory_xact_lock${definitions ? '' : '_shared'}(hashtextextended('inventory:custom-fields', 0)), ${LOCK_VRFS}`,
    [[...vrfs]],
  ));

/** Holds the address space of VRFs until the transaction ends: whoever else plans a change in one of them waits. */
export const lockVrfs = async (trx: Knex, vrfs: ReadonlySet<string>): Promise<void> =>
  void (await trx.raw(`SELECT ${LOCK_VRFS}`, [[...vrfs]]));

/** The VRFs in which records lie now. */
export async function findVrfs(
  trx: Knex,
  name: ResourceName,
  ids: readonly string[],
): Promise<string[]> {
  return trx(tableOf(RESOURCES[name])).whereIn('id', ids).distinct().pluck('vrf_key');
}
