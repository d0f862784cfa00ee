import { Actor } from '../../parts/Actor.tsx';
import { AppLink } from '../../parts/AppLink.tsx';
import { Exact } from '../../parts/Exact.tsx';
import type { GridColumn } from '../../parts/grid/types.ts';
import { tenantColumn } from '../../parts/list/tenantColumn.tsx';
import type { Names } from '../../parts/names.ts';
import { Time } from '../../parts/Time.tsx';
import type { Secret } from './secretQueries.ts';

/** The columns of the list of secrets. */
export const secretColumns = (names: Names): GridColumn<Secret>[] => [
  {
    id: 'name',
    header: 'Name',
    width: 180,
    sort: 'name',
    cell: ({ id, name }) => <AppLink to={`/secrets/${id}`}>{name}</AppLink>,
    text: ({ name }) => name,
  },
  {
    id: 'description',
    header: 'Description',
    width: 200,
    grow: 2,
    hideBelow: 700,
    cell: ({ description }) => <Exact text={description} />,
    text: ({ description }) => description,
  },
  {
    id: 'pools',
    header: 'Pools',
    width: 150,
    cell: ({ pools }) => pools.join(', ') || 'None',
    text: ({ pools }) => pools.join(', '),
  },
  {
    id: 'valueSetAt',
    header: 'Value set',
    width: 120,
    grow: 0,
    cell: ({ valueSetAt }) => <Time value={valueSetAt} />,
    text: ({ valueSetAt }) => valueSetAt,
  },
  {
    id: 'updatedAt',
    header: 'Changed',
    width: 120,
    grow: 0,
    hideBelow: 800,
    cell: ({ updatedAt }) => <Time value={updatedAt} />,
    text: ({ updatedAt }) => updatedAt,
  },
  {
    id: 'createdBy',
    header: 'Created by',
    width: 130,
    hideBelow: 900,
    cell: ({ createdBy }) => <Actor id={createdBy} names={names} />,
    text: ({ createdBy }) => createdBy,
  },
  tenantColumn(names, { hideBelow: 600 }),
];
