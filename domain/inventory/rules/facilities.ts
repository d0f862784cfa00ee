import type { Draft, Rules } from '../planning.ts';
import type { ResourceName } from '../names.ts';
import type { Resource, Row } from '../resource.ts';
import { RESOURCES } from '../resources/index.ts';
import { labelOf } from '../standing.ts';
import { PLATFORM } from '../../access/scope.ts';
import { gathering } from '../planSnapshot.ts';

/** An error when a record that this one names stands at another site. */
export function mustBeAtSite(
  draft: Draft,
  field: string,
  resource: ResourceName,
  siteId: unknown,
): void {
  const { after, world } = draft;
  if (!draft.sound(field, 'siteId') || typeof after[field] !== 'string') return;
  const other = world.get(resource, after[field]);
  if (other && other.siteId !== siteId) draft.error(field, 'other_site', 'stands at another site');
}

/** A conflict for each record that refers to this one, when a field that they rely on would change. */
function mustBeUnused(
  draft: Draft,
  users: readonly { resource: ResourceName; field: string }[],
  because: string,
): void {
  for (const { resource, field } of users) {
    for (const row of draft.world.where(resource, [field], [draft.after.id]).slice(0, 10)) {
      draft.conflict('in_use', `${because}: ${resource} ${labelOf(RESOURCES[resource], row)}`, {
        resource,
        row,
      });
    }
  }
}

function checkCircle(draft: Draft, resource: 'regions' | 'locations'): void {
  const { after, world } = draft;
  if (!draft.changes('parentId') || !draft.sound('parentId') || typeof after.parentId !== 'string')
    return;
  world.fact(resource === 'regions' ? 'regionsAbove' : 'locationsAbove', after.parentId);
  let above: string | null = after.parentId;
  while (above !== null) {
    if (above === after.id) {
      draft.error('parentId', 'cycle', 'is the record itself or below it');
      return;
    }
    above = (world.peek(resource, above)?.parentId as string | null | undefined) ?? null;
  }
}

export const regionRules: Rules = { write: (draft) => checkCircle(draft, 'regions') };

export const locationRules: Rules = {
  write(draft) {
    checkCircle(draft, 'locations');
    mustBeAtSite(draft, 'parentId', 'locations', draft.after.siteId);
    if (draft.before && draft.changes('siteId')) {
      mustBeUnused(
        draft,
        [
          { resource: 'locations', field: 'parentId' },
          { resource: 'racks', field: 'locationId' },
          { resource: 'devices', field: 'locationId' },
        ],
        'stands at the same site',
      );
    }
  },
};

/** What a device takes of a rack: units from `low` to `high`, and which faces. */
type Mount = { low: number; high: number; front: boolean; rear: boolean };

function mountOf(device: Row, type: Row): Mount {
  const [low, height, full] = [
    Number(device.position),
    Number(type.uHeight),
    type.fullDepth === true,
  ];
  return {
    low,
    high: low + height - 1,
    front: full || device.face === 'front',
    rear: full || device.face === 'rear',
  };
}

const collide = (one: Mount, other: Mount): boolean =>
  one.low <= other.high &&
  other.low <= one.high &&
  ((one.front && other.front) || (one.rear && other.rear));

/** The mounted devices of a rack that are in the way of one. */
function inTheWay(
  { world }: Draft,
  device: Row,
  mount: Mount,
  typeOf: (row: Row) => Row | undefined,
): Row[] {
  const found: Row[] = [];
  gathering(world.where('devices', ['rackId'], [device.rackId]), (other) => {
    if (other.id === device.id || typeof other.position !== 'number') return;
    const type = typeOf(other);
    if (type && collide(mount, mountOf(other, type))) found.push(other);
  });
  return found;
}

/** A device fits its rack: height, face, free units. */
export function checkMount(draft: Draft): void {
  const { after, world } = draft;
  if (!draft.sound('rackId', 'position', 'face', 'deviceTypeId')) return;
  if (after.position === null) return;
  if (after.rackId === null) draft.error('position', 'without_rack', 'needs a rack');
  if (after.face === null) draft.error('face', 'required', 'is required where there is a position');
  if (
    after.rackId === null ||
    after.face === null ||
    !draft.changes('rackId', 'position', 'face', 'deviceTypeId')
  )
    return;
  const rack = typeof after.rackId === 'string' ? world.get('racks', after.rackId) : undefined;
  const type = world.get('device-types', String(after.deviceTypeId));
  if (!rack || !type) return;
  if (type.uHeight === 0) {
    draft.error('position', 'no_units', 'is not possible for a device type that takes no units');
    return;
  }
  const mount = mountOf(after, type);
  if (mount.high > Number(rack.uHeight)) {
    draft.error(
      'position',
      'too_high',
      `units ${mount.low} to ${mount.high} do not fit a rack of ${String(rack.uHeight)}`,
    );
    return;
  }
  for (const other of inTheWay(draft, after, mount, (row) =>
    world.get('device-types', String(row.deviceTypeId)),
  )) {
    draft.conflict(
      'units_taken',
      `device ${String(other.name)} takes units that this one would`,
      { resource: 'devices', row: other },
      'position',
    );
  }
}

export const rackRules: Rules = {
  write(draft) {
    const { before, after, world } = draft;
    mustBeAtSite(draft, 'locationId', 'locations', after.siteId);
    if (!before) return;
    if (draft.changes('siteId'))
      mustBeUnused(draft, [{ resource: 'devices', field: 'rackId' }], 'stands in the rack');
    if (
      !draft.changes('uHeight') ||
      !draft.sound('uHeight') ||
      Number(after.uHeight) >= Number(before.uHeight)
    )
      return;
    gathering(world.where('devices', ['rackId'], [after.id]), (device) => {
      const type =
        typeof device.position === 'number'
          ? world.get('device-types', String(device.deviceTypeId))
          : undefined;
      if (type && mountOf(device, type).high > Number(after.uHeight)) {
        draft.conflict(
          'in_use',
          `device ${String(device.name)} takes units above`,
          { resource: 'devices', row: device },
          'uHeight',
        );
      }
    });
  },
};

export const deviceTypeRules: Rules = {
  write(draft) {
    const { before, after, world } = draft;
    if (!before || !draft.changes('uHeight', 'fullDepth') || !draft.sound('uHeight', 'fullDepth'))
      return;
    gathering(world.where('devices', ['deviceTypeId'], [after.id]), (device) => {
      if (typeof device.position !== 'number') return;
      const mount = mountOf(device, after);
      const rack = world.get('racks', String(device.rackId));
      const typeOf = (row: Row) =>
        row.deviceTypeId === after.id ? after : world.get('device-types', String(row.deviceTypeId));
      const fits =
        after.uHeight !== 0 &&
        mount.high <= Number(rack?.uHeight) &&
        inTheWay(draft, device, mount, typeOf).length === 0;
      if (!fits)
        draft.conflict('in_use', `device ${String(device.name)} would not fit its rack any more`, {
          resource: 'devices',
          row: device,
        });
    });
  },
};

/** Rights and accounts that stand at a place, as conflicts. */
function mustHaveNoOutsiders(draft: Draft, { name }: Resource): void {
  for (const { resource, id, label } of draft.world.factNow(
    'outsiders',
    `${name}/${draft.after.id}`,
  )) {
    draft.conflict('in_use', `is used by ${resource} ${label}`, {
      resource,
      row: { id, version: 0 },
    });
  }
}

export const siteRules: Rules = { remove: (draft) => mustHaveNoOutsiders(draft, draft.resource) };

export const tenantRules: Rules = {
  remove(draft) {
    if (draft.after.id === PLATFORM) draft.conflict('built_in', 'the platform is always there');
    mustHaveNoOutsiders(draft, draft.resource);
  },
};

export const placeRemoval = mustHaveNoOutsiders;
