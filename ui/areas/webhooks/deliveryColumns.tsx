import { AppLink } from '../../parts/AppLink.tsx';
import { Exact } from '../../parts/Exact.tsx';
import type { GridColumn } from '../../parts/grid/types.ts';
import { tenantColumn } from '../../parts/list/tenantColumn.tsx';
import { labelOf, type Names } from '../../parts/names.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { Answer } from '../../parts/webhooks/Answer.tsx';
import { answerText, outcomeOf } from '../../parts/webhooks/answer.ts';
import type { Delivery } from './webhookQueries.ts';

const lastOutcome = ({ attempts }: Delivery) => {
  const last = attempts.at(-1);
  return last && outcomeOf(last);
};

const OPTIONAL: readonly GridColumn<Delivery>[] = [
  {
    id: 'body',
    header: 'Answer body',
    width: 220,
    isOptional: true,
    cell: ({ attempts }) => <Exact text={attempts.at(-1)?.responseBody ?? ''} />,
    text: ({ attempts }) => attempts.at(-1)?.responseBody ?? '',
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

/** What has come of it. */
const OUTCOME: readonly GridColumn<Delivery>[] = [
  {
    id: 'attempts',
    header: 'Attempts',
    width: 80,
    grow: 0,
    align: 'end',
    hideBelow: 560,
    cell: ({ attemptCount }) => attemptCount,
    text: ({ attemptCount }) => String(attemptCount),
  },
  {
    id: 'answer',
    header: 'Last answer',
    width: 150,
    hideBelow: 460,
    cell: (delivery) => <Answer outcome={lastOutcome(delivery)} />,
    text: (delivery) => answerText(lastOutcome(delivery)),
  },
  {
    id: 'updatedAt',
    header: 'Changed',
    width: 116,
    grow: 0,
    hideBelow: 700,
    cell: ({ updatedAt }) => <Time value={updatedAt} />,
    text: ({ updatedAt }) => updatedAt,
  },
  {
    id: 'sequence',
    header: 'Sequence',
    width: 90,
    grow: 0,
    align: 'end',
    hideBelow: 800,
    cell: ({ sequence }) => sequence,
    text: ({ sequence }) => String(sequence),
  },
];

/** The columns of the deliveries of one webhook. */
export const ownDeliveryColumns = (): GridColumn<Delivery>[] => [
  {
    id: 'createdAt',
    header: 'Time',
    width: 116,
    grow: 0,
    cell: ({ id, createdAt }) => (
      <AppLink to={`/deliveries/${id}`}>
        <Time value={createdAt} />
      </AppLink>
    ),
    text: ({ createdAt }) => createdAt,
  },
  {
    id: 'status',
    header: 'Status',
    width: 110,
    grow: 0,
    cell: ({ status }) => <StatusBadge status={status} plain />,
    text: ({ status }) => status,
  },
  {
    id: 'eventType',
    header: 'Event',
    width: 130,
    grow: 2,
    cell: ({ eventId, eventType }) => <RecordLink id={eventId} label={eventType} />,
    text: ({ eventType }) => eventType,
  },
  ...OUTCOME,
  ...OPTIONAL,
];

/** The columns of the deliveries of all webhooks. */
export function deliveryColumns(names: Names): GridColumn<Delivery>[] {
  const [time, status, ...others] = ownDeliveryColumns();
  return [
    ...[time, status].filter((column) => column !== undefined),
    {
      id: 'webhook',
      header: 'Webhook',
      width: 140,
      grow: 2,
      cell: ({ webhookId }) => <RecordLink id={webhookId} names={names} kind="webhooks" />,
      text: ({ webhookId }) => labelOf(names, webhookId, 'webhooks') ?? webhookId,
    },
    ...others,
    tenantColumn(names, { width: 100, hideBelow: 900 }),
  ];
}
