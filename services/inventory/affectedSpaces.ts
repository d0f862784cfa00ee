import type { Knex } from '../../db/core/knex.ts';
import { findSpaces, spaceName } from '../../db/inventory/locks.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Mutation, Planned } from '../../domain/inventory/planning.ts';
import { isPlainId, requestedVrf } from '../../domain/inventory/prefetch.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { AppError } from '../../domain/shared/errors.ts';

const SPACE_RESOURCES: ReadonlySet<string> = new Set(['prefixes', 'ip-ranges', 'ip-addresses']);

/** The number of address spaces that one transaction may lock. */
const MAX_SPACES = 1_000;

/** How often a plan is made, each time with more spaces, before concurrent changes are the reason. */
const MAX_PLANS = 5;

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
 * records. The plan may find more, for example by a VRF's name. Error: `limit_reached`.
 */
export async function expectedSpaces(
  trx: Knex,
  mutations: readonly Mutation[],
  callerTenant: string,
): Promise<Set<string>> {
  const spaces = new Set<string>();
  const existing: { resource: ResourceName; id: string }[] = [];
  for (const { resource, operation, record } of mutations) {
    if (typeof record !== 'object' || record === null) continue;
    const { id } = record as { id?: unknown };
    if (resource === 'vrfs' && isPlainId(id)) spaces.add(spaceName(id, PLATFORM));
    if (!SPACE_RESOURCES.has(resource)) continue;
    if (operation === 'create') {
      const { tenantId } = record as { tenantId?: unknown };
      const requested = requestedVrf(record as Record<string, unknown>);
      if (requested !== undefined)
        spaces.add(spaceName(requested, isPlainId(tenantId) ? tenantId : callerTenant));
    }
    if (operation !== 'create' && typeof id === 'string')
      existing.push({ resource: resource as ResourceName, id });
  }
  for (const [resource, records] of Map.groupBy(existing, (record) => record.resource)) {
    const ids = records.map(({ id }) => id);
    for (const space of await findSpaces(trx, resource, ids)) spaces.add(space);
  }
  assertFewSpaces(spaces);
  return spaces;
}

/**
 * The spaces that plans change, without those of VRFs that they create: nobody else can use these
 * yet. A record that is refused may have anything as its VRF.
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
 * Plans. While the plan changes spaces that are not locked, they are locked, and it is made again.
 * Errors: `limit_reached`; `conflict` when this does not end.
 */
export async function planLocked<T extends { planned: readonly Planned[] }>(
  locked: ReadonlySet<string>,
  plan: () => Promise<T>,
  lock: (spaces: ReadonlySet<string>) => Promise<void>,
): Promise<T> {
  const spaces = new Set(locked);
  for (let plans = 1; plans <= MAX_PLANS; plans++) {
    const result = await plan();
    const added = [...affectedSpaces(result.planned)].filter((space) => !spaces.has(space));
    if (added.length === 0) return result;
    for (const space of added) spaces.add(space);
    assertFewSpaces(spaces);
    await lock(new Set(added));
  }
  throw new AppError(
    'conflict',
    'Concurrent changes of the same records prevented this change. Try again.',
  );
}
