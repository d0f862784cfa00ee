import { formatCount, labelOfField } from '../../parts/format.ts';
import { headingOf } from '../../../domain/shared/nouns.ts';
import { Section } from '../../parts/Section.tsx';
import type { Backup } from './backupQueries.ts';
import { resourceOf } from './differences.ts';
import classes from './Backups.module.css';

/** What a backup contains: rows by section. */
export function BackupContents({ backup }: { backup: Backup }) {
  const { sections, includes, restorePreview } = backup;
  const { tables } = restorePreview;
  const bySection = Map.groupBy(tables, ({ section }) => section);
  const names = [...new Set([...sections, ...includes])];
  return (
    <Section title="Contents" note={backup.mode === 'full' ? 'Everything' : 'Chosen sections'}>
      <div className={classes.scroll} tabIndex={0} role="group" aria-label="Contents">
        <table className={classes.table}>
          <thead>
            <tr>
              <th scope="col">Section</th>
              <th scope="col" className={classes.number}>
                Rows
              </th>
              <th scope="col">Of which</th>
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <SectionRow
                key={name}
                name={name}
                isIncluded={!sections.includes(name)}
                tables={bySection.get(name)}
              />
            ))}
          </tbody>
        </table>
      </div>
      {tables.length === 0 && backup.status === 'completed' && (
        <p className={classes.muted}>
          The archive was imported: its rows are known after a test restore or a preview.
        </p>
      )}
    </Section>
  );
}

type RowProps = {
  name: string;
  /** It is there because other sections refer to it. */
  isIncluded: boolean;
  tables: Backup['restorePreview']['tables'] | undefined;
};

function SectionRow({ name, isIncluded, tables = [] }: RowProps) {
  const filled = tables.filter(({ rows }) => rows > 0);
  return (
    <tr>
      <th scope="row">
        {labelOfField(name)}
        {isIncluded && <span className={classes.muted}> (included)</span>}
      </th>
      <td className={classes.number}>
        {tables.length === 0 ? '–' : formatCount(tables.reduce((sum, { rows }) => sum + rows, 0))}
      </td>
      <td>
        <ul className={classes.tables}>
          {filled.map(({ table, rows }) => (
            <li key={table}>
              {headingOf(resourceOf(table))} {formatCount(rows)}
            </li>
          ))}
        </ul>
      </td>
    </tr>
  );
}
