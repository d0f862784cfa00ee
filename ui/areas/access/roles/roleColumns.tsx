import type { GridColumn } from '../../../parts/grid/types.ts';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import type { Role } from './roleQueries.ts';

const kindText = ({ builtIn }: Role): string => (builtIn ? 'Built in' : 'Own');

/** The columns of the list of roles. */
export const ROLE_COLUMNS: readonly GridColumn<Role>[] = [
  {
    id: 'name',
    header: 'Role',
    width: 200,
    grow: 2,
    cell: ({ id, name }) => <RecordLink id={id} label={name} kind="roles" />,
    text: ({ name }) => name,
  },
  {
    id: 'id',
    header: 'Id',
    width: 160,
    hideBelow: 560,
    cell: ({ id }) => <code>{id}</code>,
    text: ({ id }) => id,
  },
  {
    id: 'kind',
    header: 'Kind',
    width: 90,
    grow: 0,
    cell: (role) => kindText(role),
    text: kindText,
  },
  {
    id: 'permissions',
    header: 'Permissions',
    width: 110,
    grow: 0,
    align: 'end',
    cell: ({ permissions }) => String(permissions.length),
    text: ({ permissions }) => permissions.join(' '),
  },
  {
    id: 'jobTypes',
    header: 'Job types by name',
    width: 200,
    hideBelow: 700,
    cell: ({ jobTypes }) => jobTypes.join(', ') || '–',
    text: ({ jobTypes }) => jobTypes.join(' '),
  },
];
