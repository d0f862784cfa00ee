import { escapeLiteral } from 'pg';
import { MAX_FINDINGS } from '../../domain/backups/backups.ts';
import type { RunQuery } from './catalog.ts';
import type { RestoreConflict, TenantRestore } from './restoreConflict.ts';
import { findPlanned, type PlannedTable, type RestorePlan } from './restorePlan.ts';
import { restoredTable } from './restoredTables.ts';
import { diffTable, liveTable } from './sql.ts';

/** SQL of what a record takes in its address space. `has`: whether the current row `l` has all of it. */
type SpaceOf = {
  first(row: string): string;
  last(row: string): string;
  network(row: string): string;
  has: string;
};

const singleHost = (address: string): string =>
  `set_masklen(${address}, CASE family(${address}) WHEN 4 THEN 32 ELSE 128 END)`;

/** The tables with address space. A prefix that a current row has is among the prefixes around it. */
export const SPACE_OF: Readonly<Record<string, SpaceOf>> = {
  prefixes: {
    first: (row) => singleHost(`host(${row}.cidr)::inet`),
    last: (row) => singleHost(`host(broadcast(${row}.cidr))::inet`),
    network: (row) => `${row}.cidr`,
    has: 'false',
  },
  ip_ranges: {
    first: (row) => `${row}.start_address`,
    last: (row) => `${row}.end_address`,
    network: (row) => `inet_merge(${row}.start_address, ${row}.end_address)`,
    has: 'l.start_address <= c.start_address AND c.end_address <= l.end_address',
  },
  ip_addresses: {
    first: (row) => singleHost(`${row}.address`),
    last: (row) => singleHost(`${row}.address`),
    network: (row) => `${singleHost(`${row}.address`)}::cidr`,
    has: `${singleHost('l.address')} = ${singleHost('c.address')}`,
  },
};

/** SQL: the networks that contain a network or equal it. */
export const supernetsOf = (network: string): string => `public.supernets(${network})`;

/**
 * Records that a restore of one tenant would add directly in a prefix of the platform, which assigns the
 * space in it: the same that `checkAssignment` requires of a change
 * (domain/inventory/rules/sharedSpace.ts). `not_assigned`: the owner of the restore may not assign it.
 * `already_assigned`: another tenant has it now.
 */
export async function findUnassignedSpace(
  query: RunQuery,
  { plan, tenantId, written, writable }: TenantRestore,
): Promise<RestoreConflict[]> {
  const tenant = escapeLiteral(tenantId);
  const found: RestoreConflict[] = [];
  for (const each of written) {
    const space = SPACE_OF[each.table.name];
    if (!space) continue;
    const taken = takenSql(plan, each, space, tenant);
    const { name } = each.table;
    found.push(
      ...(await query<RestoreConflict>(
        writable.kind === 'everywhere'
          ? assignedToOthersSql(taken, name, tenant)
          : `${taken} SELECT 'not_assigned' AS code, '${name}' AS table, id AS key, '' AS other
             FROM taken LIMIT ${MAX_FINDINGS}`,
      )),
    );
  }
  return found;
}

/**
 * The common table expression `taken`: records whose smallest prefix around is one of the platform, of
 * the length `length`. Prefixes of the tenant count as they are now, since it has their space, and as
 * they would be, since they are checked themselves.
 */
function takenSql(
  plan: RestorePlan,
  { table }: PlannedTable,
  { first, last, network, has }: SpaceOf,
  tenant: string,
): string {
  const restored = findPlanned(plan, 'prefixes');
  const isInRestored = restored
    ? `EXISTS (SELECT FROM restored_prefixes AS r WHERE r.vrf = t.vrf AND r.cidr = s.cidr AND r.id <> t.id)`
    : 'false';
  return `WITH moved AS (
      SELECT c.id, coalesce(c.vrf_id, 'global') AS vrf, ${network('c')} AS network,
        ${first('c')} AS first, ${last('c')} AS last
      FROM ${restoredTable(plan, table)} AS c
        JOIN ${diffTable(table)} AS d ON d.id = c.id AND d.change <> 'deleted'
        LEFT JOIN ${liveTable(table)} AS l ON l.id = c.id AND l.tenant_id = ${tenant}
          AND l.vrf_id IS NOT DISTINCT FROM c.vrf_id
      WHERE (${has}) IS NOT TRUE AND EXISTS (
        SELECT FROM public.prefixes AS p WHERE p.space_key = coalesce(c.vrf_id, 'global') || '/platform')),
    around AS MATERIALIZED (
      SELECT m.*, masklen(p.cidr) AS length FROM moved AS m CROSS JOIN LATERAL (
        SELECT p.cidr FROM public.prefixes AS p
        WHERE p.space_key = m.vrf || '/platform' AND p.cidr = ANY (${supernetsOf('m.network')})
        ORDER BY masklen(p.cidr) DESC LIMIT 1) AS p
      WHERE NOT EXISTS (
        SELECT FROM public.prefixes AS o
        WHERE o.space_key = m.vrf || '/' || ${tenant} AND o.cidr = ANY (${supernetsOf('m.network')})
          AND masklen(o.cidr) >= masklen(p.cidr))),
    ${
      restored
        ? `restored_prefixes AS MATERIALIZED (
      SELECT c.id, coalesce(c.vrf_id, 'global') AS vrf, c.cidr FROM ${restoredTable(plan, restored.table)} AS c
        JOIN ${diffTable(restored.table)} AS d ON d.id = c.id AND d.change <> 'deleted'),`
        : ''
    }
    inside_restored AS (
      SELECT DISTINCT t.id FROM around AS t
        CROSS JOIN LATERAL unnest(${supernetsOf('t.network')}) AS s (cidr)
      WHERE masklen(s.cidr) >= t.length AND ${isInRestored}),
    taken AS (SELECT * FROM around AS t WHERE t.id NOT IN (SELECT id FROM inside_restored))`;
}

/** The records of `taken` that overlap a prefix of another tenant inside the prefix of the platform. */
const assignedToOthersSql = (taken: string, name: string, tenant: string): string =>
  `${taken} SELECT DISTINCT ON (t.id) 'already_assigned' AS code, '${name}' AS table, t.id AS key,
      text(o.cidr) || ' of tenant ' || o.tenant_id AS other, o.tenant_id AS "tenantId"
    FROM taken AS t JOIN public.prefixes AS o ON o.vrf_key = t.vrf AND o.in_shared_table
      AND o.tenant_id <> 'platform' AND o.tenant_id <> ${tenant}
      AND (o.cidr = ANY (${supernetsOf('t.network')}) OR (o.cidr >= t.first AND o.cidr <= t.last))
    WHERE masklen(o.cidr) > t.length AND host(o.cidr)::inet <= t.last
      AND host(broadcast(o.cidr))::inet >= t.first
    LIMIT ${MAX_FINDINGS}`;
