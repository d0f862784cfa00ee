import { limitTexts } from '../../../app/account/tokenText.ts';
import type { Schemas } from '../../../app/api.ts';
import { Actor } from '../../../parts/Actor.tsx';
import { Exact } from '../../../parts/Exact.tsx';
import type { GridColumn } from '../../../parts/grid/types.ts';
import { tenantColumn } from '../../../parts/list/tenantColumn.tsx';
import type { Names } from '../../../parts/names.ts';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { Time } from '../../../parts/Time.tsx';
import { tokenLimits } from './tokenLimits.ts';

export type Token = Schemas['Token'];

const TIMES: readonly GridColumn<Token>[] = [
  {
    id: 'lastUsedAt',
    header: 'Last used',
    width: 120,
    grow: 0,
    hideBelow: 660,
    cell: ({ lastUsedAt }) => <Time value={lastUsedAt} none="Never" />,
    text: ({ lastUsedAt }) => lastUsedAt ?? '',
  },
  {
    id: 'expiresAt',
    header: 'Expires',
    width: 120,
    grow: 0,
    hideBelow: 520,
    sort: 'expiresAt',
    cell: ({ expiresAt }) => <Time value={expiresAt} />,
    text: ({ expiresAt }) => expiresAt,
  },
  {
    id: 'createdAt',
    header: 'Created',
    width: 120,
    grow: 0,
    hideBelow: 1_050,
    sort: 'createdAt',
    cell: ({ createdAt }) => <Time value={createdAt} />,
    text: ({ createdAt }) => createdAt,
  },
];

/** The columns of the list of tokens. */
export const tokenColumns = (names: Names): GridColumn<Token>[] => [
  {
    id: 'name',
    header: 'Token',
    width: 170,
    cell: ({ id, name }) => <RecordLink id={id} label={name} />,
    text: ({ name }) => name,
  },
  {
    id: 'userId',
    header: 'Account',
    width: 170,
    hideBelow: 440,
    cell: ({ userId }) => <Actor id={userId} names={names} />,
    text: ({ userId }) => userId,
  },
  {
    id: 'status',
    header: 'Status',
    width: 100,
    grow: 0,
    cell: ({ status }) => <StatusBadge status={status} plain />,
    text: ({ status }) => status,
  },
  {
    id: 'limits',
    header: 'What it may do',
    width: 260,
    grow: 2,
    hideBelow: 820,
    cell: (token) => <Exact text={tokenLimits(token, names)} />,
    text: (token) => limitTexts(token, names, 'it').join('; '),
  },
  ...TIMES,
  tenantColumn(names, { isOptional: true }),
];
