import type { Rules } from '../planning.ts';

export const vrfRules: Rules = {
  write(draft) {
    const { before, after } = draft;
    if (!before || before.enforceUnique === true || after.enforceUnique !== true) return;
    for (const { resource, id, label, row } of draft.world.factNow('duplicates', after.id)) {
      draft.conflict(
        'duplicate',
        `${label} is there more than once`,
        { resource, row: row ?? { id, version: 0 } },
        'enforceUnique',
      );
    }
  },
};

export const vlanGroupRules: Rules = {
  write(draft) {
    const { before, after, world } = draft;
    if (before && draft.changes('siteId') && after.siteId !== null) {
      for (const vlan of world.where('vlans', ['groupId'], [after.id])) {
        if (vlan.siteId !== null && vlan.siteId !== after.siteId)
          draft.conflict(
            'in_use',
            `VLAN ${String(vlan.vid)} stands at another site`,
            { resource: 'vlans', row: vlan },
            'siteId',
          );
      }
    }
    if (!draft.sound('minVid', 'maxVid')) return;
    if (Number(after.minVid) > Number(after.maxVid))
      draft.error('maxVid', 'reversed', 'is lower than minVid');
    if (!before || !draft.changes('minVid', 'maxVid')) return;
    for (const vlan of world.where('vlans', ['groupId'], [after.id])) {
      if (Number(vlan.vid) >= Number(after.minVid) && Number(vlan.vid) <= Number(after.maxVid))
        continue;
      draft.conflict('in_use', `VLAN ${String(vlan.vid)} would be outside`, {
        resource: 'vlans',
        row: vlan,
      });
    }
  },
};

export const vlanRules: Rules = {
  write(draft) {
    const { after, world } = draft;
    if (!draft.sound('groupId', 'vid', 'siteId') || typeof after.groupId !== 'string') return;
    const group = world.get('vlan-groups', after.groupId);
    if (!group) return;
    if (
      draft.changes('groupId', 'vid') &&
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
