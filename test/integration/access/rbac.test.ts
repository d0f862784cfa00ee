import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { admin, createUser, first, seedSiteAndDevice, type Page } from '../../support/users.ts';
import type { AssignmentRecord, MappingRecord, RoleRecord } from '../../../api/access/schemas.ts';
import type { UserRecord } from '../../../api/auth/schemas.ts';
import type { JobRecord, JobSummary } from '../../../api/jobs/schemas.ts';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type { Explanation, PermissionSummary, RbacOverview } from '../../../api/access/routes.ts';
import { expectInvalid, expectProblem } from '../../support/problem.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
  await seedSiteAndDevice(app, { tenant: 'red', site: 'site_red', device: 'dev_red' });
  await seedSiteAndDevice(app, { tenant: 'blue', site: 'site_blue', device: 'dev_blue' });
  const made = await admin(app).post<RoleRecord>('/api/rbac/roles', {
    id: 'delegate',
    name: 'Delegate',
    permissions: ['rbac:read', 'rbac:write', 'job:read', 'user:read'],
  });
  expect(made.status).toBe(201);
});
afterAll(() => app.stop());

const echo = { type: 'core.echo', payload: {} };

describe('assignments', () => {
  test.each([
    ['nothing', {}, { level: 'platform', tenantId: 'platform', siteId: null, deviceId: null }],
    ['the tenant platform', { tenantId: 'platform' }, { level: 'platform', tenantId: 'platform' }],
    ['a tenant', { tenantId: 'red' }, { level: 'tenant', tenantId: 'red', siteId: null }],
    [
      'a site',
      { siteId: 'site_red' },
      { level: 'site', tenantId: 'red', siteId: 'site_red', deviceId: null },
    ],
    [
      'a device',
      { deviceId: 'dev_red' },
      { level: 'device', tenantId: 'red', siteId: 'site_red', deviceId: 'dev_red' },
    ],
    [
      'all three',
      { tenantId: 'red', siteId: 'site_red', deviceId: 'dev_red' },
      { level: 'device', deviceId: 'dev_red' },
    ],
  ])('with %s are at the narrowest scope', async (_what, target, expected) => {
    const { id } = await createUser(app);
    const given = await admin(app).post<AssignmentRecord>('/api/rbac/assignments', {
      userId: id,
      roleId: 'viewer',
      ...target,
    });
    expect([given.status, given.body]).toEqual([
      201,
      expect.objectContaining({ userId: id, roleId: 'viewer', ...expected }),
    ]);
    expect((await admin(app).get(given.headers.get('location') ?? '')).body).toEqual(given.body);
    await expectProblem(
      admin(app).post<AssignmentRecord>('/api/rbac/assignments', {
        userId: id,
        roleId: 'viewer',
        ...target,
      }),
      409,
      'conflict',
    );
  });

  test.each([
    ['/userId', { userId: `usr_${'0'.repeat(26)}` }],
    ['/roleId', { roleId: 'no-such-role' }],
    ['/tenantId', { tenantId: 'no-such-tenant' }],
    ['/siteId', { siteId: 'site_none' }],
    ['/deviceId', { deviceId: 'dev_none' }],
    ['/tenantId', { tenantId: 'blue', siteId: 'site_red' }],
    ['/siteId', { siteId: 'site_blue', deviceId: 'dev_red' }],
  ])('with an invalid %s are rejected with its pointer', async (pointer, wrong) => {
    const { id } = await createUser(app);
    const request = { userId: id, roleId: 'viewer', ...wrong };
    await expectInvalid(admin(app).post('/api/rbac/assignments', request), pointer);
  });

  test.each([
    [{ siteId: 'site_red' }, 'site site_red'],
    [{ deviceId: 'dev_red' }, 'device dev_red'],
    [{ tenantId: 'red' }, 'tenant red'],
  ])('at %o, which the caller may read, name the missing permission', async (target, where) => {
    const someone = await createUser(
      app,
      { roleId: 'delegate', tenantId: 'blue' },
      { roleId: 'viewer', tenantId: 'red' },
    );
    const request = { userId: someone.id, roleId: 'delegate', ...target };
    const { detail } = await expectProblem(
      someone.client.post('/api/rbac/assignments', request),
      403,
      'permission_denied',
    );
    expect(detail).toBe(`Permission rbac:write is missing at ${where}.`);
  });

  test('take effect immediately, and end immediately when deleted', async () => {
    const someone = await createUser(app);
    await expectProblem(someone.client.get('/api/jobs'), 403, 'permission_denied');
    const given = await admin(app).post<AssignmentRecord>('/api/rbac/assignments', {
      userId: someone.id,
      roleId: 'operator',
      tenantId: 'red',
    });
    await app.client.as({ tenant: 'red' }).post('/api/jobs', echo);
    await app.client.as({ tenant: 'blue' }).post('/api/jobs', echo);
    const seen = await someone.client.get<Page<JobSummary>>('/api/jobs');
    expect([...new Set(seen.body.items.map((job) => job.tenantId))]).toEqual(['red']);
    await expectProblem(someone.client.post('/api/jobs', echo), 403, 'permission_denied');
    await someone.client.put('/api/auth/session', { tenantId: 'red' });
    expect((await someone.client.post<JobRecord>('/api/jobs', echo)).body).toMatchObject({
      tenantId: 'red',
      createdBy: someone.id,
    });
    await admin(app).delete(`/api/rbac/assignments/${given.body.id}`).expect(204);
    await expectProblem(someone.client.get('/api/jobs'), 403, 'permission_denied');
  });

  test('at a site or device grant nothing at the tenant', async () => {
    const someone = await createUser(
      app,
      { roleId: 'platform-admin', siteId: 'site_red' },
      { roleId: 'platform-admin', deviceId: 'dev_blue' },
    );
    await app.client.as({ tenant: 'red' }).post('/api/jobs', echo);
    expect((await someone.client.get<Page<JobSummary>>('/api/jobs')).body.items).toEqual([]);
    expect((await someone.client.get<Page<UserRecord>>('/api/users')).body.items).toEqual([]);
    expect((await someone.client.get<Page<AuditEntryRecord>>('/api/audit')).body.items).toEqual([]);
  });

  test('at a site only do not let follow or export what belongs to tenants', async () => {
    const role = { name: 'Reader of a site', permissions: ['event:read', 'audit:read'] };
    const { id: roleId } = await admin(app).post<RoleRecord>('/api/rbac/roles', role).expect(201);
    const { client } = await createUser(app, { roleId, siteId: 'site_red' });
    expect(await client.get<Page<unknown>>('/api/events').expect(200)).toMatchObject({ items: [] });
    for (const path of ['/api/events?follow', '/api/events?after=0', '/api/audit/export'])
      await expectProblem(client.get(path), 403, 'permission_denied');
  });

  test('are listed inside the scope of the caller, filtered and paged', async () => {
    const red = await createUser(app, { roleId: 'delegate', tenantId: 'red' });
    await createUser(
      app,
      { roleId: 'viewer', tenantId: 'blue' },
      { roleId: 'viewer', siteId: 'site_blue' },
      { roleId: 'viewer', siteId: 'site_red' },
    );
    const { body } = await red.client.get<Page<AssignmentRecord>>(
      '/api/rbac/assignments?limit=200',
    );
    expect(body.items.length).toBeGreaterThan(1);
    expect(new Set(body.items.map((item) => item.tenantId))).toEqual(new Set(['red']));
    const firstPage = await admin(app).get<Page<AssignmentRecord>>(
      '/api/rbac/assignments?limit=1&tenantId=blue',
    );
    const secondPage = await admin(app).get<Page<AssignmentRecord>>(
      `/api/rbac/assignments?limit=1&tenantId=blue&cursor=${firstPage.body.nextCursor}`,
    );
    const blue = first(firstPage.body).id;
    expect(first(secondPage.body).id < blue).toBe(true);
    await expectProblem(red.client.get(`/api/rbac/assignments/${blue}`), 404, 'not_found');
    await expectProblem(red.client.delete(`/api/rbac/assignments/${blue}`), 404, 'not_found');
    const mapping = {
      providerId: 'local',
      externalGroup: 'filtered',
      roleId: 'viewer',
      tenantId: 'blue',
    };
    const made = await admin(app).post<MappingRecord>('/api/rbac/provider-mappings', mapping);
    const mappings = async (query: string) =>
      (
        await admin(app).get<Page<MappingRecord>>(`/api/rbac/provider-mappings?${query}`)
      ).body.items.map((item) => item.id);
    expect([
      await mappings('externalGroup=filtered'),
      await mappings('externalGroup=other'),
      await mappings('roleId=operator'),
    ]).toEqual([[made.body.id], [], []]);
    const overview = await red.client.get<RbacOverview>('/api/rbac');
    expect(overview.body.roles.map((role) => role.id)).toEqual(
      expect.arrayContaining(['platform-admin', 'viewer', 'delegate']),
    );
    expect(overview.body.assignments.every((item) => item.tenantId === 'red')).toBe(true);
  });
});

describe('roles', () => {
  test('custom roles can be created, read, changed, used by gateways, and deleted when not granted', async () => {
    const made = await admin(app).post<RoleRecord>('/api/rbac/roles', {
      id: 'runner',
      name: 'Runner',
      permissions: ['job:write', 'job:read', 'job:read'],
    });
    expect(made.body).toEqual({
      id: 'runner',
      name: 'Runner',
      builtIn: false,
      permissions: ['job:read', 'job:write'],
      jobTypes: [],
      version: 1,
    });
    const gateway = app.client.as({ actor: 'gw', roles: 'runner', tenant: 'red' });
    const job = await gateway.post<JobRecord>('/api/jobs', echo, { prefer: 'wait=20' });
    expect(job.body).toMatchObject({ status: 'succeeded', tenantId: 'red' });
    const someone = await createUser(app, { roleId: 'runner', tenantId: 'red' });
    await expectProblem(admin(app).delete('/api/rbac/roles/runner'), 409, 'in_use');
    await expectProblem(
      admin(app).send('PUT', '/api/rbac/roles/runner', { name: 'x' }, { 'if-match': '"9"' }),
      412,
      'version_conflict',
    );
    const changed = await admin(app).put<RoleRecord>('/api/rbac/roles/runner', {
      permissions: ['job:read'],
    });
    expect(changed.body.version).toBe(2);
    expect(changed.headers.get('etag')).toMatch(/^"2-/);
    await someone.client.put('/api/auth/session', { tenantId: 'red' });
    await expectProblem(someone.client.post('/api/jobs', echo), 403, 'permission_denied');
    const assignment = first(
      await admin(app)
        .get<Page<AssignmentRecord>>('/api/rbac/assignments?roleId=runner')
        .expect(200),
    );
    await admin(app).delete(`/api/rbac/assignments/${assignment.id}`);
    await admin(app).delete('/api/rbac/roles/runner').expect(204);
    await expectProblem(gateway.get('/api/jobs'), 403, 'permission_denied');
  });

  test.each([
    ['an unknown permission', { name: 'x', permissions: ['job:fly'] }, 400],
    ['none', { name: 'x', permissions: [] }, 400],
    ['a built-in id', { id: 'viewer', name: 'x', permissions: ['job:read'] }, 409],
    ['a bad id', { id: 'No', name: 'x', permissions: ['job:read'] }, 400],
  ])('with %s are rejected', async (_what, body, status) => {
    expect((await admin(app).post<RoleRecord>('/api/rbac/roles', body)).status).toBe(status);
  });

  test('built-in roles cannot be changed', async () => {
    await expectProblem(admin(app).put('/api/rbac/roles/viewer', { name: 'x' }), 409, 'built_in');
    await expectProblem(admin(app).delete('/api/rbac/roles/viewer'), 409, 'built_in');
  });
});

test('a job runs with the rights that its creator has when it runs', async () => {
  const someone = await createUser(app, 'operator');
  await app.deps.stopWorkers();
  const job = await someone.client.post<JobRecord>('/api/jobs', echo);
  expect(job.body.status).toBe('queued');
  const assignment = first(
    await admin(app)
      .get<Page<AssignmentRecord>>(`/api/rbac/assignments?userId=${someone.id}`)
      .expect(200),
  );
  await admin(app).delete(`/api/rbac/assignments/${assignment.id}`);
  const { startAppOn } = await import('../../support/app.ts');
  const worker = await startAppOn(app.databaseUrl, { ...app.env, HOLDFAST_ROLE: 'worker' });
  try {
    const ended = await eventually(
      () => admin(app).get<JobRecord>(`/api/jobs/${job.body.id}`),
      ({ body }) => body.status !== 'queued' && body.status !== 'running',
    );
    expect(ended.body).toMatchObject({ status: 'failed', error: { code: 'permission_lost' } });
  } finally {
    await worker.stop();
  }
});

describe('permission reports', () => {
  test('the summary lists each permission with its scope', async () => {
    const someone = await createUser(
      app,
      { roleId: 'viewer', tenantId: 'red' },
      { roleId: 'operator', siteId: 'site_blue' },
    );
    await someone.client.put('/api/auth/session', { tenantId: 'red' });
    const { body } = await someone.client.get<PermissionSummary>('/api/rbac/summary');
    expect(body).toMatchObject({ actorId: someone.id, tenantId: 'red' });
    expect(body.permissions['job:read']).toEqual({
      everywhere: false,
      complete: true,
      tenantIds: ['red'],
      siteIds: ['site_blue'],
      deviceIds: [],
    });
    expect(body.can).toMatchObject({ 'job:read': true, 'job:write': false, 'rbac:read': false });
    expect(body.rolesComplete).toBe(true);
    expect(body.roles).toEqual([
      {
        roleId: 'viewer',
        name: 'Viewer',
        level: 'tenant',
        tenantId: 'red',
        siteId: null,
        deviceId: null,
      },
      {
        roleId: 'operator',
        name: 'Operator',
        level: 'site',
        tenantId: 'blue',
        siteId: 'site_blue',
        deviceId: null,
      },
    ]);
    expect(
      (await admin(app).get<PermissionSummary>('/api/rbac/summary')).body.permissions['rbac:write']
        ?.everywhere,
    ).toBe(true);
  });

  test('explain returns whether a permission is held, and by which grants', async () => {
    const someone = await createUser(
      app,
      { roleId: 'viewer', tenantId: 'red' },
      { roleId: 'operator', siteId: 'site_red' },
    );
    const explain = (query: string, by = admin(app)) =>
      by.get<Explanation>(`/api/rbac/explain?userId=${someone.id}&${query}`);
    expect((await explain('permission=job:read&tenantId=red')).body).toMatchObject({
      allowed: true,
      grants: [{ roleId: 'viewer', level: 'tenant' }],
    });
    expect(
      (await explain('permission=job:read&deviceId=dev_red')).body.grants
        .map((g) => g.roleId)
        .sort(),
    ).toEqual(['operator', 'viewer']);
    expect((await explain('permission=job:write&tenantId=red')).body).toMatchObject({
      allowed: false,
      grants: [],
    });
    expect((await explain('permission=job:write&siteId=site_red')).body).toMatchObject({
      allowed: true,
      grants: [{ roleId: 'operator', level: 'site' }],
    });
    expect((await explain('permission=job:read&tenantId=blue')).body.allowed).toBe(false);
    await admin(app).put(`/api/users/${someone.id}`, { enabled: false });
    expect((await explain('permission=job:read&tenantId=red')).body).toMatchObject({
      allowed: false,
      reason: expect.stringContaining('disabled'),
    });
    const red = await createUser(app, { roleId: 'delegate', tenantId: 'red' });
    await explain('permission=job:read&tenantId=red', red.client).expect(200);
    await explain('permission=job:read&tenantId=blue', red.client).expect(403);
    await explain('permission=job:read&siteId=site_blue', red.client).expect(400);
    await explain('permission=job:read&tenantId=blue&siteId=site_red').expect(400);
  });

  test('explain finds one grant among hundreds, and lists only grants inside the scope of the caller', async () => {
    const someone = await createUser(app, 'operator');
    await app.deps.db.raw(
      `INSERT INTO roles (id, name, permissions, created_at, updated_at) SELECT 'many-' || n, 'x', '{event:read}', now(), now() FROM generate_series(1, 250) AS n`,
    );
    await app.deps.db.raw(
      `INSERT INTO grants (id, kind, user_id, role_id, level, tenant_id, created_by, created_at)
       SELECT 'asg_' || lpad(n::text, 26, '0'), 'assignment', ?, 'many-' || n, 'platform', 'platform', 'test', now() FROM generate_series(1, 250) AS n`,
      [someone.id],
    );
    const ask = (by: typeof someone.client) =>
      by.get<Explanation>(
        `/api/rbac/explain?userId=${someone.id}&permission=job:write&tenantId=red`,
      );
    expect((await ask(admin(app))).body).toMatchObject({
      allowed: true,
      grants: [{ roleId: 'operator', level: 'platform' }],
    });
    const red = await createUser(app, { roleId: 'delegate', tenantId: 'red' });
    expect((await ask(red.client)).body).toMatchObject({
      allowed: true,
      grants: [],
      reason: expect.stringContaining('1 of them outside'),
    });
  });
});
