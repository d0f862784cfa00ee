import { lockKeySql } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { tableOf } from './tables.ts';

/**
 * Planner settings of a transaction. A plan makes many small lookups by key. Each must use an index,
 * whatever the statistics of a recently filled table say.
 */
const FORCE_INDEX_SCANS = [
  ...['enable_hashjoin', 'enable_mergejoin', 'enable_seqscan', 'jit'].map(
    (name) => `set_config('${name}', 'off', true)`,
  ),
  // Planning such a query takes ten times as long as running it.
  "set_config('plan_cache_mode', 'force_generic_plan', true)",
].join(', ');

/** SQL: locks VRFs in one order, which prevents deadlocks. */
const LOCK_VRFS = `(SELECT count(pg_advisory_xact_lock(key)) FROM (
  SELECT DISTINCT ${lockKeySql('vrf', 'name')} AS key FROM unnest(?::text[]) AS name ORDER BY 1) AS keys)`;

/** Prepares a transaction that plans without writing. */
export const prepareToRead = async (trx: Knex): Promise<void> =>
  void (await prepared(trx, `SELECT ${FORCE_INDEX_SCANS}`, []));

/**
 * Prepares a transaction that writes. It locks the address space of `vrfs`, and the definitions of
 * custom fields: exclusively when it changes them (`definitions`), else shared.
 */
export const prepareToWrite = async (
  trx: Knex,
  { vrfs, definitions }: { vrfs: ReadonlySet<string>; definitions: boolean },
): Promise<void> =>
  void (await prepared(
    trx,
    `SELECT ${FORCE_INDEX_SCANS}, pg_advisory_xact_lock${definitions ? '' : '_shared'}(${lockKeySql('customFields')}), ${LOCK_VRFS}`,
    [[...vrfs]],
  ));

/** Locks the address space of VRFs until the end of the transaction. */
export const lockVrfs = async (trx: Knex, vrfs: ReadonlySet<string>): Promise<void> =>
  void (await trx.raw(`SELECT ${LOCK_VRFS}`, [[...vrfs]]));

/** The keys of the VRFs that records are in at present. */
export async function findVrfs(
  trx: Knex,
  name: ResourceName,
  ids: readonly string[],
): Promise<string[]> {
  return trx(tableOf(RESOURCES[name])).whereIn('id', ids).distinct().pluck('vrf_key');
}
