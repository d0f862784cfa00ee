import { expect, test } from '@jest/globals';
import { rename, symlink, unlink } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestApp } from '../../support/app.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import type { RunQuery } from '../../../db/backups/catalog.ts';
import { queryIn } from '../../../db/backups/sql.ts';
import { cancelOnAbort } from '../../../db/core/cancelOnAbort.ts';
import type { Knex } from '../../../db/core/knex.ts';
import type { BackupList, BackupRecord } from '../../../api/backups/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import {
  backupCreator,
  restoreRequester,
  restoreValidator,
  withBackups,
  type createArchiveFolder,
} from '../../support/backups.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { seedEstate } from '../../support/estate.ts';
import { eventually } from '../../support/eventually.ts';
import { recordFactory } from '../../support/inventory.ts';
import { createUser } from '../../support/users.ts';

let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
let app: TestApp;
let root: TestClient;
const make = recordFactory(() => root);
/** From how many changed rows on a table is restored in bulk here. */
const BULK_ROWS = 500;
withBackups(
  async (fixture) => {
    ({ app, root, archives } = fixture);
    await seedEstate(app);
    await make('tenants', { id: 'acme', name: 'acme' });
  },
  { bulkRestoreRows: BULK_ROWS },
);

const createBackup = backupCreator(() => root);
const INVENTORY = { mode: 'partial', sections: ['inventory'] };
const restore = restoreRequester(() => root);

test('each write during a restore is committed before or after it, and the restore counts those before', async () => {
  const backup = await createBackup(INVENTORY);
  const existingVrf = await make('vrfs', { name: 'busy' });
  const changingSite = await make('sites', { name: 'changing', description: '0' });
  const backupWithChanges = await createBackup(INVENTORY);
  let writing = true;
  const answers: { status: number; id: string | null }[] = [];
  const writer = async (n: number) => {
    for (let i = 0; writing; i++) {
      const [resource, record] =
        i % 2 === 0
          ? ['sites', { name: `w${n}-${i}` }]
          : ['prefixes', { cidr: `10.${n}.${i % 256}.0/24` }];
      const { status, body } = await root.post<{ id: string }>(
        `/api/inventory/${resource}`,
        record,
      );
      answers.push({ status, id: status === 201 ? body.id : null });
    }
  };
  const changer = async () => {
    for (let i = 1; writing; i++)
      await root.put(`/api/inventory/sites/${changingSite.id}`, { description: `${i}` });
  };
  const writers = [...Array.from({ length: 8 }, (_, n) => writer(n)), changer()];
  await eventually(
    () => answers.length,
    (count) => count > 50,
  );
  const restored = await restore({ backupId: backupWithChanges.id }).expect(202);
  const answersDuringRestore = answers.length;
  await eventually(
    () => answers.length,
    (count) => count > answersDuringRestore + 20,
  );
  writing = false;
  await Promise.all(writers);
  expect([restored.status, restored.error]).toEqual(['succeeded', null]);
  // A write succeeds, conflicts or times out; there are no other errors.
  expect(
    [...new Set(answers.map(({ status }) => status))].filter(
      (status) => ![201, 409, 503].includes(status),
    ),
  ).toEqual([]);
  const createdIds = answers.flatMap(({ id }) => id ?? []);
  const presentIds = new Set<string>([
    ...(await app.deps.db('sites').pluck('id')),
    ...(await app.deps.db('prefixes').pluck('id')),
  ]);
  const removedIds = createdIds.filter((id) => !presentIds.has(id));
  expect([removedIds.length > 20, createdIds.length - removedIds.length > 10]).toEqual([
    true,
    true,
  ]);
  expect(restored.outcome).toMatchObject({ deleted: removedIds.length });
  // The remaining records were written after those that the restore deleted.
  const writeTimes = async (ids: readonly string[]) =>
    (
      await app.deps
        .db('audit_entries')
        .whereIn('subject_id', [...ids])
        .whereLike('action', '%.create')
        .orderBy('at')
        .pluck('at')
    ).map((date: Date) => date.getTime());
  const [removedTimes, presentTimes] = [
    await writeTimes(removedIds),
    await writeTimes(createdIds.filter((id) => presentIds.has(id))),
  ];
  expect((removedTimes.at(-1) ?? 0) - (presentTimes[0] ?? 0)).toBeLessThan(3_000);
  await root.get(`/api/inventory/vrfs/${existingVrf.id}`).expect(200);
  await restore({ backupId: backup.id });
}, 120_000);

test('concurrent restores run one after another, and a backup in use cannot be deleted', async () => {
  const [one, other] = [
    await createBackup({ ...INVENTORY, label: 'one' }),
    await createBackup({ ...INVENTORY, label: 'other' }),
  ];
  await make('sites', { name: 'between' });
  const answers = await Promise.all([
    restore({ backupId: one.id }).expect(202),
    restore({ backupId: other.id }).expect(202),
    restore({ backupId: one.id }).expect(202),
  ]);
  expect(answers.map(({ status, error }) => [status, error])).toEqual(
    Array.from({ length: 3 }, () => ['succeeded', null]),
  );
  const deleted = answers.map(({ outcome }) => (outcome as { deleted: number }).deleted);
  expect(deleted.sort()).toEqual([0, 0, 1]);
  const pending = restore({ backupId: one.id });
  const runs = async () =>
    app.deps
      .db('restore_runs AS r')
      .join('jobs AS j', 'j.id', 'r.job_id')
      .where({ 'r.backup_id': one.id })
      .whereIn('j.status', ['queued', 'running']);
  await eventually(runs, (found) => found.length > 0);
  const refused = await root.delete<ProblemBody>(`/api/backup/${one.id}`).expect(409);
  expect([refused.code, (await pending).body.status]).toEqual(['backup_busy', 'succeeded']);
  await root.delete(`/api/backup/${one.id}`).expect(204);
});

test('an attempt that was considered dead neither records nor removes anything', async () => {
  const { db, backups } = app.deps;
  const tools = (jobId: string) => ({
    jobId,
    caller: systemCaller('platform', jobId),
    source: { kind: 'api' as const, id: null },
    payload: {},
    signal: new AbortController().signal,
    log: () => undefined,
    progress: () => undefined,
  });
  const release = Promise.withResolvers<undefined>();
  const lockTransaction = db.transaction(async (trx) => {
    await trx.raw('LOCK TABLE cables IN ACCESS EXCLUSIVE MODE');
    await release.promise;
  });
  const backup = await root
    .post<BackupRecord>('/api/backup/create', { label: 'twice' })
    .expect(201);
  const jobId = backup.jobId ?? '';
  const read = () => root.get<BackupRecord>(`/api/backup/${backup.id}`).expect(200);
  await eventually(
    () => archives.files(),
    (files) => files.some((file) => file.startsWith(`${backup.archive}.part`)),
  );
  // The first attempt is considered dead, and another one makes the backup.
  const late = backups.runs.backupRun.snapshot(backup.id, tools(jobId)).then(
    () => 'written',
    (error: unknown) => (error as { code?: string }).code,
  );
  await eventually(
    () => archives.files(),
    (files) => files.filter((file) => file.startsWith(`${backup.archive}.part`)).length === 2,
  );
  release.resolve(undefined);
  await lockTransaction;
  const outcomes = [await late];
  await eventually(
    async () => (await read()).status,
    (status) => ['completed', 'failed'].includes(status),
  );
  // Only the last attempt records its archive. Earlier ones fail, also after the backup is completed.
  outcomes.push(
    await backups.runs.backupRun.snapshot(backup.id, tools(jobId)).then(
      () => 'written',
      (error: unknown) => (error as { code?: string }).code,
    ),
  );
  const record = await read();
  expect(outcomes[1]).toBe('backup_already_finished');
  if (record.status === 'completed') expect(await archives.files()).toContain(record.archive);
  expect((await archives.files()).filter((file) => file.includes('.part-'))).toEqual([]);
});

test('pruning deletes the backups of a series that its retention policy does not keep', async () => {
  const createdBackups: BackupRecord[] = [];
  for (let i = 0; i < 3; i++)
    createdBackups.push(
      await createBackup({
        label: 'series',
        retention: { last: 2 },
        mode: 'partial',
        sections: ['settings'],
      }),
    );
  await createBackup({
    label: 'another series',
    retention: { last: 1 },
    mode: 'partial',
    sections: ['settings'],
  });
  const remainingIds = await eventually(
    async () =>
      (await root.get<BackupList>('/api/backup?label=series').expect(200)).backups.map(
        ({ id }) => id,
      ),
    (ids) => ids.length === 2,
  );
  const [oldest, middle, newest] = createdBackups;
  expect(remainingIds).toEqual([newest?.id, middle?.id]);
  await eventually(
    () => archives.files(),
    (files) => !files.includes(oldest?.archive ?? ''),
  );
  const { items } = await root
    .get<{ items: { action: string }[] }>(`/api/audit?subjectId=${oldest?.id}`)
    .expect(200);
  expect(items.map(({ action }) => action)).toEqual(
    expect.arrayContaining(['backup.delete', 'backup.remove_archive']),
  );
});

test('a preview of a tenant waits for no writer of others', async () => {
  const keeper = app.client.as({ actor: 'kim', roles: 'platform-admin', tenant: 'acme' });
  const site = await make('sites', { name: 'moving', tenantId: 'acme' });
  await make('prefixes', { cidr: '10.77.0.0/16', tenantId: 'acme' });
  const backup = await backupCreator(() => keeper)(INVENTORY);
  await root.put(`/api/inventory/sites/${site.id}`, { name: 'moved' }).expect(200);
  await make('prefixes', { cidr: '10.77.1.0/24', tenantId: 'acme' });
  const { db } = app.deps;
  const trx = await db.transaction();
  try {
    // Another tenant writes in the inventory, and the relay assigns sequence numbers to events.
    await trx('sites').whereNot({ tenant_id: 'acme' }).update({ description: 'being written' });
    await trx('prefixes').whereNot({ tenant_id: 'acme' }).update({ description: 'being written' });
    await trx.raw('SELECT FROM event_head FOR UPDATE');
    const { valid, warnings, preview } = await restoreValidator(() => keeper)({
      backupId: backup.id,
    });
    expect([valid, warnings.map(({ code }) => code), preview.counts.changed]).toEqual([
      true,
      ['records_deleted'],
      1,
    ]);
  } finally {
    await trx.rollback();
  }
});

/**
 * Makes dry runs that insert the site `pausing` wait 1.5 s when they have written everything and check it.
 * Returns whether one waits now.
 */
async function pauseDryRuns(): Promise<() => Promise<boolean>> {
  const { db } = app.deps;
  await db.raw(`
    CREATE OR REPLACE FUNCTION pause_dry_run() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF current_setting('transaction_isolation') = 'repeatable read' THEN PERFORM pg_sleep(1.5); END IF;
      RETURN NULL;
    END $$;
    DROP TRIGGER IF EXISTS sites_pause ON sites;
    CREATE CONSTRAINT TRIGGER sites_pause AFTER INSERT ON sites DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW WHEN (NEW.name = 'pausing') EXECUTE FUNCTION pause_dry_run()`);
  return async () =>
    (
      await db('pg_stat_activity')
        .where({ wait_event: 'PgSleep' })
        .whereRaw('datname = current_database()')
        .select('pid')
    ).length > 0;
}

test('while a preview of a tenant has its locks, events are published and delivered, and trees change', async () => {
  const keeper = app.client.as({ actor: 'kim', roles: 'platform-admin', tenant: 'acme' });
  const subscribe = (tenant: TestClient) =>
    tenant
      .post<{ id: string }>('/api/webhooks', {
        endpointUrl: 'http://127.0.0.1:9/paused',
        eventTypes: ['inventory.site.created'],
      })
      .expect(201);
  const tree = async (name: string, tenantId: string) => {
    const parent = await make('regions', { name: `${name} of all`, tenantId });
    return make('regions', { name, tenantId, parentId: parent.id });
  };
  const [changed, region] = [await subscribe(keeper), await tree('changed', 'acme')];
  const site = await make('sites', { name: 'pausing', tenantId: 'acme' });
  const backup = await backupCreator(() => keeper)({
    mode: 'partial',
    sections: ['inventory', 'webhooks'],
  });
  await keeper.put(`/api/webhooks/${changed.id}`, { description: 'changed' }).expect(200);
  const deleted = await subscribe(keeper);
  await root.put(`/api/inventory/regions/${region.id}`, { description: 'changed' }).expect(200);
  await root.put(`/api/inventory/sites/${site.id}`, { name: 'changed' }).expect(200);
  const isPaused = await pauseDryRuns();
  const preview = restoreValidator(() => keeper)({ backupId: backup.id });
  await eventually(isPaused, (paused) => paused);
  await make('sites', { name: 'delivered', tenantId: 'acme' });
  await tree('of others', 'platform');
  await eventually(
    () =>
      app.deps
        .db('deliveries')
        .whereIn('webhook_id', [changed.id, deleted.id])
        .whereRaw(`(status <> 'pending' OR job_id IS NOT NULL)`)
        .pluck('webhook_id'),
    (started) => new Set(started).size === 2,
  );
  expect(await isPaused()).toBe(true);
  const { valid, warnings, preview: differences } = await preview;
  expect([valid, warnings.map(({ code }) => code)]).toEqual([true, ['records_deleted']]);
  expect(differences.counts).toMatchObject({ changed: 3, deleted: 1 });
});

test('while a preview of the platform has its locks, permissions can be changed', async () => {
  const site = await make('sites', { name: 'pausing' });
  const viewer = await createUser(app, { roleId: 'viewer', siteId: site.id });
  const backup = await createBackup({ mode: 'partial', sections: ['access'] });
  const { db } = app.deps;
  await db('grants').where({ user_id: viewer.id }).del();
  await root.delete(`/api/inventory/sites/${site.id}`).expect(204);
  const isPaused = await pauseDryRuns();
  const preview = restoreValidator(() => root)({ backupId: backup.id });
  await eventually(isPaused, (paused) => paused);
  await createUser(app, 'viewer');
  expect(await isPaused()).toBe(true);
  expect(await preview).toMatchObject({ valid: true, preview: { counts: { created: 2 } } });
});

test('the dry run counts webhooks that it does not write for the quota', async () => {
  const keeper = app.client.as({ actor: 'kim', roles: 'platform-admin', tenant: 'acme' });
  const subscribe = () =>
    keeper.post<{ id: string }>('/api/webhooks', {
      endpointUrl: 'http://127.0.0.1:9/counted',
      eventTypes: ['inventory.site.created'],
    });
  const { db } = app.deps;
  const own = await subscribe().expect(201);
  const backup = await backupCreator(() => keeper)({ mode: 'partial', sections: ['webhooks'] });
  const limit = (await db('webhooks').where({ tenant_id: 'acme' }).whereNull('deleted_at')).length;
  await keeper.delete(`/api/webhooks/${own.id}`).expect(204);
  const newer = await subscribe().expect(201);
  const errorsWith = async (webhooks: number) => {
    await db('tenant_quotas').where({ tenant_id: 'acme' }).del();
    await db('tenant_quotas').insert({
      tenant_id: 'acme',
      limits: JSON.stringify({ webhooks }),
      created_at: new Date(),
      updated_at: new Date(),
      version: 1,
    });
    const { errors } = await restoreValidator(() => keeper)({ backupId: backup.id });
    return errors.map(({ code }) => code);
  };
  try {
    // Instead of the newer webhook there would be the former one.
    expect(await errorsWith(limit)).toEqual([]);
    await keeper.delete(`/api/webhooks/${newer.id}`).expect(204);
    expect(await errorsWith(limit - 1)).toEqual(['quota_exceeded']);
  } finally {
    await db('tenant_quotas').where({ tenant_id: 'acme' }).del();
  }
});

test('a preview reports the conflict that a dry run finds', async () => {
  const keeper = app.client.as({ actor: 'kim', roles: 'platform-admin', tenant: 'acme' });
  const site = await make('sites', { name: 'with a device', tenantId: 'acme' });
  const maker = await make('manufacturers', { name: 'Again' });
  const type = await make('device-types', { manufacturerId: maker.id, model: 'one' });
  const at = { tenantId: 'acme', siteId: site.id, deviceTypeId: type.id };
  const device = await make('devices', { name: 'd1', ...at });
  const backup = await backupCreator(() => keeper)(INVENTORY);
  await root.delete(`/api/inventory/devices/${device.id}`).expect(204);
  await root.delete(`/api/inventory/device-types/${type.id}`).expect(204);
  await root.delete(`/api/inventory/manufacturers/${maker.id}`).expect(204);
  await make('manufacturers', { name: 'Again' });
  const { valid, errors } = await restoreValidator(() => keeper)({
    backupId: backup.id,
  });
  expect([valid, errors.map(({ code, table }) => [code, table])]).toEqual([
    false,
    [['conflict', 'manufacturers']],
  ]);
});

test('a restore of many records does not wait for readers, and readers do not wait for it', async () => {
  const backup = await createBackup({ mode: 'partial', sections: ['settings'] });
  const { db } = app.deps;
  await db.raw(
    `INSERT INTO tags (id, name, created_at, updated_at)
     SELECT 'tag_many' || n, 'many ' || n, now(), now() FROM generate_series(1, ?::int) AS n`,
    [BULK_ROWS],
  );
  const trx = await db.transaction();
  try {
    await trx.raw('SELECT FROM tags LIMIT 1');
    const indexes = async () =>
      (await trx.raw<{ rows: unknown[] }>(`SELECT FROM pg_indexes WHERE tablename = 'tags'`)).rows
        .length;
    const before = await indexes();
    const restored = await restore({ backupId: backup.id }).expect(202);
    expect([restored.status, restored.outcome]).toMatchObject([
      'succeeded',
      { deleted: BULK_ROWS },
    ]);
    expect(await indexes()).toBe(before);
  } finally {
    await trx.rollback();
  }
}, 60_000);

test('a restore of many records that cannot lock one of its tables locks none of them', async () => {
  const backup = await createBackup(INVENTORY);
  const { db } = app.deps;
  // Their deletion lasts longer than a read.
  const MANY = 20_000;
  for (const table of ['manufacturers', 'device_roles'])
    await db.raw(
      `INSERT INTO ${table} (id, name, created_at, updated_at)
       SELECT 'many_' || n, 'many ' || n, now(), now() FROM generate_series(1, ?::int) AS n`,
      [MANY],
    );
  const trx = await db.transaction();
  try {
    // As a backup would that has read one table and reads the other one next.
    await trx.raw('SELECT FROM device_roles LIMIT 1');
    const restored = restore({ backupId: backup.id }).expect(202);
    const locks = () =>
      db('pg_locks')
        .where({ mode: 'AccessExclusiveLock', granted: true })
        .whereRaw(`relation = 'manufacturers'::regclass`);
    while ((await locks()).length === 0) await sleep(10);
    // The restore has not ended: it deletes them.
    expect(await trx('manufacturers').whereLike('id', 'many_%').count({ n: '*' })).toEqual([
      { n: MANY },
    ]);
    expect(await restored).toMatchObject({ status: 'succeeded', outcome: { deleted: 2 * MANY } });
  } finally {
    await trx.rollback();
  }
}, 60_000);

test('a restore of many records of related tables creates their indexes and foreign keys again', async () => {
  const backup = await createBackup(INVENTORY);
  const { db } = app.deps;
  await db.raw(
    `INSERT INTO manufacturers (id, name) SELECT 'many_' || n, 'many ' || n FROM generate_series(1, ${BULK_ROWS}) AS n;
     INSERT INTO device_types (id, manufacturer_id, model, u_height, full_depth)
     SELECT id, id, 'one', 1, true FROM manufacturers WHERE id LIKE 'many\\_%'`,
  );
  const definitions = async (columns: string) =>
    (
      await db.raw<{ rows: object[] }>(
        `SELECT ${columns} FROM (
           SELECT oid, conrelid::regclass::text || ' ' || pg_get_constraintdef(oid) AS text
           FROM pg_constraint WHERE contype = 'f' AND conrelid = 'device_types'::regclass
           UNION ALL
           SELECT indexrelid, pg_get_indexdef(indexrelid) FROM pg_index
           WHERE indrelid IN ('device_types'::regclass, 'manufacturers'::regclass)) AS d ORDER BY text`,
      )
    ).rows;
  const [before, oids] = [await definitions('text'), await definitions('text, oid')];
  const restored = await restore({ backupId: backup.id }).expect(202);
  expect(restored).toMatchObject({ status: 'succeeded', outcome: { deleted: 2 * BULK_ROWS } });
  expect(await definitions('text')).toEqual(before);
  expect(await definitions('text, oid')).not.toEqual(oids);
}, 60_000);

test('a cancelled preview ends while one of its statements runs', async () => {
  const backup = await createBackup(INVENTORY);
  const { db } = app.deps;
  const trx = await db.transaction();
  try {
    await trx.raw('LOCK TABLE cables IN ACCESS EXCLUSIVE MODE');
    const preview = root.post<ProblemBody>('/api/backup/restore/validate', {
      backupId: backup.id,
    });
    const waiting = async () =>
      db('pg_locks').whereRaw(`relation = 'cables'::regclass`).where({ granted: false });
    await eventually(waiting, (found) => found.length > 0);
    const [jobId] = await db('restore_runs')
      .where({ backup_id: backup.id })
      .pluck<string[]>('job_id');
    await root.post(`/api/jobs/${jobId}/cancel`).expect(202);
    await eventually(
      async () => (await root.get<JobRecord>(`/api/jobs/${jobId}`).expect(200)).status,
      (status) => status === 'cancelled',
    );
    expect(await waiting()).toEqual([]);
    await preview;
  } finally {
    await trx.rollback();
  }
});

test('an abort cancels the statement that runs, starts no other, and makes no statement fail', async () => {
  const { db } = app.deps;
  const abortIn = async (
    trx: Knex,
    work: (query: RunQuery, abort: () => void) => Promise<unknown>,
  ) => {
    const controller = new AbortController();
    const abort = () => controller.abort(new Error('aborted'));
    const query = queryIn(trx, controller.signal);
    await expect(
      cancelOnAbort(db, trx, controller.signal, () => work(query, abort)),
    ).rejects.toThrow('aborted');
  };
  const trx = await db.transaction();
  try {
    await abortIn(trx, async (query, abort) => {
      abort();
      await query('CREATE TEMP TABLE too_late ()');
    });
    // A statement that fails ends the transaction, and PostgreSQL logs an error.
    const { rows } = await trx.raw(`SELECT to_regclass('too_late') AS table`);
    expect(rows).toEqual([{ table: null }]);
    await abortIn(trx, (query, abort) => {
      setTimeout(abort, 100);
      return query('SELECT pg_sleep(30)');
    });
    await expect(trx.raw('SELECT 1')).rejects.toThrow('current transaction is aborted');
    await trx.raw(';');
  } finally {
    await trx.rollback();
  }
});

test('a step counts the attempts that fail, but not those that an outage ends', async () => {
  const { db } = app.deps;
  const create = (payload: object) =>
    root
      .post<JobRecord>('/api/jobs', {
        type: 'backup.create',
        payload,
        retryPolicy: { maxAttempts: 2, initialIntervalSeconds: 0.05 },
      })
      .expect(201);
  const finished = ({ id }: JobRecord) =>
    root.get<JobRecord>(`/api/jobs/${id}`, { prefer: 'wait=30' }).expect(200);
  const trx = await db.transaction();
  await trx.raw('LOCK TABLE tags IN ACCESS EXCLUSIVE MODE');
  const interrupted = await create({ mode: 'partial', sections: ['settings'] });
  const ended = new Set<number>();
  while (ended.size < 3) {
    const pids = await db('pg_locks')
      .whereRaw(`relation = 'tags'::regclass`)
      .where({ granted: false })
      .pluck<number[]>('pid');
    for (const pid of pids) {
      await db.raw('SELECT pg_terminate_backend(?)', [pid]);
      ended.add(pid);
    }
    await sleep(50);
  }
  await trx.rollback();
  expect(await finished(interrupted)).toMatchObject({ status: 'succeeded', error: null });

  // The store cannot be used: a link to itself (ELOOP).
  const { folder } = archives;
  await rename(folder, `${folder}.away`);
  await symlink(folder, folder);
  try {
    const failing = await create({ mode: 'partial', sections: ['settings'] });
    expect(await finished(failing)).toMatchObject({
      status: 'failed',
      error: { code: 'store_unavailable' },
    });
    const lines = await db('job_logs').where({ job_id: failing.id }).pluck<string[]>('message');
    expect(lines.filter((line) => line.startsWith('Attempt'))).toEqual([
      expect.stringMatching(/^Attempt 1 failed: store_unavailable: .*; next attempt in 0.05 s$/),
      expect.stringMatching(/^Attempt 2 failed: store_unavailable: .*; no further attempt$/),
    ]);
  } finally {
    await unlink(folder);
    await rename(`${folder}.away`, folder);
  }
}, 60_000);
