import { Actor } from '../../parts/Actor.tsx';
import { AppLink } from '../../parts/AppLink.tsx';
import { Exact } from '../../parts/Exact.tsx';
import type { GridColumn } from '../../parts/grid/types.ts';
import { tenantColumn } from '../../parts/list/tenantColumn.tsx';
import type { Names } from '../../parts/names.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { Answer } from '../../parts/webhooks/Answer.tsx';
import type { Webhook } from './webhookQueries.ts';
import { healthOf, nameOf, typesText } from './webhookText.ts';
import classes from './Webhooks.module.css';

const ofList = (webhook: Webhook) => healthOf(webhook, webhook.lastDelivery?.status ?? null);

function LastDelivery({ webhook: { lastDelivery } }: { webhook: Webhook }) {
  if (!lastDelivery) return <span className={classes.muted}>None yet</span>;
  return (
    <span className={classes.inline}>
      <RecordLink id={lastDelivery.id} label={<StatusBadge status={lastDelivery.status} plain />} />
      <Answer outcome={lastDelivery} />
      <Time value={lastDelivery.updatedAt} format="relative" />
    </span>
  );
}

const OPTIONAL: readonly GridColumn<Webhook>[] = [
  {
    id: 'endpointUrl',
    header: 'Endpoint',
    width: 260,
    isOptional: true,
    cell: ({ endpointUrl }) => <Exact text={endpointUrl} />,
    text: ({ endpointUrl }) => endpointUrl,
  },
  {
    id: 'updatedAt',
    header: 'Changed',
    width: 116,
    isOptional: true,
    sort: { asc: 'updatedAt', desc: '-updatedAt' },
    cell: ({ updatedAt }) => <Time value={updatedAt} />,
    text: ({ updatedAt }) => updatedAt,
  },
  {
    id: 'id',
    header: 'Id',
    width: 250,
    isOptional: true,
    cell: ({ id }) => <code>{id}</code>,
    text: ({ id }) => id,
  },
];

/** How it is since when, and what it sends. */
const OUTCOME: readonly GridColumn<Webhook>[] = [
  {
    id: 'failingSince',
    header: 'Since',
    width: 110,
    grow: 0,
    hideBelow: 1_000,
    cell: ({ failingSince, disabledAt }) => (
      <Time value={disabledAt ?? failingSince} format="relative" />
    ),
    text: ({ failingSince, disabledAt }) => disabledAt ?? failingSince ?? '',
  },
  {
    id: 'eventTypes',
    header: 'Events',
    width: 170,
    hideBelow: 640,
    cell: ({ eventTypes }) => typesText(eventTypes),
    text: ({ eventTypes }) => eventTypes.join(', '),
  },
  {
    id: 'lastDelivery',
    header: 'Newest delivery',
    width: 240,
    grow: 0,
    hideBelow: 760,
    cell: (webhook) => <LastDelivery webhook={webhook} />,
    text: ({ lastDelivery }) => lastDelivery?.status ?? '',
  },
];

/** The columns of lists of webhooks. */
export const webhookColumns = (names: Names): GridColumn<Webhook>[] => [
  {
    id: 'name',
    header: 'Webhook',
    width: 150,
    grow: 2,
    cell: (webhook) => (
      <AppLink to={`/webhooks/${webhook.id}`}>
        <Exact text={nameOf(webhook)} />
      </AppLink>
    ),
    text: nameOf,
  },
  {
    id: 'health',
    header: 'Health',
    width: 150,
    cell: (webhook) => <StatusBadge {...ofList(webhook)} plain />,
    text: (webhook) => ofList(webhook).label ?? ofList(webhook).status,
  },
  ...OUTCOME,
  {
    id: 'createdBy',
    header: 'Created by',
    width: 120,
    hideBelow: 1_000,
    cell: ({ createdBy }) => <Actor id={createdBy} names={names} />,
    text: ({ createdBy }) => createdBy,
  },
  tenantColumn(names, { width: 100, hideBelow: 860 }),
  ...OPTIONAL,
];
