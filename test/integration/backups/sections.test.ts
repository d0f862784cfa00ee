import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { findReferences, readColumns } from '../../../db/backups/catalog.ts';
import { queryIn } from '../../../db/backups/sql.ts';
import { NOT_BACKED_UP, TABLES } from '../../../db/backups/tables.ts';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import { SECTIONS } from '../../../domain/backups/backups.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { createArchiveFolder } from '../../support/backups.ts';
import type { ProblemBody } from '../../support/client.ts';
import { admin } from '../../support/users.ts';

let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
let app: TestApp;
beforeAll(async () => {
  archives = await createArchiveFolder();
  // Nothing runs in the background: the backups that are requested here are never made.
  app = await startApp(archives.env, { idle: true });
});
afterAll(async () => {
  await app.stop();
  await archives.remove();
});

const query = () => queryIn(app.deps.db);

test('every table belongs to one section or is excluded with a reason', async () => {
  const rows = await query()<{ name: string }>(
    `SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace
       AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname::text COLLATE "C"`,
  );
  const known = [...TABLES.map(({ name }) => name), ...Object.keys(NOT_BACKED_UP)].sort();
  expect(known).toEqual(rows.map(({ name }) => name));
  expect(new Set(known).size).toBe(known.length);
});

test('the key, the columns and the tenant filter of each table match the schema', async () => {
  const existing = await readColumns(query(), 'public');
  for (const table of TABLES) {
    const columns = existing.get(table.name)?.map(({ name }) => name);
    for (const name of [...table.key, ...table.preserved, ...table.hidden])
      expect([table.name, columns]).toEqual([table.name, expect.arrayContaining([name])]);
    const key = await query()<{ columns: string[] }>(
      `SELECT array_agg(a.attname::text ORDER BY k.at) AS columns FROM pg_index AS i, unnest(i.indkey) WITH ORDINALITY AS k (num, at) JOIN pg_attribute AS a ON a.attnum = k.num
       WHERE i.indrelid = '${table.name}'::regclass AND a.attrelid = i.indrelid AND i.indisprimary`,
    );
    expect([table.name, key[0]?.columns]).toEqual([table.name, [...table.key]]);
    if (table.tenantFilter !== null)
      await query()(
        `SELECT FROM public.${table.name} AS t WHERE ${table.tenantFilter.replaceAll(':tenant', `'x'`)} LIMIT 1`,
      );
  }
});

/** Why two rows of history cannot be the same under different keys, by unique index. */
const ALWAYS_THE_SAME_ROW: Readonly<Record<string, string>> = {
  audit_archives_checkpoints:
    'the chains of two histories cannot be joined: the restore is refused',
  audit_archives_tenant_id_first_position_key: 'see audit_archives_checkpoints',
  audit_archives_unfinished: 'unfinished archives are not restored',
  audit_entries_tenant_id_position_key: 'see audit_archives_checkpoints',
  events_sequence_key: 'a recovered installation assigns no sequence again',
  schedule_runs_buffered: 'buffered runs are restored as skipped',
  tokens_hash_key: 'random',
  tokens_previous_hash_key: 'random',
};

test('rows of history are known by every unique index, not only by their key', async () => {
  const indexes = await query()<{ table: string; name: string }>(
    `SELECT relname::text AS table, indexrelid::regclass::text AS name
     FROM pg_index JOIN pg_class AS c ON c.oid = indrelid
     WHERE indisunique AND NOT indisprimary AND relnamespace = 'public'::regnamespace ORDER BY 2`,
  );
  const history = new Map(
    TABLES.filter(({ mode }) => mode === 'history').map((table) => [table.name, table]),
  );
  const unknown = indexes.filter(
    ({ table, name }) =>
      history.has(table) && (history.get(table)?.sameAs === null || name in ALWAYS_THE_SAME_ROW),
  );
  expect(unknown.map(({ name }) => name)).toEqual(Object.keys(ALWAYS_THE_SAME_ROW));
});

test('rows can be inserted in the order of the tables, and all foreign keys are deferrable', async () => {
  const order = new Map(TABLES.map(({ name }, at) => [name, at]));
  const rows = await query()<{ name: string; deferrable: boolean }>(
    `SELECT conname::text AS name, condeferrable AS deferrable FROM pg_constraint WHERE contype = 'f' AND connamespace = 'public'::regnamespace`,
  );
  expect(rows.filter(({ deferrable }) => !deferrable)).toEqual([]);
  const outOfOrder = (await findReferences(query())).filter(
    ({ child, parent }) => (order.get(child) ?? Infinity) < (order.get(parent) ?? -1),
  );
  // Devices and IP addresses refer to each other.
  expect(outOfOrder.map(({ child, parent }) => `${child} ${parent}`).sort()).toEqual([
    'devices ip_addresses',
    'devices ip_addresses',
  ]);
});

test('previews show no secrets', () => {
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

const requestBackup = (request: object) =>
  admin(app).post<BackupRecord>('/api/backup/create', request).expect(201);

test('a backup request with invalid sections or engine is refused', async () => {
  const firstError = async (request: object) => {
    const { errors } = await admin(app)
      .post<ProblemBody>('/api/backup/create', request)
      .expect(400);
    return errors?.[0];
  };
  expect(await firstError({ mode: 'partial', sections: ['nothing'] })).toMatchObject({
    pointer: '/sections/0',
  });
  expect(await firstError({ engine: 'tape' })).toMatchObject({ pointer: '/engine' });
});

test('the mode full ignores sections with a warning, without one if nothing is ignored', async () => {
  for (const request of [{ mode: 'full', sections: ['jobs'] }, { sections: ['jobs'] }]) {
    const backup = await requestBackup(request);
    expect(backup).toMatchObject({
      mode: 'full',
      sections: [...SECTIONS],
      warnings: [{ code: 'sections_ignored', pointer: '/sections' }],
    });
    const read = await admin(app).get<BackupRecord>(`/api/backup/${backup.id}`).expect(200);
    expect(read).not.toHaveProperty('warnings');
  }
  for (const sections of [[], [...SECTIONS]])
    expect(await requestBackup({ mode: 'full', sections })).not.toHaveProperty('warnings');
});

test('a partial backup of no section in particular has all sections', async () => {
  for (const request of [{ mode: 'partial' }, { mode: 'partial', sections: [] }])
    expect(await requestBackup(request)).toMatchObject({
      mode: 'partial',
      sections: [...SECTIONS],
    });
});
