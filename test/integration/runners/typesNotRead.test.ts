import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { ApprovalRecord } from '../../../api/approvals/schemas.ts';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { announceWorker, removeWorker } from '../../../db/jobs/workers.ts';
import { createRemoteTypes } from '../../../services/runners/remoteTypes.ts';
import { approve, createRequest } from '../../support/approvals.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { withClockAhead } from '../../support/clock.ts';
import { createHandRunner } from '../../support/runner.ts';
import {
  backdateSchedule,
  createMinutelySchedule,
  listRuns,
  minuteFromNow,
  triggerSchedule,
} from '../../support/schedules.ts';
import { admin, createUser } from '../../support/users.ts';

const TYPE = 'hand.unread';

/** Longer ago than an occurrence is left to processes that know its type. */
const OVERDUE = minuteFromNow(-30);
const overdueFields = { jobType: TYPE, catchupWindowSeconds: 7_200 };

let app: TestApp;
let root: TestClient;
let owner: TestClient;
beforeAll(async () => {
  // No worker decides before the test does.
  app = await startApp({ HOLDFAST_ROLE: 'api' });
  root = admin(app);
  owner = app.client;
  await createUser(app, 'viewer');
  await createHandRunner(app, TYPE);
});
afterAll(() => app.stop());

/** As in a version that does not know the types of runners. */
async function dropTypes(): Promise<void> {
  app.deps.jobTypes.useRemote(() => Promise.resolve([]));
  await app.deps.jobTypes.refresh();
}

/** The process has not read the types of runners, as after its start. The next time it will. */
async function forgetTypes(): Promise<void> {
  const { db, jobTypes, notifications, log } = app.deps;
  await dropTypes();
  createRemoteTypes({ db, jobTypes, notifications, log });
}

async function overdueSchedule(fields: object = {}): Promise<string> {
  const { id } = await createMinutelySchedule(owner, { ...overdueFields, ...fields });
  await backdateSchedule(app, id, OVERDUE);
  return id;
}

const fire = (id: string, dueAt: Date) => app.deps.runner.fireOccurrence(id, dueAt);

test('an overdue occurrence is fired', async () => {
  const id = await overdueSchedule();
  await forgetTypes();
  expect(await fire(id, OVERDUE)).toMatchObject({ outcome: 'fired' });
});

test('a buffered run is released', async () => {
  const id = await overdueSchedule({ overlapPolicy: 'bufferOne' });
  const { jobId = '' } = await fire(id, OVERDUE);
  expect(await fire(id, new Date(OVERDUE.getTime() + 60_000))).toEqual({ outcome: 'buffered' });
  await owner.post(`/api/jobs/${jobId}/cancel`).expect(202);
  await forgetTypes();
  expect(await app.deps.runner.releaseBuffered(id)).toMatchObject({ outcome: 'fired' });
});

test('a schedule is triggered, and its job is created again', async () => {
  const { id } = await createMinutelySchedule(owner, { jobType: TYPE });
  await forgetTypes();
  const { jobId } = await triggerSchedule(owner, id);
  await owner.post(`/api/jobs/${jobId}/cancel`).expect(202);
  await forgetTypes();
  await owner.post(`/api/jobs/${jobId}/retry`).expect(201);
});

test('an approved request is executed', async () => {
  const { id } = await createRequest(owner, { jobType: TYPE, jobPayload: {} });
  await approve(app.client.as({ actor: 'ann', roles: 'approver' }), id).expect(200);
  await app.deps
    .db('approvals')
    .where({ id })
    .update({ updated_at: new Date(0) });
  await forgetTypes();
  await app.deps.approvals.execution.createBoundJob(id);
  const request = await owner.get<ApprovalRecord>(`/api/workflows/${id}`).expect(200);
  expect(request).toMatchObject({ error: null, jobId: expect.any(String) });
});

test('requests that name a type find it', async () => {
  await forgetTypes();
  const { id } = await createMinutelySchedule(owner, { jobType: TYPE });
  await forgetTypes();
  await owner.put<ScheduleRecord>(`/api/schedules/${id}`, { cronExpression: '1 * * * *' });
  const { id: other } = await createMinutelySchedule(owner);
  const change = { jobType: TYPE, payload: {} };
  await forgetTypes();
  await owner.put(`/api/schedules/${other}`, change).expect(200);
  const periods = { jobTypes: { [TYPE]: { jobLogs: 200 } } };
  await root.post('/api/inventory/tenants', { id: 'kept', name: 'Kept' }).expect(201);
  await forgetTypes();
  await root.put('/api/retention/kept', periods).expect(200);
  await forgetTypes();
  const user: { id: string } = await app.deps.db('users').first('id');
  const explained = `/api/rbac/explain?userId=${user.id}&permission=job:write&jobType=${TYPE}`;
  await root.get(explained).expect(200);
});

describe('with a type that this version does not know', () => {
  // The next tests know it again.
  afterEach(forgetTypes);

  test('an occurrence is left to others for ten minutes, and fails then', async () => {
    const id = await overdueSchedule();
    await dropTypes();
    const dueAt = minuteFromNow(-8);
    expect(await fire(id, dueAt)).toEqual({ outcome: 'left_to_others' });
    // By the clock of the database.
    expect(await withClockAhead(3_600_000, () => fire(id, dueAt))).toEqual({
      outcome: 'left_to_others',
    });
    expect(await listRuns(owner, id)).toEqual([]);
    expect(await fire(id, minuteFromNow(-11))).toMatchObject({ outcome: 'failed' });
    expect(await listRuns(owner, id)).toMatchObject([
      { outcome: 'failed', reason: 'unknown_job_type' },
    ]);
  });

  test('the ten minutes begin after the delay of the schedule', async () => {
    const id = await overdueSchedule({ jitterSeconds: 1_500 });
    await backdateSchedule(app, id, minuteFromNow(-60));
    await dropTypes();
    expect(await fire(id, minuteFromNow(-30))).toEqual({ outcome: 'left_to_others' });
    expect(await fire(id, minuteFromNow(-36))).toMatchObject({ outcome: 'failed' });
  });

  test('an occurrence and a buffered run are left to a worker that knows it, however late', async () => {
    const id = await overdueSchedule({ overlapPolicy: 'bufferOne' });
    const { jobId = '' } = await fire(id, OVERDUE);
    const next = new Date(OVERDUE.getTime() + 60_000);
    expect(await fire(id, next)).toEqual({ outcome: 'buffered' });
    await owner.post(`/api/jobs/${jobId}/cancel`).expect(202);
    const { db, runner } = app.deps;
    await db('schedule_runs').where({ schedule_id: id }).update({ decided_at: OVERDUE });
    await dropTypes();
    // It was heard of before an outage.
    await announceWorker(db, 'wrk_next', { activity: 1, delivery: 1 }, [TYPE]);
    await db('workers').update({ seen_at: minuteFromNow(-30) });
    const later = new Date(OVERDUE.getTime() + 120_000);
    expect(await fire(id, later)).toEqual({ outcome: 'left_to_others' });
    await runner.releaseBuffered(id);
    expect((await listRuns(owner, id)).map(({ outcome }) => outcome)).toEqual([
      'fired',
      'buffered',
    ]);
    await removeWorker(db, 'wrk_next');
    expect(await runner.releaseBuffered(id)).toMatchObject({ reason: 'unknown_job_type' });
    expect(await fire(id, later)).toMatchObject({ reason: 'unknown_job_type' });
  });

  test.each([
    ['for now', null, 'unknown_job_type'],
    // It was approved with another time.
    ['later than it was to be executed', minuteFromNow(-300), 'content_mismatch'],
  ])(
    'a request approved %s is left to others for ten minutes, and fails then',
    async (_, executeAt, code) => {
      const { id } = await createRequest(owner, { jobType: TYPE, jobPayload: {} });
      await approve(app.client.as({ actor: 'ann', roles: 'approver' }), id).expect(200);
      await dropTypes();
      const executeAfter = async (minutes: number) => {
        await app.deps
          .db('approvals')
          .where({ id })
          .update({ execute_at: executeAt, updated_at: new Date(Date.now() - minutes * 60_000) });
        const askAgainMs = await app.deps.approvals.execution.createBoundJob(id);
        const { execution, error } = await owner
          .get<ApprovalRecord>(`/api/workflows/${id}`)
          .expect(200);
        return { waits: askAgainMs > 0, execution, error: error?.code };
      };
      expect(await executeAfter(9)).toEqual({ waits: true, execution: 'queued' });
      expect(await executeAfter(11)).toEqual({
        waits: false,
        execution: 'failed',
        error: code,
      });
    },
  );
});
