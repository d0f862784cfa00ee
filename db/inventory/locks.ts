import { lockKeySql } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { PLATFORM, type Scope } from '../../domain/access/scope.ts';
import { writableCondition } from './writable.ts';
import { tableOf } from './tables.ts';

/** The space of a tenant's records in a VRF, for locks: VRF and tenant. Ids have no spaces. */
export const spaceName = (vrf: string, tenantId: string): string => `${vrf} ${tenantId}`;

/** The spaces to lock (`spaceName`), and whether the caller may write for the platform. */
export type SpaceLocks = { spaces: ReadonlySet<string>; forPlatform: boolean };

/** How long a transaction waits for each lock after `waitLonger`; otherwise `limit_lock_wait` says it. */
const LONG_WAIT = '2s';

/** Says that a transaction may wait longer for locks than others, because it has been tried often. */
export const waitLonger = async (trx: Knex): Promise<void> =>
  void (await trx.raw(`SELECT set_config('holdfast.lock_wait', '${LONG_WAIT}', true)`));

function requestedSpaces(spaces: ReadonlySet<string>): [vrfs: string[], tenants: string[]] {
  const names = [...spaces].map((name) => ({ name, end: name.indexOf(' ') }));
  const vrfs = names.map(({ name, end }) => name.slice(0, end));
  const tenants = names.map(({ name, end }) => name.slice(end + 1));
  return [vrfs, tenants];
}

/**
 * Tenants whose definitions of custom fields are locked: shared by writes of values, so that these
 * do not wait for each other, and exclusively when the definitions change.
 */
export type DefinitionLocks = { shared: ReadonlySet<string>; exclusive: ReadonlySet<string> };

/** Prepares a transaction that plans without writing. */
export const prepareToRead = async (trx: Knex): Promise<void> =>
  void (await prepared(trx, 'SELECT use_indexes()', []));

/** What a writing transaction locks, in one statement. */
type WriteLocks = SpaceLocks & {
  definitions: DefinitionLocks;
  /** Locks of some tenants' records must not be held while waiting for those of others. */
  isBrief: boolean;
};

/** SQL: takes locks, by a function of the schema. Only few writers have to take turns. */
const TAKE_LOCKS = 'prepare_to_write(?, ?, ?, ?, ?, ?, ?)';

function lockBindings({ definitions, isBrief, spaces, forPlatform }: WriteLocks) {
  const takesTurn =
    isBrief || definitions.exclusive.has(PLATFORM) || (forPlatform && spaces.size > 0);
  return [
    takesTurn,
    isBrief,
    ...requestedSpaces(spaces),
    forPlatform,
    // The function locks one tenant after the platform without sorting.
    [...definitions.shared].sort((a, b) => Number(b === PLATFORM) - Number(a === PLATFORM)),
    [...definitions.exclusive],
  ];
}

/**
 * Prepares a transaction that writes: the next statement waits for the locks of definitions of custom
 * fields and address spaces. It, and later ones, fail with SQLSTATE 55P03 when others hold what it may
 * not wait for.
 */
export const prepareToWrite = async (trx: Knex, locks: WriteLocks): Promise<void> =>
  void (await prepared(trx, `SELECT ${TAKE_LOCKS}`, lockBindings(locks), { waits: true }));

/** Locks further definitions of custom fields until the end of the transaction. Error: SQLSTATE 55P03. */
export const lockDefinitions = (trx: Knex, definitions: DefinitionLocks): Promise<void> =>
  lockFurther(trx, { definitions, spaces: new Set(), forPlatform: false });

/** Locks further address spaces until the end of the transaction. Error: SQLSTATE 55P03. */
export const lockSpaces = (trx: Knex, locks: SpaceLocks): Promise<void> =>
  lockFurther(trx, { ...locks, definitions: { shared: new Set(), exclusive: new Set() } });

async function lockFurther(trx: Knex, locks: Omit<WriteLocks, 'isBrief'>): Promise<void> {
  const isBrief = locks.forPlatform || locks.definitions.exclusive.has(PLATFORM);
  // Others may wait for what it holds already: it does not wait long for its turn either.
  const limit = isBrief ? 'limit_lock_wait(), ' : '';
  await prepared(trx, `SELECT ${limit}${TAKE_LOCKS}`, lockBindings({ ...locks, isBrief }));
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

/** Waits until nothing is being created in these tenants, and lets nothing be created before the commit. */
export const lockTenantsToDelete = async (trx: Knex, ids: readonly string[]): Promise<void> =>
  void (await trx.raw(
    `SELECT limit_lock_wait(), pg_advisory_xact_lock(${lockKeySql('tenant', 't.id')})
     FROM (SELECT id FROM tenants WHERE id = ANY (?::text[]) ORDER BY id) AS t`,
    [[...ids]],
  ));

/** True if a writer moves a site or a device to another tenant, or evicts the guests of one. */
export async function movesAny(
  trx: Knex,
  asked: readonly {
    resource: 'sites' | 'devices';
    id: string;
    to: string | null;
    evicts: boolean;
  }[],
  scope: Scope,
): Promise<boolean> {
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
    const isMoved = ({ id, to, evicts }: (typeof asked)[number]) =>
      tenants.has(id) && (evicts || (to !== null && to !== tenants.get(id)));
    if (group.some(isMoved)) return true;
  }
  return false;
}
