import type { Static } from 'typebox';
import type { ImportRecord, ImportRow } from '../../api/inventory/fileRoutes.ts';
import type { TestClient } from './client.ts';
import type { Page } from './users.ts';

export type Import = Static<typeof ImportRecord>;

/** Requests wait for the end of the import. */
export const WAIT = { prefer: 'wait=60' };

/** The counts of an import without rows. */
export const NO_ROWS = {
  created: 0,
  updated: 0,
  unchanged: 0,
  deleted: 0,
  invalid: 0,
  conflict: 0,
  skipped: 0,
};

/** Sends a file, and waits for its import. */
export const uploadAs = (client: TestClient, text: string, query: string, type = 'text/csv') =>
  client.post<Import>(`/api/inventory/import?${query}`, text, { 'content-type': type, ...WAIT });

/** The rows of an import. */
export const importRowsAs = async (client: TestClient, id: string, query = '') =>
  (
    await client
      .get<Page<Static<typeof ImportRow>>>(`/api/inventory/imports/${id}/rows?limit=200${query}`)
      .expect(200)
  ).items;
