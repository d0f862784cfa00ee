import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, startAppOn, type TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { archiveFolder } from '../support/backups.ts';
import { admin, person } from '../support/users.ts';
import type { TestClient } from '../support/client.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

let tenants = 0;
const inTenant = (): TestClient => app.client.as({ tenant: `t${tenants++}` });
const request = {
  name: 'nightly',
  cronExpression: '30 2 * * mon-fri',
  timezone: 'Europe/London',
  jobType: 'core.echo',
  payload: { hello: 1 },
  enabled: true,
};
const make = async (client: TestClient, more: object = {}): Promise<any> => {
  const answer = await client.post('/api/schedules', { ...request, ...more });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body;
};
const pointers = (answer: any) =>
  answer.body.errors?.map((error: any) => [error.pointer, error.code]);
const temporal = (id: string) =>
  app.deps.link.call(5_000, (client) => client.schedule.getHandle(`schedule:${id}`).describe());

describe('a schedule', () => {
  it('is made, read, listed, changed and deleted', async () => {
    const client = inTenant();
    const answer = await client.post('/api/schedules', request);
    expect(answer.status).toBe(201);
    const { id } = answer.body;
    expect(answer.headers.get('location')).toBe(`/api/schedules/${id}`);
    expect(answer.body).toMatchObject({
      ...request,
      state: 'active',
      overlapPolicy: 'skip',
      catchupWindowSeconds: 60,
      jitterSeconds: 0,
      maxRuns: null,
      runCount: 0,
      lastRun: null,
      version: 1,
      temporalScheduleId: `schedule:${id}`,
    });
    expect(answer.body.nextRuns).toHaveLength(5);
    expect((await client.get('/api/schedules')).body.items.map((item: any) => item.id)).toEqual([
      id,
    ]);

    const changed = await client.put(
      `/api/schedules/${id}`,
      { name: 'weekly', cronExpression: '@weekly', maxRuns: 3 },
      { 'if-match': '"1"' },
    );
    expect(changed.body).toMatchObject({
      name: 'weekly',
      cronExpression: '@weekly',
      maxRuns: 3,
      version: 2,
      payload: request.payload,
    });
    expect(
      (await client.put(`/api/schedules/${id}`, { name: 'late' }, { 'if-match': '"1"' })).status,
    ).toBe(412);
    expect((await client.delete(`/api/schedules/${id}`)).status).toBe(204);
    expect((await client.get(`/api/schedules/${id}`)).status).toBe(404);
    expect((await client.get('/api/schedules')).body.items).toEqual([]);
  });

  it('is UTC, enabled and without a payload unless that is given', async () => {
    const { timezone, enabled, payload } = await make(inTenant(), {
      timezone: undefined,
      enabled: undefined,
      payload: undefined,
    });
    expect({ timezone, enabled, payload }).toEqual({ timezone: 'UTC', enabled: true, payload: {} });
  });

  it('stands at the platform unless the tenant is named', async () => {
    const created = await app.client
      .as({ roles: 'platform-admin' })
      .post('/api/schedules', request);
    expect(created.body.tenantId).toBe('platform');
    expect((await app.client.as({ roles: 'platform-admin' }).get('/api/schedules')).status).toBe(
      200,
    );
    expect((await inTenant().get(`/api/schedules/${created.body.id}`)).status).toBe(404);
  });

  it('names every bad field of its expression, and the zone', async () => {
    const answer = await inTenant().post('/api/schedules', {
      ...request,
      cronExpression: '60 24 * * 9',
      timezone: 'Mars/Olympus',
    });
    expect(answer.status).toBe(400);
    expect(pointers(answer)).toEqual([
      ['/cronExpression', 'cron_minute'],
      ['/cronExpression', 'cron_hour'],
      ['/cronExpression', 'cron_day_of_week'],
      ['/timezone', 'unknown_timezone'],
    ]);
  });

  it.each([
    [{ jobType: 'nope' }, '/jobType', 'unknown_job_type'],
    [{ jobType: 'webhook.deliver' }, '/jobType', 'not_direct'],
    [{ jobType: 'core.sleep', payload: { durationMs: 'x' } }, '/payload/durationMs', 'type'],
    [{ endAt: '2020-01-01T00:00:00Z' }, '/endAt', 'never_due'],
    [{ startAt: '2040-01-01T00:00:00Z', endAt: '2039-01-01T00:00:00Z' }, '/endAt', 'order'],
    [{ overlapPolicy: 'maybe' }, '/overlapPolicy', 'enum'],
    [{ catchupWindowSeconds: 9 }, '/catchupWindowSeconds', 'minimum'],
    [
      { jobType: 'http.request', payload: { url: 'https://example.net/?token=********' } },
      '/payload/url',
      'masked',
    ],
    [{ startAt: '0000-01-01T00:00:00Z' }, '/startAt', 'range'],
    [{ endAt: '9999-12-31T23:59:59Z' }, '/endAt', 'range'],
    [{ retryPolicy: { maxAttempts: 0 } }, '/retryPolicy/maxAttempts', 'minimum'],
    [{ owner: 'me' }, '/owner', 'unknown_field'],
  ])('%j is refused', async (more, pointer, code) => {
    const answer = await inTenant().post('/api/schedules', { ...request, ...more });
    expect([answer.status, pointers(answer)]).toEqual([400, [[pointer, code]]]);
  });

  it('is mirrored in Temporal, change by change', async () => {
    const client = inTenant();
    const { id } = await make(client, {
      cronExpression: '5 4 13 * fri',
      jitterSeconds: 30,
      catchupWindowSeconds: 600,
    });
    const first = await eventually(
      () => temporal(id).catch(() => null),
      (found) => found !== null,
    );
    expect(first?.spec).toMatchObject({ timezone: 'Europe/London', jitter: 30_000 });
    expect(first?.spec.calendars).toHaveLength(2);
    expect(first?.policies).toMatchObject({ overlap: 'ALLOW_ALL', catchupWindow: 600_000 });
    expect(first?.state).toMatchObject({ paused: false, note: expect.stringContaining('nightly') });

    await client.post(`/api/schedules/${id}/pause`, { reason: 'maintenance' });
    // A server that is busy may not answer at once.
    await eventually(
      () => temporal(id).catch(() => null),
      (found) => found?.state.paused === true,
    );
    expect((await client.get(`/api/schedules/${id}`)).body).toMatchObject({
      state: 'paused',
      enabled: false,
      pauseReason: 'maintenance',
      nextRuns: [],
    });
    expect((await client.post(`/api/schedules/${id}/resume`, {})).body).toMatchObject({
      state: 'active',
      enabled: true,
      pauseReason: null,
      pausedAt: null,
    });
    await eventually(
      () => temporal(id).catch(() => null),
      (found) => found?.state.paused === false,
    );

    await client.delete(`/api/schedules/${id}`);
    await eventually(
      () =>
        temporal(id).then(
          () => true,
          () => false,
        ),
      (found) => !found,
    );
  });

  it('keeps the secrets of its payload to itself, and for what they were given', async () => {
    const client = inTenant();
    const payload = {
      url: 'https://example.net/hook',
      headers: { Authorization: 'Bearer s3cret' },
    };
    const { id, payload: shown } = await make(client, { jobType: 'http.request', payload });
    expect(JSON.stringify(shown)).not.toContain('s3cret');
    // What was read can be sent back.
    expect(
      (await client.put(`/api/schedules/${id}`, { payload: shown, name: 'same' })).status,
    ).toBe(200);
    // Elsewhere, or as another type, they would leak.
    expect(
      pointers(
        await client.put(`/api/schedules/${id}`, {
          payload: { ...shown, url: 'https://evil.example' },
        }),
      ),
    ).toEqual([['/payload/headers/Authorization', 'masked']]);
    expect(pointers(await client.put(`/api/schedules/${id}`, { jobType: 'core.echo' }))).toEqual([
      ['/payload', 'required'],
    ]);
    const echo = await client.put(`/api/schedules/${id}`, { jobType: 'core.echo', payload: shown });
    expect([echo.status, JSON.stringify(echo.body.payload).includes('s3cret')]).toEqual([
      200,
      false,
    ]);
    const audit = await admin(app).get(`/api/audit?subjectId=${id}`);
    expect(JSON.stringify(audit.body)).not.toContain('s3cret');
  });

  it('is retried with the same key once', async () => {
    const client = inTenant();
    const [one, two] = [
      await client.post('/api/schedules', request, { 'idempotency-key': 'k1' }),
      await client.post('/api/schedules', request, { 'idempotency-key': 'k1' }),
    ];
    expect(two.body.id).toBe(one.body.id);
    expect((await client.get('/api/schedules')).body.items).toHaveLength(1);
  });
});

describe('a preview', () => {
  it('marks the hour that is skipped and the one that comes twice', async () => {
    const spring = await inTenant().post('/api/schedules/preview', {
      cronExpression: '30 1 * * *',
      timezone: 'Europe/London',
      after: '2027-03-27T12:00:00Z',
      count: 1,
    });
    expect(spring.body.nextRuns).toEqual([
      { at: null, localTime: '2027-03-28T01:30:00', utcOffset: null, daylightSaving: 'skipped' },
      {
        at: '2027-03-29T00:30:00.000Z',
        localTime: '2027-03-29T01:30:00',
        utcOffset: '+01:00',
        daylightSaving: null,
      },
    ]);
    const autumn = await inTenant().post('/api/schedules/preview', {
      cronExpression: '30 1 * * *',
      timezone: 'Europe/London',
      after: '2027-10-30T12:00:00Z',
      count: 2,
    });
    expect(
      autumn.body.nextRuns.map((run: any) => [run.at, run.utcOffset, run.daylightSaving]),
    ).toEqual([
      ['2027-10-31T00:30:00.000Z', '+01:00', 'first'],
      ['2027-10-31T01:30:00.000Z', '+00:00', 'second'],
    ]);
  });

  it('says how the fields are read', async () => {
    const { body } = await inTenant().post('/api/schedules/preview', {
      cronExpression: '0 9 1,15 * mon',
      timezone: 'asia/kathmandu',
    });
    expect(body).toMatchObject({
      timezone: 'Asia/Kathmandu',
      days: 'either',
      fields: { minute: [0], hour: [9], dayOfMonth: [1, 15], dayOfWeek: [1] },
    });
    expect(body.nextRuns).toHaveLength(10);
    expect(body.nextRuns[0].utcOffset).toBe('+05:45');
  });
});

describe('a change', () => {
  it('must leave something due, as a new schedule must', async () => {
    const client = inTenant();
    const { id } = await make(client, { endAt: '2040-01-01T00:00:00Z' });
    expect(
      pointers(await client.put(`/api/schedules/${id}`, { startAt: '2039-12-31T23:00:00Z' })),
    ).toEqual([['/endAt', 'never_due']]);
  });

  it('wants the version that it is for, whatever it is', async () => {
    const client = inTenant();
    const { id } = await make(client);
    const old = { 'if-match': '"7"' };
    const answers = [
      await client.post(`/api/schedules/${id}/pause`, {}, old),
      await client.post(`/api/schedules/${id}/resume`, {}, old),
      await client.delete(`/api/schedules/${id}`, old),
    ];
    expect(answers.map(({ status }) => status)).toEqual([412, 412, 412]);
  });

  it('of what its jobs do is for the record that was looked at', async () => {
    const client = inTenant();
    const { id } = await make(client);
    const trx = await app.deps.db.transaction();
    await trx('schedules').where({ id }).forUpdate().select('id');
    const waiting = client.put(`/api/schedules/${id}`, { payload: { hello: 2 } });
    await eventually(
      () =>
        app.deps
          .db('pg_stat_activity')
          .whereLike('query', '%for update%')
          .where({ wait_event_type: 'Lock' }),
      (rows) => rows.length > 0,
    );
    await trx('schedules')
      .where({ id })
      .update({ job_type: 'core.sleep', payload: '{"durationMs":1}', version: 2 });
    await trx.commit();
    expect((await waiting).status).toBe(412);
    expect((await client.get(`/api/schedules/${id}`)).body).toMatchObject({
      jobType: 'core.sleep',
      payload: { durationMs: 1 },
    });
  });

  it('and its reason are in the audit trail', async () => {
    const client = inTenant();
    const { id } = await make(client);
    await client.post(`/api/schedules/${id}/pause`, { reason: 'window' });
    await client.post(`/api/schedules/${id}/resume`, { reason: 'done' });
    const { body } = await admin(app).get(`/api/audit?subjectId=${id}`);
    expect(body.items.map((entry: any) => [entry.action, entry.after.reason])).toEqual(
      expect.arrayContaining([
        ['schedule.pause', 'window'],
        ['schedule.resume', 'done'],
      ]),
    );
  });
});

describe('lists', () => {
  it('are filtered, and leave the payload out', async () => {
    const client = inTenant();
    const [one, two] = [
      await make(client),
      await make(client, { enabled: false, jobType: 'core.sleep', payload: { durationMs: 1 } }),
    ];
    const idsOf = async (query: string) =>
      (await client.get(`/api/schedules?${query}`)).body.items.map((item: any) => item.id);
    expect(await idsOf('')).toEqual([two.id, one.id]);
    expect([
      await idsOf('enabled=true'),
      await idsOf('jobType=core.sleep'),
      await idsOf('limit=1'),
    ]).toEqual([[one.id], [two.id], [two.id]]);
    expect((await client.get('/api/schedules')).body.items[0]).not.toHaveProperty('payload');
  });

  it('show nothing of other tenants', async () => {
    const [mine, theirs] = [inTenant(), inTenant()];
    const { id } = await make(mine);
    const run = (await mine.post(`/api/schedules/${id}/trigger`)).body;
    expect((await mine.get(`/api/schedules/logs?scheduleId=${id}`)).body.items).toHaveLength(1);
    expect((await theirs.get(`/api/schedules/logs?scheduleId=${id}`)).body.items).toEqual([]);
    expect((await theirs.get('/api/schedules/logs')).body.items).toEqual([]);
    expect((await theirs.get(`/api/schedules/logs/${run.id}`)).status).toBe(404);
    const acts = [
      theirs.put(`/api/schedules/${id}`, { name: 'x' }),
      theirs.delete(`/api/schedules/${id}`),
      ...['trigger', 'pause', 'resume'].map((act) =>
        theirs.post(`/api/schedules/${id}/${act}`, act === 'trigger' ? undefined : {}),
      ),
    ];
    expect((await Promise.all(acts)).map(({ status }) => status)).toEqual([
      404, 404, 404, 404, 404,
    ]);
  });
});

describe('rights', () => {
  it('are needed for what its jobs do', async () => {
    const reader = app.client.as({ roles: 'viewer', tenant: 'rights' });
    expect((await reader.post('/api/schedules', request)).status).toBe(403);
    expect((await reader.get('/api/schedules')).status).toBe(200);
    await admin(app).post('/api/rbac/roles', {
      id: 'planner',
      name: 'Planner',
      permissions: ['schedule:read', 'schedule:write'],
    });
    const planner = app.client.as({ roles: 'planner', tenant: 'rights' });
    const answer = await planner.post('/api/schedules', request);
    expect([answer.status, answer.body.detail]).toEqual([
      403,
      expect.stringContaining('job:write'),
    ]);
  });

  it('to write here do not come from those held elsewhere', async () => {
    const reader = await person(
      app,
      { roleId: 'viewer', tenantId: 'here' },
      { roleId: 'operator', tenantId: 'there' },
    );
    const { id } = await make(app.client.as({ tenant: 'here' }));
    expect((await reader.client.get(`/api/schedules/${id}`)).status).toBe(200);
    const acts = [
      reader.client.put(`/api/schedules/${id}`, { name: 'x' }),
      reader.client.delete(`/api/schedules/${id}`),
      reader.client.post(`/api/schedules/${id}/trigger`),
      reader.client.post(`/api/schedules/${id}/backfill`, {
        since: '2026-01-01T00:00:00Z',
        until: '2026-01-02T00:00:00Z',
      }),
    ];
    expect((await Promise.all(acts)).map(({ status }) => status)).toEqual([403, 403, 403, 403]);
  });

  it('of its jobs are wanted of whoever changes them, and those to cancel of whoever makes it cancel', async () => {
    await admin(app).post('/api/rbac/roles', {
      id: 'editor',
      name: 'Editor',
      permissions: ['schedule:read', 'schedule:write'],
    });
    const editor = app.client.as({ actor: 'eve', roles: 'editor', tenant: 'edits' });
    const { id } = await make(app.client.as({ tenant: 'edits' }), { overlapPolicy: 'cancelOther' });
    const answers = [
      await editor.put(`/api/schedules/${id}`, { payload: { hello: 2 } }),
      await editor.put(`/api/schedules/${id}`, { takeOver: true }),
      await editor.put(`/api/schedules/${id}`, { retryPolicy: { maxAttempts: 9 } }),
      await editor.put(`/api/schedules/${id}`, { overlapPolicy: 'cancelOther' }),
      await editor.post(`/api/schedules/${id}/trigger`),
    ];
    expect(answers.map(({ status, body }) => [status, body.detail.match(/job:\w+/)?.[0]])).toEqual([
      [403, 'job:write'],
      [403, 'job:write'],
      [403, 'job:write'],
      [403, 'job:cancel'],
      [403, 'job:cancel'],
    ]);
    expect(
      (
        await editor.put(`/api/schedules/${id}`, {
          name: 'renamed',
          payload: request.payload,
          retryPolicy: {},
        })
      ).body,
    ).toMatchObject({ name: 'renamed', owner: 'alice' });
  });

  it('go to whoever changes what its jobs do', async () => {
    const [first, second] = [
      await person(app, { roleId: 'operator', tenantId: 'own' }),
      await person(app, { roleId: 'operator', tenantId: 'own' }),
    ];
    const owner = app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'own' });
    const made = await owner.post('/api/schedules', request);
    const put = (who: any, change: object) =>
      who.client.put(`/api/schedules/${made.body.id}`, change);
    expect(made.body.owner).toBe('root');
    expect((await put(first, { name: 'renamed', payload: request.payload })).body.owner).toBe(
      'root',
    );
    expect((await put(first, { payload: { hello: 2 } })).body.owner).toBe(first.id);
    expect((await put(second, { takeOver: true })).body.owner).toBe(second.id);
  });
});

describe('backup schedules', () => {
  it('make backups, and prove them, with the rights of their owner', async () => {
    const archives = await archiveFolder();
    const later = await startAppOn(app.databaseUrl, archives.env);
    try {
      const there = later.client.as({ tenant: 'b' });
      const ended = (jobId: string) =>
        eventually(
          async () => (await there.get(`/api/jobs/${jobId}`)).body,
          ({ status }) => status === 'succeeded',
        );
      const answer = await there.post('/api/backup/schedules', {
        name: 'daily',
        cronExpression: '@daily',
        mode: 'full',
        label: 'daily',
        keep: { last: 2 },
      });
      expect(answer.status).toBe(201);
      expect(answer.body).toMatchObject({
        jobType: 'backup.create',
        payload: { mode: 'full', label: 'daily', keep: { last: 2 } },
        timezone: 'UTC',
        enabled: true,
        catchupWindowSeconds: 21_600,
      });
      const job = await ended(
        (await there.post(`/api/schedules/${answer.body.id}/trigger`)).body.jobId,
      );
      const backup = await there.get(`/api/backup/${job.result.backupId}`);
      expect(backup.body).toMatchObject({
        label: 'daily',
        tenantId: 'b',
        status: 'completed',
        jobId: job.id,
        provenAt: null,
      });
      expect(await archives.files()).toEqual([backup.body.archive]);
      const proof = await there.post('/api/backup/schedules', {
        name: 'weekly',
        cronExpression: '@weekly',
        jobType: 'backup.verify',
        label: 'daily',
      });
      expect(proof.body).toMatchObject({ jobType: 'backup.verify', payload: { label: 'daily' } });
      expect(
        (await ended((await there.post(`/api/schedules/${proof.body.id}/trigger`)).body.jobId))
          .result,
      ).toMatchObject({ backupId: backup.body.id });
      expect((await there.get(`/api/backup/${job.result.backupId}`)).body.provenAt).not.toBeNull();
      const partial = await there.post('/api/backup/schedules', {
        name: 'some',
        cronExpression: '@daily',
        mode: 'partial',
        label: 'some',
      });
      expect([partial.status, partial.body.errors[0].pointer]).toEqual([400, '/sections']);
      const mixed = await there.post('/api/backup/schedules', {
        name: 'some',
        cronExpression: '@daily',
        jobType: 'backup.verify',
        keep: { last: 1 },
      });
      expect([mixed.status, mixed.body.errors[0].pointer]).toEqual([400, '/keep']);
      // The type's own permission is needed, too.
      await admin(app).post('/api/rbac/roles', {
        id: 'jobber',
        name: 'Jobber',
        permissions: ['schedule:read', 'schedule:write', 'job:write'],
      });
      for (const more of [{ mode: 'full' }, { jobType: 'backup.verify' }]) {
        const denied = await later.client
          .as({ roles: 'jobber', tenant: 'b' })
          .post('/api/backup/schedules', { name: 'daily', cronExpression: '@daily', ...more });
        expect([denied.status, denied.body.detail]).toEqual([
          403,
          expect.stringContaining('backup:write'),
        ]);
      }
    } finally {
      await later.stop();
      await archives.remove();
    }
  });
});
