import type { BackupRecord, ValidationRecord } from '../../api/backups/schemas.ts';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import type { TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { admin } from '../support/users.ts';

/** A branch of a workflow of backups. `play` takes it and returns the id of the workflow. */
type Branch = { name: string; play(app: TestApp): Promise<string> };

const post = async <T>(app: TestApp, path: string, body: object, wait = 50): Promise<T> =>
  (await admin(app).post<T>(path, body, { prefer: `wait=${wait}` })).body;
const createBackup = (app: TestApp, request: object = {}, wait = 50) =>
  post<BackupRecord & { jobId: string }>(app, '/api/backup/create', request, wait);
const waitForJob = (app: TestApp, jobId: string) =>
  eventually(
    () => admin(app).get<JobRecord>(`/api/jobs/${jobId}`).expect(200),
    ({ status }) => ['succeeded', 'failed', 'cancelled'].includes(status),
    { withinMs: 60_000 },
  );

/** Makes a backup and restores it. Returns the job of the restore. */
const restoreBackup = async (app: TestApp, more: object): Promise<JobRecord> => {
  const { id } = await createBackup(app);
  return post<JobRecord>(app, '/api/jobs', {
    type: 'backup.restore',
    payload: { backupId: id, ...more },
  });
};

/** Cancels a job while it waits for the lock of a table. */
async function cancelWhileWaiting(app: TestApp, startJob: () => Promise<string>): Promise<void> {
  await app.deps.db.transaction(async (trx) => {
    await trx.raw('LOCK TABLE cables IN ACCESS EXCLUSIVE MODE');
    const jobId = await startJob();
    await eventually(
      async () =>
        (
          await app.deps.db.raw(
            `SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
          )
        ).rows[0].n as number,
      (waiting) => waiting > 0,
    );
    await admin(app).post(`/api/jobs/${jobId}/cancel`);
    await waitForJob(app, jobId);
  });
}

export const BACKUPS: readonly Branch[] = [
  {
    name: 'backup.success',
    play: async (app) => `backup:${(await createBackup(app)).id}`,
  },
  {
    name: 'backup.failure',
    async play(app) {
      // The backup waits for the lock until its store is one that is not configured.
      let id = '';
      let jobId = '';
      await app.deps.db.transaction(async (trx) => {
        await trx.raw('LOCK TABLE cables IN ACCESS EXCLUSIVE MODE');
        ({ id, jobId } = await createBackup(app, { label: 'fails' }, 0));
        await app.deps.db('backups').where({ id }).update({ store: 's3' });
      });
      await waitForJob(app, jobId);
      return `backup:${id}`;
    },
  },
  {
    name: 'backup.cancel',
    async play(app) {
      let id = '';
      await cancelWhileWaiting(app, async () => {
        const made = await createBackup(app, { label: 'cancelled' }, 0);
        id = made.id;
        return made.jobId;
      });
      return `backup:${id}`;
    },
  },
  {
    name: 'removeBackup.success',
    async play(app) {
      const { id } = await createBackup(app);
      await admin(app).delete(`/api/backup/${id}`);
      await eventually(
        () => app.deps.db('backups').where({ id }).first(),
        ({ status }) => status === 'deleted',
      );
      return `backup:${id}:delete`;
    },
  },
  {
    name: 'restore.success',
    play: async (app) => `restore:${(await restoreBackup(app, {})).id}`,
  },
  {
    name: 'restore.without-backup',
    play: async (app) => `restore:${(await restoreBackup(app, { preRestoreBackup: false })).id}`,
  },
  {
    name: 'restore.stale',
    play: async (app) => `restore:${(await restoreBackup(app, { planHash: '0'.repeat(64) })).id}`,
  },
  {
    name: 'restore.validate',
    play: async (app) =>
      `validate:${(await post<ValidationRecord>(app, '/api/backup/restore/validate', { backupId: (await createBackup(app)).id })).jobId}`,
  },
  {
    name: 'restore.verify',
    play: async (app) =>
      `verify:${(await post<JobRecord>(app, '/api/jobs', { type: 'backup.verify', payload: { backupId: (await createBackup(app)).id } })).id}`,
  },
  {
    name: 'restore.cancel',
    async play(app) {
      const { id } = await createBackup(app);
      let jobId = '';
      await cancelWhileWaiting(
        app,
        async () =>
          (jobId = (
            await post<JobRecord>(
              app,
              '/api/jobs',
              { type: 'backup.restore', payload: { backupId: id, preRestoreBackup: false } },
              0,
            )
          ).id),
      );
      return `restore:${jobId}`;
    },
  },
  {
    name: 'job.steps.success',
    play: async (app) => `job:${(await createBackup(app)).jobId}`,
  },
  {
    name: 'job.steps.failure',
    play: async (app) => `job:${(await restoreBackup(app, { planHash: '0'.repeat(64) })).id}`,
  },
  {
    name: 'job.steps.not-started',
    play: async (app) =>
      `job:${(await post<JobRecord>(app, '/api/jobs', { type: 'backup.verify', payload: { backupId: 'bkp_01jd0cmxk5e5v8kyzwq0q8s3rt' } })).id}`,
  },
  {
    name: 'job.steps.cancel',
    async play(app) {
      let jobId = '';
      await cancelWhileWaiting(
        app,
        async () => (jobId = (await createBackup(app, { label: 'cancelled above' }, 0)).jobId),
      );
      return `job:${jobId}`;
    },
  },
];
