import { describe, expect, test } from '@jest/globals';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { TestApp } from '../support/app.ts';
import { backUp, dump, STATE, withBackups, type archiveFolder } from '../support/backups.ts';
import type { TestClient } from '../support/client.ts';
import { making } from '../support/inventory.ts';

let archives: Awaited<ReturnType<typeof archiveFolder>>;
let app: TestApp;
let root: TestClient;
withBackups((there) => void ({ app, root, archives } = there));

const make = making(() => root);
const take = backUp(() => root);

describe('a backup', () => {
  test('is made, read, listed, restored from and deleted', async () => {
    const site = await make('sites', { name: 'ams1', description: 'before' });
    await make('prefixes', { cidr: '10.0.0.0/8' });
    const backup = await take({ mode: 'full', label: 'first' });
    expect(backup).toMatchObject({
      mode: 'full',
      label: 'first',
      engine: 'snapshot',
      store: 'folder',
      workflowId: `backup:${backup.id}`,
    });
    expect(await archives.files()).toEqual([backup.archive]);
    const before = await dump(app.databaseUrl, STATE);
    await root.put(`/api/inventory/sites/${site.id}`, { description: 'after' });
    await make('sites', { name: 'fra1' });
    const look = await root.post('/api/backup/restore/validate', { backupId: backup.id });
    expect([look.status, look.body.errors]).toEqual([200, []]);
    expect(look.body.preview.counts).toMatchObject({ created: 0, changed: 1, deleted: 1 });
    const restored = await root.post(
      '/api/backup/restore',
      { backupId: backup.id, planHash: look.body.planHash },
      { prefer: 'wait=50' },
    );
    expect([restored.status, restored.body.error, restored.body.status]).toEqual([
      202,
      null,
      'succeeded',
    ]);
    expect(await dump(app.databaseUrl, STATE)).toEqual(before);
    const list = await root.get('/api/backup');
    expect(list.body.backups.map((each: any) => each.label)).toEqual(['before a restore', 'first']);
    expect((await root.delete(`/api/backup/${backup.id}`)).status).toBe(204);
    expect((await root.get(`/api/backup/${backup.id}`)).status).toBe(404);
    expect(await archives.files()).toEqual([`${restored.body.safetyBackupId as string}.hfb`]);
  });

  test('whose archive was found damaged is not restorable, and says so until it could be read again', async () => {
    const backup = await take({ label: 'damaged' });
    const read = async () =>
      (await root.get(`/api/backup/${backup.id as string}`)).body.restorePreview;
    const validate = async () =>
      (await root.post('/api/backup/restore/validate', { backupId: backup.id })).body;
    expect((await validate()).valid).toBe(true);
    expect(await read()).toMatchObject({
      restorable: true,
      reason: null,
      lastValidation: { valid: true, errors: [] },
    });
    const file = path.join(archives.folder, backup.archive as string);
    const whole = await readFile(file);
    const damaged = Buffer.from(whole);
    damaged.writeUInt8(damaged.readUInt8(damaged.length - 5) ^ 1, damaged.length - 5);
    await writeFile(file, damaged);
    const failed = await validate();
    const found = {
      restorable: false,
      reason: expect.stringContaining('damaged'),
      lastValidation: {
        jobId: failed.jobId,
        valid: false,
        errors: [{ code: 'archive_damaged' }],
        preview: null,
      },
    };
    expect(await read()).toMatchObject(found);
    const proof = (
      await root.post(
        '/api/jobs',
        { type: 'backup.verify', payload: { label: 'damaged' } },
        { prefer: 'wait=30' },
      )
    ).body;
    expect([proof.status, proof.error.code]).toEqual(['failed', 'archive_damaged']);
    expect(await read()).toMatchObject(found);
    await writeFile(file, whole);
    const proven = (
      await root.post(
        '/api/jobs',
        { type: 'backup.verify', payload: { label: 'damaged' } },
        { prefer: 'wait=30' },
      )
    ).body;
    expect(proven).toMatchObject({ status: 'succeeded' });
    // It is whole again; what the last validation said stays said.
    expect(await read()).toMatchObject({
      restorable: true,
      reason: null,
      lastValidation: { jobId: failed.jobId, valid: false },
    });
    const other = (
      await root.post(
        '/api/jobs',
        { type: 'backup.verify', payload: { label: 'never' } },
        { prefer: 'wait=30' },
      )
    ).body;
    expect(other.error).toMatchObject({
      code: 'backup_not_found',
      message: expect.stringContaining('"never"'),
    });
  });
});
