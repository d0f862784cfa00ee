import { Actor } from '../../parts/Actor.tsx';
import { AppLink } from '../../parts/AppLink.tsx';
import type { GridColumn } from '../../parts/grid/types.ts';
import { tenantColumn } from '../../parts/list/tenantColumn.tsx';
import type { Names } from '../../parts/names.ts';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Subject } from '../../parts/Subject.tsx';
import { Time } from '../../parts/Time.tsx';
import type { AuditEntry } from './auditQueries.ts';

/** From where an entry comes. */
const ORIGIN: readonly GridColumn<AuditEntry>[] = [
  {
    id: 'via',
    header: 'Authenticated by',
    width: 146,
    hideBelow: 980,
    cell: ({ via }) => via,
    text: ({ via }) => via,
  },
  {
    id: 'address',
    header: 'From',
    width: 120,
    hideBelow: 1_100,
    cell: ({ address }) => address ?? '',
    text: ({ address }) => address ?? '',
  },
  {
    id: 'requestId',
    header: 'Request',
    width: 260,
    isOptional: true,
    cell: ({ requestId }) => <code>{requestId}</code>,
    text: ({ requestId }) => requestId,
  },
];

/** The columns of lists of entries of the audit log. */
export const auditColumns = (names: Names): GridColumn<AuditEntry>[] => [
  {
    id: 'at',
    header: 'When',
    width: 140,
    grow: 0,
    cell: ({ at }) => <Time value={at} />,
    text: ({ at }) => at,
  },
  {
    id: 'action',
    header: 'Action',
    width: 200,
    cell: ({ id, action }) => <AppLink to={`/audit/${id}`}>{action}</AppLink>,
    text: ({ action }) => action,
  },
  {
    id: 'outcome',
    header: 'Outcome',
    width: 100,
    grow: 0,
    hideBelow: 520,
    cell: ({ outcome }) => <StatusBadge status={outcome} plain />,
    text: ({ outcome }) => outcome,
  },
  {
    id: 'subject',
    header: 'Record',
    width: 200,
    cell: ({ subject }) => <Subject subject={subject} names={names} />,
    text: ({ subject }) => subject.id,
  },
  {
    id: 'actorId',
    header: 'Who',
    width: 150,
    cell: ({ actorId }) => <Actor id={actorId} names={names} />,
    text: ({ actorId }) => actorId,
  },
  ...ORIGIN,
  tenantColumn(names, { hideBelow: 860 }),
];
