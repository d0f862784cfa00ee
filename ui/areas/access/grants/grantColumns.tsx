import { whereText } from '../../../app/account/tokenText.ts';
import { Actor } from '../../../parts/Actor.tsx';
import type { GridColumn } from '../../../parts/grid/types.ts';
import type { Names } from '../../../parts/names.ts';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { Time } from '../../../parts/Time.tsx';
import type { Assignment, Grant, Mapping } from './grantQueries.ts';
import { granteeText, roleText } from './grantText.ts';
import { ScopeText } from './ScopeText.tsx';

const scopeColumns = <G extends Grant>(names: Names): GridColumn<G>[] => [
  {
    id: 'roleId',
    header: 'Role',
    width: 150,
    cell: ({ roleId }) => <RecordLink id={roleId} names={names} kind="roles" />,
    text: (grant) => roleText(grant, names),
  },
  {
    id: 'where',
    header: 'Where',
    width: 200,
    cell: (grant) => <ScopeText grant={grant} names={names} />,
    text: (grant) => whereText(grant, names),
  },
  {
    id: 'createdAt',
    header: 'Since',
    width: 130,
    grow: 0,
    hideBelow: 620,
    sort: 'createdAt',
    cell: ({ id, createdAt }) => <RecordLink id={id} label={<Time value={createdAt} />} />,
    text: ({ createdAt }) => createdAt,
  },
  {
    id: 'createdBy',
    header: 'Granted by',
    width: 150,
    hideBelow: 760,
    cell: ({ createdBy }) => <Actor id={createdBy} names={names} />,
    text: ({ createdBy }) => createdBy,
  },
];

/** The columns of the list of role assignments. */
export const assignmentColumns = (names: Names): GridColumn<Assignment>[] => [
  {
    id: 'userId',
    header: 'Who',
    width: 180,
    cell: ({ userId }) => <Actor id={userId} names={names} full />,
    text: (grant) => granteeText(grant, names),
  },
  ...scopeColumns<Assignment>(names),
];

/** The columns of the list of provider mappings. */
export const mappingColumns = (names: Names): GridColumn<Mapping>[] => [
  {
    id: 'externalGroup',
    header: 'Group',
    width: 180,
    cell: ({ id, externalGroup }) => <RecordLink id={id} label={externalGroup} />,
    text: ({ externalGroup }) => externalGroup,
  },
  {
    id: 'providerId',
    header: 'Identity provider',
    width: 160,
    hideBelow: 520,
    cell: ({ providerId }) => <RecordLink id={providerId} names={names} kind="providers" />,
    text: ({ providerId }) => providerId,
  },
  ...scopeColumns<Mapping>(names),
];
