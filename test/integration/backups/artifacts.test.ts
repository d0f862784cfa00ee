import { beforeAll, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { raiseMarks } from '../../../db/retention/state.ts';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import {
  backupCreator,
  recover,
  restorer,
  restoreValidator,
  withBackups,
  type BackupFixture,
} from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { attemptCalls, createHandRunner } from '../../support/runner.ts';
import { admin, createUser } from '../../support/users.ts';

let fixture: BackupFixture;
withBackups((started) => void (fixture = started));

const NAME = 'hand.files';
let backup: BackupRecord;
let job: JobRecord;

beforeAll(async () => {
  const { app, root } = fixture;
  // The service account of the runner needs an owner.
  await createUser(app);
  const hand = await createHandRunner(app, NAME);
  job = await root.post<JobRecord>('/api/jobs', { type: NAME, payload: {} }).expect(201);
  await hand.granted(job.id);
  const { attemptToken } = await hand.begin(job.id, 'run-1').expect(200);
  await hand.client
    .put(`/api/runner/jobs/${job.id}/artifacts/report.csv`, 'port,state\n', {
      'attempt-token': attemptToken,
      'content-type': 'application/octet-stream',
    })
    .expect(200);
  await attemptCalls(hand.client, job.id, attemptToken).end({ result: {} }).expect(200);
  backup = await backupCreator(() => root)();
});

const content = (client: TestClient) =>
  client.get<string>(`/api/jobs/${job.id}/artifacts/report.csv`);

test('the files of jobs can be read after a recovery', async () => {
  const { app, stop } = await recover(fixture, backup);
  try {
    expect(await content(admin(app)).expect(200)).toBe('port,state\n');
  } finally {
    await stop();
  }
});

test('a restored job has its files, which are not removed any more', async () => {
  const { app, root } = fixture;
  const { db } = app.deps;
  await db.transaction(async (trx) => {
    await trx('jobs').where({ id: job.id }).del();
    const removed = await trx('artifact_removals').update({
      due_at: new Date(Date.now() + 3_600_000),
    });
    expect(removed).toBe(1);
  });
  await restorer(() => root)({ backupId: backup.id, sections: ['jobs'] });
  expect(await db('artifact_removals').pluck('object')).toEqual([]);
  expect(await content(root).expect(200)).toBe('port,state\n');
});

test('files that were purged are not restored', async () => {
  const { app, root } = fixture;
  const { db } = app.deps;
  await db('job_artifacts').del();
  const { tenantId, type: jobType, id: untilId } = job;
  await raiseMarks(db, 'jobData', [{ tenantId, jobType, untilId, untilSequence: null }]);
  const { preview } = await restoreValidator(() => root)({ backupId: backup.id });
  expect(preview.tables.find(({ table }) => table === 'job_artifacts')).toMatchObject({
    created: 0,
    purged: 1,
  });
  await restorer(() => root)({ backupId: backup.id, sections: ['jobs'] });
  expect(await db('job_artifacts').pluck('name')).toEqual([]);
});
