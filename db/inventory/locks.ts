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

/** The space of a tenant's records in a VRF, for locks: VRF and tenant. Ids have no spaces. */
export const spaceName = (vrf: string, tenantId: string): string => `${vrf} ${tenantId}`;

/** The spaces to lock (`spaceName`), and whether the caller may write for the platform. */
export type SpaceLocks = { spaces: ReadonlySet<string>; forPlatform: boolean };

/**
 * SQL: locks spaces in one order, which prevents deadlocks, and before them the space of the
 * platform in shared tables: exclusively for callers who may write there, else shared, so that
 * tenants do not wait for each other.
 */
const LOCK_SPACES = `(SELECT count(CASE WHEN is_exclusive THEN pg_advisory_xact_lock(key) ELSE pg_advisory_xact_lock_shared(key) END) FROM (
  SELECT ${lockKeySql('vrf', 'space')} AS key, space = shared_space(space) IS TRUE AS is_first, bool_and(is_exclusive) AS is_exclusive
  FROM (SELECT space_of(vrf, tenant) AS own FROM unnest(?::text[], ?::text[]) AS asked (vrf, tenant)) AS asked
    CROSS JOIN LATERAL (VALUES (own, shared_space(own) IS DISTINCT FROM own OR ?::boolean), (shared_space(own), ?::boolean)) AS locked (space, is_exclusive)
  WHERE space IS NOT NULL GROUP BY space ORDER BY 2 DESC, 1) AS keys)`;

const lockBindings = ({ spaces, forPlatform }: SpaceLocks): (string[] | boolean)[] => {
  const names = [...spaces].map((name) => ({ name, end: name.indexOf(' ') }));
  const vrfs = names.map(({ name, end }) => name.slice(0, end));
  const tenants = names.map(({ name, end }) => name.slice(end + 1));
  return [vrfs, tenants, forPlatform, forPlatform];
};

/** Prepares a transaction that plans without writing. */
export const prepareToRead = async (trx: Knex): Promise<void> =>
  void (await prepared(trx, `SELECT ${FORCE_INDEX_SCANS}`, []));

/**
 * Prepares a transaction that writes. It locks address spaces, and the definitions of custom fields: exclusively when it changes them (`definitions`), else shared.
 */
export const prepareToWrite = async (
  trx: Knex,
  { definitions, ...locks }: SpaceLocks & { definitions: boolean },
): Promise<void> =>
  void (await prepared(
    trx,
    `SELECT ${FORCE_INDEX_SCANS}, pg_advisory_xact_lock${definitions ? '' : '_shared'}(${lockKeySql('customFields')}), ${LOCK_SPACES}`,
    lockBindings(locks),
  ));

/** Locks address spaces until the end of the transaction. */
export const lockSpaces = async (trx: Knex, locks: SpaceLocks): Promise<void> =>
  void (await trx.raw(`SELECT ${LOCK_SPACES}`, lockBindings(locks)));

/** The spaces that records are in at present (`spaceName`). */
export async function findSpaces(
  trx: Knex,
  name: ResourceName,
  ids: readonly string[],
): Promise<string[]> {
  const found = await trx(tableOf(RESOURCES[name]))
    .whereIn('id', ids)
    .distinct('vrf_key', 'tenant_id');
  return found.map(({ vrf_key: vrf, tenant_id: tenant }: { vrf_key: string; tenant_id: string }) =>
    spaceName(vrf, tenant),
  );
}
