import { AppLink } from '../../parts/AppLink.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { formatNumberOf } from '../../parts/format.ts';
import type { GridColumn } from '../../parts/grid/types.ts';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { poolPath, poolState, queuedText, runnerState, slotsText } from './poolText.ts';
import type { Pool, Runner } from './runnerQueries.ts';

type RunnerRow = { kind: 'runner'; runner: Runner };

/** A pool, with its runners below it. */
export type PoolRow =
  RunnerRow | { kind: 'pool'; pool: Pool; runners: RunnerRow[]; isCut: boolean };

const stateOf = (row: PoolRow) =>
  row.kind === 'pool' ? poolState(row.pool) : runnerState(row.runner);

const nameOf = (row: PoolRow): string => (row.kind === 'pool' ? row.pool.name : row.runner.name);

const slotsOf = (row: PoolRow): string => slotsText(row.kind === 'pool' ? row.pool : row.runner);

const heardText = (row: PoolRow): string =>
  row.kind === 'pool' ? formatNumberOf(row.pool.runners, 'living runner') : row.runner.seenAt;

const typesText = (row: PoolRow): string =>
  row.kind === 'pool' ? '' : Object.keys(row.runner.types).sort().join(', ');

const aboutText = (row: PoolRow): string =>
  row.kind === 'pool' ? row.pool.description : (row.runner.address ?? '');

/** The columns of the list of pools and their runners. */
export const POOL_COLUMNS: GridColumn<PoolRow>[] = [
  {
    id: 'name',
    header: 'Pool and runner',
    width: 190,
    cell: (row) => (
      <AppLink to={row.kind === 'pool' ? poolPath(row.pool.name) : `/runners/${row.runner.id}`}>
        <Exact text={nameOf(row)} />
      </AppLink>
    ),
    text: nameOf,
  },
  {
    id: 'state',
    header: 'State',
    width: 110,
    grow: 0,
    cell: (row) => <StatusBadge {...stateOf(row)} />,
    text: (row) => stateOf(row).label,
  },
  {
    id: 'slots',
    header: 'Slots used',
    width: 90,
    grow: 0,
    align: 'end',
    cell: slotsOf,
    text: slotsOf,
  },
  {
    id: 'queued',
    header: 'Waiting jobs',
    width: 116,
    grow: 0,
    align: 'end',
    hideBelow: 520,
    cell: (row) => (row.kind === 'pool' ? queuedText(row.pool) : ''),
    text: (row) => (row.kind === 'pool' ? queuedText(row.pool) : ''),
  },
  {
    id: 'heard',
    header: 'Last heard',
    width: 130,
    grow: 0,
    hideBelow: 620,
    cell: (row) =>
      row.kind === 'pool' ? heardText(row) : <Time value={row.runner.seenAt} format="relative" />,
    text: heardText,
  },
  {
    id: 'version',
    header: 'Version',
    width: 80,
    grow: 0,
    hideBelow: 760,
    cell: (row) => (row.kind === 'pool' ? '' : <Exact text={row.runner.version} />),
    text: (row) => (row.kind === 'pool' ? '' : row.runner.version),
  },
  {
    id: 'types',
    header: 'Job types announced',
    width: 180,
    grow: 2,
    hideBelow: 860,
    cell: typesText,
    text: typesText,
  },
  {
    id: 'about',
    header: 'Description or address',
    width: 170,
    hideBelow: 1_000,
    cell: (row) => <Exact text={aboutText(row)} />,
    text: aboutText,
  },
];
