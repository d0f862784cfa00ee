import { KINDS_WITHOUT_CABLE } from '../cabling.ts';
import { detach } from '../detach.ts';
import type { Draft, Rules } from '../planning.ts';
import { RESOURCES } from '../resources/index.ts';
import { labelOf } from '../ownership.ts';
import type { Row } from '../resource.ts';
import { spanOf } from '../prefixTree.ts';
import { checkMount, checkNoExternalReferrers, checkSameSite, leaveGrants } from './facilities.ts';

function checkPrimary(draft: Draft, field: 'primaryIp4Id' | 'primaryIp6Id', family: 4 | 6): void {
  const { after, snapshot } = draft;
  if (!draft.hasChanged(field) || !draft.isValid(field) || typeof after[field] !== 'string') return;
  const address = snapshot.get('ip-addresses', after[field]);
  if (!address) return;
  if (spanOf(address).family !== family)
    draft.error(field, 'other_family', `is not an IPv${family} address`);
  if (address.deviceId !== after.id)
    draft.error(field, 'not_on_device', 'is not on an interface of this device');
}

/** Interfaces belong to the tenant and the site of their device. */
function cascadeToInterfaces({
  before,
  after,
  hasChanged,
  isValid,
  cascadeUpdate,
  snapshot,
}: Draft): void {
  if (!before || !hasChanged('tenantId', 'siteId') || !isValid('tenantId', 'siteId')) return;
  for (const row of snapshot.where('interfaces', ['deviceId'], [after.id]))
    cascadeUpdate('interfaces', row, { tenantId: after.tenantId, siteId: after.siteId }, 'cascade');
}

export const deviceRules: Rules = {
  write(draft) {
    checkSameSite(draft, 'locationId', 'locations', draft.after.siteId);
    checkSameSite(draft, 'rackId', 'racks', draft.after.siteId);
    cascadeToInterfaces(draft);
    leaveGrants(draft);
    checkMount(draft);
    checkPrimary(draft, 'primaryIp4Id', 4);
    checkPrimary(draft, 'primaryIp6Id', 6);
  },
  remove: checkNoExternalReferrers,
};

const cablesOf = ({ snapshot }: Draft, interfaceId: unknown): Row[] => [
  ...snapshot.where('cables', ['aInterfaceId'], [interfaceId]),
  ...snapshot.where('cables', ['bInterfaceId'], [interfaceId]),
];

/** A LAG member and its LAG are on the same device. */
function checkLag(draft: Draft): void {
  const { after, snapshot } = draft;
  if (!draft.hasChanged('lagId') || !draft.isValid('lagId') || typeof after.lagId !== 'string')
    return;
  const lag = snapshot.get('interfaces', after.lagId);
  if (lag?.id === after.id) draft.error('lagId', 'cycle', 'is the interface itself');
  else if (lag?.deviceId !== after.deviceId)
    draft.error('lagId', 'other_device', 'is an interface of another device');
  else if (lag?.kind !== 'lag')
    draft.error('lagId', 'not_a_lag', 'is not an interface of the kind lag');
}

/** An interface with a cable remains cableable, and a LAG with members remains a LAG. */
function checkKindChange(draft: Draft): void {
  const { before, after, snapshot } = draft;
  if (!before || !draft.hasChanged('kind') || !draft.isValid('kind')) return;
  if (KINDS_WITHOUT_CABLE.includes(after.kind)) {
    for (const row of cablesOf(draft, after.id)) {
      if (draft.yields('cables', row)) {
        detach(draft, { resource: 'cables', field: 'aInterfaceId' }, row);
        continue;
      }
      const message = `cable ${labelOf(RESOURCES.cables, row)} is connected to it`;
      draft.conflict('in_use', message, { resource: 'cables', row }, 'kind');
    }
  }
  if (before.kind === 'lag') {
    for (const row of snapshot.where('interfaces', ['lagId'], [after.id])) {
      const message = `interface ${String(row.name)} is a member of it`;
      draft.conflict('in_use', message, { resource: 'interfaces', row }, 'kind');
    }
  }
}

export const interfaceRules: Rules = {
  write(draft) {
    const { after, snapshot } = draft;
    const device =
      typeof after.deviceId === 'string' && draft.isValid('deviceId')
        ? snapshot.get('devices', after.deviceId)
        : undefined;
    after.tenantId = device?.tenantId ?? null;
    after.siteId = device?.siteId ?? null;
    checkLag(draft);
    const hasVlan = draft.isValid('mode', 'untaggedVlanId') && after.untaggedVlanId !== null;
    if (hasVlan && after.mode === null)
      draft.error('mode', 'required', 'is required with an untagged VLAN');
    checkKindChange(draft);
  },
};

/** A cable connects two different interfaces that have no other cable. */
export const cableRules: Rules = {
  write(draft) {
    const { after, snapshot } = draft;
    if (
      !draft.isValid('aInterfaceId', 'bInterfaceId') ||
      !draft.hasChanged('aInterfaceId', 'bInterfaceId')
    )
      return;
    if (after.aInterfaceId === after.bInterfaceId)
      draft.error('bInterfaceId', 'same_interface', 'is the same interface as the other end');
    for (const field of ['aInterfaceId', 'bInterfaceId']) {
      const end = snapshot.get('interfaces', String(after[field]));
      if (!end) continue;
      if (KINDS_WITHOUT_CABLE.includes(end.kind))
        draft.error(
          field,
          'not_cableable',
          `is an interface of the kind ${String(end.kind)}, which cannot be cabled`,
        );
      for (const row of cablesOf(draft, end.id)) {
        if (row.id !== after.id)
          draft.conflict(
            'already_cabled',
            `interface ${String(end.name)} already has a cable`,
            { resource: 'cables', row },
            field,
          );
      }
    }
  },
};
