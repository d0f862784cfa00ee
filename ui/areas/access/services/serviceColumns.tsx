import { Actor } from '../../../parts/Actor.tsx';
import { AppLink } from '../../../parts/AppLink.tsx';
import { Exact } from '../../../parts/Exact.tsx';
import type { GridColumn } from '../../../parts/grid/types.ts';
import { tenantColumn } from '../../../parts/list/tenantColumn.tsx';
import type { Names } from '../../../parts/names.ts';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { Time } from '../../../parts/Time.tsx';
import { accountState } from '../users/userText.ts';
import link from '../../../parts/RecordLink.module.css';
import type { ServiceAccount } from './serviceQueries.ts';

/** The columns of the list of service accounts. */
export const serviceColumns = (names: Names): GridColumn<ServiceAccount>[] => [
  {
    id: 'name',
    header: 'Account',
    width: 170,
    cell: ({ id, name }) => (
      <AppLink to={`/access/service-accounts/${id}`} className={link.link}>
        <Exact text={name} />
      </AppLink>
    ),
    text: ({ name }) => name,
  },
  {
    id: 'displayName',
    header: 'Name',
    width: 200,
    grow: 2,
    hideBelow: 520,
    cell: ({ displayName }) => <Exact text={displayName} />,
    text: ({ displayName }) => displayName,
  },
  {
    id: 'state',
    header: 'State',
    width: 100,
    grow: 0,
    cell: (account) => <StatusBadge status={accountState(account)} plain />,
    text: accountState,
  },
  {
    id: 'ownerId',
    header: 'Owner',
    width: 170,
    cell: ({ ownerId }) => <Actor id={ownerId} names={names} />,
    text: ({ ownerId }) => ownerId ?? '',
  },
  tenantColumn(names, { hideBelow: 720 }),
  {
    id: 'createdAt',
    header: 'Created',
    width: 120,
    grow: 0,
    sort: 'createdAt',
    hideBelow: 820,
    cell: ({ createdAt }) => <Time value={createdAt} />,
    text: ({ createdAt }) => createdAt,
  },
];
