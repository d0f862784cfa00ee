import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { AppError } from '../../../domain/shared/errors.ts';
import { createImportRun } from '../../../services/inventory/importRun.ts';
import type { InventoryWrites } from '../../../services/inventory/writes.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { importRowsAs, NO_ROWS, uploadAs, type Import } from '../../support/imports.ts';
import { admin, type Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
});
afterAll(() => app.stop());

const receive = (mode: string): Promise<Import> =>
  root
    .post<Import>(`/api/inventory/import?resource=regions&mode=${mode}`, 'name\nnorth\nsouth', {
      'content-type': 'text/csv',
    })
    .expect(202);

/** The run of imports whose writes fail with this error. */
function runWith(error: Error) {
  const { inventory } = app.deps;
  const apply: InventoryWrites['apply'] = async (_, source) => {
    if (typeof source === 'function') await source(app.deps.db);
    throw error;
  };
  const writes = { ...inventory.writes, apply, applyInSteps: () => Promise.reject(error) };
  return createImportRun({ ...app.deps, ...inventory, writes });
}

const { signal } = new AbortController();

test('concurrent changes fail the attempt, and are no outcome of the rows', async () => {
  const run = runWith(new AppError('conflict', 'Concurrent changes. Try again.'));
  const failure = { code: 'concurrent_change', retryable: true };
  const each = await receive('each');
  await expect(run.writeBatch(each.id, signal)).rejects.toMatchObject(failure);
  const all = await receive('all');
  await expect(run.writeAll(all.id, signal, () => undefined)).rejects.toMatchObject(failure);
  for (const { id } of [each, all])
    expect((await importRowsAs(root, id)).map(({ outcome }) => outcome)).toEqual([null, null]);
  const { writeBatch } = createImportRun({ ...app.deps, ...app.deps.inventory });
  expect(await writeBatch(each.id, signal)).toMatchObject({ done: 2 });
});

test('the counts of an import are kept with it, and are counted if an earlier release has written rows', async () => {
  const { id } = await receive('each');
  await createImportRun({ ...app.deps, ...app.deps.inventory }).writeBatch(id, signal);
  const countsOf = async () => {
    const { items } = await root.get<Page<Import>>('/api/inventory/imports').expect(200);
    return items.find((each) => each.id === id)?.counts;
  };
  const { db } = app.deps;
  // The regions exist since the test before.
  const expected = { ...NO_ROWS, conflict: 2 };
  expect(await countsOf()).toEqual(expected);
  const kept = await db('imports').where({ id }).first('counts');
  await db('imports').where({ id }).update({ counts: '{}' });
  expect(await countsOf()).toEqual(expected);
  // No list reads the rows.
  await db('imports')
    .where({ id })
    .update({ counts: JSON.stringify(kept.counts) });
  await db('import_rows').where({ import_id: id }).del();
  expect(await countsOf()).toEqual(expected);
});

test('the rest of a file after a long blank part is not dropped', async () => {
  const row = (name: string) => JSON.stringify({ name });
  const send = (blank: string) =>
    uploadAs(
      root,
      `${row('one')}\n${blank}\n${row('two')}`,
      'resource=regions',
      'application/x-ndjson',
    );
  const { status, body } = await send(' '.repeat(1_000_000));
  expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining('line 2')]);
});
