import { detach, isDetachable, type Reference } from './detach.ts';
import type { OpenDraft } from './draft.ts';
import type { ResourceName } from './names.ts';
import { labelOf } from './ownership.ts';
import { collectMissing } from './planSnapshot.ts';
import type { Resource, Row } from './resource.ts';
import { REFERRERS, RESOURCES } from './resources/index.ts';
import { counted } from '../shared/counted.ts';
import { nounOf } from '../shared/nouns.ts';

/** The number of referrers of one resource that conflicts name. */
const MAX_NAMED_REFERRERS = 10;

/**
 * Adds the consequences of deleting a record to a draft: records that are deleted with it,
 * references that are set to null, and a conflict for every other referrer.
 */
export function applyCascades(draft: OpenDraft, resource: Resource, row: Row): void {
  collectMissing(resource.cascades, (reference) => deleteReferrers(draft, reference, row));
  collectMissing(resource.setNullOn, (reference) => clearReferences(draft, reference, row));
  const handled = [...resource.cascades, ...resource.setNullOn, ...resource.reparents];
  const isHandled = (reference: Reference) =>
    handled.some(
      ({ resource: of, field }) => of === reference.resource && field === reference.field,
    );
  collectMissing(REFERRERS[resource.name], (reference) => {
    if (!isHandled(reference)) checkReferrers(draft, reference, row);
  });
}

function deleteReferrers(draft: OpenDraft, { resource: of, field }: Reference, row: Row): void {
  const referrers = draft.snapshot
    .where(of, [field], [row.id])
    .filter(({ id }) => !draft.isDeleted(of, id));
  collectMissing(referrers, (referrer) => {
    draft.cascadeDelete(of, referrer, 'cascade');
    applyCascades(draft, RESOURCES[of], referrer);
  });
}

function clearReferences(
  draft: OpenDraft,
  { resource: of, field, alsoClears = [] }: Resource['setNullOn'][number],
  row: Row,
): void {
  const cleared = Object.fromEntries([field, ...alsoClears].map((name) => [name, null]));
  for (const referrer of draft.snapshot.where(of, [field], [row.id])) {
    if (draft.isDeleted(of, referrer.id)) continue;
    if (draft.yields(of, referrer)) {
      detach(draft, { resource: of, field }, referrer);
      continue;
    }
    checkNotPrimary(draft, of, referrer);
    draft.cascadeUpdate(of, referrer, cleared, 'reference_cleared');
  }
}

/**
 * Adds a conflict for each referrer. Those that yield do not: they are detached. When they cannot
 * exist without the record, the owner must ask for it.
 */
function checkReferrers(draft: OpenDraft, reference: Reference, row: Row): void {
  const { resource: of, field } = reference;
  const isLeft = ({ id }: Row) => !draft.isDeleted(of, id);
  const some = draft.snapshot.referrers(of, field, row.id, MAX_NAMED_REFERRERS + 1).filter(isLeft);
  if (some.length === 0) return;
  const isBlocked = some.some((referrer) => !draft.yields(of, referrer));
  const referrers = isBlocked ? some : draft.snapshot.where(of, [field], [row.id]).filter(isLeft);
  const [others, blocking] = [true, false].map((yields) =>
    referrers.filter((referrer) => draft.yields(of, referrer) === yields),
  ) as [Row[], Row[]];
  for (const referrer of blocking.slice(0, MAX_NAMED_REFERRERS)) {
    const label = labelOf(RESOURCES[of], referrer);
    draft.conflict('in_use', `is used by ${nounOf(of)} ${label}`, {
      resource: of,
      row: referrer,
    });
  }
  if (blocking.length > MAX_NAMED_REFERRERS)
    draft.conflict('in_use', `is used by further ${nounOf(of, 2)}`);
  if (isDetachable(reference) || draft.evicts)
    collectMissing(others, (referrer) => detach(draft, reference, referrer));
  else if (others.length > 0)
    draft.conflict(
      'in_use',
      `is used by ${isBlocked ? 'at least ' : ''}${counted(others.length, nounOf(of))} of other tenants, which only a request with evict deletes`,
    );
}

/** An address that loses its interface must not be the primary address of its device. */
function checkNotPrimary(draft: OpenDraft, of: ResourceName, address: Row): void {
  if (of !== 'ip-addresses' || typeof address.deviceId !== 'string') return;
  if (draft.isDeleted('devices', address.deviceId)) return;
  const device = draft.snapshot.get('devices', address.deviceId);
  if (device?.primaryIp4Id !== address.id && device?.primaryIp6Id !== address.id) return;
  draft.conflict(
    'in_use',
    `${String(address.address)} is the primary address of device ${String(device.name)}`,
    { resource: 'devices', row: device },
  );
}
