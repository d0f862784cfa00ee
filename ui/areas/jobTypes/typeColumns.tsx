import { AppLink } from '../../parts/AppLink.tsx';
import type { GridColumn } from '../../parts/grid/types.ts';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import type { JobType } from './typeQueries.ts';
import { originText, typePath, whoMayRun } from './typeText.ts';

const runnersText = ({ runners }: JobType): string => (runners === null ? '' : String(runners));

/** Who may run jobs of a type. */
const ACCESS_COLUMNS: GridColumn<JobType>[] = [
  {
    id: 'access',
    header: 'Who may run it',
    width: 190,
    hideBelow: 900,
    cell: whoMayRun,
    text: whoMayRun,
  },
  {
    id: 'mayRun',
    header: 'You',
    width: 70,
    grow: 0,
    hideBelow: 520,
    cell: ({ mayRun }) => (mayRun ? 'Yes' : 'No'),
    text: ({ mayRun }) => (mayRun ? 'yes' : 'no'),
  },
];

/** The columns of the list of types. */
export const TYPE_COLUMNS: GridColumn<JobType>[] = [
  {
    id: 'state',
    header: 'State',
    width: 104,
    grow: 0,
    cell: ({ state }) => <StatusBadge status={state} />,
    text: ({ state }) => state,
  },
  {
    id: 'name',
    header: 'Name',
    width: 170,
    cell: ({ name }) => <AppLink to={typePath(name)}>{name}</AppLink>,
    text: ({ name }) => name,
  },
  {
    id: 'summary',
    header: 'Summary',
    width: 180,
    grow: 2,
    hideBelow: 640,
    cell: ({ summary }) => summary,
    text: ({ summary }) => summary,
  },
  {
    id: 'origin',
    header: 'Origin',
    width: 90,
    grow: 0,
    hideBelow: 760,
    cell: ({ origin }) => originText(origin),
    text: ({ origin }) => origin,
  },
  {
    id: 'pools',
    header: 'Pool',
    width: 100,
    hideBelow: 800,
    cell: ({ pools }) => pools.join(', ') || '–',
    text: ({ pools }) => pools.join(', '),
  },
  {
    id: 'runners',
    header: 'Runners',
    width: 84,
    grow: 0,
    hideBelow: 800,
    align: 'end',
    cell: (type) => runnersText(type) || '–',
    text: runnersText,
  },
  ...ACCESS_COLUMNS,
];
