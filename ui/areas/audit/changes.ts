import { ownValue } from '../../parts/ownValue.ts';

// The fields that are needed, without the types of the API: its client needs a browser.
type Fields = Readonly<Record<string, unknown>> | null;

/** Those that each record has, and that say nothing about a change. */
const ALWAYS_CHANGED: ReadonlySet<string> = new Set(['updatedAt', 'version']);

type ChangeRow = { field: string; before: unknown; after: unknown };
type Changes = { rows: ChangeRow[]; action: 'create' | 'update' | 'delete' };

/** The fields that differ between two states of a record; all of them if there is one state only. */
export function changesOf(before: Fields, after: Fields): Changes {
  const action = before === null ? 'create' : after === null ? 'delete' : 'update';
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const rows = fields.map((field) => ({
    field,
    before: ownValue(before ?? {}, field),
    after: ownValue(after ?? {}, field),
  }));
  const isDifferent = ({ before: one, after: other }: ChangeRow) =>
    JSON.stringify(one) !== JSON.stringify(other);
  return {
    action,
    rows: rows.filter(
      (row) => action !== 'update' || (isDifferent(row) && !ALWAYS_CHANGED.has(row.field)),
    ),
  };
}
