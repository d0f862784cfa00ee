import { expect, test } from '@jest/globals';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import type { JobError } from '../../../domain/jobs/jobs.ts';
import type { TestApp } from '../../support/app.ts';
import { backupCreator, withBackups, type BackupFixture } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';

let app: TestApp;
let root: TestClient;
let archives: BackupFixture['archives'];
withBackups((fixture) => void ({ app, root, archives } = fixture));

const create = () => backupCreator(() => root)({ mode: 'partial', sections: ['settings'] });
const row = (id: string) => app.deps.db('backups').where({ id });
const isDeleted = (id: string) =>
  eventually(
    () => row(id).first(),
    ({ status }) => status === 'deleted',
  );
const cause = { code: 'worker_lost', message: 'Five workers were lost' };

test('an archive that cannot be removed ends in a record that says why and can be deleted again', async () => {
  const backup = await create();
  const url = `/api/backup/${backup.id}`;
  await root.delete(url).expect(204);
  await isDeleted(backup.id);
  // As if its workflow had recorded it.
  await row(backup.id).update({ status: 'deleting', deleted_at: null });
  await app.deps.backups.backupCompletion.failRemoval(backup.id, cause);
  const failed = await root.get<BackupRecord>(url).expect(200);
  expect(failed).toMatchObject({
    status: 'failed',
    error: { code: 'removal_failed', message: expect.stringContaining('Five workers were lost') },
  });
  const events = await app.deps
    .db('events')
    .where({ type: 'backup.failed', subject_id: backup.id })
    .pluck('data');
  expect(events).toEqual([expect.objectContaining({ error: 'removal_failed' })]);
  await root.delete(url).expect(204);
  await isDeleted(backup.id);
});

test('the deletion of a backup ends if its store is not configured any more', async () => {
  const { id } = await create();
  const { backupCompletion } = app.deps.backups;
  await row(id).update({ status: 'deleting', store: 's3' });
  const refused: unknown = await backupCompletion.remove(id).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: 'store_refused', transient: false });
  await backupCompletion.failRemoval(id, refused as JobError);
  const url = `/api/backup/${id}`;
  expect(await root.get<BackupRecord>(url).expect(200)).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('The s3 store is not configured') },
  });
  await root.delete(url).expect(501);
  // It is configured again.
  await row(id).update({ store: 'folder' });
  await root.delete(url).expect(204);
  await isDeleted(id);
});

test('what a failed backup has left is removed by a workflow, and ends in its record', async () => {
  const { reconcile, backupCompletion } = app.deps.backups;
  const error = { code: 'cancelled', message: 'It was cancelled' };
  const leave = async () => {
    const { id, archive } = await create();
    const left = { status: 'failed', error, pending: { attempt: 'none', upload: null } };
    await row(id).update({ ...left, check_at: new Date(0) });
    return { id, archive };
  };
  const removed = await leave();
  await reconcile(AbortSignal.timeout(10_000));
  await eventually(
    () => row(removed.id).first(),
    ({ pending }) => pending === null,
  );
  expect(await archives.files()).not.toContain(removed.archive);
  expect(await row(removed.id).first()).toMatchObject({ status: 'failed', error });
  const kept = await leave();
  await backupCompletion.failRemoval(kept.id, cause);
  expect(await row(kept.id).first()).toMatchObject({
    ...{ status: 'failed', pending: null },
    error: {
      code: 'cancelled',
      message: expect.stringMatching(/^It was cancelled\. .*worker_lost/),
    },
  });
});

test('a backup whose removal has ended is not touched', async () => {
  const { id } = await create();
  await app.deps.backups.backupCompletion.failRemoval(id, cause);
  expect(await row(id).first()).toMatchObject({ status: 'completed', error: null });
});
