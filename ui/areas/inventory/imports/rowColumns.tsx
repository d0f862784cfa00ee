import { Exact } from '../../../parts/Exact.tsx';
import { formatCount } from '../../../parts/format.ts';
import type { GridColumn } from '../../../parts/grid/types.ts';
import { nounOf } from '../../../../domain/shared/nouns.ts';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import type { ImportRow } from './importQueries.ts';
import { outcomeLabel } from './importText.ts';
import { findingsOf, type Finding } from './rowFindings.ts';
import classes from './Imports.module.css';

/** The first finding of a row, and how many more there are. */
function First({ findings: [first, ...others] }: { findings: readonly Finding[] }) {
  if (first === undefined) return null;
  return (
    <span className={classes.finding}>
      {first.field !== '' && <code>{first.field}</code>}
      {first.value !== null && (
        <code>
          <Exact text={first.value} />
        </code>
      )}
      <Exact text={first.message} />
      {others.length > 0 && <span className={classes.muted}>and {others.length} more</span>}
    </span>
  );
}

const findingText = ({ field, value, message }: Finding): string =>
  [field, value ?? '', message].filter((part) => part !== '').join(' ');

function Named({ row: { id, label, resource } }: { row: ImportRow }) {
  if (id !== null)
    return <RecordLink id={id} label={label ?? undefined} kind={resource ?? undefined} />;
  return <Exact text={label ?? ''} />;
}

/** The columns of the report of an import. A file of several resources says which each row is of. */
export const rowColumns = (dryRun: boolean, isMixed: boolean): GridColumn<ImportRow>[] => [
  {
    id: 'line',
    header: 'Line',
    width: 76,
    grow: 0,
    align: 'end',
    cell: ({ line }) => formatCount(line),
    text: ({ line }) => String(line),
  },
  {
    id: 'outcome',
    header: 'Outcome',
    width: 120,
    grow: 0,
    cell: ({ outcome }) =>
      outcome === null ? (
        <StatusBadge status="waiting" plain />
      ) : (
        <StatusBadge status={outcome} label={outcomeLabel(outcome, dryRun)} plain />
      ),
    text: ({ outcome }) => outcome ?? '',
  },
  ...(isMixed
    ? [
        {
          id: 'resource',
          header: 'Resource',
          width: 110,
          hideBelow: 700,
          cell: ({ resource }: ImportRow) => (resource === null ? '' : nounOf(resource, 1)),
          text: ({ resource }: ImportRow) => resource ?? '',
        },
      ]
    : []),
  {
    id: 'record',
    header: 'Record',
    width: 150,
    hideBelow: 420,
    cell: (row) => <Named row={row} />,
    text: ({ label, id }) => label ?? id ?? '',
  },
  {
    id: 'findings',
    header: 'Findings',
    width: 160,
    grow: 4,
    cell: (row) => <First findings={findingsOf(row)} />,
    text: (row) => findingsOf(row).map(findingText).join('; '),
  },
];
