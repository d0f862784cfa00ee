import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { createFolderStore } from '../../platform/stores/folder.ts';
import { createS3Store } from '../../platform/stores/s3.ts';
import type { ArchiveStore } from '../../platform/stores/store.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { archiveFolder, backUp } from '../support/backups.ts';
import { eventually } from '../support/eventually.ts';
import { making } from '../support/inventory.ts';
import { admin } from '../support/users.ts';
import { startVersitygw } from '../support/versitygw.ts';

let s3: Awaited<ReturnType<typeof startVersitygw>>;
let archives: Awaited<ReturnType<typeof archiveFolder>>;
beforeAll(async () => {
  [s3, archives] = await Promise.all([startVersitygw(), archiveFolder()]);
});
afterAll(async () => {
  await Promise.all([s3.stop(), archives.remove()]);
});

const bytesOf = async (store: ArchiveStore, name: string) => {
  const found: Uint8Array[] = [];
  for await (const bytes of store.read(name)) found.push(bytes);
  return Buffer.concat(found);
};
const s3Store = () =>
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
  );

describe.each([
  ['folder', () => createFolderStore(archives.folder)],
  ['s3', s3Store],
])('the store %s', (kind, make) => {
  test('has an archive from its seal on, whole, and gives it up again', async () => {
    const store = make();
    expect(store.kind).toBe(kind);
    // More than one part of a multipart upload.
    const pieces = Array.from({ length: 20 }, () => randomBytes(1 << 20));
    const upload = await store.begin('one.hfb');
    for (const piece of pieces) await upload.write(piece);
    const pending = await upload.finish();
    expect([await store.sizeOf('one.hfb'), pending.sizeBytes]).toEqual([null, 20 << 20]);
    await expect(bytesOf(store, 'one.hfb')).rejects.toMatchObject({ code: 'archive_missing' });
    await store.seal('one.hfb', pending);
    await store.seal('one.hfb', pending);
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

  test('leaves nothing of what was begun and not sealed', async () => {
    const store = make();
    const [left, given] = [await store.begin('two.hfb'), await store.begin('two.hfb')];
    await left.write(randomBytes(9 << 20));
    await given.write(randomBytes(10));
    await given.abort();
    await left.finish();
    await store.remove('two.hfb');
    expect([
      (await readdir(archives.folder)).filter((name) => name.startsWith('two')),
      await s3.uploads(),
    ]).toEqual([[], []]);
    store.close();
  });

  test('says so when a name is none, or leads elsewhere', async () => {
    const store = make();
    for (const name of ['../x.hfb', 'a/b.hfb', '.hidden.hfb', ''])
      await expect(store.sizeOf(name).then(() => store.begin(name))).rejects.toMatchObject({
        code: 'archive_missing',
      });
    store.close();
  });
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

describe('backups in a bucket', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startApp(s3.env);
  });
  afterAll(() => app.stop());
  const take = backUp(() => admin(app));

  test('are made, proven, restored from and deleted', async () => {
    const make = making(() => admin(app));
    const site = await make('sites', { name: 'ams1' });
    const backup = await take({ label: 's3' });
    expect([backup.store, await s3.keys()]).toEqual([
      's3',
      [`nightly/${backup.archive as string}`],
    ]);
    const proof = await admin(app).post(
      '/api/jobs',
      { type: 'backup.verify', payload: { backupId: backup.id } },
      { prefer: 'wait=50' },
    );
    expect([proof.body.status, proof.body.error]).toEqual(['succeeded', null]);
    expect(
      (await admin(app).get(`/api/backup/${backup.id as string}`)).body.provenAt,
    ).not.toBeNull();
    await admin(app).delete(`/api/inventory/sites/${site.id as string}`);
    const restored = await admin(app).post(
      '/api/backup/restore',
      { backupId: backup.id, safetyBackup: false },
      { prefer: 'wait=50' },
    );
    expect([
      restored.body.status,
      (await admin(app).get(`/api/inventory/sites/${site.id as string}`)).body.name,
    ]).toEqual(['succeeded', 'ams1']);
    expect((await admin(app).delete(`/api/backup/${backup.id as string}`)).status).toBe(204);
    expect(await s3.keys()).toEqual([]);
  });

  test('wait for a store that is away, and are deleted when it is back', async () => {
    const backup = await take({ label: 'kept' });
    await s3.stopServer();
    const made = await admin(app).post('/api/backup/create', { label: 'while away' });
    expect(made.status).toBe(201);
    expect((await admin(app).delete(`/api/backup/${backup.id as string}`)).status).toBe(204);
    expect((await admin(app).get(`/api/backup/${backup.id as string}`)).status).toBe(404);
    await eventually(
      async () =>
        (await admin(app).get(`/api/jobs/${made.body.jobId as string}`)).body.logs
          .map((line: any) => line.message)
          .join(' '),
      (text) => text.includes('store_unavailable'),
    );
    s3.startServer();
    await eventually(
      async () => (await admin(app).get(`/api/backup/${made.body.id as string}`)).body.status,
      (status) => status === 'completed',
      { withinMs: 60_000 },
    );
    await eventually(
      () => s3.keys(),
      (keys) => keys.length === 1 && keys[0] === `nightly/${made.body.archive as string}`,
      { withinMs: 60_000 },
    );
    expect(await s3.uploads()).toEqual([]);
  }, 120_000);
});
