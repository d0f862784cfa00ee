import { Actor } from '../../../parts/Actor.tsx';
import { formatCount } from '../../../parts/format.ts';
import type { GridColumn } from '../../../parts/grid/types.ts';
import { tenantColumn } from '../../../parts/list/tenantColumn.tsx';
import { personName, type Names } from '../../../parts/names.ts';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { Time } from '../../../parts/Time.tsx';
import type { Import } from './importQueries.ts';
import { countsText, titleOfImport } from './importText.ts';

/** Who has sent a file, and when. */
const senderColumns = (names: Names): GridColumn<Import>[] => [
  {
    id: 'createdBy',
    header: 'Sent by',
    width: 120,
    hideBelow: 900,
    cell: ({ createdBy }) => <Actor id={createdBy} names={names} />,
    text: ({ createdBy }) => personName(names, createdBy),
  },
  {
    id: 'createdAt',
    header: 'Sent',
    width: 116,
    grow: 0,
    sort: { asc: 'createdAt', desc: '-createdAt' },
    cell: ({ createdAt }) => <Time value={createdAt} />,
    text: ({ createdAt }) => createdAt,
  },
  tenantColumn(names, { isOptional: true }),
];

/** The columns of the list of imports. */
export const importColumns = (names: Names): GridColumn<Import>[] => [
  {
    id: 'status',
    header: 'Status',
    width: 116,
    grow: 0,
    cell: ({ status }) => <StatusBadge status={status} />,
    text: ({ status }) => status,
  },
  {
    id: 'title',
    header: 'Import',
    width: 160,
    cell: (record) => <RecordLink id={record.id} label={titleOfImport(record)} />,
    text: titleOfImport,
  },
  {
    id: 'rows',
    header: 'Rows',
    width: 84,
    grow: 0,
    align: 'end',
    hideBelow: 620,
    cell: ({ rows }) => formatCount(rows),
    text: ({ rows }) => String(rows),
  },
  {
    id: 'counts',
    header: 'Outcome',
    width: 180,
    grow: 3,
    hideBelow: 760,
    cell: countsText,
    text: countsText,
  },
  ...senderColumns(names),
];
