import { Actor } from '../../parts/Actor.tsx';
import type { ApprovalSummary } from '../../parts/approvals/requestQuery.ts';
import { stateOf } from '../../parts/approvals/states.ts';
import { exactText } from '../../parts/exact.ts';
import { Exact } from '../../parts/Exact.tsx';
import type { GridColumn } from '../../parts/grid/types.ts';
import { labelOf, type Names } from '../../parts/names.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import classes from './ApprovalsPage.module.css';

/** Where a request belongs to, as narrow as it is known. */
function whereText({ tenantId, siteId, deviceId }: ApprovalSummary, names: Names): string {
  const tenant = labelOf(names, tenantId, 'tenants') ?? tenantId;
  const site = siteId === null ? undefined : (labelOf(names, siteId, 'sites') ?? siteId);
  const device = deviceId === null ? undefined : (labelOf(names, deviceId, 'devices') ?? deviceId);
  return [tenant, site, device].filter(Boolean).join(' / ');
}

/** What a request is about: its title, its state, who asked. */
const subjectColumns = (names: Names): readonly GridColumn<ApprovalSummary>[] => [
  {
    id: 'title',
    header: 'Request',
    width: 220,
    grow: 3,
    cell: ({ id, title }) => (
      <PageLink
        to="/approvals/$id"
        params={{ id }}
        className={classes.title}
        title={exactText(title)}
        dir="auto"
      >
        <Exact text={title} />
      </PageLink>
    ),
    text: ({ title }) => title,
  },
  {
    id: 'state',
    header: 'State',
    width: 150,
    grow: 0,
    cell: (row) => <StatusBadge {...stateOf(row)} plain />,
    text: (row) => stateOf(row).label,
  },
  {
    id: 'createdBy',
    header: 'Asked by',
    width: 130,
    hideBelow: 620,
    cell: ({ createdBy }) => <Actor id={createdBy} names={names} />,
    text: ({ createdBy }) => createdBy,
  },
  {
    id: 'where',
    header: 'Where',
    width: 130,
    hideBelow: 820,
    cell: (row) => whereText(row, names),
    text: (row) => whereText(row, names),
  },
  {
    id: 'type',
    header: 'Kind',
    width: 100,
    hideBelow: 980,
    cell: ({ type }) => type,
    text: ({ type }) => type,
  },
  {
    id: 'jobType',
    header: 'Job type',
    width: 140,
    isOptional: true,
    cell: ({ jobType }) => jobType ?? '–',
    text: ({ jobType }) => jobType ?? '',
  },
];

/** How far a request is, and its times. */
const progressColumns: readonly GridColumn<ApprovalSummary>[] = [
  {
    id: 'approvals',
    header: 'Approvals',
    width: 84,
    grow: 0,
    hideBelow: 1_080,
    cell: ({ approvals, requiredApprovals }) => `${approvals} of ${requiredApprovals}`,
    text: ({ approvals, requiredApprovals }) => `${approvals} of ${requiredApprovals}`,
  },
  {
    id: 'expiresAt',
    header: 'Open until',
    width: 124,
    grow: 0,
    hideBelow: 720,
    sort: { asc: 'expiresAt', desc: '-expiresAt' },
    cell: ({ expiresAt, status }) =>
      status === 'pending' ? <Time value={expiresAt} format="relative" /> : '–',
    text: ({ expiresAt }) => expiresAt,
  },
  {
    id: 'createdAt',
    header: 'Asked',
    width: 110,
    grow: 0,
    sort: { asc: 'createdAt', desc: '-createdAt' },
    cell: ({ createdAt }) => <Time value={createdAt} format="relative" />,
    text: ({ createdAt }) => createdAt,
  },
];

/** The columns of the list. */
export const columnsOf = (names: Names): readonly GridColumn<ApprovalSummary>[] => [
  ...subjectColumns(names),
  ...progressColumns,
];
