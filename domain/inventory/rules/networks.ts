import { PLATFORM } from '../../access/scope.ts';
import { detach } from '../detach.ts';
import { asReferrer } from '../ownership.ts';
import type { Draft, Rules } from '../planning.ts';
import {
  collectMissing,
  MAX_REFERRERS,
  vrfGroup,
  vrfKeyOf,
  type Referrer,
} from '../planSnapshot.ts';
import { blockOf } from '../prefixTree.ts';
import type { Row } from '../resource.ts';
import { spaceOf } from '../spaces.ts';
import { findDuplicateAddress } from './addresses.ts';

/**
 * A VRF of the platform has an address space for each tenant, one of a tenant is one space. A VRF
 * in use keeps what it is.
 */
function checkSharing(draft: Draft): void {
  const { before, after, snapshot } = draft;
  if (!before || (before.tenantId === PLATFORM) === (after.tenantId === PLATFORM)) return;
  for (const resource of ['prefixes', 'ip-ranges', 'ip-addresses'] as const) {
    const [row] = snapshot.referrers(resource, 'vrfId', after.id, 1);
    if (row)
      draft.conflict(
        'in_use',
        'a VRF in use cannot change between the platform and a tenant',
        { resource, row },
        'tenantId',
      );
  }
}

/** True when the space of a prefix or an address has it more than once, as planned. */
function isDuplicate(draft: Draft, resource: string, row: Row): boolean {
  if (resource === 'prefixes')
    return draft.prefixTree.equalTo(spaceOf(draft.snapshot, row), blockOf(row)).length > 1;
  return findDuplicateAddress(draft, row) !== undefined;
}

/** The first prefixes and addresses that a VRF has more than once, with the planned changes. */
function duplicatesIn(draft: Draft, vrf: string): Referrer[] {
  const { snapshot } = draft;
  const planned: Referrer[] = [];
  collectMissing(snapshot.changedIn(vrfGroup(vrf)), (changed) => {
    if (vrfKeyOf(changed.row) === vrf && isDuplicate(draft, changed.resource, changed.row))
      planned.push(asReferrer(changed));
  });
  if (snapshot.isNewRecord(vrf)) return planned.slice(0, MAX_REFERRERS);
  return snapshot.referrersOf(
    'duplicates',
    vrf,
    planned,
    ({ resource, row }) => row !== undefined && isDuplicate(draft, resource, row),
  );
}

export const vrfRules: Rules = {
  write(draft) {
    const { before, after } = draft;
    checkSharing(draft);
    if (!before || before.enforceUnique === true || after.enforceUnique !== true) return;
    for (const duplicate of duplicatesIn(draft, after.id)) {
      const message = `${duplicate.label} exists more than once`;
      draft.conflict('duplicate', message, duplicate, 'enforceUnique');
    }
  },
};

const IN_GROUP = { resource: 'vlans', field: 'groupId' } as const;

export const vlanGroupRules: Rules = {
  write(draft) {
    const { before, after, snapshot } = draft;
    if (before && draft.hasChanged('siteId') && after.siteId !== null) {
      for (const vlan of snapshot.where('vlans', ['groupId'], [after.id])) {
        if (vlan.siteId === null || vlan.siteId === after.siteId) continue;
        if (draft.yields('vlans', vlan)) detach(draft, IN_GROUP, vlan);
        else
          draft.conflict(
            'in_use',
            `VLAN ${String(vlan.vid)} belongs to another site`,
            { resource: 'vlans', row: vlan },
            'siteId',
          );
      }
    }
    if (!draft.isValid('minVid', 'maxVid')) return;
    if (Number(after.minVid) > Number(after.maxVid))
      draft.error('maxVid', 'range_reversed', 'is lower than minVid');
    if (!before || !draft.hasChanged('minVid', 'maxVid')) return;
    for (const vlan of snapshot.where('vlans', ['groupId'], [after.id])) {
      if (Number(vlan.vid) >= Number(after.minVid) && Number(vlan.vid) <= Number(after.maxVid))
        continue;
      if (draft.yields('vlans', vlan)) {
        detach(draft, IN_GROUP, vlan);
        continue;
      }
      draft.conflict('in_use', `VLAN ${String(vlan.vid)} would be outside the range of the group`, {
        resource: 'vlans',
        row: vlan,
      });
    }
  },
};

export const vlanRules: Rules = {
  write(draft) {
    const { after, snapshot } = draft;
    if (!draft.isValid('groupId', 'vid', 'siteId') || typeof after.groupId !== 'string') return;
    const group = snapshot.get('vlan-groups', after.groupId);
    if (!group) return;
    if (
      draft.hasChanged('groupId', 'vid') &&
      (Number(after.vid) < Number(group.minVid) || Number(after.vid) > Number(group.maxVid))
    ) {
      draft.error(
        'vid',
        'outside_group',
        `must be from ${String(group.minVid)} to ${String(group.maxVid)} in this group`,
      );
    }
    if (group.siteId !== null && after.siteId !== null && group.siteId !== after.siteId)
      draft.error('siteId', 'other_site', 'is not the site of the group');
  },
};
