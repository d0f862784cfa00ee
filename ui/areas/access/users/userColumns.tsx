import { Exact } from '../../../parts/Exact.tsx';
import type { GridColumn } from '../../../parts/grid/types.ts';
import { tenantColumn } from '../../../parts/list/tenantColumn.tsx';
import { labelOf, type Names } from '../../../parts/names.ts';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { statusDisplay } from '../../../parts/statuses.ts';
import { Time } from '../../../parts/Time.tsx';
import type { User } from './userQueries.ts';
import { accountState } from './userText.ts';

/** The columns after those of the account. */
const MORE: readonly GridColumn<User>[] = [
  {
    id: 'lastLoginAt',
    header: 'Last login',
    width: 130,
    grow: 0,
    sort: 'lastLoginAt',
    cell: ({ lastLoginAt }) => <Time value={lastLoginAt} none="Never" />,
    text: ({ lastLoginAt }) => lastLoginAt ?? '',
  },
  {
    id: 'createdAt',
    header: 'Created',
    width: 120,
    grow: 0,
    sort: 'createdAt',
    hideBelow: 1_000,
    cell: ({ createdAt }) => <Time value={createdAt} />,
    text: ({ createdAt }) => createdAt,
  },
  {
    id: 'email',
    header: 'E-mail',
    width: 200,
    isOptional: true,
    cell: ({ email }) => <Exact text={email ?? ''} />,
    text: ({ email }) => email ?? '',
  },
  {
    id: 'groups',
    header: 'Groups',
    width: 240,
    isOptional: true,
    cell: ({ groups }) => <Exact text={groups.join(', ')} />,
    text: ({ groups }) => groups.join(', '),
  },
];

/** The columns of the list of users. */
export const userColumns = (names: Names): GridColumn<User>[] => [
  {
    id: 'username',
    header: 'User name',
    width: 170,
    sort: 'username',
    cell: ({ id, username }) => <RecordLink id={id} label={username} />,
    text: ({ username }) => username,
  },
  {
    id: 'displayName',
    header: 'Name',
    width: 180,
    grow: 2,
    cell: ({ displayName }) => <Exact text={displayName} />,
    text: ({ displayName }) => displayName,
  },
  {
    id: 'state',
    header: 'State',
    width: 190,
    grow: 0,
    hideBelow: 560,
    cell: (user) => <StatusBadge status={accountState(user)} plain />,
    text: (user) => statusDisplay(accountState(user)).label,
  },
  {
    id: 'providerId',
    header: 'Signs in with',
    width: 150,
    hideBelow: 760,
    cell: ({ providerId }) => labelOf(names, providerId, 'providers') ?? providerId,
    text: ({ providerId }) => providerId,
  },
  tenantColumn(names, { hideBelow: 880 }),
  ...MORE,
];
