import type { Draft } from './planning.ts';
import type { ResourceName } from './names.ts';
import { blockOf } from './prefixTree.ts';
import { spaceOf } from './spaces.ts';
import { collectMissing } from './planSnapshot.ts';
import type { Row } from './resource.ts';
import { REFERRERS, RESOURCES } from './resources/index.ts';

export type Reference = { resource: ResourceName; field: string };

/** References that may be null but are never cleared: without its VRF an address is another one. */
const UNDETACHABLE: ReadonlySet<string> = new Set([
  'prefixes.vrfId',
  'ip-ranges.vrfId',
  'ip-addresses.vrfId',
]);

/** The fields that a reference is cleared with. */
const CLEARED_WITH: Readonly<Record<string, readonly string[]>> = {
  'devices.rackId': ['position', 'face'],
  'ip-addresses.interfaceId': ['deviceId'],
};

/** True when the records with this reference can exist without it. */
export const isDetachable = ({ resource, field }: Reference): boolean =>
  RESOURCES[resource].fields[field]?.required !== true && !UNDETACHABLE.has(`${resource}.${field}`);

/** Clears a reference of a record or, when the record cannot exist without it, deletes the record. */
export function detach(draft: Draft, reference: Reference, row: Row): void {
  const { resource, field } = reference;
  if (draft.isDeleted(resource, row.id)) return;
  if (!isDetachable(reference)) return remove(draft, resource, row);
  const fields = [field, ...(CLEARED_WITH[`${resource}.${field}`] ?? [])];
  const change = Object.fromEntries(fields.map((name) => [name, null]));
  draft.cascadeUpdate(resource, row, change, 'reference_cleared');
  if (resource === 'ip-addresses' && field === 'interfaceId') clearPrimary(draft, row);
}

function remove(draft: Draft, resource: ResourceName, row: Row): void {
  draft.cascadeDelete(resource, row, 'cascade');
  if (resource === 'devices') draft.revokeGrants(resource, row);
  collectMissing(REFERRERS[resource], (reference) => {
    const referrers = draft.snapshot.where(reference.resource, [reference.field], [row.id]);
    collectMissing(referrers, (referrer) => detach(draft, reference, referrer));
  });
}

/** An address that leaves its device is not the primary address of it any more. */
export function clearPrimary(draft: Draft, address: Row): void {
  if (typeof address.deviceId !== 'string' || draft.isDeleted('devices', address.deviceId)) return;
  const device = draft.snapshot.get('devices', address.deviceId);
  for (const field of ['primaryIp4Id', 'primaryIp6Id'])
    if (device?.[field] === address.id)
      draft.cascadeUpdate('devices', device, { [field]: null }, 'reference_cleared');
}

/** Detaches everything that other tenants have on the record of a draft. */
export function evictOthers(draft: Draft): void {
  collectMissing(REFERRERS[draft.resource.name], (reference) => {
    const referrers = draft.snapshot
      .where(reference.resource, [reference.field], [draft.after.id])
      .filter((row) => draft.yields(reference.resource, row));
    collectMissing(referrers, (row) => detach(draft, reference, row));
  });
  if (draft.resource.name === 'vrfs') reparentRemaining(draft);
}

/** Moves the prefixes of a VRF whose parent is deleted to the next larger one that remains. */
function reparentRemaining(draft: Draft): void {
  const remaining = draft.snapshot
    .where('prefixes', ['vrfId'], [draft.after.id])
    .filter(({ id }) => !draft.isDeleted('prefixes', id));
  collectMissing(remaining, (row) => {
    const { parentPrefixId } = row;
    if (typeof parentPrefixId !== 'string' || !draft.isDeleted('prefixes', parentPrefixId)) return;
    const block = blockOf(row);
    const parent = draft.prefixTree
      .containing(spaceOf(draft.snapshot, row), block)
      .find(
        (node) => node.block.length < block.length && !draft.isDeleted('prefixes', node.row.id),
      );
    const change = { parentPrefixId: parent?.row.id ?? null };
    draft.cascadeUpdate('prefixes', row, change, 'reparented');
  });
}
