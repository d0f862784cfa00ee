import type { Static } from 'typebox';
import type { ImportRecord, ImportRow } from '../../../api/inventory/fileRoutes.ts';
import type { TestClient } from '../client.ts';
import type { Page } from '../users.ts';

const cell = (value: unknown): string => {
  const text =
    typeof value === 'string'
      ? value
      : value === undefined || value === null
        ? ''
        : JSON.stringify(value);
  return `"${text.replaceAll('"', '""')}"`;
};

/** A file with a column for each field of the records. */
export const csv = (records: readonly Record<string, unknown>[]): string => {
  const columns = [...new Set(records.flatMap((record) => Object.keys(record)))];
  return [columns, ...records.map((record) => columns.map((column) => cell(record[column])))]
    .map((row) => `${row.join()}\n`)
    .join('');
};

/** Imports a file, and returns what its sender reads about the rows. */
export async function importedRows(
  client: TestClient,
  query: string,
  text: string,
  type: string,
): Promise<Static<typeof ImportRow>[]> {
  const headers = { 'content-type': type, prefer: 'wait=30' };
  const { id } = await client
    .post<Static<typeof ImportRecord>>(`/api/inventory/import?${query}`, text, headers)
    .expect(202);
  const rows: Static<typeof ImportRow>[] = [];
  for (let after = ''; ;) {
    const { items, nextCursor } = await client
      .get<Page<Static<typeof ImportRow>>>(`/api/inventory/imports/${id}/rows?limit=200${after}`)
      .expect(200);
    rows.push(...items);
    if (nextCursor === null) return rows;
    after = `&cursor=${nextCursor}`;
  }
}
