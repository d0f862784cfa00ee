import type { Knex } from '../../db/core/knex.ts';
import { findSpaces, findVrfs, spaceName } from '../../db/inventory/locks.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import {
  isValid,
  type Mutation,
  type Planned,
  type Viewer,
} from '../../domain/inventory/planning.ts';
import { isPlainId, requestedVrf } from '../../domain/inventory/prefetch.ts';
import { GLOBAL_VRF } from '../../domain/inventory/planSnapshot.ts';
import { PLATFORM, type Scope } from '../../domain/access/scope.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { concurrentChangeError } from './retryOnConflict.ts';

const SPACE_RESOURCES: ReadonlySet<string> = new Set(['prefixes', 'ip-ranges', 'ip-addresses']);

/** The number of address spaces that one transaction may lock. */
const MAX_SPACES = 1_000;

/** How often a plan is made, each time with more spaces, before concurrent changes are the reason. */
const MAX_PLANS = 5;

/**
 * The VRF and the tenant of the space that a create names; undefined for other mutations, and while
 * only a search finds the VRF.
 */
export function requestedSpace(
  { resource, operation, record }: Mutation,
  callerTenant: string,
): { vrf: string; owner: string } | undefined {
  if (operation !== 'create' || !SPACE_RESOURCES.has(resource)) return undefined;
  if (typeof record !== 'object' || record === null) return undefined;
  const vrf = requestedVrf(record as Record<string, unknown>);
  const { tenantId } = record as { tenantId?: unknown };
  return vrf === undefined
    ? undefined
    : { vrf, owner: isPlainId(tenantId) ? tenantId : callerTenant };
}

/** Error: `limit_reached`. */
function assertFewSpaces({ size }: ReadonlySet<string>): void {
  if (size > MAX_SPACES)
    throw new AppError(
      'limit_reached',
      `The change affects more than ${MAX_SPACES} address spaces. Split it into smaller changes.`,
    );
}

/**
 * The address spaces that mutations are likely to change, according to the requests and the present
 * records, where the caller may write: nobody waits for a change that is refused. The plan may find more, for example by a VRF's name. Error: `limit_reached`.
 */
export async function expectedSpaces(
  trx: Knex,
  mutations: readonly Mutation[],
  viewer: Viewer,
  scope: Scope,
): Promise<Set<string>> {
  const spaces = new Set<string>();
  const vrfs = new Set<string>();
  const requestedIn: { vrf: string; owner: string }[] = [];
  const existing: { resource: ResourceName; id: string }[] = [];
  for (const mutation of mutations) {
    const { resource, operation, record } = mutation;
    if (typeof record !== 'object' || record === null) continue;
    const { id } = record as { id?: unknown };
    if (resource === 'vrfs' && isPlainId(id) && operation !== 'create') vrfs.add(id);
    if (!SPACE_RESOURCES.has(resource)) continue;
    const requested = requestedSpace(mutation, viewer.tenantId);
    if (requested && viewer.canWrite({ tenantId: requested.owner })) requestedIn.push(requested);
    if (operation !== 'create' && typeof id === 'string')
      existing.push({ resource: resource as ResourceName, id });
  }
  for (const [resource, records] of Map.groupBy(existing, (record) => record.resource)) {
    const ids = records.map(({ id }) => id);
    for (const space of await findSpaces(trx, resource, ids, scope)) spaces.add(space);
  }
  const asked = new Set([...vrfs, ...requestedIn.map(({ vrf }) => vrf)]);
  asked.delete(GLOBAL_VRF);
  const { writable, shared } = await findVrfs(trx, [...asked], scope);
  for (const id of vrfs) if (writable.has(id)) spaces.add(spaceName(id, PLATFORM));
  for (const { vrf, owner } of requestedIn)
    if (vrf === GLOBAL_VRF || shared.has(vrf) || writable.has(vrf))
      spaces.add(spaceName(vrf, owner));
  assertFewSpaces(spaces);
  return spaces;
}

/**
 * The spaces that plans change, without those of VRFs that they create: nobody else can use these
 * yet.
 */
function affectedSpaces(planned: readonly Planned[]): Set<string> {
  const spaces = new Set<string>();
  const created = new Set<string>();
  for (const { subject } of planned) {
    if (subject?.resource !== 'vrfs') continue;
    if (subject.before) spaces.add(spaceName(subject.id, PLATFORM));
    else created.add(subject.id);
  }
  for (const { subject } of planned) {
    if (!subject || !SPACE_RESOURCES.has(subject.resource)) continue;
    for (const row of [subject.before, subject.after]) {
      const vrf = row ? requestedVrf(row) : undefined;
      if (vrf !== undefined && !created.has(vrf) && isPlainId(row?.tenantId))
        spaces.add(spaceName(vrf, row.tenantId));
    }
  }
  return spaces;
}

/**
 * Plans. While plans that are written change spaces that are not locked, they are locked, and it is made again.
 * Errors: `limit_reached`; `conflict` when this does not end.
 */
export async function planLocked<T extends { planned: readonly Planned[] }>(
  locked: ReadonlySet<string>,
  plan: () => Promise<T>,
  lock: (spaces: ReadonlySet<string>) => Promise<void>,
  isWritten: (plan: Planned) => boolean = isValid,
): Promise<T> {
  const spaces = new Set(locked);
  for (let plans = 1; plans <= MAX_PLANS; plans++) {
    const result = await plan();
    const added = [...affectedSpaces(result.planned.filter(isWritten))].filter(
      (space) => !spaces.has(space),
    );
    if (added.length === 0) return result;
    for (const space of added) spaces.add(space);
    assertFewSpaces(spaces);
    await lock(new Set(added));
  }
  throw concurrentChangeError();
}
