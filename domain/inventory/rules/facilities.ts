import { detach } from '../detach.ts';
import type { Draft, Rules } from '../planning.ts';
import type { ResourceName } from '../names.ts';
import type { Row } from '../resource.ts';
import { RESOURCES } from '../resources/index.ts';
import { labelOf } from '../ownership.ts';
import { PLATFORM } from '../../access/scope.ts';
import { collectMissing, MAX_REFERRERS } from '../planSnapshot.ts';
import { counted, ranged } from '../../shared/counted.ts';
import { nounOf } from '../../shared/nouns.ts';

/** Adds an error when the record that `field` refers to belongs to another site. */
export function checkSameSite(
  draft: Draft,
  field: string,
  resource: ResourceName,
  siteId: unknown,
): void {
  const { after, snapshot } = draft;
  if (!draft.isValid(field, 'siteId') || typeof after[field] !== 'string') return;
  const other = snapshot.get(resource, after[field]);
  if (other && other.siteId !== siteId) draft.error(field, 'other_site', 'belongs to another site');
}

/**
 * Adds a conflict for each of the first ten referrers of the record, with `reason`. Those that yield
 * are detached.
 */
function checkUnused(
  draft: Draft,
  referrers: readonly { resource: ResourceName; field: string }[],
  reason: string,
): void {
  for (const { resource, field } of referrers) {
    const referrers = draft.snapshot.where(resource, [field], [draft.after.id]);
    const [others, blocking] = [true, false].map((yields) =>
      referrers.filter((row) => draft.yields(resource, row) === yields),
    ) as [Row[], Row[]];
    collectMissing(others, (row) => detach(draft, { resource, field }, row));
    for (const row of blocking.slice(0, 10)) {
      draft.conflict('in_use', `${reason}: ${resource} ${labelOf(RESOURCES[resource], row)}`, {
        resource,
        row,
      });
    }
  }
}

/** The largest number of regions or locations above one. The trigger `reject_cycle` has the same limit. */
const MAX_LEVELS = 100;

function checkCycle(draft: Draft, resource: 'regions' | 'locations'): void {
  const { after, snapshot } = draft;
  if (
    !draft.hasChanged('parentId') ||
    !draft.isValid('parentId') ||
    typeof after.parentId !== 'string'
  )
    return;
  snapshot.fact(resource === 'regions' ? 'regionAncestors' : 'locationAncestors', after.parentId);
  let ancestor: string | null = after.parentId;
  // Each ancestor once: the records may have a cycle that this change has no part in.
  const above = new Set<string>();
  while (ancestor !== null) {
    if (ancestor === after.id || above.has(ancestor)) {
      draft.error('parentId', 'cycle', 'is the record itself or one of its descendants');
      return;
    }
    above.add(ancestor);
    if (above.size > MAX_LEVELS) {
      draft.error('parentId', 'too_deep', `has more than ${MAX_LEVELS - 1} records above it`);
      return;
    }
    ancestor = (snapshot.peek(resource, ancestor)?.parentId as string | null | undefined) ?? null;
  }
}

export const regionRules: Rules = { write: (draft) => checkCycle(draft, 'regions') };

export const locationRules: Rules = {
  write(draft) {
    checkCycle(draft, 'locations');
    checkSameSite(draft, 'parentId', 'locations', draft.after.siteId);
    if (draft.before && draft.hasChanged('siteId')) {
      checkUnused(
        draft,
        [
          { resource: 'locations', field: 'parentId' },
          { resource: 'racks', field: 'locationId' },
          { resource: 'devices', field: 'locationId' },
        ],
        'must belong to the same site',
      );
    }
  },
};

/** The part of a rack that a device occupies: units from `low` to `high`, and faces. */
type Mount = { low: number; high: number; front: boolean; rear: boolean };

function mountOf(device: Row, type: Row): Mount {
  const low = Number(device.position);
  const full = type.fullDepth === true;
  return {
    low,
    high: low + Number(type.uHeight) - 1,
    front: full || device.face === 'front',
    rear: full || device.face === 'rear',
  };
}

const mountsOverlap = (one: Mount, other: Mount): boolean =>
  one.low <= other.high &&
  other.low <= one.high &&
  ((one.front && other.front) || (one.rear && other.rear));

/** The mounted devices of a rack that overlap a mount. */
function blockingDevices(
  { snapshot }: Draft,
  device: Row,
  mount: Mount,
  typeOf: (row: Row) => Row | undefined,
): Row[] {
  const found: Row[] = [];
  collectMissing(snapshot.where('devices', ['rackId'], [device.rackId]), (other) => {
    if (other.id === device.id || typeof other.position !== 'number') return;
    const type = typeOf(other);
    if (type && mountsOverlap(mount, mountOf(other, type))) found.push(other);
  });
  return found;
}

/** Checks that a device fits its rack: height, face, free units. */
export function checkMount(draft: Draft): void {
  const { after, snapshot } = draft;
  if (!draft.isValid('rackId', 'position', 'face', 'deviceTypeId')) return;
  if (after.position === null) return;
  if (after.rackId === null) draft.error('position', 'rack_required', 'needs a rack');
  if (after.face === null) draft.error('face', 'required', 'is required with a position');
  if (
    after.rackId === null ||
    after.face === null ||
    !draft.hasChanged('rackId', 'position', 'face', 'deviceTypeId')
  )
    return;
  const rack = typeof after.rackId === 'string' ? snapshot.get('racks', after.rackId) : undefined;
  const type = snapshot.get('device-types', String(after.deviceTypeId));
  if (!rack || !type) return;
  if (type.uHeight === 0) {
    draft.error(
      'position',
      'not_rack_mountable',
      'is not possible for a device type without rack units',
    );
    return;
  }
  const mount = mountOf(after, type);
  if (mount.high > Number(rack.uHeight)) {
    draft.error(
      'position',
      'exceeds_rack_height',
      `the device would occupy ${ranged('unit', mount.low, mount.high)} of a rack with ${counted(Number(rack.uHeight), 'unit')}`,
    );
    return;
  }
  for (const other of blockingDevices(draft, after, mount, (row) =>
    snapshot.get('device-types', String(row.deviceTypeId)),
  )) {
    draft.conflict(
      'rack_units_occupied',
      `device ${String(other.name)} occupies these rack units`,
      { resource: 'devices', row: other },
      'position',
    );
  }
}

export const rackRules: Rules = {
  write(draft) {
    const { before, after, snapshot } = draft;
    checkSameSite(draft, 'locationId', 'locations', after.siteId);
    if (!before) return;
    if (draft.hasChanged('siteId'))
      checkUnused(draft, [{ resource: 'devices', field: 'rackId' }], 'is mounted in the rack');
    if (
      !draft.hasChanged('uHeight') ||
      !draft.isValid('uHeight') ||
      Number(after.uHeight) >= Number(before.uHeight)
    )
      return;
    collectMissing(snapshot.where('devices', ['rackId'], [after.id]), (device) => {
      const type =
        typeof device.position === 'number'
          ? snapshot.get('device-types', String(device.deviceTypeId))
          : undefined;
      if (!type || mountOf(device, type).high <= Number(after.uHeight)) return;
      if (draft.yields('devices', device))
        detach(draft, { resource: 'devices', field: 'rackId' }, device);
      else {
        draft.conflict(
          'in_use',
          `device ${String(device.name)} occupies higher units`,
          { resource: 'devices', row: device },
          'uHeight',
        );
      }
    });
  },
};

export const deviceTypeRules: Rules = {
  write(draft) {
    const { before, after, snapshot } = draft;
    if (
      !before ||
      !draft.hasChanged('uHeight', 'fullDepth') ||
      !draft.isValid('uHeight', 'fullDepth')
    )
      return;
    collectMissing(snapshot.where('devices', ['deviceTypeId'], [after.id]), (device) => {
      if (typeof device.position !== 'number') return;
      const mount = mountOf(device, after);
      const rack = snapshot.get('racks', String(device.rackId));
      const typeOf = (row: Row) =>
        row.deviceTypeId === after.id
          ? after
          : snapshot.get('device-types', String(row.deviceTypeId));
      const fits =
        after.uHeight !== 0 &&
        mount.high <= Number(rack?.uHeight) &&
        blockingDevices(draft, device, mount, typeOf).length === 0;
      if (!fits)
        draft.conflict('in_use', `device ${String(device.name)} would no longer fit its rack`, {
          resource: 'devices',
          row: device,
        });
    });
  },
};

/** Adds a conflict for each record outside the inventory that belongs to this one, such as a grant. */
export function checkNoExternalReferrers({ snapshot, resource, after, conflict }: Draft): void {
  const id = `${resource.name}/${after.id}`;
  const referrers = snapshot.fact('externalReferrers', id, MAX_REFERRERS);
  for (const referrer of referrers.slice(0, MAX_REFERRERS)) {
    conflict('in_use', `is used by ${nounOf(referrer.resource)} ${referrer.label}`, referrer);
  }
}

/**
 * Role assignments and provider mappings do not follow a site or a device into another tenant: who
 * may move it must not thereby decide who may act in the other tenant.
 */
export function leaveGrants(draft: Draft): void {
  const { before, resource } = draft;
  const { name } = resource;
  if (!before || !draft.hasChanged('tenantId') || !draft.isValid('tenantId')) return;
  if (name === 'sites' || name === 'devices') draft.revokeGrants(name, before);
}

export const siteRules: Rules = { write: leaveGrants, remove: checkNoExternalReferrers };

export const tenantRules: Rules = {
  remove(draft) {
    if (draft.after.id === PLATFORM) draft.conflict('built_in', 'the platform cannot be deleted');
    checkNoExternalReferrers(draft);
  },
};
