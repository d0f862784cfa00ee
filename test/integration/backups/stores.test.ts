import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { createFolderStore } from '../../../platform/stores/folder.ts';
import { createS3Store } from '../../../platform/stores/s3.ts';
import type { ArchiveStore } from '../../../platform/stores/store.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { createArchiveFolder, backupCreator, restorer } from '../../support/backups.ts';
import { eventually } from '../../support/eventually.ts';
import { recordFactory } from '../../support/inventory.ts';
import { describeWith } from '../../support/programs.ts';
import { admin } from '../../support/users.ts';
import { startVersitygw } from '../../support/versitygw.ts';

const bytesOf = async (store: ArchiveStore, name: string) => {
  const found: Uint8Array[] = [];
  for await (const bytes of store.read(name)) found.push(bytes);
  return Buffer.concat(found);
};

/** Tests a store. `unfinished` lists what the store keeps of unfinished uploads. */
function testStore(create: () => ArchiveStore, unfinished: () => Promise<string[]>): void {
  test('has a complete archive after finalize, until it is removed', async () => {
    const store = create();
    // Large enough for several parts of a multipart upload.
    const pieces = Array.from({ length: 20 }, () => randomBytes(1 << 20));
    const upload = await store.startUpload('one.hfb');
    for (const piece of pieces) await upload.write(piece);
    const pending = await upload.finish();
    expect([await store.sizeOf('one.hfb'), pending.sizeBytes]).toEqual([null, 20 << 20]);
    await expect(bytesOf(store, 'one.hfb')).rejects.toMatchObject({ code: 'archive_missing' });
    await store.finalize('one.hfb', pending);
    await store.finalize('one.hfb', pending);
    expect(await store.sizeOf('one.hfb')).toBe(20 << 20);
    expect((await bytesOf(store, 'one.hfb')).equals(Buffer.concat(pieces))).toBe(true);
    const names: string[] = [];
    for await (const { name } of store.list()) names.push(name);
    expect(names).toEqual(['one.hfb']);
    await store.remove('one.hfb');
    await store.remove('one.hfb');
    expect(await store.sizeOf('one.hfb')).toBeNull();
    store.close();
  });

  test('removes unfinished uploads', async () => {
    const store = create();
    const [abandoned, aborted] = [
      await store.startUpload('two.hfb'),
      await store.startUpload('two.hfb'),
    ];
    await abandoned.write(randomBytes(9 << 20));
    await aborted.write(randomBytes(10));
    await aborted.abort();
    await abandoned.finish();
    await store.remove('two.hfb');
    expect(await unfinished()).toEqual([]);
    store.close();
  });

  test('rejects names that refer to something outside the store', async () => {
    const store = create();
    for (const name of ['../x.hfb', 'a/b.hfb', '.hidden.hfb', ''])
      await expect(store.sizeOf(name).then(() => store.startUpload(name))).rejects.toMatchObject({
        code: 'archive_missing',
      });
    store.close();
  });
}

describe('the store folder', () => {
  let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
  beforeAll(async () => {
    archives = await createArchiveFolder();
  });
  afterAll(() => archives.remove());

  testStore(
    () => createFolderStore(archives.folder),
    async () => (await readdir(archives.folder)).filter((name) => name.startsWith('two')),
  );
});

describeWith('versitygw', 'the store s3', () => {
  let s3: Awaited<ReturnType<typeof startVersitygw>>;
  beforeAll(async () => {
    s3 = await startVersitygw();
  });
  afterAll(() => s3.stop());

  testStore(
    () =>
      createS3Store(
        {
          bucket: 'backups',
          prefix: 'unit/',
          region: 'us-east-1',
          endpoint: s3.env.HOLDFAST_BACKUP_S3_ENDPOINT,
          accessKeyId: 'test-access',
          secretAccessKey: 'test-secret-key',
        },
        [],
      ),
    () => s3.uploads(),
  );
});

test('a link-local endpoint, where clouds keep credentials, is refused', () => {
  expect(() =>
    createS3Store(
      {
        bucket: 'b',
        prefix: '',
        region: 'r',
        endpoint: 'http://169.254.169.254',
        accessKeyId: 'a',
        secretAccessKey: 'b',
      },
      [],
    ),
  ).toThrow('not a public address');
});

describeWith('versitygw', 'backups in a bucket', () => {
  let s3: Awaited<ReturnType<typeof startVersitygw>>;
  let app: TestApp;
  beforeAll(async () => {
    s3 = await startVersitygw();
    app = await startApp(s3.env);
  });
  afterAll(async () => {
    await app.stop();
    await s3.stop();
  });
  const createBackup = backupCreator(() => admin(app));
  const read = (id: string) => admin(app).get<BackupRecord>(`/api/backup/${id}`);

  test('are created, tested, restored and deleted', async () => {
    const make = recordFactory(() => admin(app));
    const site = await make('sites', { name: 'ams1' });
    const backup = await createBackup({ label: 's3' });
    expect([backup.store, await s3.keys()]).toEqual(['s3', [`nightly/${backup.archive}`]]);
    const tested = await admin(app)
      .post<JobRecord>(
        '/api/jobs',
        { type: 'backup.verify', payload: { backupId: backup.id } },
        { prefer: 'wait=50' },
      )
      .expect(201);
    expect([tested.status, tested.error]).toEqual(['succeeded', null]);
    expect((await read(backup.id).expect(200)).restoreTestedAt).not.toBeNull();
    await admin(app).delete(`/api/inventory/sites/${site.id}`);
    await restorer(() => admin(app))({ backupId: backup.id });
    const restored = await admin(app)
      .get<{ name: string }>(`/api/inventory/sites/${site.id}`)
      .expect(200);
    expect(restored.name).toBe('ams1');
    expect((await admin(app).delete(`/api/backup/${backup.id}`)).status).toBe(204);
    expect(await s3.keys()).toEqual([]);
  });

  test('wait for an unavailable store, and are deleted when it is back', async () => {
    const backup = await createBackup({ label: 'kept' });
    await s3.stopServer();
    const waiting = await admin(app)
      .post<BackupRecord>('/api/backup/create', { label: 'while away' })
      .expect(201);
    expect((await admin(app).delete(`/api/backup/${backup.id}`)).status).toBe(204);
    expect((await admin(app).get(`/api/backup/${backup.id}`)).status).toBe(404);
    await eventually(
      async () =>
        (await admin(app).get<JobRecord>(`/api/jobs/${waiting.jobId}`).expect(200)).logs
          .map(({ message }) => message)
          .join(' '),
      (text) => text.includes('store_unavailable'),
    );
    s3.startServer();
    await eventually(
      async () => (await read(waiting.id).expect(200)).status,
      (status) => status === 'completed',
      { withinMs: 60_000 },
    );
    await eventually(
      () => s3.keys(),
      (keys) => keys.length === 1 && keys[0] === `nightly/${waiting.archive}`,
      { withinMs: 60_000 },
    );
    expect(await s3.uploads()).toEqual([]);
  }, 120_000);
});
