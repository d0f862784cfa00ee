import type { TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { admin } from '../support/users.ts';

/** One branch of the workflows of backups: what is done, and whose histories it leaves. */
type Branch = { name: string; play(app: TestApp): Promise<string> };

const post = async (app: TestApp, path: string, body: object, wait = 50): Promise<any> =>
  (await admin(app).post(path, body, { prefer: `wait=${wait}` })).body;
const backup = (app: TestApp, more: object = {}) => post(app, '/api/backup/create', more);
const ended = (app: TestApp, jobId: string) =>
  eventually(
    async () => (await admin(app).get(`/api/jobs/${jobId}`)).body,
    ({ status }) => ['succeeded', 'failed', 'cancelled'].includes(status),
    { withinMs: 60_000 },
  );

/** A restore, and the job above it. */
const restored = async (app: TestApp, more: object): Promise<any> => {
  const { id } = await backup(app);
  return post(app, '/api/jobs', { type: 'backup.restore', payload: { backupId: id, ...more } });
};

/** Cancels a job while it waits for a table. */
async function cancelled(app: TestApp, begin: () => Promise<string>): Promise<void> {
  await app.deps.db.transaction(async (trx) => {
    await trx.raw('LOCK TABLE cables IN ACCESS EXCLUSIVE MODE');
    const jobId = await begin();
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
    await ended(app, jobId);
  });
}

export const BACKUPS: readonly Branch[] = [
  { name: 'backup.success', play: async (app) => `backup:${(await backup(app)).id as string}` },
  {
    name: 'backup.failure',
    async play(app) {
      // Held until its store is one that this process does not have.
      let id = '';
      let jobId = '';
      await app.deps.db.transaction(async (trx) => {
        await trx.raw('LOCK TABLE cables IN ACCESS EXCLUSIVE MODE');
        ({ id, jobId } = await post(app, '/api/backup/create', { label: 'fails' }, 0));
        await app.deps.db('backups').where({ id }).update({ store: 's3' });
      });
      await ended(app, jobId);
      return `backup:${id}`;
    },
  },
  {
    name: 'backup.cancel',
    async play(app) {
      let id = '';
      await cancelled(app, async () => {
        const made = await post(app, '/api/backup/create', { label: 'cancelled' }, 0);
        id = made.id as string;
        return made.jobId as string;
      });
      return `backup:${id}`;
    },
  },
  {
    name: 'removeBackup.success',
    async play(app) {
      const { id } = await backup(app);
      await admin(app).delete(`/api/backup/${id as string}`);
      await eventually(
        () => app.deps.db('backups').where({ id }).first(),
        ({ status }) => status === 'deleted',
      );
      return `backup:${id as string}:delete`;
    },
  },
  {
    name: 'restore.success',
    play: async (app) => `restore:${(await restored(app, {})).id as string}`,
  },
  {
    name: 'restore.without-safety',
    play: async (app) => `restore:${(await restored(app, { safetyBackup: false })).id as string}`,
  },
  {
    name: 'restore.stale',
    play: async (app) =>
      `restore:${(await restored(app, { planHash: '0'.repeat(64) })).id as string}`,
  },
  {
    name: 'restore.validate',
    play: async (app) =>
      `validate:${(await post(app, '/api/backup/restore/validate', { backupId: (await backup(app)).id })).jobId as string}`,
  },
  {
    name: 'restore.verify',
    play: async (app) =>
      `verify:${(await post(app, '/api/jobs', { type: 'backup.verify', payload: { backupId: (await backup(app)).id } })).id as string}`,
  },
  {
    name: 'restore.cancel',
    async play(app) {
      const { id } = await backup(app);
      let jobId = '';
      await cancelled(
        app,
        async () =>
          (jobId = (
            await post(
              app,
              '/api/jobs',
              { type: 'backup.restore', payload: { backupId: id, safetyBackup: false } },
              0,
            )
          ).id as string),
      );
      return `restore:${jobId}`;
    },
  },
  { name: 'job.steps.success', play: async (app) => `job:${(await backup(app)).jobId as string}` },
  {
    name: 'job.steps.failure',
    play: async (app) => `job:${(await restored(app, { planHash: '0'.repeat(64) })).id as string}`,
  },
  {
    name: 'job.steps.not-begun',
    play: async (app) =>
      `job:${(await post(app, '/api/jobs', { type: 'backup.verify', payload: { backupId: 'bkp_01jd0cmxk5e5v8kyzwq0q8s3rt' } })).id as string}`,
  },
  {
    name: 'job.steps.cancel',
    async play(app) {
      let jobId = '';
      await cancelled(
        app,
        async () =>
          (jobId = (await post(app, '/api/backup/create', { label: 'cancelled above' }, 0))
            .jobId as string),
      );
      return `job:${jobId}`;
    },
  },
];
