import { toTsv } from './tsv.ts';
import type { GridColumn } from './types.ts';

/** Rows as tab-separated text with a header, of the columns that have texts. */
export function rowsAsTsv<Row>(rows: readonly Row[], columns: readonly GridColumn<Row>[]): string {
  const copied = columns.flatMap(({ header, text }) => (text ? [{ header, text }] : []));
  return toTsv([
    copied.map(({ header }) => header),
    ...rows.map((row) => copied.map(({ text }) => text(row))),
  ]);
}
