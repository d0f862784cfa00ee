import { Exact } from '../../../parts/Exact.tsx';
import type { GridColumn } from '../../../parts/grid/types.ts';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { Time } from '../../../parts/Time.tsx';
import { PROVIDER_KINDS } from './providerFilters.ts';
import type { Provider } from './providerQueries.ts';
import { serverText } from './providerText.ts';

/** The columns of the list of identity providers. */
export const PROVIDER_COLUMNS: readonly GridColumn<Provider>[] = [
  {
    id: 'name',
    header: 'Name',
    width: 180,
    sort: 'name',
    cell: ({ id, name }) => <RecordLink id={id} label={name} kind="providers" />,
    text: ({ name }) => name,
  },
  {
    id: 'kind',
    header: 'Kind',
    width: 180,
    hideBelow: 470,
    cell: ({ kind }) => PROVIDER_KINDS[kind] ?? kind,
    text: ({ kind }) => kind,
  },
  {
    id: 'enabled',
    header: 'State',
    width: 110,
    grow: 0,
    cell: ({ enabled }) => <StatusBadge status={enabled ? 'enabled' : 'disabled'} plain />,
    text: ({ enabled }) => (enabled ? 'enabled' : 'disabled'),
  },
  {
    id: 'server',
    header: 'Server',
    width: 240,
    grow: 2,
    hideBelow: 620,
    cell: (provider) => <Exact text={serverText(provider)} />,
    text: serverText,
  },
  {
    id: 'updatedAt',
    header: 'Changed',
    width: 120,
    grow: 0,
    sort: 'updatedAt',
    hideBelow: 760,
    cell: ({ updatedAt }) => <Time value={updatedAt} />,
    text: ({ updatedAt }) => updatedAt,
  },
];
