import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import {
  admin,
  first,
  login,
  PASSWORD,
  createUser,
  seedSiteAndDevice,
  type Page,
  type TestUser,
} from '../../support/users.ts';
import type { AssignmentRecord } from '../../../api/access/schemas.ts';
import type { CurrentSession, SessionRecord, TokenResponse } from '../../../api/auth/schemas.ts';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { Job as JobRow } from '../../../db/models/Job.ts';
import { Schedule } from '../../../db/models/Schedule.ts';
import type { Authority } from '../../../domain/shared/caller.ts';
import { createRights } from '../../../services/access/rights.ts';
import type { TestClient } from '../../support/client.ts';
import { expectProblem } from '../../support/problem.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' });
});
afterAll(() => app.stop());

const anonymous = () => app.client.as({ token: null });
const refresh = (refreshToken: string | null | undefined) =>
  anonymous().post<TokenResponse>('/api/auth/refresh', { refreshToken });
const bearer = (token: string) => app.client.as({ token });

describe('tokens', () => {
  test('are opaque, returned once, and stored as hashes only', async () => {
    const someone = await createUser(app, 'viewer');
    expect(someone.accessToken).toMatch(/^hfa_[A-Za-z0-9_-]{43}$/);
    const { rows } = await app.deps.db.raw(
      `SELECT string_agg(t::text, ' ') AS text FROM session_tokens t`,
    );
    const everything = `${rows[0].text} ${JSON.stringify(await app.deps.db('audit_entries'))} ${JSON.stringify(await app.deps.db('events'))}`;
    expect(everything).not.toContain(someone.accessToken);
    expect(everything).not.toContain(someone.refreshToken);
  });

  test.each([
    'Bearer',
    'Bearer ',
    'Bearer a b',
    'Basic YTpi',
    'Bearer hfa_unknown',
    `Bearer ${'x'.repeat(600)}`,
  ])('"%s" is no session', async (value) => {
    await expectProblem(
      anonymous().get<CurrentSession>('/api/auth/session', {
        authorization: value,
      }),
      401,
      'session_invalid',
    );
  });

  test('a refresh token is not an access token, and vice versa', async () => {
    const someone = await createUser(app);
    await expectProblem(
      bearer(someone.refreshToken).get('/api/auth/session'),
      401,
      'session_invalid',
    );
    await expectProblem(refresh(someone.accessToken), 401, 'session_invalid');
  });
});

describe('identity headers with an access token', () => {
  const TENANT = 'x-service-tenant-id';
  const ROLES = 'x-service-role-ids';
  const ACTOR = 'x-service-actor-id';
  const echo = { type: 'core.echo', payload: {} };
  type Job = { id: string; tenantId: string; createdBy: string };
  const red = { roleId: 'operator', tenantId: 'red' };
  const blue = { roleId: 'viewer', tenantId: 'blue' };

  test('choose the tenant, where the caller holds anything', async () => {
    await seedSiteAndDevice(app, { tenant: 'green', site: 'site_green' });
    const { client, id } = await createUser(app, red, { roleId: 'viewer', siteId: 'site_green' });
    const at = (tenant: string) => client.post<Job>('/api/jobs', echo, { [TENANT]: tenant });
    expect((await at('red')).body).toMatchObject({ tenantId: 'red', createdBy: id });
    // A role at one of its sites reaches the tenant, but does not allow to create jobs there.
    expect((await at('green')).body).toMatchObject({
      detail: 'Permission job:write is missing at tenant green.',
    });
    for (const tenant of ['blue', 'unknown', 'platform'])
      expect([(await at(tenant)).status, (await at(tenant)).body]).toEqual([
        tenant === 'platform' ? 403 : 400,
        expect.objectContaining({
          code: tenant === 'platform' ? 'permission_denied' : 'identity_mismatch',
        }),
      ]);
    const anywhere = await createUser(app, 'operator');
    const made = await anywhere.client.post<Job>('/api/jobs', echo, { [TENANT]: 'blue' });
    expect(made.body.tenantId).toBe('blue');
    // The session keeps its own tenant.
    expect((await anywhere.client.post<Job>('/api/jobs', echo)).body.tenantId).toBe('platform');
    await anywhere.client
      .put('/api/auth/session', { tenantId: 'blue' }, { [TENANT]: 'blue' })
      .expect(200);
    expect((await anywhere.client.post<Job>('/api/jobs', echo)).body.tenantId).toBe('blue');
  });

  test('narrow the rights to the roles that they name', async () => {
    const { client } = await createUser(app, red, blue);
    const all = { [TENANT]: 'red', [ROLES]: 'viewer, operator' };
    await client.post('/api/jobs', echo, all).expect(201);
    await expectProblem(
      client.post('/api/jobs', echo, { [TENANT]: 'red', [ROLES]: 'viewer' }),
      403,
      'permission_denied',
    );
    await client.get('/api/jobs', { [ROLES]: 'viewer' }).expect(200);
  });

  test('narrow the rights of changes of rights too', async () => {
    const granter = { id: 'granter', name: 'Granter', permissions: ['rbac:write'] };
    await admin(app).post('/api/rbac/roles', granter).expect(201);
    const boss = await createUser(app, 'platform-admin', 'granter');
    const someone = await createUser(app);
    const grant = { userId: someone.id, roleId: 'operator' };
    await expectProblem(
      boss.client.post('/api/rbac/assignments', grant, { [ROLES]: 'granter' }),
      403,
      'permission_denied',
    );
    await boss.client
      .post('/api/rbac/assignments', grant, { [ROLES]: 'platform-admin' })
      .expect(201);
  });

  test('narrow the rights of the jobs and the schedules that the request creates', async () => {
    const { client } = await createUser(app, red, blue);
    const narrowed = { [TENANT]: 'red', [ROLES]: 'operator' };
    const job = await client.post<Job>('/api/jobs', echo, narrowed).expect(201);
    const schedule = await client
      .post<Job>(
        '/api/schedules',
        { name: 'narrowed', cronExpression: '@daily', jobType: 'core.echo' },
        narrowed,
      )
      .expect(201);
    const whole = await client.post<Job>('/api/jobs', echo, { [TENANT]: 'red' }).expect(201);
    const { db } = app.deps;
    const rolesFor = async (authority: Authority) => {
      const { grants } = await createRights({ db }).forAuthority(authority);
      return grants.map(({ role }) => role.id).sort();
    };
    const authorityOf = async ({ id }: Job) =>
      (await JobRow.query(db).findById(id).throwIfNotFound()).authority;
    expect(await rolesFor(await authorityOf(job))).toEqual(['operator']);
    expect(await rolesFor(await authorityOf(whole))).toEqual(['operator', 'viewer']);
    const { owner } = await Schedule.query(db).findById(schedule.id).throwIfNotFound();
    expect(await rolesFor(owner)).toEqual(['operator']);
  });

  test('name the caller, by id or by user name', async () => {
    const { client, id, username } = await createUser(app, 'operator');
    for (const name of [id, username, username.toUpperCase()])
      await client.get('/api/jobs', { [ACTOR]: name }).expect(200);
    const { body } = await client.post<Job>('/api/jobs', echo, { [ACTOR]: username });
    expect(body.createdBy).toBe(id);
  });

  test.each([
    ['another caller', { [ACTOR]: 'mallory' }],
    ['a role that the caller does not hold', { [ROLES]: 'viewer,platform-admin' }],
    ['no role', { [ROLES]: ' , ' }],
    ['a tenant without a role of the caller', { [TENANT]: 'blue' }],
    ['a tenant that is no id', { [TENANT]: 'a b' }],
    ['nothing', { [TENANT]: '' }],
  ])('are 400 when they name %s', async (_what, headers) => {
    const { client } = await createUser(app, { roleId: 'viewer', tenantId: 'red' });
    await expectProblem(client.get('/api/jobs', headers), 400, 'identity_mismatch');
  });
});

describe('a session', () => {
  test('returns the user and their permissions', async () => {
    const someone = await createUser(app, { roleId: 'viewer', tenantId: 'red' });
    const { body } = await someone.client.get<CurrentSession>('/api/auth/session');
    expect(body).toMatchObject({
      current: true,
      tenantId: 'red',
      user: { username: someone.username, enabled: true },
    });
    expect(body.permissions).toContain('job:read');
    expect(body.permissions).not.toContain('job:write');
    expect(JSON.stringify(body)).not.toContain('argon2');
    await expectProblem(app.client.get('/api/auth/session'), 401, 'session_invalid');
  });

  test('has the tenant of the login request', async () => {
    const someone = await createUser(app, { roleId: 'operator', tenantId: 'red' });
    const { body } = await login(app, someone.username, PASSWORD, { tenantId: 'red' });
    const job = await bearer(body.accessToken).post<JobRecord>('/api/jobs', {
      type: 'core.echo',
      payload: {},
    });
    expect(job.body.tenantId).toBe('red');
  });

  test('ends with a logout by either token', async () => {
    const someone = await createUser(app, 'viewer');
    await someone.client.post('/api/auth/logout').expect(204);
    await expectProblem(someone.client.get('/api/jobs'), 401, 'session_invalid');
    await expectProblem(refresh(someone.refreshToken), 401, 'session_invalid');
    await someone.client.post('/api/auth/logout').expect(204);
    const { body } = await login(app, someone.username);
    await anonymous().post('/api/auth/logout', { refreshToken: body.refreshToken }).expect(204);
    await expectProblem(bearer(body.accessToken).get('/api/jobs'), 401, 'session_invalid');
    await expectProblem(anonymous().post('/api/auth/logout'), 401, 'session_invalid');
    // An invalid access token does not hide the refresh token in the body.
    const third = await login(app, someone.username);
    await anonymous().post(
      '/api/auth/logout',
      { refreshToken: third.body.refreshToken },
      { authorization: 'Bearer hfa_invalid' },
    );
    await expectProblem(refresh(third.body.refreshToken), 401, 'session_invalid');
  });

  test('can be listed and ended from another session of the user only', async () => {
    const [mine, other] = [await createUser(app), await createUser(app)];
    const second = await login(app, mine.username);
    const { body } = await mine.client.get<Page<SessionRecord>>('/api/auth/sessions');
    expect(body.items.map((session) => session.current)).toEqual([false, true]);
    await expectProblem(
      other.client.delete(`/api/auth/sessions/${first(body).id}`),
      404,
      'not_found',
    );
    await mine.client.delete(`/api/auth/sessions/${first(body).id}`).expect(204);
    await expectProblem(
      bearer(second.body.accessToken).get('/api/auth/session'),
      401,
      'session_invalid',
    );
    expect(
      (await mine.client.get('/api/auth/sessions?count=true&sort=refreshedAt')).body,
    ).toMatchObject({ items: [expect.anything()], count: { value: 1, exact: true } });
  });

  test('all others of the user can be ended', async () => {
    const [mine, other] = [await createUser(app), await createUser(app)];
    const second = await login(app, mine.username);
    await mine.client.delete('/api/auth/sessions').expect(204);
    await expectProblem(
      bearer(second.body.accessToken).get('/api/auth/session'),
      401,
      'session_invalid',
    );
    for (const { client } of [mine, other]) await client.get('/api/auth/session').expect(200);
    // There are none any more, which changes nothing.
    await mine.client.delete('/api/auth/sessions').expect(204);
    const { items } = await admin(app)
      .get<Page<AuditEntryRecord>>(`/api/audit?action=session.revoke&actorId=${mine.id}`)
      .expect(200);
    expect(items.map(({ subject, after }) => [subject.id, after])).toEqual([
      [mine.id, { others: true, ended: 1 }],
    ]);
  });

  test('a logout everywhere ends all sessions', async () => {
    const someone = await createUser(app);
    const second = await login(app, someone.username);
    await someone.client.post('/api/auth/logout', { everywhere: true });
    for (const token of [someone.accessToken, second.body.accessToken]) {
      await expectProblem(bearer(token).get('/api/auth/session'), 401, 'session_invalid');
    }
  });
});

test("a session switches only to tenants with a grant, and this is audited in the user's tenant", async () => {
  const someone = await createUser(
    app,
    { roleId: 'viewer', tenantId: 'red' },
    { roleId: 'viewer', tenantId: 'blue' },
  );
  await expectProblem(
    someone.client.put('/api/auth/session', { tenantId: 'victim' }),
    400,
    'invalid_request',
  );
  await expectProblem(
    login(app, someone.username, PASSWORD, { tenantId: 'victim' }),
    400,
    'invalid_request',
  );
  for (const tenantId of ['red', 'red', 'blue', 'platform'])
    expect(
      (await someone.client.put<SessionRecord>('/api/auth/session', { tenantId })).body.tenantId,
    ).toBe(tenantId);
  const moves = await app.deps
    .db('audit_entries')
    .where({ action: 'session.switch_tenant', actor_id: someone.id });
  expect(moves.map((entry) => entry.tenant_id)).toEqual(['platform', 'platform', 'platform']);
});

/** The tenant that requests with this client work at. */
const tenantOf = async (client: TestClient) =>
  (await client.get<{ tenantId: string }>('/api/rbac/summary').expect(200)).tenantId;

test('a session leaves a tenant where its user holds nothing any more', async () => {
  const { id: userId, client } = await createUser(app, { roleId: 'viewer', tenantId: 'red' });
  expect(await tenantOf(client)).toBe('red');
  const { id } = first(
    await admin(app)
      .get<Page<AssignmentRecord>>(`/api/rbac/assignments?userId=${userId}`)
      .expect(200),
  );
  await admin(app).delete(`/api/rbac/assignments/${id}`).expect(204);
  expect(await tenantOf(client)).toBe('platform');
});

test('what people do to their own sessions is audited in their own tenant', async () => {
  const someone = await createUser(app, { roleId: 'viewer', tenantId: 'red' });
  const sessions = app.deps.db('sessions').where({ user_id: someone.id });
  const { id } = await sessions.first('id');
  const { accessToken } = await login(app, someone.username).expect(200);
  await bearer(accessToken).delete(`/api/auth/sessions/${id}`).expect(204);
  const ended = await app.deps.db('audit_entries').where({ subject_id: id });
  expect(ended.map(({ action, tenant_id: tenant }) => [action, tenant])).toEqual([
    ['session.revoke', 'platform'],
  ]);
});

test('a denial is audited in the tenant of the record if the caller has a grant there', async () => {
  const someone = await createUser(
    app,
    { roleId: 'viewer', tenantId: 'red' },
    { roleId: 'operator', tenantId: 'blue' },
  );
  await someone.client.put('/api/auth/session', { tenantId: 'blue' });
  const job = await app.client
    .as({ tenant: 'red' })
    .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} });
  await someone.client.post(`/api/jobs/${job.body.id}/retry`).expect(403);
  const entries = await app.deps
    .db('audit_entries')
    .where({ action: 'access.denied', actor_id: someone.id });
  expect(entries.map((entry) => entry.tenant_id)).toEqual(['red']);
});

test('expired sessions and counters are purged, and nothing else', async () => {
  const { purgeExpired } = await import('../../../db/core/purge.ts');
  const { db } = app.deps;
  const [expired, ended, live] = [
    await createUser(app),
    await createUser(app),
    await createUser(app, 'viewer'),
  ];
  const old = new Date(Date.now() - 3_600_000);
  await db('sessions').where({ user_id: expired.id }).update({ absolute_expires_at: old });
  await db('sessions').where({ user_id: ended.id }).update({ ended_at: old, end_reason: 'logout' });
  await db('rate_limits').insert({ key: 'old', points: 1, expire: old.getTime() });
  expect(await purgeExpired(db, new Date(Date.now() - 60_000), 1_000)).toBeGreaterThan(0);
  expect(await db('sessions').whereIn('user_id', [expired.id, ended.id])).toEqual([]);
  expect(await db('rate_limits').where({ key: 'old' })).toEqual([]);
  await live.client.get('/api/jobs').expect(200);
  expect(await purgeExpired(db, new Date(Date.now() - 60_000), 1_000)).toBe(0);
});

test('a refresh checks the account; idle sessions are not listed', async () => {
  const [someone, other] = [await createUser(app), await createUser(app)];
  await app.deps.db('users').where({ id: someone.id }).update({ enabled: false });
  await expectProblem(refresh(someone.refreshToken), 401, 'session_invalid');
  await login(app, other.username);
  await app.deps.db('sessions').where({ user_id: other.id }).orderBy('id').limit(1);
  const [first] = await app.deps.db('sessions').where({ user_id: other.id }).orderBy('id', 'desc');
  await app.deps
    .db('sessions')
    .where({ id: first.id })
    .update({ idle_expires_at: new Date(Date.now() - 1) });
  const listed = (await other.client.get<Page<SessionRecord>>('/api/auth/sessions')).body.items.map(
    (session) => session.id,
  );
  expect(listed).toHaveLength(1);
  expect(listed).not.toContain(first.id);
});

describe('following a log', () => {
  /** Follows the log of a job that does not end. A first line: without one, headers are sent late. */
  async function follow(reader: TestUser, job: JobRecord): Promise<Response> {
    await app.deps
      .db('job_logs')
      .insert({ job_id: job.id, line: 1, attempt: 1, level: 'info', message: 'x', at: new Date() });
    return fetch(`${app.client.base}/api/jobs/${job.id}/logs?follow`, {
      headers: { authorization: `Bearer ${reader.accessToken}` },
    });
  }
  const sleepJob = { type: 'core.sleep', payload: { durationMs: 60_000 } };

  async function followWhileDisabled(): Promise<Response> {
    const someone = await createUser(app, 'operator');
    const job = await someone.client.post<JobRecord>('/api/jobs', sleepJob).expect(201);
    const answer = await follow(someone, job);
    await admin(app).put(`/api/users/${someone.id}`, { enabled: false }).expect(200);
    return answer;
  }

  async function followWhileAccessIsRemoved(): Promise<Response> {
    const someone = await createUser(
      app,
      { roleId: 'auditor', tenantId: 'red' },
      { roleId: 'viewer', tenantId: 'blue' },
    );
    const job = await app.client
      .as({ tenant: 'red' })
      .post<JobRecord>('/api/jobs', sleepJob)
      .expect(201);
    const answer = await follow(someone, job);
    const assignment = first(
      await admin(app)
        .get<Page<AssignmentRecord>>(`/api/rbac/assignments?userId=${someone.id}&tenantId=red`)
        .expect(200),
    );
    await admin(app).delete(`/api/rbac/assignments/${assignment.id}`).expect(204);
    return answer;
  }

  // A quiet stream ends when its next comment is due: both wait at the same time.
  let ends: Record<'disabled' | 'withoutAccess', Promise<string>>;
  beforeAll(async () => {
    const [disabled, withoutAccess] = [
      await followWhileDisabled(),
      await followWhileAccessIsRemoved(),
    ];
    ends = { disabled: disabled.text(), withoutAccess: withoutAccess.text() };
  });

  test('ends when its reader is disabled', async () => {
    expect(await ends.disabled).toMatch(/\nevent: error\ndata: .*"code":"session_invalid".*\n\n$/);
  });

  test('ends when its reader loses access to the job', async () => {
    expect(await ends.withoutAccess).toMatch(/\nevent: error\ndata: .*"status":40[34].*\n\n$/);
  });
});

test('a session ends immediately when its user is disabled', async () => {
  const someone = await createUser(app, 'viewer');
  await admin(app).put(`/api/users/${someone.id}`, { enabled: false });
  await expectProblem(someone.client.get('/api/jobs'), 401, 'session_invalid');
  await expectProblem(refresh(someone.refreshToken), 401, 'session_invalid');
  await admin(app).put(`/api/users/${someone.id}`, { enabled: true });
  await expectProblem(refresh(someone.refreshToken), 401, 'session_invalid');
});
