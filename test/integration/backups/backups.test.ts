import { describe, expect, test } from '@jest/globals';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { BackupList, BackupRecord, RestoreRecord } from '../../../api/backups/schemas.ts';
import type { RestoreRunRecord, RestoreRunSummary } from '../../../api/backups/runSchemas.ts';
import * as archiveErrors from '../../../db/migrations/0136_archive_errors.ts';
import type { TestApp } from '../../support/app.ts';
import {
  backupCreator,
  restoreValidator,
  dumpTables,
  STATE_TABLES,
  withBackups,
  type createArchiveFolder,
} from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { recordFactory } from '../../support/inventory.ts';
import { waitingForLock } from '../../support/waitingForLock.ts';

let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
let app: TestApp;
let root: TestClient;
withBackups((fixture) => void ({ app, root, archives } = fixture));

const make = recordFactory(() => root);
const createBackup = backupCreator(() => root);
const validate = restoreValidator(() => root);

/** Runs a test restore of the newest backup with a label and returns its job. */
const testRestore = (label: string) =>
  root
    .post<TestRestore>(
      '/api/jobs',
      { type: 'backup.verify', payload: { label } },
      { prefer: 'wait=30' },
    )
    .expect(201);

function withFlippedByte(archive: Buffer): Buffer {
  const damaged = Buffer.from(archive);
  damaged.writeUInt8(damaged.readUInt8(damaged.length - 5) ^ 1, damaged.length - 5);
  return damaged;
}

/** Deletes a backup while a request, which has read it before, waits to lock it. */
async function deleteDuring<T>({ id }: { id: string }, request: () => PromiseLike<T>): Promise<T> {
  const { db } = app.deps;
  const answer = await db.transaction(async (trx) => {
    await trx('backups').where({ id }).update({ status: 'deleting' });
    const waiting = Promise.resolve(request());
    await eventually(
      () => waitingForLock(db, 'transactionid'),
      (found) => found.length > 0,
    );
    return { waiting };
  });
  return answer.waiting;
}

type NamedRun = RestoreRunRecord & { included: unknown };
type TestRestore = { status: string; error: { code: string; message: string } | null };

describe('a backup', () => {
  test('is created, read, listed, restored and deleted', async () => {
    const site = await make('sites', { name: 'ams1', description: 'before' });
    await make('prefixes', { cidr: '10.0.0.0/8' });
    const backup = await createBackup({ mode: 'full', label: 'first' });
    expect(backup).toMatchObject({
      mode: 'full',
      label: 'first',
      engine: 'snapshot',
      store: 'folder',
      workflowId: `backup:${backup.id}`,
    });
    expect(await archives.files()).toEqual([backup.archive]);
    const before = await dumpTables(app.databaseUrl, STATE_TABLES);
    await root.put(`/api/inventory/sites/${site.id}`, { description: 'after' });
    await make('sites', { name: 'fra1' });
    const validation = await validate({ backupId: backup.id });
    expect(validation.errors).toEqual([]);
    expect(validation.preview.counts).toMatchObject({ created: 0, changed: 1, deleted: 1 });
    const restored = await root
      .post<RestoreRecord>(
        '/api/backup/restore',
        { backupId: backup.id, planHash: validation.planHash },
        { prefer: 'wait=50' },
      )
      .expect(202);
    expect([restored.error, restored.status]).toEqual([null, 'succeeded']);
    expect(await dumpTables(app.databaseUrl, STATE_TABLES)).toEqual(before);
    const { backups } = await root.get<BackupList>('/api/backup').expect(200);
    expect(backups.map(({ label, keptAs }) => [label, keptAs])).toEqual([
      ['pre-restore', ['last']],
      ['first', ['all']],
    ]);
    const preRestore = `/api/backup/${restored.preRestoreBackupId}`;
    expect((await root.get<BackupRecord>(preRestore).expect(200)).preRestoreOf).toEqual({
      jobId: restored.jobId,
      backupId: backup.id,
    });
    const { items } = await root
      .get<{ items: RestoreRunSummary[] }>(`/api/backup/${backup.id}/runs`)
      .expect(200);
    expect(
      items.map(({ purpose, status, valid, counts }) => [purpose, status, valid, counts?.deleted]),
    ).toEqual([
      ['restore', 'succeeded', true, 1],
      ['validate', 'succeeded', true, 1],
    ]);
    const run = await root
      .get<NamedRun>(`/api/backup/${backup.id}/runs/${restored.jobId}?include=labels`)
      .expect(200);
    expect(run).toMatchObject({
      preRestoreBackupId: restored.preRestoreBackupId,
      outcome: { changed: 1, deleted: 1 },
      included: { labels: { sites: { [site.id]: 'ams1' } } },
    });
    await root.get(`${preRestore}/runs/${restored.jobId}`).expect(404);
    await root.delete(`/api/backup/${backup.id}`).expect(204);
    await root.get(`/api/backup/${backup.id}`).expect(404);
    expect(await archives.files()).toEqual([`${restored.preRestoreBackupId}.hfb`]);
  });

  test('is pruned with its series, also if its version had other sections', async () => {
    const { db } = app.deps;
    const nightly = { label: 'all nights', retention: { last: 1 } };
    const oldest = await createBackup(nightly);
    await db('backups').where({ id: oldest.id }).update({ sections: '["settings", "inventory"]' });
    const newest = await createBackup(nightly);
    const listed = async () =>
      (await root.get<BackupList>('/api/backup?label=all nights').expect(200)).backups;
    const remaining = await eventually(listed, (found) => found.length === 1);
    expect(remaining[0]?.id).toBe(newest.id);
  });

  test('is not pruned with others if its archive was found in the store', async () => {
    const { db } = app.deps;
    const request = { mode: 'partial', sections: ['settings'], label: 'imported from store' };
    const found = await createBackup(request);
    await db('backups').where({ id: found.id }).update({ created_by: 'system:register' });
    const first = await createBackup({ ...request, retention: { last: 1 } });
    const second = await createBackup({ ...request, retention: { last: 1 } });
    const listed = async () =>
      (await root.get<BackupList>('/api/backup?label=imported from store').expect(200)).backups;
    const remaining = await eventually(listed, (all) => all.every(({ id }) => id !== first.id));
    expect(remaining.map(({ id, keptAs }) => [id, keptAs])).toEqual([
      [second.id, ['last']],
      [found.id, ['all']],
    ]);
  });

  test('says where it is stored, and what its sections refer to and need', async () => {
    const { storage, sections } = await root.get<BackupList>('/api/backup').expect(200);
    expect(storage).toMatchObject({ store: 'folder', problems: [] });
    expect(sections.find(({ name }) => name === 'inventory')?.refersTo).toEqual(['settings']);
    expect(sections.find(({ name }) => name === 'access')).toMatchObject({
      refersTo: expect.arrayContaining(['inventory']),
      readPermission: 'rbac:read',
      restorePermissions: ['rbac:write', 'user:write', 'auth:write'],
    });
  });

  test('names the schedule that made it, and what keeps it', async () => {
    const schedule = await root
      .post<{ id: string }>('/api/backup/schedules', {
        name: 'hourly',
        cronExpression: '0 * * * *',
        label: 'hourly',
        mode: 'partial',
        sections: ['settings'],
        retention: { daily: 2 },
      })
      .expect(201);
    const settings = { mode: 'partial', sections: ['settings'], label: 'hourly' };
    await createBackup(settings);
    const { jobId } = await root
      .post<{ jobId: string }>(`/api/schedules/${schedule.id}/trigger`)
      .expect(202);
    await root.get(`/api/jobs/${jobId}`, { prefer: 'wait=30' }).expect(200);
    const listed = async () =>
      (await root.get<BackupList>('/api/backup?label=hourly').expect(200)).backups.map(
        ({ scheduleId, keptAs }) => [scheduleId, keptAs],
      );
    expect(await listed()).toEqual([[schedule.id, ['newest', 'daily']]]);
    const hold = await root
      .post<{ id: string }>('/api/legal-holds', { reason: 'a case' })
      .expect(201);
    expect(await listed()).toEqual([[schedule.id, ['newest', 'daily', 'legal_hold']]]);
    await root.post(`/api/legal-holds/${hold.id}/release`, { reason: 'closed' });
  });

  test('with a damaged archive is not restorable until the archive can be read again', async () => {
    const backup = await createBackup({ label: 'damaged' });
    const read = async () =>
      (await root.get<BackupRecord>(`/api/backup/${backup.id}`).expect(200)).restorePreview;
    expect((await validate({ backupId: backup.id })).valid).toBe(true);
    expect(await read()).toMatchObject({
      restorable: true,
      reason: null,
      lastValidation: { valid: true, errors: [] },
    });
    const file = path.join(archives.folder, backup.archive);
    const whole = await readFile(file);
    await writeFile(file, withFlippedByte(whole));
    const failed = await validate({ backupId: backup.id });
    const unrestorable = {
      restorable: false,
      reason: expect.stringContaining('damaged'),
      lastValidation: {
        jobId: failed.jobId,
        valid: false,
        errors: [{ code: 'archive_damaged' }],
        preview: null,
      },
    };
    expect(await read()).toMatchObject(unrestorable);
    const failedTest = await testRestore('damaged');
    expect([failedTest.status, failedTest.error?.code]).toEqual(['failed', 'archive_damaged']);
    expect(await read()).toMatchObject(unrestorable);
    await writeFile(file, whole);
    const successfulTest = await testRestore('damaged');
    expect(successfulTest).toMatchObject({ status: 'succeeded' });
    // The archive is complete again; the last validation remains as it was.
    expect(await read()).toMatchObject({
      restorable: true,
      reason: null,
      lastValidation: { jobId: failed.jobId, valid: false },
    });
    const other = await testRestore('never');
    expect(other.error).toMatchObject({
      code: 'backup_not_found',
      message: expect.stringContaining('"never"'),
    });
  });
});

describe('the retention of a series', () => {
  const settings = { mode: 'partial', sections: ['settings'], label: 'damages' };
  const listed = async (query: string) =>
    (await root.get<BackupList>(`/api/backup?label=damages${query}`).expect(200)).backups;

  test('does not count an archive that the last load with a result found damaged', async () => {
    const good = await createBackup(settings);
    const damaged = await createBackup(settings);
    const file = path.join(archives.folder, damaged.archive);
    await writeFile(file, withFlippedByte(await readFile(file)));
    expect((await testRestore('damages')).error?.code).toBe('archive_damaged');
    // A load that does not reach the archive says nothing about it.
    await rm(file);
    await mkdir(file);
    expect((await testRestore('damages')).error?.code).toBe('store_refused');
    const newest = await createBackup({ ...settings, retention: { last: 2 } });
    expect((await listed('')).map(({ id, keptAs }) => [id, keptAs])).toEqual([
      [newest.id, ['last']],
      [damaged.id, ['last']],
      [good.id, ['last']],
    ]);
    expect((await listed('&archiveError=none')).map(({ id }) => id)).toEqual([newest.id, good.id]);
    expect(await listed('&archiveError=archive_damaged')).toMatchObject([
      { id: damaged.id, archiveError: { code: 'archive_damaged' } },
    ]);
  });

  test('knows after an upgrade what earlier loads have found', async () => {
    const [before] = await listed('&archiveError=archive_damaged');
    const rollback = new Error('rolled back');
    const migrated = app.deps.db.transaction(async (trx) => {
      await archiveErrors.down(trx);
      await archiveErrors.up(trx);
      const found: unknown = await trx('backups')
        .whereNotNull('archive_error')
        .select('id', 'archive_error');
      expect(found).toEqual([{ id: before?.id, archive_error: before?.archiveError }]);
      throw rollback;
    });
    await expect(migrated).rejects.toBe(rollback);
  });
});

describe('a backup that is deleted while a job that needs it is requested', () => {
  test('is not found', async () => {
    const backup = await createBackup({ label: 'deleted' });
    const { status } = await deleteDuring(backup, () =>
      root.post('/api/backup/restore/validate', { backupId: backup.id }),
    );
    expect(status).toBe(404);
  });

  test('is not the newest one', async () => {
    const older = await createBackup({ label: 'newest' });
    const newest = await createBackup({ label: 'newest' });
    expect(await deleteDuring(newest, () => testRestore('newest'))).toMatchObject({
      status: 'succeeded',
    });
    const { restoreTestedAt } = await root.get<BackupRecord>(`/api/backup/${older.id}`).expect(200);
    expect(restoreTestedAt).not.toBeNull();
  });
});
