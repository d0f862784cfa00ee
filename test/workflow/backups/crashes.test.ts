import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { addOldEntries, archivesOf, countUpTo } from '../../support/auditArchives.ts';
import { createArchiveFolder, dumpTables, STATE_TABLES } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { killRounds } from '../../support/effort.ts';
import { seedEstate } from '../../support/estate.ts';
import { eventually } from '../../support/eventually.ts';
import { startCrashingWorkers } from '../../support/crashingWorkers.ts';
import { admin } from '../../support/users.ts';
import { stopUpdates } from '../../support/stopPoints.ts';
import { replaceableWorker } from '../../support/replaceableWorker.ts';

/** The API runs in this process, the worker in a process that the tests kill and replace. */
let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
let api: TestApp;
let root: TestClient;
const worker = replaceableWorker(() => ({ ...api.env, HOLDFAST_ROLE: 'worker' }));
beforeAll(async () => {
  archives = await createArchiveFolder();
  api = await startApp({ ...archives.env, HOLDFAST_ROLE: 'api' });
  root = admin(api);
  await worker.start();
  await seedEstate(api);
});
afterAll(async () => {
  await worker.stop();
  await api.stop();
  await archives.remove();
});

/** Holds the locks of a statement until the returned function is called. */
async function holdLock(sql: string) {
  const client = new pg.Client({ connectionString: api.databaseUrl });
  await client.connect();
  await client.query('BEGIN');
  await client.query(sql);
  return async () => {
    await client.query('ROLLBACK');
    await client.end();
  };
}

/** True when a connection waits for the lock of a table. */
const isTableContended = async () =>
  (
    await api.deps.db.raw(
      `SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND wait_event = 'relation'
         AND datname = current_database()`,
    )
  ).rows[0].n > 0;

const backupColumn = (id: string, name: string) =>
  api.deps
    .db('backups')
    .where({ id })
    .first()
    .then((row) => row?.[name]);
const startBackup = async (request: object = {}) => {
  const backup = await root.post<BackupRecord>('/api/backup/create', request).expect(201);
  return { ...backup, jobId: assertDefined(backup.jobId, 'backup.jobId') };
};
const readJob = (id: string) => root.get<JobRecord>(`/api/jobs/${id}`).expect(200);
const waitForBackup = (id: string) =>
  eventually(
    () => backupColumn(id, 'status'),
    (status) => status === 'completed' || status === 'failed',
    { withinMs: 60_000 },
  );
const waitForJob = (id: string) =>
  eventually(
    () => readJob(id),
    ({ status }) => ['succeeded', 'failed', 'cancelled'].includes(status),
    { withinMs: 150_000 },
  );

/** Every archive has a record, every record an archive, and no staging schema is left. */
async function assertConsistent() {
  const files = await archives.files();
  const { db } = api.deps;
  const recorded = [
    ...(await db('backups').where({ status: 'completed' }).pluck('archive')),
    ...(await db('audit_archives').where({ status: 'completed' }).pluck('archive')),
  ];
  expect(files).toEqual(recorded.sort());
  expect(
    (await api.deps.db.raw(`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'staging%'`)).rows,
  ).toEqual([]);
}

/** The lines about lost workers in the log of a job. */
const linesOfLostWorkers = async (jobId: string) =>
  (await api.deps.db('job_logs').where({ job_id: jobId }).pluck<string[]>('message')).filter(
    (line) => line.startsWith('The worker was lost'),
  );

/** A backup of little, where it does not matter what is in it. */
const SMALL = { mode: 'partial', sections: ['settings'] };

/** Starts a backup, and returns it when it is complete and nothing runs for it any more. */
async function createBackup(request: object) {
  const backup = await startBackup(request);
  expect(await waitForBackup(backup.id)).toBe('completed');
  await waitForJob(backup.jobId);
  return backup;
}

/** One kill meets a backup at each of these points. */
describe('when a worker is killed', () => {
  const POINTS = {
    'after the upload, before it is recorded':
      'OLD.size_bytes IS NULL AND NEW.size_bytes IS NOT NULL',
    'after the verification, before it is recorded':
      'OLD.verified_at IS NULL AND NEW.verified_at IS NOT NULL',
    'before the completion': "OLD.status <> 'completed' AND NEW.status = 'completed'",
  };
  const REMOVED = 'between removing an archive and recording it';
  const started = new Map<string, Awaited<ReturnType<typeof startBackup>>>();
  let removed: BackupRecord;

  beforeAll(async () => {
    removed = await createBackup({ ...SMALL, label: REMOVED });
    const stops = await stopUpdates(api.databaseUrl, 'backups', {
      ...Object.fromEntries(
        Object.entries(POINTS).map(([label, condition]) => [
          label,
          `NEW.label = '${label}' AND ${condition}`,
        ]),
      ),
      [REMOVED]: `NEW.label = '${REMOVED}' AND OLD.status <> 'deleted' AND NEW.status = 'deleted'`,
    });
    for (const label of Object.keys(POINTS)) {
      started.set(label, await startBackup({ ...SMALL, label }));
      await stops.untilStopped(label);
    }
    await root.delete(`/api/backup/${removed.id}`).expect(204);
    await stops.untilStopped(REMOVED);
    expect(await archives.files()).not.toContain(removed.archive);
    const release = await holdLock('LOCK TABLE ip_addresses IN ACCESS EXCLUSIVE MODE');
    started.set('snapshot', await startBackup({ label: 'snapshot' }));
    await eventually(
      () => archives.files(),
      (files) => files.some((file) => file.includes('.part-')),
    );
    await worker.kill();
    await stops.remove();
    await release();
    expect(await backupColumn(removed.id, 'status')).toBe('deleting');
    await worker.start();
  }, 120_000);

  test.each(['during the snapshot', ...Object.keys(POINTS)])(
    '%s, another worker makes one archive for one record',
    async (point) => {
      const label = point in POINTS ? point : 'snapshot';
      const backup = assertDefined(started.get(label), label);
      expect(await waitForBackup(backup.id)).toBe('completed');
      expect((await waitForJob(backup.jobId)).status).toBe('succeeded');
    },
    120_000,
  );

  test('during the snapshot, the log of the job says it once', async () => {
    const { jobId } = assertDefined(started.get('snapshot'), 'snapshot');
    expect(await linesOfLostWorkers(jobId)).toHaveLength(1);
  });

  test(`${REMOVED}, the backup is deleted once`, async () => {
    await eventually(
      () => backupColumn(removed.id, 'status'),
      (status) => status === 'deleted',
      { withinMs: 30_000 },
    );
    expect(
      await api.deps.db('events').where({ type: 'backup.deleted', subject_id: removed.id }),
    ).toHaveLength(1);
  });

  test('archives and records agree', assertConsistent);
});

test('a step whose worker stops in order is repeated', async () => {
  await worker.start();
  const release = await holdLock('LOCK TABLE ip_addresses IN ACCESS EXCLUSIVE MODE');
  const backup = await startBackup({ label: 'worker stops' });
  await eventually(
    () => archives.files(),
    (files) => files.some((file) => file.includes('.part-')),
  );
  await worker.terminate();
  await release();
  await worker.start();
  expect((await waitForJob(backup.jobId)).status).toBe('succeeded');
  expect(await linesOfLostWorkers(backup.jobId)).toEqual([]);
}, 120_000);

/** A restore, and two parts of the audit log that stop while they are archived, meet the same kill. */
describe('when a worker is killed during a restore', () => {
  const POINTS = {
    'before the checkpoint': 'OLD.checkpoint_at IS NULL AND NEW.checkpoint_at IS NOT NULL',
    'after the entries are deleted, before it is recorded':
      "OLD.status = 'checkpointed' AND NEW.status = 'completed'",
  };
  const tenants = Object.keys(POINTS).map((point, i) => ({ point, tenant: `archived-${i}` }));
  const archiving = new Map<string, string>();
  let backup: BackupRecord;
  let before: Awaited<ReturnType<typeof dumpTables>>;
  beforeAll(async () => {
    await worker.start();
    backup = await createBackup({ label: 'restore' });
    before = await dumpTables(api.databaseUrl, STATE_TABLES);
  }, 120_000);

  /** Starts to archive the audit logs of the tenants, each up to its point. */
  async function archiveUntilStopped() {
    for (const { tenant } of tenants) await addOldEntries(api, tenant, '2020-01', 5);
    const stops = await stopUpdates(
      api.databaseUrl,
      'audit_archives',
      Object.fromEntries(
        tenants.map(({ point, tenant }, i) => [
          point,
          `NEW.tenant_id = '${tenant}' AND ${Object.values(POINTS)[i]}`,
        ]),
      ),
    );
    for (const { point, tenant } of tenants) {
      const client = api.client.as({ actor: 'root', roles: 'platform-admin', tenant });
      const request = { type: 'audit.archive', payload: {} };
      archiving.set(point, (await client.post<JobRecord>('/api/jobs', request).expect(201)).id);
      await stops.untilStopped(point);
    }
    return stops;
  }

  /** Restores after changes, with a kill while the restore waits for the lock. */
  async function killDuringRestore(lock: string, afterKill = () => Promise.resolve()) {
    await api.deps.db('sites').update({ description: 'changed' });
    await api.deps.db('cables').del();
    const release = await holdLock(lock);
    const payload = { backupId: backup.id, preRestoreBackup: false };
    const job = await root
      .post<JobRecord>('/api/jobs', { type: 'backup.restore', payload })
      .expect(201);
    await eventually(isTableContended, (waits) => waits);
    await worker.kill();
    await release();
    await afterKill();
    await worker.start();
    expect(await waitForJob(job.id)).toMatchObject({ status: 'succeeded', error: null });
    expect(await dumpTables(api.databaseUrl, STATE_TABLES)).toEqual(before);
    const subject = { type: 'restore.completed', subject_id: backup.id };
    const events = await api.deps.db('events').where(subject);
    expect(events.filter(({ data }) => data.jobId === job.id)).toHaveLength(1);
  }

  test('while it loads the archive, the restore is applied once', async () => {
    const stops = await archiveUntilStopped();
    await killDuringRestore('LOCK TABLE cables IN ACCESS EXCLUSIVE MODE', async () => {
      await stops.remove();
      expect(await countUpTo(api, 'archived-0', 5)).toBe(5);
      expect(await countUpTo(api, 'archived-1', 5)).toBe(0);
    });
  }, 120_000);

  test.each(tenants)(
    'and archives the audit log: $point, no entry is lost, and one archive has them all',
    async ({ point, tenant }) => {
      const job = await waitForJob(assertDefined(archiving.get(point), point));
      expect(job).toMatchObject({ status: 'succeeded', result: { entries: 5 } });
      expect(await archivesOf(api, tenant)).toMatchObject([{ status: 'completed', position: 5 }]);
      expect(await countUpTo(api, tenant, 5)).toBe(0);
      expect(await api.deps.auditSealer.verify(tenant)).toMatchObject({ from: 5, broken: null });
      for await (const { problem } of api.deps.backups.auditArchives.verify(tenant))
        expect(problem).toBeNull();
      const files = (await archives.files()).filter((file) => file.startsWith('aar_'));
      expect(files).toEqual((await api.deps.db('audit_archives').pluck('archive')).sort());
    },
    120_000,
  );

  test('while it applies it, the restore is applied once', async () => {
    await killDuringRestore('LOCK TABLE sites IN ROW EXCLUSIVE MODE');
    await assertConsistent();
  }, 120_000);
});

test('backups, test restores, restores and deletions end while workers keep crashing', async () => {
  const workers = await startCrashingWorkers(api, await worker.start());
  // By default one kill, during the restores.
  let crashes = workers.crash(killRounds() - 1, 1_500);
  const backups = await Promise.all(
    Array.from({ length: 2 * killRounds() }, (_, i) =>
      startBackup({ label: `many ${i}`, engine: i % 2 === 0 ? 'snapshot' : 'portable' }),
    ),
  );
  for (const { id } of backups) await waitForBackup(id);
  await crashes;
  const completed: string[] = await api.deps
    .db('backups')
    .where({ status: 'completed' })
    .whereIn(
      'id',
      backups.map(({ id }) => id),
    )
    .pluck('id');
  expect(completed.length).toBeGreaterThan(0);
  crashes = workers.crash(killRounds(), 1_500);
  const jobs = await Promise.all(
    completed.flatMap((backupId) =>
      ['backup.verify', 'backup.restore'].map(async (type) => {
        const payload = {
          backupId,
          ...(type === 'backup.restore' && { preRestoreBackup: false }),
        };
        return (await root.post<JobRecord>('/api/jobs', { type, payload }).expect(201)).id;
      }),
    ),
  );
  for (const id of jobs) await waitForJob(id);
  await Promise.all(completed.slice(0, 2).map((id) => root.delete(`/api/backup/${id}`)));
  await eventually(
    () => api.deps.db('backups').where({ status: 'deleting' }),
    (left) => left.length === 0,
    { withinMs: 60_000 },
  );
  await crashes;
  for (const { jobId } of backups) await waitForJob(jobId);
  // The reconciler removes what the killed workers could not.
  await eventually(
    async () => {
      await api.deps.db('backups').update({ check_at: new Date(0) });
      await api.deps.backups.reconcile(new AbortController().signal);
      const { rows } = await api.deps.db.raw<{ rows: unknown[] }>(
        `SELECT nspname FROM pg_namespace WHERE nspname LIKE 'staging%'`,
      );
      return (
        rows.length +
        Number((await api.deps.db('backups').whereNotNull('pending').count({ n: '*' }))[0]?.n)
      );
    },
    (left) => left === 0,
    { withinMs: 30_000 },
  );
  await assertConsistent();
}, 300_000);
