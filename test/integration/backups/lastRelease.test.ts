import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { TABLES } from '../../../db/backups/tables.ts';
import { startApp, testEnv, type TestApp } from '../../support/app.ts';
import {
  createArchiveFolder,
  dumpTables,
  restorer,
  restoreValidator,
} from '../../support/backups.ts';
import { createClient } from '../../support/client.ts';
import { createDatabase } from '../../support/database.ts';
import { hasLastRelease, LAST_RELEASE, lastReleaseFolder } from '../../support/lastRelease.ts';
import { killAll, startProcess } from '../../support/processes.ts';
import { admin } from '../../support/users.ts';

let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
let app: TestApp | undefined;
let lastRelease: string | undefined;
beforeAll(async () => {
  archives = await createArchiveFolder();
  if (hasLastRelease()) lastRelease = lastReleaseFolder();
});
afterAll(async () => {
  await killAll();
  await app?.stop();
  await archives.remove();
});

(hasLastRelease() ? test : test.skip)(
  `a backup that ${LAST_RELEASE.version} makes on the schema of this version is tested and restored`,
  async () => {
    const database = await createDatabase();
    const old = await startProcess(testEnv(database.url, archives.env), lastRelease);
    const asRoot = { actor: 'root', roles: 'platform-admin' };
    const backup = await createClient(old.base)
      .as(asRoot)
      .post<BackupRecord>('/api/backup/create', { mode: 'full' }, { prefer: 'wait=50' })
      .expect(201);
    expect(backup).toMatchObject({ status: 'completed', error: null });
    await old.terminate();

    app = await startApp(archives.env, { database });
    const root = admin(app);
    const known = backup.restorePreview.tables.map(({ table }) => table);
    expect(TABLES.map(({ name }) => name).filter((name) => !known.includes(name))).toContain(
      'views',
    );
    const verify = { type: 'backup.verify', payload: { backupId: backup.id } };
    const job = await root.post<JobRecord>('/api/jobs', verify, { prefer: 'wait=50' }).expect(201);
    expect([job.status, job.error]).toEqual(['succeeded', null]);
    await root
      .post('/api/views', { list: '/inventory/sites', name: 'newer', search: {} })
      .expect(201);
    await root.post('/api/inventory/sites', { name: 'newer' }).expect(201);
    const views = await dumpTables(database.url, ['views']);
    const validation = await restoreValidator(() => root)({ backupId: backup.id });
    await restorer(() => root)({ backupId: backup.id, planHash: validation.planHash });
    expect(await app.deps.db('sites').pluck('name')).toEqual([]);
    // The archive says nothing about them.
    expect(await dumpTables(database.url, ['views'])).toEqual(views);
  },
  120_000,
);
