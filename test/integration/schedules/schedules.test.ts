import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { PreviewRecord, RunRecord, ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { findOverdue } from '../../../db/schedules/schedules.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import {
  fieldErrors,
  listAudit,
  readSchedule,
  triggerSchedule,
  type PageOf,
} from '../../support/schedules.ts';
import { admin, createUser, type TestUser } from '../../support/users.ts';
import { waitingForLock } from '../../support/waitingForLock.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

let tenants = 0;
const clientOfNewTenant = (): TestClient => app.client.as({ tenant: `t${tenants++}` });
const request = {
  name: 'nightly',
  cronExpression: '30 2 * * mon-fri',
  timezone: 'Europe/London',
  jobType: 'core.echo',
  payload: { hello: 1 },
  enabled: true,
};
let created = 0;
const createSchedule = (client: TestClient, fields: object = {}): Promise<ScheduleRecord> =>
  client
    .post<ScheduleRecord>('/api/schedules', {
      ...request,
      name: `nightly ${++created}`,
      ...fields,
    })
    .expect(201);
const listSchedules = (client: TestClient, query = ''): Promise<PageOf<ScheduleRecord>> =>
  client.get<PageOf<ScheduleRecord>>(`/api/schedules?${query}`).expect(200);
const listIds = async (client: TestClient, query = ''): Promise<string[]> =>
  (await listSchedules(client, query)).items.map(({ id }) => id);
const updateSchedule = (client: TestClient, id: string, change: object) =>
  client.put<ScheduleRecord>(`/api/schedules/${id}`, change).expect(200);
const rejectedUpdate = (client: TestClient, id: string, change: object, status = 400) =>
  client.put<ProblemBody>(`/api/schedules/${id}`, change).expect(status);
const createRole = (id: string, permissions: string[]) =>
  admin(app).post('/api/rbac/roles', { id, name: id, permissions }).expect(201);

it('changes its timing at one time, before which its last occurrence cannot come', async () => {
  const client = clientOfNewTenant();
  const { id } = await createSchedule(client);
  let reads = 0;
  const note = ({ sql }: { sql: string }) =>
    void (reads += Number(sql.includes('clock_timestamp() AS now')));
  app.deps.db.on('query', note);
  await updateSchedule(client, id, { cronExpression: '0 3 * * *' });
  app.deps.db.off('query', note);
  expect(reads).toBe(1);
});

describe('the spread of schedules', () => {
  it('grows with what the tenant owns, and is read-only', async () => {
    const client = clientOfNewTenant();
    const spreads: number[] = [];
    for (let n = 0; n < 12; n++) spreads.push((await createSchedule(client)).spreadSeconds);
    expect(spreads).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
    const { items } = await listSchedules(client);
    expect(items[0]).toMatchObject({ spreadSeconds: 2 });
    const last = items[0] as ScheduleRecord;
    const { spreadSeconds } = await updateSchedule(client, last.id, last);
    expect(spreadSeconds).toBe(2);
    const refused = await rejectedUpdate(client, last.id, { spreadSeconds: 0 });
    expect(fieldErrors(refused)).toEqual([['/spreadSeconds', 'read_only']]);
    expect((await createSchedule(clientOfNewTenant())).spreadSeconds).toBe(0);
  });

  it('grows with schedules that are created at the same time', async () => {
    const client = clientOfNewTenant();
    const created = await Promise.all(Array.from({ length: 15 }, () => createSchedule(client)));
    const spreads = created.map(({ spreadSeconds }) => spreadSeconds).sort((a, b) => a - b);
    expect(spreads).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5]);
  });

  it('delays what counts as overdue', async () => {
    const { db } = app.deps;
    const { id } = await createSchedule(clientOfNewTenant());
    const dueAt = new Date();
    await db('schedules').where({ id }).update({ next_due_at: dueAt, spread_seconds: 30 });
    const isOverdue = async (seconds: number) =>
      (await findOverdue(db, new Date(dueAt.getTime() + seconds * 1_000), 1_000)).includes(id);
    expect([await isOverdue(34), await isOverdue(35)]).toEqual([false, true]);
  });
});

describe('a schedule', () => {
  it('is created, read, listed, updated and deleted', async () => {
    const client = clientOfNewTenant();
    const { status, headers, body } = await client.post<ScheduleRecord>('/api/schedules', request);
    expect(status).toBe(201);
    const { id } = body;
    expect(headers.get('location')).toBe(`/api/schedules/${id}`);
    expect(body).toMatchObject({
      ...request,
      state: 'active',
      overlapPolicy: 'skip',
      catchupWindowSeconds: 3_600,
      jitterSeconds: 0,
      maxRuns: null,
      runCount: 0,
      lastRun: null,
      version: 1,
      temporalScheduleId: `schedule:${id}`,
    });
    expect(body.nextRuns).toHaveLength(5);
    expect(await listIds(client)).toEqual([id]);

    const ifMatch = { 'if-match': '"1"' };
    const change = { name: 'weekly', cronExpression: '@weekly', maxRuns: 3 };
    const updated = await client
      .put<ScheduleRecord>(`/api/schedules/${id}`, change, ifMatch)
      .expect(200);
    expect(updated).toMatchObject({ ...change, version: 2, payload: request.payload });
    await client.put(`/api/schedules/${id}`, { name: 'late' }, ifMatch).expect(412);
    await client.delete(`/api/schedules/${id}`).expect(204);
    await client.get(`/api/schedules/${id}`).expect(404);
    expect(await listIds(client)).toEqual([]);
  });

  it('is in UTC, enabled and without payload by default', async () => {
    const { timezone, enabled, payload } = await createSchedule(clientOfNewTenant(), {
      timezone: undefined,
      enabled: undefined,
      payload: undefined,
    });
    expect({ timezone, enabled, payload }).toEqual({ timezone: 'UTC', enabled: true, payload: {} });
  });

  it('belongs to the platform by default', async () => {
    const platformAdmin = app.client.as({ roles: 'platform-admin' });
    const { id, tenantId } = await createSchedule(platformAdmin);
    expect(tenantId).toBe('platform');
    await platformAdmin.get('/api/schedules').expect(200);
    await clientOfNewTenant().get(`/api/schedules/${id}`).expect(404);
  });

  it('is rejected with every invalid field of the expression, and the time zone', async () => {
    const problem = await clientOfNewTenant()
      .post<ProblemBody>('/api/schedules', {
        ...request,
        cronExpression: '60 24 * * 9',
        timezone: 'Mars/Olympus',
      })
      .expect(400);
    expect(fieldErrors(problem)).toEqual([
      ['/cronExpression', 'cron_minute'],
      ['/cronExpression', 'cron_hour'],
      ['/cronExpression', 'cron_day_of_week'],
      ['/timezone', 'unknown_timezone'],
    ]);
  });

  it.each([
    [{ jobType: 'nope' }, '/jobType', 'unknown_job_type'],
    [{ jobType: 'webhook.deliver' }, '/jobType', 'job_type_internal'],
    [{ jobType: 'core.sleep', payload: { durationMs: 'x' } }, '/payload/durationMs', 'type'],
    [{ endAt: '2020-01-01T00:00:00Z' }, '/endAt', 'never_occurs'],
    [{ startAt: '2040-01-01T00:00:00Z', endAt: '2039-01-01T00:00:00Z' }, '/endAt', 'order'],
    [{ overlapPolicy: 'maybe' }, '/overlapPolicy', 'enum'],
    [{ catchupWindowSeconds: 9 }, '/catchupWindowSeconds', 'minimum'],
    [
      { jobType: 'http.request', payload: { url: 'https://example.net/?token=********' } },
      '/payload/url',
      'masked',
    ],
    [{ startAt: '1971-12-31T23:59:59Z' }, '/startAt', 'range'],
    [{ endAt: '9999-12-31T23:59:59Z' }, '/endAt', 'range'],
    [{ retryPolicy: { maxAttempts: 0 } }, '/retryPolicy/maxAttempts', 'minimum'],
    [{ owner: 'me' }, '/owner', 'unknown_field'],
  ])('is rejected with %j', async (fields, pointer, code) => {
    const problem = await clientOfNewTenant()
      .post<ProblemBody>('/api/schedules', { ...request, ...fields })
      .expect(400);
    expect(fieldErrors(problem)).toEqual([[pointer, code]]);
  });

  it('masks the secrets of its payload, and keeps them for an unchanged payload', async () => {
    const client = clientOfNewTenant();
    const { id, payload: masked } = await createSchedule(client, {
      jobType: 'http.request',
      payload: {
        url: 'https://example.net/hook',
        headers: { Authorization: 'Bearer s3cret' },
      },
    });
    expect(JSON.stringify(masked)).not.toContain('s3cret');
    // The payload as it was read can be sent back.
    await updateSchedule(client, id, { payload: masked, name: 'same' });
    // With another URL, or as another type, the secrets would leak.
    const otherUrl = { payload: { ...masked, url: 'https://evil.example' } };
    expect(fieldErrors(await rejectedUpdate(client, id, otherUrl))).toEqual([
      ['/payload/headers/Authorization', 'masked'],
    ]);
    const otherType = { jobType: 'core.echo' };
    expect(fieldErrors(await rejectedUpdate(client, id, otherType))).toEqual([
      ['/payload', 'required'],
    ]);
    const asEcho = { jobType: 'core.echo', payload: masked };
    expect(fieldErrors(await rejectedUpdate(client, id, asEcho))).toEqual([
      ['/payload/headers/Authorization', 'masked'],
    ]);
    expect(JSON.stringify(await listAudit(admin(app), id))).not.toContain('s3cret');
  });

  it('is refused with at most 50 errors for the masks in its payload, however many there are', async () => {
    const name = 'k'.repeat(17_000);
    const payload = { [name]: { password: Array.from({ length: 50_000 }, () => '********') } };
    const problem = await clientOfNewTenant()
      .post<ProblemBody>('/api/schedules', { ...request, jobType: 'core.echo', payload })
      .expect(400);
    expect(fieldErrors(problem)).toEqual(
      Array.from({ length: 50 }, () => [`/payload/${'k'.repeat(991)}`, 'masked']),
    );
  });

  it('is created once by requests with the same idempotency key', async () => {
    const client = clientOfNewTenant();
    const create = () =>
      client
        .post<ScheduleRecord>('/api/schedules', request, { 'idempotency-key': 'k1' })
        .expect(201);
    const first = await create();
    const second = await create();
    expect(second.id).toBe(first.id);
    expect(await listIds(client)).toHaveLength(1);
  });
});

describe('the name of a schedule', () => {
  const backup = { name: 'nightly', cronExpression: '@daily', mode: 'full', label: 'l' };

  it('is unique in its tenant: on creation, on renaming, and for schedules of backups', async () => {
    const client = app.client.as({ roles: 'platform-admin', tenant: 'names' });
    const { id } = await createSchedule(client, { name: 'nightly' });
    const other = await createSchedule(client, { name: 'weekly' });
    const refusals = [
      client.post<ProblemBody>('/api/schedules', request),
      client.post<ProblemBody>('/api/backup/schedules', backup),
      client.put<ProblemBody>(`/api/schedules/${other.id}`, { name: 'nightly' }),
    ];
    for (const refused of refusals)
      expect(await refused.expect(409)).toMatchObject({
        code: 'conflict',
        detail: expect.stringContaining('nightly'),
        conflicts: [{ pointer: '/name', code: 'duplicate' }],
      });
    // Its own name, the name in another tenant and the name of a deleted schedule are free.
    await updateSchedule(client, id, { name: 'nightly', description: 'the same' });
    await createSchedule(clientOfNewTenant(), { name: 'nightly' });
    await client.delete(`/api/schedules/${id}`).expect(204);
    expect(await updateSchedule(client, other.id, { name: 'nightly' })).toMatchObject({
      name: 'nightly',
    });
  });

  it('is assigned once by concurrent requests', async () => {
    const client = clientOfNewTenant();
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => client.post('/api/schedules', request)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });
});

describe('a preview', () => {
  const preview = (body: object) =>
    clientOfNewTenant().post<PreviewRecord>('/api/schedules/preview', body).expect(200);

  it('marks the hour that is skipped and the one that is repeated', async () => {
    const spring = await preview({
      cronExpression: '30 1 * * *',
      timezone: 'Europe/London',
      after: '2027-03-27T12:00:00Z',
      count: 1,
    });
    expect(spring.nextRuns).toEqual([
      { at: null, localTime: '2027-03-28T01:30:00', utcOffset: null, daylightSaving: 'skipped' },
      {
        at: '2027-03-29T00:30:00.000Z',
        localTime: '2027-03-29T01:30:00',
        utcOffset: '+01:00',
        daylightSaving: null,
      },
    ]);
    const autumn = await preview({
      cronExpression: '30 1 * * *',
      timezone: 'Europe/London',
      after: '2027-10-30T12:00:00Z',
      count: 2,
    });
    expect(autumn.nextRuns.map((run) => [run.at, run.utcOffset, run.daylightSaving])).toEqual([
      ['2027-10-31T00:30:00.000Z', '+01:00', 'first'],
      ['2027-10-31T01:30:00.000Z', '+00:00', 'second'],
    ]);
  });

  it('shows how the fields are parsed', async () => {
    const body = await preview({ cronExpression: '0 9 1,15 * mon', timezone: 'asia/kathmandu' });
    expect(body).toMatchObject({
      timezone: 'Asia/Kathmandu',
      days: 'either',
      fields: { minute: [0], hour: [9], dayOfMonth: [1, 15], dayOfWeek: [1] },
    });
    expect(body.nextRuns).toHaveLength(10);
    expect(body.nextRuns[0]?.utcOffset).toBe('+05:45');
  });
});

/** Changes the row of a schedule while a request, which has read it before, waits to lock it. */
async function changeDuring<T>(
  id: string,
  change: object,
  request: () => PromiseLike<T>,
): Promise<T> {
  const answer = await app.deps.db.transaction(async (trx) => {
    await trx('schedules').where({ id }).forUpdate().select('id');
    const waiting = Promise.resolve(request());
    await eventually(
      () => waitingForLock(app.deps.db, 'transactionid'),
      (pids) => pids.length > 0,
    );
    await trx('schedules')
      .where({ id })
      .update({ ...change, version: 2 });
    return { waiting };
  });
  return answer.waiting;
}

describe('a schedule that becomes one that the caller may not run, while a request is made', () => {
  const RESTORE = { job_type: 'backup.restore', payload: '{"backupId":"bkp_x"}' };

  it.each(['trigger', 'resume'])('refuses to %s', async (action) => {
    const client = clientOfNewTenant();
    const { id } = await createSchedule(client, { enabled: false });
    const path = `/api/schedules/${id}/${action}`;
    expect((await changeDuring(id, RESTORE, () => client.post(path, {}))).status).toBe(403);
    expect(await readSchedule(client, id)).toMatchObject({ enabled: false, lastRun: null });
  });

  it('has new times with the rights of the caller alone', async () => {
    const tenant = `t${tenants++}`;
    const { id } = await createSchedule(app.client.as({ tenant }));
    const other = app.client.as({ actor: 'other', roles: 'operator', tenant });
    const { owner, warnings } = await changeDuring(id, RESTORE, () =>
      updateSchedule(other, id, { cronExpression: '* * * * *' }),
    );
    expect(owner).toBe('other');
    expect(warnings?.map(({ code }) => code)).toContain('owner_denied');
  });
});

describe('a schedule that another request changes while a request is made', () => {
  const sent = (client: TestClient, id: string, headers = {}) => ({
    update: () => client.put(`/api/schedules/${id}`, { cronExpression: '7 * * * *' }, headers),
    resume: () => client.post(`/api/schedules/${id}/resume`, {}, headers),
    pause: () => client.post(`/api/schedules/${id}/pause`, {}, headers),
  });

  it.each(['update', 'resume', 'pause'] as const)(
    'is checked again (%s), unless If-Match names another version',
    async (action) => {
      const client = clientOfNewTenant();
      const change = async (headers = {}) => {
        const { id } = await createSchedule(client, { enabled: action === 'pause' });
        const name = `renamed ${id}`;
        const { status } = await changeDuring(id, { name }, sent(client, id, headers)[action]);
        return { status, version: (await readSchedule(client, id)).version, id, name };
      };
      const { id, name, ...changed } = await change();
      expect(changed).toEqual({ status: 200, version: 3 });
      expect((await readSchedule(client, id)).name).toBe(name);
      expect(await change({ 'if-match': '"1"' })).toMatchObject({ status: 412, version: 2 });
    },
  );
});

describe('an update', () => {
  it('is rejected if it leaves no occurrence', async () => {
    const client = clientOfNewTenant();
    const { id } = await createSchedule(client, { endAt: '2040-01-01T00:00:00Z' });
    const problem = await rejectedUpdate(client, id, { startAt: '2039-12-31T23:00:00Z' });
    expect(fieldErrors(problem)).toEqual([['/endAt', 'never_occurs']]);
  });

  it('is rejected for another version, like pausing, resuming and deleting', async () => {
    const client = clientOfNewTenant();
    const { id } = await createSchedule(client);
    const otherVersion = { 'if-match': '"7"' };
    await client.post(`/api/schedules/${id}/pause`, {}, otherVersion).expect(412);
    await client.post(`/api/schedules/${id}/resume`, {}, otherVersion).expect(412);
    await client.delete(`/api/schedules/${id}`, otherVersion).expect(412);
  });

  it('does not say whether a hidden value of the payload was guessed', async () => {
    const tenant = `t${tenants++}`;
    const author = app.client.as({ tenant });
    await createRole('guesser', ['schedule:read', 'schedule:write']);
    const guesser = app.client.as({ actor: 'eve', roles: 'guesser', tenant });
    const payload = { password: 'the-right-one' };
    const answers: object[] = [];
    for (const guess of [payload, { password: 'a-wrong-one' }]) {
      const { id } = await createSchedule(author, { name: 'guessed', payload });
      const shown = await readSchedule(guesser, id);
      expect(shown.payload).toEqual({ password: '********' });
      const invalid = await rejectedUpdate(guesser, id, { payload: guess, cronExpression: '61' });
      expect(await readSchedule(guesser, id)).toEqual(shown);
      const { owner, version, warnings } = await updateSchedule(guesser, id, { payload: guess });
      answers.push({ errors: fieldErrors(invalid), owner, version, warnings });
      await author.delete(`/api/schedules/${id}`).expect(204);
    }
    expect(answers[0]).toMatchObject({ owner: 'eve', warnings: [{ code: 'owner_denied' }] });
    expect(answers[1]).toEqual(answers[0]);
    // What is shown to the author, and to others, can be sent back.
    const { id } = await createSchedule(author, { payload });
    await updateSchedule(guesser, id, { payload: { password: '********' } });
    expect(await updateSchedule(author, id, { payload })).toMatchObject({
      owner: 'alice',
      payload,
    });
  });

  it('of the payload is checked again if the schedule changes in between', async () => {
    const client = clientOfNewTenant();
    const { id } = await createSchedule(client);
    const problem = await changeDuring(
      id,
      { job_type: 'core.sleep', payload: '{"durationMs":1}' },
      () => rejectedUpdate(client, id, { payload: { hello: 2 } }),
    );
    expect(fieldErrors(problem)).toContainEqual(['/payload/durationMs', 'required']);
    expect(await readSchedule(client, id)).toMatchObject({
      jobType: 'core.sleep',
      payload: { durationMs: 1 },
    });
  });

  it('and its reason are in the audit log', async () => {
    const client = clientOfNewTenant();
    const { id } = await createSchedule(client);
    await client.post(`/api/schedules/${id}/pause`, { reason: 'window' }).expect(200);
    await client.post(`/api/schedules/${id}/resume`, { reason: 'done' }).expect(200);
    const entries = await listAudit(admin(app), id);
    expect(entries.map(({ action, after }) => [action, after.reason])).toEqual(
      expect.arrayContaining([
        ['schedule.pause', 'window'],
        ['schedule.resume', 'done'],
      ]),
    );
  });
});

describe('lists', () => {
  it('are filtered, and omit the payload', async () => {
    const client = clientOfNewTenant();
    const one = await createSchedule(client);
    const two = await createSchedule(client, {
      enabled: false,
      jobType: 'core.sleep',
      payload: { durationMs: 1 },
    });
    expect(await listIds(client)).toEqual([two.id, one.id]);
    expect(await listIds(client, 'enabled=true')).toEqual([one.id]);
    expect(await listIds(client, 'jobType=core.sleep')).toEqual([two.id]);
    expect(await listIds(client, 'limit=1')).toEqual([two.id]);
    expect((await listSchedules(client)).items[0]).not.toHaveProperty('payload');
  });

  it('show nothing of other tenants', async () => {
    const [owner, stranger] = [clientOfNewTenant(), clientOfNewTenant()];
    const { id } = await createSchedule(owner);
    const run = await triggerSchedule(owner, id);
    const listLogs = async (client: TestClient, query = '') =>
      (await client.get<PageOf<RunRecord>>(`/api/schedules/logs?${query}`).expect(200)).items;
    expect(await listLogs(owner, `scheduleId=${id}`)).toHaveLength(1);
    expect(await listLogs(stranger, `scheduleId=${id}`)).toEqual([]);
    expect(await listLogs(stranger)).toEqual([]);
    await stranger.get(`/api/schedules/logs/${run.id}`).expect(404);
    await stranger.put(`/api/schedules/${id}`, { name: 'x' }).expect(404);
    await stranger.delete(`/api/schedules/${id}`).expect(404);
    await stranger.post(`/api/schedules/${id}/trigger`).expect(404);
    await stranger.post(`/api/schedules/${id}/pause`, {}).expect(404);
    await stranger.post(`/api/schedules/${id}/resume`, {}).expect(404);
  });
});

describe('permissions', () => {
  it('of its jobs are not required to create a schedule, but to run it', async () => {
    const reader = app.client.as({ roles: 'viewer', tenant: 'rights' });
    await reader.post('/api/schedules', request).expect(403);
    await reader.get('/api/schedules').expect(200);
    await createRole('planner', ['schedule:read', 'schedule:write']);
    const planner = app.client.as({ roles: 'planner', tenant: 'rights' });
    const { id, warnings } = await planner
      .post<ScheduleRecord>('/api/schedules', request)
      .expect(201);
    expect(warnings).toEqual([
      {
        code: 'owner_denied',
        pointer: '/jobType',
        message: expect.stringContaining('need job:write at tenant rights'),
      },
    ]);
    const problem = await planner.post<ProblemBody>(`/api/schedules/${id}/trigger`).expect(409);
    expect(problem.code).toBe('schedule_not_runnable');
  });

  it('held at another tenant do not allow to write', async () => {
    const { client } = await createUser(
      app,
      { roleId: 'viewer', tenantId: 'here' },
      { roleId: 'operator', tenantId: 'there' },
    );
    const { id } = await createSchedule(app.client.as({ tenant: 'here' }));
    await readSchedule(client, id);
    const range = { since: '2026-01-01T00:00:00Z', until: '2026-01-02T00:00:00Z' };
    await client.put(`/api/schedules/${id}`, { name: 'x' }).expect(403);
    await client.delete(`/api/schedules/${id}`).expect(403);
    await client.post(`/api/schedules/${id}/trigger`).expect(403);
    await client.post(`/api/schedules/${id}/backfill`, range).expect(403);
  });

  it('of its jobs are not required to change them; cancelOther requires job:cancel', async () => {
    await createRole('editor', ['schedule:read', 'schedule:write']);
    const editor = app.client.as({ actor: 'eve', roles: 'editor', tenant: 'edits' });
    const { id } = await createSchedule(app.client.as({ tenant: 'edits' }), {
      overlapPolicy: 'cancelOther',
    });
    const { id: other } = await createSchedule(app.client.as({ tenant: 'edits' }));
    const refused = await rejectedUpdate(editor, other, { overlapPolicy: 'cancelOther' }, 403);
    expect(refused.detail).toContain('job:cancel');
    const problem = await editor.post<ProblemBody>(`/api/schedules/${id}/trigger`).expect(403);
    expect(problem.detail).toContain('job:cancel');
    await app.client.as({ tenant: 'edits' }).post(`/api/schedules/${id}/pause`, {}).expect(200);
    await editor.post(`/api/schedules/${id}/resume`, {}).expect(403);
    for (const changed of [
      { cronExpression: '* * * * *' },
      { enabled: true },
      { payload: { hello: 2 } },
      { takeOver: true },
    ])
      expect((await rejectedUpdate(editor, id, changed, 403)).detail).toContain('job:cancel');
    await updateSchedule(editor, id, { cronExpression: '* * * * *', overlapPolicy: 'skip' });
    // Neither the payload nor the retry policy change.
    const change = { name: 'renamed', payload: request.payload, retryPolicy: {} };
    const renamed = await updateSchedule(editor, other, change);
    expect(renamed).toMatchObject({ name: 'renamed', owner: 'alice' });
    expect(renamed.warnings).toBeUndefined();
    for (const changed of [
      { payload: { hello: 2 } },
      { takeOver: true },
      { retryPolicy: { maxAttempts: 9 } },
    ])
      expect(await updateSchedule(editor, other, changed)).toMatchObject({
        owner: 'eve',
        warnings: [{ code: 'owner_denied' }],
      });
  });

  it('keep the fields of a retry policy that an update does not name; null removes one', async () => {
    const client = app.client.as({ tenant: 'retries' });
    const retryPolicy = { maxAttempts: 2, initialIntervalSeconds: 30 };
    const { id } = await createSchedule(client, { retryPolicy });
    const after = async (change: object) =>
      (await updateSchedule(client, id, { retryPolicy: change })).retryPolicy;
    expect(await after({ maxAttempts: 5 })).toEqual({ ...retryPolicy, maxAttempts: 5 });
    expect(await after({})).toEqual({ ...retryPolicy, maxAttempts: 5 });
    expect(await after({ maxAttempts: null })).toEqual({ initialIntervalSeconds: 30 });
  });

  it('are those of the last caller who changed what its jobs do', async () => {
    const first = await createUser(app, { roleId: 'operator', tenantId: 'own' });
    const second = await createUser(app, { roleId: 'operator', tenantId: 'own' });
    const creator = app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'own' });
    const { id, owner } = await createSchedule(creator);
    const ownerAfter = async ({ client }: TestUser, change: object) =>
      (await updateSchedule(client, id, change)).owner;
    expect(owner).toBe('root');
    expect(await ownerAfter(first, { name: 'renamed', payload: request.payload })).toBe('root');
    expect(await ownerAfter(first, { payload: { hello: 2 } })).toBe(first.id);
    expect(await ownerAfter(second, { takeOver: true })).toBe(second.id);
  });
});
