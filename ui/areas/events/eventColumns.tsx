import { Actor } from '../../parts/Actor.tsx';
import { AppLink } from '../../parts/AppLink.tsx';
import { Exact } from '../../parts/Exact.tsx';
import type { GridColumn } from '../../parts/grid/types.ts';
import { tenantColumn } from '../../parts/list/tenantColumn.tsx';
import type { Names } from '../../parts/names.ts';
import { Subject } from '../../parts/Subject.tsx';
import { Time } from '../../parts/Time.tsx';
import type { EventItem } from './eventQueries.ts';
import { dataText } from './eventText.ts';

/** Where it is in the log. */
const POSITION: readonly GridColumn<EventItem>[] = [
  {
    id: 'sequence',
    header: 'Sequence',
    width: 90,
    grow: 0,
    align: 'end',
    hideBelow: 980,
    cell: ({ sequence }) => sequence,
    text: ({ sequence }) => String(sequence),
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

/** The columns of the tail. */
export const eventColumns = (names: Names): GridColumn<EventItem>[] => [
  {
    id: 'createdAt',
    header: 'Time',
    width: 116,
    grow: 0,
    cell: ({ createdAt }) => <Time value={createdAt} />,
    text: ({ createdAt }) => createdAt,
  },
  {
    id: 'type',
    header: 'Type',
    width: 180,
    cell: ({ id, type }) => <AppLink to={`/events/${id}`}>{type}</AppLink>,
    text: ({ type }) => type,
  },
  {
    id: 'subject',
    header: 'Record',
    width: 150,
    cell: ({ subject }) => <Subject subject={subject} names={names} />,
    text: ({ subject }) => subject.id,
  },
  {
    id: 'data',
    header: 'Data',
    width: 200,
    grow: 2,
    hideBelow: 760,
    cell: ({ data }) => <Exact text={dataText(data)} />,
    text: ({ data }) => JSON.stringify(data),
  },
  {
    id: 'actorId',
    header: 'Who',
    width: 120,
    hideBelow: 560,
    cell: ({ actorId }) => <Actor id={actorId} names={names} />,
    text: ({ actorId }) => actorId,
  },
  tenantColumn(names, { width: 100, hideBelow: 860 }),
  ...POSITION,
];
