import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { sectionsForTenant } from '../../../domain/backups/backups.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { createArchiveFolder } from '../../support/backups.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { jobIdOf, triggerSchedule } from '../../support/schedules.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
let client: TestClient;
beforeAll(async () => {
  archives = await createArchiveFolder();
  app = await startApp(archives.env);
  client = app.client.as({ tenant: 'b' });
});
afterAll(async () => {
  await app.stop();
  await archives.remove();
});

const createSchedule = (fields: object) =>
  client.post<ScheduleRecord>('/api/backup/schedules', fields).expect(201);
const rejectedSchedule = (fields: object) =>
  client.post<ProblemBody>('/api/backup/schedules', fields).expect(400);

/** Runs a schedule now and returns the result of its job. */
async function runSchedule(id: string): Promise<{ jobId: string; result: JobRecord['result'] }> {
  const jobId = jobIdOf(await triggerSchedule(client, id));
  const { result } = await eventually(
    () => client.get<JobRecord>(`/api/jobs/${jobId}`).expect(200),
    ({ status }) => status === 'succeeded',
  );
  return { jobId, result };
}

describe('a backup schedule', () => {
  it('creates backups, and one of backup.verify restores them for a test', async () => {
    const daily = await createSchedule({
      name: 'daily',
      cronExpression: '@daily',
      mode: 'full',
      label: 'daily',
      retention: { last: 2 },
    });
    expect(daily).toMatchObject({
      jobType: 'backup.create',
      payload: { mode: 'full', label: 'daily', retention: { last: 2 } },
      timezone: 'UTC',
      enabled: true,
      catchupWindowSeconds: 21_600,
    });
    const { jobId, result } = await runSchedule(daily.id);
    const { backupId } = result as { backupId: string };
    const readBackup = () => client.get<BackupRecord>(`/api/backup/${backupId}`).expect(200);
    const backup = await readBackup();
    expect(backup).toMatchObject({
      label: 'daily',
      tenantId: 'b',
      status: 'completed',
      jobId,
      restoreTestedAt: null,
    });
    expect(await archives.files()).toEqual([backup.archive]);

    const weekly = await createSchedule({
      name: 'weekly',
      cronExpression: '@weekly',
      jobType: 'backup.verify',
      label: 'daily',
    });
    expect(weekly).toMatchObject({ jobType: 'backup.verify', payload: { label: 'daily' } });
    expect((await runSchedule(weekly.id)).result).toMatchObject({ backupId });
    const tested = await readBackup();
    expect(tested.restoreTestedAt).not.toBeNull();
    const { backups } = await client
      .get<{ backups: BackupRecord[] }>('/api/backup?sort=-restoreTestedAt&limit=1')
      .expect(200);
    expect(backups).toMatchObject([{ id: backupId, restoreTestedAt: tested.restoreTestedAt }]);
  });

  it('of the mode partial without sections makes backups of all sections', async () => {
    const fields = { name: 'parts', cronExpression: '@daily', mode: 'partial', label: 'parts' };
    const { id } = await createSchedule(fields);
    const { backupId } = (await runSchedule(id)).result as { backupId: string };
    const backup = await client.get<BackupRecord>(`/api/backup/${backupId}`).expect(200);
    expect(backup).toMatchObject({ mode: 'partial', sections: sectionsForTenant('b') });
  });

  it('of the mode full ignores sections with a warning, and can be created disabled', async () => {
    const created = await createSchedule({
      name: 'all the same',
      cronExpression: '@daily',
      mode: 'full',
      sections: ['jobs'],
      enabled: false,
    });
    expect(created).toMatchObject({
      payload: { mode: 'full' },
      enabled: false,
      state: 'paused',
      warnings: [{ code: 'sections_ignored', pointer: '/sections' }],
    });
    expect(created.payload).not.toHaveProperty('sections');
  });

  it('of backup.verify has no retention', async () => {
    const schedule = { name: 'some', cronExpression: '@daily' };
    const mixed = await rejectedSchedule({
      ...schedule,
      jobType: 'backup.verify',
      retention: { last: 1 },
    });
    expect(mixed.errors?.[0]?.pointer).toBe('/retention');
  });

  it('warns an owner without the permission of its job type', async () => {
    await admin(app)
      .post('/api/rbac/roles', {
        id: 'jobber',
        name: 'Jobber',
        permissions: ['schedule:read', 'schedule:write', 'job:write'],
      })
      .expect(201);
    const jobber = app.client.as({ roles: 'jobber', tenant: 'b' });
    for (const fields of [{ mode: 'full' }, { jobType: 'backup.verify' }]) {
      const { warnings } = await jobber
        .post<ScheduleRecord>('/api/backup/schedules', {
          name: JSON.stringify(fields),
          cronExpression: '@daily',
          ...fields,
        })
        .expect(201);
      expect(warnings).toMatchObject([
        { code: 'owner_denied', message: expect.stringContaining('need backup:write at tenant b') },
      ]);
    }
  });
});
