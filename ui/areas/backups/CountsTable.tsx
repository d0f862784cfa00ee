import { Checkbox } from '@mantine/core';
import { useState } from 'react';
import { formatCount, labelOfField } from '../../parts/format.ts';
import { headingOf } from '../../../domain/shared/nouns.ts';
import type { RestoreRun } from './backupQueries.ts';
import { hasChanges } from './backupText.ts';
import { resourceOf } from './differences.ts';
import classes from './Backups.module.css';

type Preview = NonNullable<RestoreRun['preview']>;
type TableCounts = Preview['tables'][number];

const COLUMNS = ['created', 'changed', 'deleted', 'unchanged'] as const;

const totalOf = (tables: readonly TableCounts[], column: (typeof COLUMNS)[number]): number =>
  tables.reduce((sum, table) => sum + table[column], 0);

/** How many records a restore creates, changes and deletes, by section and table. */
export function CountsTable({ preview }: { preview: Preview }) {
  const [isWhole, setWhole] = useState(false);
  const sections = Map.groupBy(preview.tables, ({ section }) => section);
  const isEmpty = !isWhole && !hasChanges(preview.counts);
  return (
    <>
      {isEmpty && <p className={classes.muted}>The records are as they are in the backup.</p>}
      <div
        className={classes.scroll}
        hidden={isEmpty}
        tabIndex={0}
        role="group"
        aria-label="Counts"
      >
        <table className={`${classes.table} ${classes.counts}`}>
          <thead>
            <tr>
              <th scope="col">Section</th>
              {COLUMNS.map((column) => (
                <th key={column} scope="col" className={classes.number}>
                  {labelOfField(column)}
                </th>
              ))}
            </tr>
          </thead>
          {[...sections].map(([section, tables]) => (
            <SectionRows
              key={section}
              name={section}
              tables={tables}
              isReferenced={!preview.sections.includes(section)}
              isWhole={isWhole}
            />
          ))}
        </table>
      </div>
      <Checkbox
        size="xs"
        mt={8}
        label="Sections and tables without differences"
        checked={isWhole}
        onChange={(event) => setWhole(event.currentTarget.checked)}
      />
    </>
  );
}

type RowsProps = {
  name: string;
  tables: readonly TableCounts[];
  /** Only what restored records refer to is added. */
  isReferenced: boolean;
  isWhole: boolean;
};

function SectionRows({ name, tables, isReferenced, isWhole }: RowsProps) {
  const shown = tables.filter((table) => isWhole || hasChanges(table));
  if (shown.length === 0) return null;
  return (
    <tbody>
      <tr>
        <th scope="rowgroup">
          {labelOfField(name)}
          {isReferenced && <span className={classes.muted}> (only what is referred to)</span>}
        </th>
        {COLUMNS.map((column) => (
          <td key={column} className={classes.number}>
            <strong>{formatCount(totalOf(tables, column))}</strong>
          </td>
        ))}
      </tr>
      {shown.map((table) => (
        <tr key={table.table}>
          <td className={classes.indented}>
            {headingOf(resourceOf(table.table))}
            {(table.purged ?? 0) > 0 && (
              <span className={classes.muted}>
                {' '}
                ({formatCount(table.purged ?? 0)} purged, not restored)
              </span>
            )}
          </td>
          {COLUMNS.map((column) => (
            <td
              key={column}
              className={classes.number}
              data-zero={table[column] === 0 || undefined}
            >
              {formatCount(table[column])}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  );
}
