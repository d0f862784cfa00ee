import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { purgeAbandonedImportRows } from '../../../db/inventory/importRows.ts';
import { createIds } from '../../../platform/ids.ts';
import { archiveName } from '../../../platform/stores/store.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { createArchiveFolder } from '../../support/backups.ts';

let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
let app: TestApp;
beforeAll(async () => {
  archives = await createArchiveFolder();
  app = await startApp(archives.env);
});
afterAll(async () => {
  await app.stop();
  await archives.remove();
});

const db = () => app.deps.db;
const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);
const idOf = (at: Date) => createIds().at('imp', at);

const addRows = (importId: string, count: number) =>
  db().raw(
    "INSERT INTO import_rows (import_id, line, mutation) SELECT ?, n, '{}' FROM generate_series(1, ?::int) AS n",
    [importId, count],
  );

/** An import with a record and rows that were all received. */
async function addImport(at: Date, rows: number): Promise<void> {
  const id = idOf(at);
  await db()('imports').insert({
    ...{ id, tenant_id: 'platform', resource: 'sites', mode: 'each', job_id: `job_${id}` },
    ...{ dry_run: false, authority: {}, rows, done: rows, created_by: 'root', created_at: at },
  });
  await addRows(id, rows);
}

const abandonedRows = (id: string): Promise<unknown[]> =>
  db()('import_rows').where({ import_id: id }).pluck('line');

/** What a function returns, and how many rows its statements read when they are explained and run before it. */
async function countRead(run: () => Promise<number>): Promise<{ result: number; read: number }> {
  const statements: { sql: string; bindings: readonly string[] }[] = [];
  // The application sends statements, too, such as those of its readiness.
  const note = (each: (typeof statements)[number]) => {
    if (each.sql.includes('import_rows')) statements.push(each);
  };
  db().on('query', note);
  const result = await run();
  db().off('query', note);
  let read = 0;
  for (const { sql, bindings } of statements) {
    const { rows } = await db().raw<{ rows: object[] }>(
      `EXPLAIN (ANALYZE, FORMAT JSON) ${sql.replaceAll(/\$\d+/g, '?')}`,
      bindings,
    );
    const numbers = JSON.stringify(rows).matchAll(/"Actual Rows":([\d.]+),"Actual Loops":(\d+)/g);
    for (const [, count, loops] of numbers) read += Number(count) * Number(loops);
  }
  return { result, read };
}

test('rows of abandoned files are found without reading those of imports', async () => {
  for (let days = 2; days < 12; days++) await addImport(daysAgo(days), 1_000);
  const [abandoned, recent] = [idOf(daysAgo(5.5)), idOf(new Date())];
  await addRows(abandoned, 7);
  await addRows(recent, 3);
  await db().raw('ANALYZE import_rows');
  const purge = () => purgeAbandonedImportRows(db(), daysAgo(1), 5);
  expect([await purge(), await purge()]).toEqual([5, 2]);
  expect(await abandonedRows(recent)).toHaveLength(3);
  expect(await db()('import_rows').pluck('line')).toHaveLength(10_003);
  const { result, read } = await countRead(purge);
  expect(result).toBe(0);
  expect(read).toBeLessThan(100);
});

/** Runs something while statements that use a column of a table fail. */
async function without<T>(table: string, column: string, run: () => Promise<T>): Promise<T> {
  const rename = (from: string, to: string) =>
    db().raw('ALTER TABLE ?? RENAME COLUMN ?? TO ??', [table, from, to]);
  await rename(column, 'renamed');
  try {
    return await run();
  } finally {
    await rename('renamed', column);
  }
}

const purge = () => app.deps.housekeeping.run(new AbortController().signal);

test('a step of a purge that fails does not keep the others from running', async () => {
  const [first, second] = [idOf(daysAgo(3)), idOf(daysAgo(4))];
  await addRows(first, 2);
  await without('idempotency_keys', 'created_at', () =>
    expect(purge()).rejects.toThrow('created_at'),
  );
  expect(await abandonedRows(first)).toEqual([]);
  await addRows(second, 2);
  await without('idempotency_keys', 'created_at', () =>
    without('rate_limits', 'expire', () =>
      expect(purge()).rejects.toMatchObject({
        errors: [
          expect.objectContaining({ message: expect.stringContaining('created_at') }),
          expect.objectContaining({ message: expect.stringContaining('expire') }),
        ],
      }),
    ),
  );
  expect(await abandonedRows(second)).toEqual([]);
});

test('uploads are aborted although backups cannot be repaired', async () => {
  const { backups } = app.deps;
  const [id, now] = [createIds().next('bkp'), new Date()];
  await db()('backups').insert({
    ...{ id, tenant_id: 'platform', mode: 'full', sections: '[]', includes: '[]' },
    ...{ engine: 'snapshot', label: '', retention: {}, status: 'failed', store: 'folder' },
    ...{ archive: archiveName(id), created_by: 'root', created_at: now, updated_at: now },
    ...{ finished_at: now, check_at: now },
  });
  const store = backups.archives.storeOf({ store: 'folder' });
  await (await store.startUpload(archiveName(id))).finish();
  await without('backups', 'check_at', () =>
    expect(backups.reconcile(new AbortController().signal)).rejects.toThrow('check_at'),
  );
  expect(await archives.files()).toEqual([]);
});

test('a reconciler that fails does not keep the others from running', async () => {
  const abandoned = idOf(daysAgo(3));
  await addRows(abandoned, 2);
  const { taskQueue } = app.deps.config;
  await without('jobs', 'leased_until', () =>
    app.deps.temporal.call(30_000, async (client) => {
      const workflowId = `failing:${taskQueue}`;
      const run = await client.workflow.start('reconcile', { workflowId, taskQueue });
      await expect(run.result()).rejects.toThrow();
    }),
  );
  expect(await abandonedRows(abandoned)).toEqual([]);
});
