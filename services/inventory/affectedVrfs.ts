import type { Knex } from '../../db/core/knex.ts';
import { findVrfs } from '../../db/inventory/locks.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Mutation, Planned } from '../../domain/inventory/planning.ts';
import { requestedVrf } from '../../domain/inventory/prefetch.ts';
import { AppError } from '../../domain/shared/errors.ts';

const VRF_RESOURCES: ReadonlySet<string> = new Set(['prefixes', 'ip-ranges', 'ip-addresses']);

/** The number of VRFs that one transaction may lock. */
const MAX_VRFS = 1_000;

/**
 * The VRFs that mutations are likely to change, according to the requests and the present records.
 * The plan may find more, for example by a VRF's name. Error: `limit_reached`.
 */
export async function expectedVrfs(
  trx: Knex,
  mutations: readonly Mutation[],
): Promise<Set<string>> {
  const vrfs = new Set<string>();
  const existing: { resource: ResourceName; id: string }[] = [];
  for (const { resource, operation, record } of mutations) {
    if (typeof record !== 'object' || record === null) continue;
    const { id } = record as { id?: unknown };
    if (resource === 'vrfs' && typeof id === 'string') vrfs.add(id);
    if (!VRF_RESOURCES.has(resource)) continue;
    if (operation === 'create' || Object.hasOwn(record, 'vrfId')) {
      const requested = requestedVrf(record as Record<string, unknown>);
      if (requested !== undefined) vrfs.add(requested);
    }
    if (operation !== 'create' && typeof id === 'string')
      existing.push({ resource: resource as ResourceName, id });
  }
  for (const [resource, records] of Map.groupBy(existing, (record) => record.resource)) {
    const ids = records.map(({ id }) => id);
    for (const vrf of await findVrfs(trx, resource, ids)) vrfs.add(vrf);
  }
  if (vrfs.size > MAX_VRFS)
    throw new AppError(
      'limit_reached',
      `The change affects more than ${MAX_VRFS} VRFs. Split it into smaller changes.`,
    );
  return vrfs;
}

/**
 * The VRFs that plans change, without those that they create: nobody else can use these yet. A record
 * that is refused may have anything as its VRF.
 */
export function affectedVrfs(planned: readonly Planned[]): Set<string> {
  const vrfs = new Set<string>();
  const created = new Set<string>();
  for (const { subject } of planned) {
    if (!subject) continue;
    if (subject.resource === 'vrfs') (subject.before ? vrfs : created).add(subject.id);
    if (!VRF_RESOURCES.has(subject.resource)) continue;
    for (const row of [subject.before, subject.after]) {
      const vrf = row ? requestedVrf(row) : undefined;
      if (vrf !== undefined) vrfs.add(vrf);
    }
  }
  for (const vrf of created) vrfs.delete(vrf);
  return vrfs;
}
