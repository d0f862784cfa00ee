import type { Draft, Rules } from '../planning.ts';
import { RESOURCES } from '../resources/index.ts';
import { labelOf } from '../standing.ts';
import type { Row } from '../resource.ts';
import { spanOf } from '../prefixTree.ts';
import { checkMount, mustBeAtSite, placeRemoval } from './facilities.ts';

function checkPrimary(draft: Draft, field: 'primaryIp4Id' | 'primaryIp6Id', family: 4 | 6): void {
  const { after, world } = draft;
  if (!draft.changes(field) || !draft.sound(field) || typeof after[field] !== 'string') return;
  const address = world.get('ip-addresses', after[field]);
  if (!address) return;
  if (spanOf(address).family !== family)
    draft.error(field, 'other_family', `is not an IPv${family} address`);
  if (address.deviceId !== after.id)
    draft.error(field, 'not_of_device', 'is not on an interface of this device');
}

/** Interfaces stand where their device stands. */
function takeInterfacesAlong({ before, after, changes, sound, also, world }: Draft): void {
  if (!before || !changes('tenantId', 'siteId') || !sound('tenantId', 'siteId')) return;
  for (const row of world.where('interfaces', ['deviceId'], [after.id]))
    also('interfaces', row, { tenantId: after.tenantId, siteId: after.siteId }, 'cascade');
}

export const deviceRules: Rules = {
  write(draft) {
    mustBeAtSite(draft, 'locationId', 'locations', draft.after.siteId);
    mustBeAtSite(draft, 'rackId', 'racks', draft.after.siteId);
    takeInterfacesAlong(draft);
    checkMount(draft);
    checkPrimary(draft, 'primaryIp4Id', 4);
    checkPrimary(draft, 'primaryIp6Id', 6);
  },
  remove: (draft) => placeRemoval(draft, draft.resource),
};

/** Interfaces without a plug. */
const CABLELESS: readonly unknown[] = ['wireless', 'lag', 'bridge', 'loopback', 'virtual'];

const cablesOf = ({ world }: Draft, interfaceId: unknown): Row[] => [
  ...world.where('cables', ['aInterfaceId'], [interfaceId]),
  ...world.where('cables', ['bInterfaceId'], [interfaceId]),
];

export const interfaceRules: Rules = {
  write(draft) {
    const { before, after, world } = draft;
    const device =
      typeof after.deviceId === 'string' && draft.sound('deviceId')
        ? world.get('devices', after.deviceId)
        : undefined;
    [after.tenantId, after.siteId] = [device?.tenantId ?? null, device?.siteId ?? null];
    if (draft.changes('lagId') && draft.sound('lagId') && typeof after.lagId === 'string') {
      const lag = world.get('interfaces', after.lagId);
      if (lag?.id === after.id) draft.error('lagId', 'cycle', 'is the interface itself');
      else if (lag?.deviceId !== after.deviceId)
        draft.error('lagId', 'other_device', 'is an interface of another device');
      else if (lag?.kind !== 'lag')
        draft.error('lagId', 'not_a_lag', 'is not an interface of the kind lag');
    }
    if (
      draft.sound('mode', 'untaggedVlanId') &&
      after.untaggedVlanId !== null &&
      after.mode === null
    )
      draft.error('mode', 'required', 'is required where there is a VLAN');
    if (!before || !draft.changes('kind') || !draft.sound('kind')) return;
    if (CABLELESS.includes(after.kind)) {
      for (const row of cablesOf(draft, after.id))
        draft.conflict(
          'in_use',
          `cable ${labelOf(RESOURCES.cables, row)} is plugged in`,
          { resource: 'cables', row },
          'kind',
        );
    }
    if (before.kind === 'lag') {
      for (const row of world.where('interfaces', ['lagId'], [after.id]))
        draft.conflict(
          'in_use',
          `interface ${String(row.name)} is a member`,
          { resource: 'interfaces', row },
          'kind',
        );
    }
  },
};

/** A cable joins two free ends. */
export const cableRules: Rules = {
  write(draft) {
    const { after, world } = draft;
    if (
      !draft.sound('aInterfaceId', 'bInterfaceId') ||
      !draft.changes('aInterfaceId', 'bInterfaceId')
    )
      return;
    if (after.aInterfaceId === after.bInterfaceId)
      draft.error('bInterfaceId', 'same_end', 'is the other end too');
    for (const field of ['aInterfaceId', 'bInterfaceId']) {
      const end = world.get('interfaces', String(after[field]));
      if (!end) continue;
      if (CABLELESS.includes(end.kind))
        draft.error(
          field,
          'no_plug',
          `is an interface of the kind ${String(end.kind)}, which takes no cable`,
        );
      for (const row of cablesOf(draft, end.id)) {
        if (row.id !== after.id)
          draft.conflict(
            'end_taken',
            `interface ${String(end.name)} has a cable already`,
            { resource: 'cables', row },
            field,
          );
      }
    }
  },
};
