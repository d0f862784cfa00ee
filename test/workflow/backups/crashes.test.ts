import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { startApp, type TestApp } from '../../support/app.ts';
import { archiveFolder, dump, STATE } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { furnish } from '../../support/estate.ts';
import { eventually } from '../../support/eventually.ts';
import { startMortals } from '../../support/crashingWorkers.ts';
import { admin } from '../../support/users.ts';
import { killAll, startProcess, type TestProcess } from '../../support/processes.ts';

/** The API in this process, workers in processes of their own that can be killed. */
let archives: Awaited<ReturnType<typeof archiveFolder>>;
let api: TestApp;
let root: TestClient;
beforeAll(async () => {
  archives = await archiveFolder();
  api = await startApp({ ...archives.env, HOLDFAST_ROLE: 'api' });
  root = admin(api);
  const worker = await start();
  await furnish(api);
  await worker.terminate();
});
afterEach(killAll);
afterAll(async () => {
  await api.stop();
  await archives.remove();
});

const start = (): Promise<TestProcess> => startProcess({ ...api.env, HOLDFAST_ROLE: 'worker' });

/** Holds what a statement locks, so that whoever needs it waits. */
async function holding(sql: string) {
  const client = new pg.Client({ connectionString: api.databaseUrl });
  await client.connect();
  await client.query('BEGIN');
  await client.query(sql);
  return async () => {
    await client.query('ROLLBACK');
    await client.end();
  };
}

/** True when somebody waits for a lock. */
const somebodyWaits = async () =>
  (
    await api.deps.db.raw(
      `SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
    )
  ).rows[0].n > 0;

const column = (id: string, name: string) =>
  api.deps
    .db('backups')
    .where({ id })
    .first()
    .then((row) => row?.[name]);
const begin = async (request: object = {}) => (await root.post('/api/backup/create', request)).body;
const settled = (id: string) =>
  eventually(
    () => column(id, 'status'),
    (status) => status === 'completed' || status === 'failed',
    { withinMs: 60_000 },
  );
const jobEnded = (id: string) =>
  eventually(
    async () => (await root.get(`/api/jobs/${id}`)).body,
    ({ status }) => ['succeeded', 'failed', 'cancelled'].includes(status),
    { withinMs: 150_000 },
  );

/** No archive without its record, no record without its archive, nothing that was loaded. */
async function allIsRight() {
  const files = await archives.files();
  expect(files).toEqual(
    (await api.deps.db('backups').where({ status: 'completed' }).pluck('archive')).sort(),
  );
  expect(
    (await api.deps.db.raw(`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'scratch%'`)).rows,
  ).toEqual([]);
}

/** Kills the worker while it waits for what is held, then lets it go and starts another. */
async function killWaiting(worker: TestProcess, release: () => Promise<void>): Promise<void> {
  await eventually(somebodyWaits, (waits) => waits);
  await worker.kill();
  await release();
  await start();
}

describe('a worker is killed', () => {
  test('while it reads the snapshot: the next one begins again', async () => {
    const release = await holding('LOCK TABLE ip_addresses IN ACCESS EXCLUSIVE MODE');
    const [worker, backup] = [await start(), await begin({ label: 'snapshot' })];
    await eventually(
      () => archives.files(),
      (files) => files.some((file) => file.includes('.part-')),
    );
    await killWaiting(worker, release);
    expect(await settled(backup.id)).toBe('completed');
    expect((await jobEnded(backup.jobId)).status).toBe('succeeded');
    await allIsRight();
  }, 120_000);

  test.each([
    [
      'after the archive was sealed and before that was written down',
      'pending',
      (value: any) => value?.upload,
    ],
    [
      'after the archive was read again and before that was written down',
      'size_bytes',
      (value: any) => value !== null,
    ],
    ['before the backup counts', 'verified_at', (value: any) => value !== null],
  ])(
    '%s: it is one archive of one record',
    async (_, name, isThere) => {
      const backup = await begin({ label: name });
      const launched = start();
      await eventually(() => column(backup.id, name), isThere);
      const release = await holding(
        `SELECT FROM backups WHERE id = '${backup.id as string}' FOR UPDATE`,
      );
      const worker = await launched;
      if (!['completed', 'failed'].includes(await column(backup.id, 'status')))
        await killWaiting(worker, release);
      else await release();
      expect(await settled(backup.id)).toBe('completed');
      await jobEnded(backup.jobId);
      await allIsRight();
    },
    120_000,
  );

  test('between the removal of an archive and its record: both are gone', async () => {
    const first = await start();
    const backup = await begin({ label: 'removed' });
    await settled(backup.id);
    await jobEnded(backup.jobId);
    await first.kill();
    expect((await root.delete(`/api/backup/${backup.id as string}`)).status).toBe(204);
    const release = await holding(
      `SELECT FROM backups WHERE id = '${backup.id as string}' FOR UPDATE`,
    );
    const worker = await start();
    await eventually(
      () => archives.files(),
      (files) => !files.includes(backup.archive),
    );
    await killWaiting(worker, release);
    await eventually(
      () => column(backup.id, 'status'),
      (status) => status === 'deleted',
      { withinMs: 30_000 },
    );
    expect(
      await api.deps.db('events').where({ type: 'backup.deleted', subject_id: backup.id }),
    ).toHaveLength(1);
    await allIsRight();
  }, 120_000);

  test.each([
    ['loads the archive', 'LOCK TABLE cables IN ACCESS EXCLUSIVE MODE', null],
    ['compares', 'LOCK TABLE cables IN ACCESS EXCLUSIVE MODE', 'comparing'],
    ['swaps', 'LOCK TABLE sites IN ROW EXCLUSIVE MODE', null],
  ])(
    'while it %s: the records are what they were, once',
    async (_, lock, message) => {
      let worker = await start();
      const backup = await begin({ label: 'restore' });
      await settled(backup.id);
      await jobEnded(backup.jobId);
      const before = await dump(api.databaseUrl, STATE);
      await api.deps.db('sites').update({ description: 'changed' });
      await api.deps.db('cables').del();
      if (message === null) await worker.kill();
      let release = message === null ? await holding(lock) : () => Promise.resolve();
      const job = (
        await root.post('/api/jobs', {
          type: 'backup.restore',
          payload: { backupId: backup.id, safetyBackup: false },
        })
      ).body;
      if (message === null) worker = await start();
      else {
        await eventually(
          async () =>
            (await root.get(`/api/jobs/${job.id as string}`)).body.logs.some((line: any) =>
              line.message.includes('rows are loaded'),
            ),
          (loaded) => loaded,
        );
        release = await holding(lock);
      }
      if ((await root.get(`/api/jobs/${job.id as string}`)).body.status === 'succeeded')
        await release();
      else await killWaiting(worker, release);
      expect(await jobEnded(job.id)).toMatchObject({ status: 'succeeded', error: null });
      expect(await dump(api.databaseUrl, STATE)).toEqual(before);
      expect(
        await api.deps.db('events').where({ type: 'restore.completed', subject_id: backup.id }),
      ).toHaveLength(1);
      await allIsRight();
    },
    120_000,
  );
});

test('workers are killed every four seconds under backups, proofs, restores and deletions: each ends, and all is right', async () => {
  const mortals = await startMortals(api, 2, 4_000);
  const made = await Promise.all(
    Array.from({ length: 5 }, (_, i) =>
      begin({ label: `many ${i}`, engine: i % 2 === 0 ? 'snapshot' : 'portable' }),
    ),
  );
  for (const { id } of made) await settled(id);
  const completed: string[] = await api.deps
    .db('backups')
    .where({ status: 'completed' })
    .whereIn(
      'id',
      made.map(({ id }) => id),
    )
    .pluck('id');
  expect(completed.length).toBeGreaterThan(2);
  const jobs = await Promise.all(
    completed.flatMap((backupId) =>
      ['backup.verify', 'backup.restore'].map(
        async (type) =>
          (
            await root.post('/api/jobs', {
              type,
              payload: { backupId, ...(type === 'backup.restore' && { safetyBackup: false }) },
            })
          ).body.id as string,
      ),
    ),
  );
  for (const id of jobs) await jobEnded(id);
  await Promise.all(completed.slice(0, 2).map((id) => root.delete(`/api/backup/${id}`)));
  await eventually(
    () => api.deps.db('backups').where({ status: 'deleting' }),
    (left) => left.length === 0,
    { withinMs: 60_000 },
  );
  expect(mortals.kills()).toBeGreaterThan(3);
  await mortals.spare();
  for (const { jobId } of made) await jobEnded(jobId);
  // What no run could clean up any more, the reconciler does.
  await eventually(
    async () => {
      await api.deps.db('backups').update({ check_at: new Date(0) });
      await api.deps.reconcileBackups(new AbortController().signal);
      const { rows } = await api.deps.db.raw<{ rows: unknown[] }>(
        `SELECT nspname FROM pg_namespace WHERE nspname LIKE 'scratch%'`,
      );
      return (
        rows.length +
        Number((await api.deps.db('backups').whereNotNull('pending').count({ n: '*' }))[0]?.n)
      );
    },
    (left) => left === 0,
    { withinMs: 30_000 },
  );
  await allIsRight();
}, 300_000);
