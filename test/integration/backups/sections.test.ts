import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { columnsOf, references } from '../../../db/backups/catalog.ts';
import { askIn } from '../../../db/backups/differences.ts';
import { NOT_BACKED_UP, TABLES } from '../../../db/backups/tables.ts';
import { startApp, type TestApp } from '../../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

const ask = () => askIn(app.deps.db);

test('every table belongs to one section, or is left out for a reason', async () => {
  const rows = await ask()<{ name: string }>(
    `SELECT tablename::text AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`,
  );
  const known = [...TABLES.map(({ name }) => name), ...Object.keys(NOT_BACKED_UP)].sort();
  expect(known).toEqual(rows.map(({ name }) => name));
  expect(new Set(known).size).toBe(known.length);
});

test("what is said of a table is so: key, columns, and which rows are a tenant's", async () => {
  for (const table of TABLES) {
    const columns = (await columnsOf(ask(), 'public', table.name)).map(({ name }) => name);
    for (const name of [...table.key, ...table.own, ...table.hidden])
      expect([table.name, columns]).toEqual([table.name, expect.arrayContaining([name])]);
    const key = await ask()<{ columns: string[] }>(
      `SELECT array_agg(a.attname::text ORDER BY k.at) AS columns FROM pg_index AS i, unnest(i.indkey) WITH ORDINALITY AS k (num, at) JOIN pg_attribute AS a ON a.attnum = k.num
       WHERE i.indrelid = '${table.name}'::regclass AND a.attrelid = i.indrelid AND i.indisprimary`,
    );
    expect([table.name, key[0]?.columns]).toEqual([table.name, [...table.key]]);
    if (table.ofTenant !== null)
      await ask()(
        `SELECT FROM public.${table.name} AS t WHERE ${table.ofTenant.replaceAll(':tenant', `'x'`)} LIMIT 1`,
      );
  }
});

test('rows can be put in in the order of the tables, and every reference can wait', async () => {
  const order = new Map(TABLES.map(({ name }, at) => [name, at]));
  const rows = await ask()<{ name: string; deferrable: boolean }>(
    `SELECT conname::text AS name, condeferrable AS deferrable FROM pg_constraint WHERE contype = 'f' AND connamespace = 'public'::regnamespace`,
  );
  expect(rows.filter(({ deferrable }) => !deferrable)).toEqual([]);
  const backwards = (await references(ask())).filter(
    ({ child, parent }) => (order.get(child) ?? Infinity) < (order.get(parent) ?? -1),
  );
  // A device names its addresses, which name their device.
  expect(backwards.map(({ child, parent }) => `${child} ${parent}`).sort()).toEqual([
    'devices ip_addresses',
    'devices ip_addresses',
  ]);
});

test('secrets are among what no preview shows', () => {
  const hidden = TABLES.flatMap(({ name, hidden: columns }) =>
    columns.map((column) => `${name}.${column}`),
  );
  expect(hidden).toEqual(
    expect.arrayContaining([
      'users.password_hash',
      'providers.secrets',
      'providers.config',
      'webhooks.secret',
      'webhooks.previous_secret',
      'jobs.payload',
      'jobs.result',
      'schedules.payload',
      'approvals.content_key',
      'approvals.payload',
    ]),
  );
});
