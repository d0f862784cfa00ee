import { lockKeySql } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { PLATFORM, type Scope } from '../../domain/access/scope.ts';
import { writableCondition } from './writable.ts';
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
 * How long a transaction waits for each lock while others, that do not wait for the same, would wait
 * for it: it fails with SQLSTATE 55P03, and is tried again later.
 */
const BRIEF_WAIT = '100ms';
/** The same after `waitLonger`. */
const LONG_WAIT = '2s';

/** SQL: how long that is in this transaction. */
const LOCK_WAIT = `coalesce(nullif(current_setting('holdfast.lock_wait', true), ''), '${BRIEF_WAIT}')`;

/** Says that a transaction may wait longer for locks than others, because it has been tried often. */
export const waitLonger = async (trx: Knex): Promise<void> =>
  void (await trx.raw(`SELECT set_config('holdfast.lock_wait', '${LONG_WAIT}', true)`));

/**
 * SQL: limits how long the rest of the transaction waits for a lock, if it is about to lock
 * exclusively what tenants share: tenants queue behind such a writer, also while it waits. Such
 * writers first take turns, which no tenant waits for, so that one of them waits for tenants at a time.
 */
const TAKE_TURN = `(SELECT CASE WHEN count(pg_advisory_xact_lock(key)) > 0 OR ?::boolean THEN set_config('lock_timeout', ${LOCK_WAIT}, true) END FROM (
  SELECT DISTINCT ${lockKeySql('platformTurn', 'turn')} AS key FROM (
    SELECT shared_space(space_of(vrf, tenant)) AS turn FROM unnest(?::text[], ?::text[]) AS asked (vrf, tenant) WHERE ?::boolean
    UNION ALL SELECT 'definitions' WHERE 'platform' = ANY (?::text[])) AS turns
  WHERE turn IS NOT NULL ORDER BY 1) AS keys)`;

/**
 * SQL: locks spaces in one order, which prevents deadlocks, and after them the space of the
 * platform in shared tables: exclusively for callers who may write there, else shared, so that
 * tenants do not wait for each other.
 */
const LOCK_SPACES = `(SELECT count(CASE WHEN is_exclusive THEN pg_advisory_xact_lock(key) ELSE pg_advisory_xact_lock_shared(key) END) FROM (
  SELECT ${lockKeySql('vrf', 'space')} AS key, space = shared_space(space) IS TRUE AS is_last, bool_and(is_exclusive) AS is_exclusive
  FROM (SELECT space_of(vrf, tenant) AS own FROM unnest(?::text[], ?::text[]) AS asked (vrf, tenant)) AS asked
    CROSS JOIN LATERAL (VALUES (own, shared_space(own) IS DISTINCT FROM own OR ?::boolean), (shared_space(own), ?::boolean)) AS locked (space, is_exclusive)
  WHERE space IS NOT NULL GROUP BY space ORDER BY 2, 1) AS keys)`;

function requestedSpaces(spaces: ReadonlySet<string>): [vrfs: string[], tenants: string[]] {
  const names = [...spaces].map((name) => ({ name, end: name.indexOf(' ') }));
  const vrfs = names.map(({ name, end }) => name.slice(0, end));
  const tenants = names.map(({ name, end }) => name.slice(end + 1));
  return [vrfs, tenants];
}

const lockBindings = ({ spaces, forPlatform }: SpaceLocks): (string[] | boolean)[] => [
  ...requestedSpaces(spaces),
  forPlatform,
  forPlatform,
];

/**
 * Tenants whose definitions of custom fields are locked: shared by writes of values, so that these
 * do not wait for each other, and exclusively when the definitions change.
 */
export type DefinitionLocks = { shared: ReadonlySet<string>; exclusive: ReadonlySet<string> };

/** SQL: locks the definitions of tenants in one order, those of the platform first. */
const LOCK_DEFINITIONS = `(SELECT count(CASE WHEN is_exclusive THEN pg_advisory_xact_lock(key) ELSE pg_advisory_xact_lock_shared(key) END) FROM (
  SELECT ${lockKeySql('customFields', 'tenant')} AS key, bool_or(is_exclusive) AS is_exclusive
  FROM (SELECT tenant, FALSE AS is_exclusive FROM unnest(?::text[]) AS shared (tenant)
    UNION ALL SELECT tenant, TRUE FROM unnest(?::text[]) AS exclusive (tenant)) AS asked
  GROUP BY tenant ORDER BY tenant <> 'platform', 1) AS keys)`;

const definitionBindings = ({ shared, exclusive }: DefinitionLocks): string[][] => [
  [...shared],
  [...exclusive],
];

/** Prepares a transaction that plans without writing. */
export const prepareToRead = async (trx: Knex): Promise<void> =>
  void (await prepared(trx, `SELECT ${FORCE_INDEX_SCANS}`, []));

/** What a writing transaction locks, in one statement. */
type WriteLocks = SpaceLocks & {
  definitions: DefinitionLocks;
  /** Locks of some tenants' records must not be held while waiting for those of others. */
  isBrief: boolean;
};

/** SQL and bindings that take locks. Only few writers have to take turns, so most do not ask. */
function lockParts({ definitions, isBrief, ...locks }: WriteLocks) {
  const takesTurn =
    isBrief || definitions.exclusive.has(PLATFORM) || (locks.forPlatform && locks.spaces.size > 0);
  return {
    sql: [...(takesTurn ? [TAKE_TURN] : []), LOCK_DEFINITIONS, LOCK_SPACES].join(', '),
    bindings: [
      ...(takesTurn
        ? [isBrief, ...requestedSpaces(locks.spaces), locks.forPlatform, [...definitions.exclusive]]
        : []),
      ...definitionBindings(definitions),
      ...lockBindings(locks),
    ],
  };
}

/**
 * Prepares a transaction that writes: the next statement waits for the locks of definitions of custom
 * fields and address spaces. It, and later ones, fail with SQLSTATE 55P03 when others hold what it may
 * not wait for.
 */
export async function prepareToWrite(trx: Knex, locks: WriteLocks): Promise<void> {
  const { sql, bindings } = lockParts(locks);
  // By itself, so that the second statement has these settings already.
  await prepared(trx, `SELECT ${FORCE_INDEX_SCANS}`, [], { waits: true });
  await prepared(trx, `SELECT ${sql}`, bindings, { waits: true });
}

/** Locks further definitions of custom fields until the end of the transaction. Error: SQLSTATE 55P03. */
export const lockDefinitions = (trx: Knex, definitions: DefinitionLocks): Promise<void> =>
  lockFurther(trx, { definitions, spaces: new Set(), forPlatform: false });

/** Locks further address spaces until the end of the transaction. Error: SQLSTATE 55P03. */
export const lockSpaces = (trx: Knex, locks: SpaceLocks): Promise<void> =>
  lockFurther(trx, { ...locks, definitions: { shared: new Set(), exclusive: new Set() } });

async function lockFurther(trx: Knex, locks: Omit<WriteLocks, 'isBrief'>): Promise<void> {
  const isBrief = locks.forPlatform || locks.definitions.exclusive.has(PLATFORM);
  const { sql, bindings } = lockParts({ ...locks, isBrief });
  // Others may wait for what it holds already: it does not wait long for its turn either.
  const limit = isBrief ? `set_config('lock_timeout', ${LOCK_WAIT}, true), ` : '';
  await trx.raw(`SELECT ${limit}${sql}`, bindings);
}

/** The tenants that definitions of custom fields belong to. */
export const findDefiners = async (trx: Knex, ids: readonly string[]): Promise<string[]> =>
  trx(tableOf(RESOURCES['custom-fields'])).whereIn('id', ids).distinct().pluck('tenant_id');

/** Those of some VRFs that are of the platform, and those in the scope of a writer. */
export async function findVrfs(
  trx: Knex,
  ids: readonly string[],
  scope: Scope,
): Promise<{ shared: Set<string>; writable: Set<string> }> {
  // A VRF that does not exist may be locked: nobody waits for it.
  if (ids.length === 0 || scope.kind === 'everywhere')
    return { shared: new Set(), writable: new Set(ids) };
  const { sql, bindings } = writableCondition('vrfs', scope);
  const { rows: found } = await prepared<{ id: string; shared: boolean; writable: boolean }>(
    trx,
    `SELECT id, tenant_id = ? AS shared, ${sql} AS writable FROM vrfs WHERE id = ANY (?::text[])`,
    [PLATFORM, ...bindings, [...ids]],
  );
  const those = (isOne: (row: (typeof found)[number]) => boolean) =>
    new Set(found.filter(isOne).map(({ id }) => id));
  return { shared: those(({ shared }) => shared), writable: those(({ writable }) => writable) };
}

/** The spaces that records of a writer are in at present (`spaceName`). */
export async function findSpaces(
  trx: Knex,
  name: ResourceName,
  ids: readonly string[],
  writable: Scope,
): Promise<string[]> {
  const { sql, bindings } = writableCondition(name, writable);
  const found = await trx(tableOf(RESOURCES[name]))
    .whereIn('id', ids)
    .whereRaw(sql, bindings)
    .distinct('vrf_key', 'tenant_id');
  return found.map(({ vrf_key: vrf, tenant_id: tenant }: { vrf_key: string; tenant_id: string }) =>
    spaceName(vrf, tenant),
  );
}

/** Sites and devices that a writer moves to another tenant, or whose guests they evict. */
export async function findMoved(
  trx: Knex,
  asked: readonly {
    resource: 'sites' | 'devices';
    id: string;
    to: string | null;
    evicts: boolean;
  }[],
  scope: Scope,
): Promise<string[]> {
  const moved: string[] = [];
  for (const [name, group] of Map.groupBy(asked, ({ resource }) => resource)) {
    const { sql, bindings } = writableCondition(name, scope);
    const found = await trx(tableOf(RESOURCES[name]))
      .whereIn(
        'id',
        group.map(({ id }) => id),
      )
      .whereRaw(sql, bindings)
      .select<{ id: string; tenant_id: string }[]>('id', 'tenant_id');
    const tenants = new Map(found.map(({ id, tenant_id: tenant }) => [id, tenant]));
    for (const { id, to, evicts } of group)
      if (tenants.has(id) && (evicts || (to !== null && to !== tenants.get(id)))) moved.push(id);
  }
  return moved;
}
