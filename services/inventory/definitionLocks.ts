import type { Knex } from '../../db/core/knex.ts';
import { findDefiners, lockDefinitions, type DefinitionLocks } from '../../db/inventory/locks.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import {
  isValid,
  type Mutation,
  type Planned,
  type Viewer,
} from '../../domain/inventory/planning.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { isPlainId } from '../../domain/inventory/prefetch.ts';
import { isSame } from '../../domain/inventory/difference.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { concurrentChangeError } from './retryOnConflict.ts';

const DEFINITIONS = 'custom-fields';

/** The locks of definitions that a transaction holds. */
export type HeldDefinitions = { shared: Set<string>; exclusive: Set<string> };

/** The ids of tenants that mutations are to delete, if the caller may. */
export const tenantsToDelete = (mutations: readonly Mutation[], viewer: Viewer): string[] =>
  mutations.flatMap(({ resource, operation, record }) => {
    if (resource !== 'tenants' || operation !== 'delete') return [];
    const { id } = (record ?? {}) as { id?: unknown };
    return isPlainId(id) && viewer.canWrite({ tenantId: PLATFORM }) ? [id] : [];
  });

/**
 * The definitions of custom fields that mutations are likely to rely on, and those that they change:
 * only where the caller may write, so that nobody waits for a change that is refused.
 */
export async function expectedDefinitions(
  trx: Knex,
  mutations: readonly Mutation[],
  viewer: Viewer,
): Promise<HeldDefinitions> {
  const shared = new Set([PLATFORM, viewer.tenantId]);
  // Writers of the records of a tenant share its lock: none is created while the tenant is deleted.
  const exclusive = new Set(tenantsToDelete(mutations, viewer));
  const changed: string[] = [];
  for (const { resource, record } of mutations) {
    if (typeof record !== 'object' || record === null) continue;
    const { id, tenantId } = record as { id?: unknown; tenantId?: unknown };
    if (isPlainId(tenantId)) shared.add(tenantId);
    if (resource !== DEFINITIONS) continue;
    exclusive.add(isPlainId(tenantId) ? tenantId : viewer.tenantId);
    if (isPlainId(id)) changed.push(id);
  }
  if (changed.length > 0)
    for (const tenant of await findDefiners(trx, changed)) exclusive.add(tenant);
  const isWritable = (tenantId: string) => viewer.canWrite({ tenantId });
  return {
    shared: new Set(
      [...shared].filter((id) => id === PLATFORM || id === viewer.tenantId || isWritable(id)),
    ),
    exclusive: new Set([...exclusive].filter(isWritable)),
  };
}

/** How often a plan is made because it relies on further definitions. */
const MAX_PLANS = 5;

/**
 * Plans. While valid plans rely on definitions that are not locked, or change them, these are
 * locked, and the plan is made again. Error: `conflict` when this does not end.
 */
export async function planWithDefinitions<T extends { planned: readonly Planned[] }>(
  trx: Knex,
  held: HeldDefinitions,
  viewer: Viewer,
  plan: () => Promise<T>,
): Promise<T> {
  for (let plans = 1; plans <= MAX_PLANS; plans++) {
    const result = await plan();
    if (!(await lockFurtherDefinitions(trx, held, result.planned, viewer))) return result;
  }
  throw concurrentChangeError();
}

/** True when there were definitions to lock: the plans have to be made again. */
async function lockFurtherDefinitions(
  trx: Knex,
  held: HeldDefinitions,
  planned: readonly Planned[],
  viewer: Viewer,
): Promise<boolean> {
  const needed = neededBy(planned.filter((plan) => isPermitted(plan, viewer)));
  const exclusive = [...needed.exclusive].filter((id) => !held.exclusive.has(id));
  const shared = [...needed.shared].filter(
    (id) => !held.shared.has(id) && !needed.exclusive.has(id) && !held.exclusive.has(id),
  );
  if (exclusive.length === 0 && shared.length === 0) return false;
  await lockDefinitions(trx, { shared: new Set(shared), exclusive: new Set(exclusive) });
  for (const id of exclusive) held.exclusive.add(id);
  for (const id of shared) held.shared.add(id);
  return true;
}

/** True for a valid plan that the caller may write, so that others may have to wait for it. */
export const isPermitted = (plan: Planned, viewer: Viewer): boolean =>
  isValid(plan) && plan.requiredScopes.every(viewer.canWrite);

/** The definitions that plans rely on: those of the tenants of records whose values it checks. */
function neededBy(planned: readonly Planned[]): DefinitionLocks {
  const shared = new Set<string>();
  const exclusive = new Set<string>();
  for (const plan of planned) {
    if (!plan.subject) continue;
    const { resource, before, after } = plan.subject;
    const tenantOf = (row: Row) => definerOf(resource, row);
    if (resource === DEFINITIONS)
      for (const row of [before, after]) if (row) exclusive.add(tenantOf(row));
    if (after && (!before || changesValues(resource, before, after))) shared.add(tenantOf(after));
  }
  return { shared, exclusive };
}

/** The tenant whose definitions hold for a record, besides those of the platform. */
function definerOf(resource: ResourceName, row: Row): string {
  if (RESOURCES[resource].scopeKind === 'isTenant') return row.id;
  return typeof row.tenantId === 'string' ? row.tenantId : PLATFORM;
}

const changesValues = (resource: ResourceName, before: Row, after: Row): boolean =>
  !isSame(before.customFields, after.customFields) ||
  definerOf(resource, before) !== definerOf(resource, after);
