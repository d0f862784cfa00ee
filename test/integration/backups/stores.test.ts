import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { createFolderStore } from '../../../platform/stores/folder.ts';
import { createS3Store } from '../../../platform/stores/lazyS3.ts';
import type { ArchiveStore } from '../../../platform/stores/store.ts';
import type { StepTools } from '../../../services/jobs/multiStep.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { createArchiveFolder, backupCreator, restorer } from '../../support/backups.ts';
import { eventually } from '../../support/eventually.ts';
import { recordFactory } from '../../support/inventory.ts';
import { expectProblem } from '../../support/problem.ts';
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

  test('removes the only upload of a name, whether it was finalized or not', async () => {
    const store = create();
    for (const isFinalized of [true, false]) {
      const upload = await store.startUpload('three.hfb');
      await upload.write(randomBytes(10));
      const pending = await upload.finish();
      if (isFinalized) await store.finalize('three.hfb', pending);
      await store.remove('three.hfb', {
        uploadedOnce: true,
        signal: new AbortController().signal,
      });
      expect([await store.sizeOf('three.hfb'), await unfinished()]).toEqual([null, []]);
    }
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

const settingsOf = ({ env }: Awaited<ReturnType<typeof startVersitygw>>, prefix: string) => ({
  bucket: env.HOLDFAST_BACKUP_S3_BUCKET,
  prefix,
  region: 'us-east-1',
  endpoint: env.HOLDFAST_BACKUP_S3_ENDPOINT,
  accessKeyId: env.HOLDFAST_BACKUP_S3_ACCESS_KEY_ID,
  secretAccessKey: env.HOLDFAST_BACKUP_S3_SECRET_ACCESS_KEY,
});

const FOREIGN = 'bkp_00000000000000000000000000';
const FOREIGN_AUDIT = 'aar_00000000000000000000000000';
const OWN_AUDIT = 'aar_11111111111111111111111111';

type SharedStore = { store: ArchiveStore; env: Record<string, string>; names(): Promise<string[]> };

/** Tests the reconciler of an installation whose store others use, too. `names` lists unfinished uploads. */
async function testSharedStore({ store, env, names }: SharedStore): Promise<void> {
  const app = await startApp(env, { idle: true });
  try {
    const { db, backups } = app.deps;
    const create = () => admin(app).post<BackupRecord>('/api/backup/create', {}).expect(201);
    const [failed, queued] = [await create(), await create()];
    await db('backups')
      .where({ id: failed.id })
      .update({ status: 'failed', finished_at: new Date() });
    await db('audit_archives').insert({
      ...{ id: OWN_AUDIT, tenant_id: 'platform', job_id: 'job_1', status: 'writing' },
      ...{ first_position: 1, position: 2, previous_hash: Buffer.alloc(32), store: store.kind },
      ...{ hash: Buffer.alloc(32), first_at: new Date(), last_at: new Date(), last_id: 'aud_1' },
      ...{ archive: `${OWN_AUDIT}-2.hfb`, attempts: 2, created_at: new Date() },
      updated_at: new Date(),
    });
    const others = await names();
    const kept = [
      `${FOREIGN}.hfb`,
      `${FOREIGN_AUDIT}-1.hfb`,
      `${OWN_AUDIT}-2.hfb`,
      queued.archive,
      'artifact-job_1-0123456789abcdef',
      'notes.hfb',
    ];
    for (const name of [...kept, failed.archive, `${OWN_AUDIT}-1.hfb`])
      await (await store.startUpload(name)).finish();
    await backups.reconcile(new AbortController().signal);
    expect(await names()).toEqual([...others, ...kept].sort());
  } finally {
    store.close();
    await app.stop();
  }
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

  test('an upload that cannot be removed fails as a store does', async () => {
    const folder = path.join(archives.folder, 'own');
    const store = createFolderStore(folder);
    const upload = await store.startUpload('kept.hfb');
    const [part = ''] = await readdir(folder);
    await rm(path.join(folder, part));
    await mkdir(path.join(folder, part));
    await expect(upload.abort()).rejects.toMatchObject({ name: 'StoreError' });
  });

  test('keeps the unfinished uploads of others', async () => {
    const folder = path.join(archives.folder, 'shared');
    await mkdir(folder);
    for (const name of ['a b.hfb.part-1', '.hidden.hfb.part-0123456789ab', 'a copy.hfb'])
      await writeFile(path.join(folder, name), 'of another program');
    const names = async () =>
      (await readdir(folder)).map((name) => name.replace(/\.part-[0-9a-f]{12}$/, '')).sort();
    const store = createFolderStore(folder);
    await testSharedStore({ store, env: { HOLDFAST_BACKUP_DIR: folder }, names });
    for await (const { name } of store.list()) throw new Error(`${name} is no archive`);
  });
});

test('a backup in a store that is not configured any more is kept, and says why', async () => {
  const archives = await createArchiveFolder();
  const app = await startApp({ HOLDFAST_BACKUP_DIR: archives.folder }, { idle: true });
  try {
    const create = () => admin(app).post<BackupRecord>('/api/backup/create', {}).expect(201);
    const [older, newest] = [await create(), await create()];
    const { db, backups } = app.deps;
    const completed = {
      ...{ status: 'completed', retention: { last: 1 }, size_bytes: 1 },
      ...{ snapshot_at: new Date(0), finished_at: new Date() },
    };
    await db('backups')
      .where({ id: older.id })
      .update({ ...completed, store: 's3' });
    await db('backups')
      .where({ id: newest.id })
      .update({ ...completed, snapshot_at: new Date() });
    const path = `/api/backup/${older.id}`;
    const logged: string[] = [];
    const log = (_level: string, text: string) => void logged.push(text);
    await backups.backupCompletion.prune(newest.id, { log } as unknown as StepTools);
    expect(logged).toEqual([expect.stringMatching(/^Kept: 1 older backup\. .* s3 store/)]);
    await expectProblem(admin(app).delete(path), 501, 'not_supported');
    expect(await admin(app).get(path).expect(200)).toMatchObject({
      status: 'completed',
      restorePreview: { restorable: false, reason: expect.stringContaining('s3 store') },
    });
    await admin(app).delete(`/api/backup/${newest.id}`).expect(204);
  } finally {
    await app.stop();
    await archives.remove();
  }
});

describeWith('versitygw', 'the store s3', () => {
  let s3: Awaited<ReturnType<typeof startVersitygw>>;
  beforeAll(async () => {
    s3 = await startVersitygw();
  });
  afterAll(() => s3.stop());

  testStore(
    () => createS3Store(settingsOf(s3, 'unit/'), []),
    () => s3.uploads(),
  );

  test('keeps the unfinished uploads of others', async () => {
    const { HOLDFAST_BACKUP_S3_PREFIX, ...env } = s3.env;
    for (const key of ['a/b.hfb', 'nightly/a.hfb', 'a.tar']) await s3.startUpload(key);
    await testSharedStore({
      store: createS3Store(settingsOf(s3, ''), []),
      env,
      names: async () => (await s3.uploads()).sort(),
    });
  });
});

test('a link-local endpoint, where clouds keep credentials, is refused', async () => {
  const store = createS3Store(
    {
      bucket: 'b',
      prefix: '',
      region: 'r',
      endpoint: 'http://169.254.169.254',
      accessKeyId: 'a',
      secretAccessKey: 'b',
    },
    [],
  );
  await expect(store.sizeOf('one.hfb')).rejects.toThrow('not a public address');
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
