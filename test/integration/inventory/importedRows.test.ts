import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { recordOutcomes } from '../../../db/inventory/importRows.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { importRowsAs, NO_ROWS, uploadAs } from '../../support/imports.ts';
import { recordFactory } from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp();
  root = admin(app);
});
afterAll(() => app.stop());

const upload = (text: string, query: string, type = 'text/csv') =>
  uploadAs(root, text, query, type);
const rowsOf = (id: string) => importRowsAs(root, id, '');

test('a mutation means what it does in a batch: its version counts, and an update creates nothing', async () => {
  const site = await recordFactory(() => root)('sites', { name: 'versioned' });
  await root.put(`/api/inventory/sites/${site.id}`, { description: 'newer' }).expect(200);
  const line = (mutation: object) => `${JSON.stringify(mutation)}\n`;
  const stale = { id: site.id, version: 1 };
  const file = [
    line({ resource: 'sites', operation: 'update', record: { ...stale, description: 'old' } }),
    line({ resource: 'sites', operation: 'delete', record: stale }),
    line({ resource: 'tags', operation: 'update', record: { id: 'mistyped', name: 'x' } }),
    line({ resource: 'tags', record: { id: 'inferred', name: 'y' } }),
  ].join('');
  const { id } = await upload(file, '', 'application/x-ndjson').expect(202);
  expect(
    (await rowsOf(id)).map(({ outcome, conflicts, errors }) => [
      outcome,
      (conflicts[0] ?? errors[0])?.code,
    ]),
  ).toEqual([
    ['conflict', 'version_conflict'],
    ['conflict', 'version_conflict'],
    ['invalid', 'not_found'],
    ['created', undefined],
  ]);
});

test('a record with all the custom fields that one may have is exported and imported', async () => {
  const make = recordFactory(() => root);
  const names = Array.from({ length: 17 }, (_, n) => `note${n}`);
  for (const name of names) await make('custom-fields', { resource: 'sites', name, type: 'text' });
  const customFields = Object.fromEntries(
    names.map((name, n) => [name, '"'.repeat(n < 16 ? 2_000 : 600)]),
  );
  await make('sites', { name: 'noted', customFields });
  for (const [format, type] of [
    ['csv', 'text/csv'],
    ['ndjson', 'application/x-ndjson'],
  ]) {
    const { body } = await root.get(`/api/inventory/sites/export?format=${format}&q=noted`);
    const { counts } = await upload(String(body), 'resource=sites', type).expect(202);
    expect([format, counts]).toEqual([format, { ...NO_ROWS, unchanged: 1 }]);
  }
});

test('a row that has an outcome keeps it, and counts once, if an earlier attempt ends later', async () => {
  const file = `${JSON.stringify({ resource: 'sites', record: { name: 'once' } })}\n`;
  const { id } = await upload(file, '', 'application/x-ndjson').expect(202);
  const read = () => root.get<object>(`/api/inventory/imports/${id}`).expect(200);
  const before = await read();
  expect(before).toMatchObject({ counts: { ...NO_ROWS, created: 1 } });
  const [row] = await rowsOf(id);
  const late = { line: Number(row?.line), outcome: 'conflict' as const, recordId: null };
  const report = { errors: [], conflicts: [], warnings: [] };
  await app.deps.db.transaction((trx) => recordOutcomes(trx, id, [{ ...late, report }]));
  expect(await read()).toEqual(before);
  expect(await rowsOf(id)).toEqual([row]);
});
