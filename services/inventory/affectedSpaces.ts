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
  if (spaces.size > MAX_SPACES)
    throw new AppError(
      'limit_reached',
      `The change affects more than ${MAX_SPACES} address spaces. Split it into smaller changes.`,
    );
  return spaces;
}

/**
 * The spaces that plans change, without those of VRFs that they create: nobody else can use these
 * yet. A record that is refused may have anything as its VRF.
 */
export function affectedSpaces(planned: readonly Planned[]): Set<string> {
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
