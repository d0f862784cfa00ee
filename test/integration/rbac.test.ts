import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { admin, person, place } from '../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
  await place(app, { tenant: 'red', site: 'site_red', device: 'dev_red' });
  await place(app, { tenant: 'blue', site: 'site_blue', device: 'dev_blue' });
  const made = await admin(app).post('/api/rbac/roles', {
    id: 'delegate',
    name: 'Delegate',
    permissions: ['rbac:read', 'rbac:write', 'job:read', 'user:read'],
  });
  expect(made.status).toBe(201);
});
afterAll(() => app.stop());

const echo = { type: 'core.echo', payload: {} };
const codeOf = ({ status, body }: { status: number; body: any }) => [status, body.code ?? null];

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
  ])('with %s stand at the narrowest', async (_what, target, expected) => {
    const { id } = await person(app);
    const given = await admin(app).post('/api/rbac/assignments', {
      userId: id,
      roleId: 'viewer',
      ...target,
    });
    expect([given.status, given.body]).toEqual([
      201,
      expect.objectContaining({ userId: id, roleId: 'viewer', ...expected }),
    ]);
    expect((await admin(app).get(given.headers.get('location') ?? '')).body).toEqual(given.body);
    const again = await admin(app).post('/api/rbac/assignments', {
      userId: id,
      roleId: 'viewer',
      ...target,
    });
    expect(codeOf(again)).toEqual([409, 'conflict']);
  });

  test.each([
    ['/userId', { userId: `usr_${'0'.repeat(26)}` }],
    ['/roleId', { roleId: 'no-such-role' }],
    ['/siteId', { siteId: 'site_none' }],
    ['/deviceId', { deviceId: 'dev_none' }],
    ['/tenantId', { tenantId: 'blue', siteId: 'site_red' }],
    ['/siteId', { siteId: 'site_blue', deviceId: 'dev_red' }],
  ])('with a bad %s are refused and say so', async (pointer, wrong) => {
    const { id } = await person(app);
    const answer = await admin(app).post('/api/rbac/assignments', {
      userId: id,
      roleId: 'viewer',
      ...wrong,
    });
    expect([answer.status, answer.body.errors?.[0]?.pointer]).toEqual([400, pointer]);
  });

  test('work at once, in reads and actions, and end at once', async () => {
    const someone = await person(app);
    expect(codeOf(await someone.client.get('/api/jobs'))).toEqual([403, 'permission_denied']);
    const given = await admin(app).post('/api/rbac/assignments', {
      userId: someone.id,
      roleId: 'operator',
      tenantId: 'red',
    });
    await app.client.as({ tenant: 'red' }).post('/api/jobs', echo);
    await app.client.as({ tenant: 'blue' }).post('/api/jobs', echo);
    const seen = await someone.client.get('/api/jobs');
    expect([...new Set(seen.body.items.map((job: any) => job.tenantId))]).toEqual(['red']);
    expect(codeOf(await someone.client.post('/api/jobs', echo))).toEqual([
      403,
      'permission_denied',
    ]);
    await someone.client.put('/api/auth/session', { tenantId: 'red' });
    expect((await someone.client.post('/api/jobs', echo)).body).toMatchObject({
      tenantId: 'red',
      createdBy: someone.id,
    });
    expect((await admin(app).delete(`/api/rbac/assignments/${given.body.id}`)).status).toBe(204);
    expect(codeOf(await someone.client.get('/api/jobs'))).toEqual([403, 'permission_denied']);
  });

  test('at a site or device give nothing of the tenant', async () => {
    const someone = await person(
      app,
      { roleId: 'platform-admin', siteId: 'site_red' },
      { roleId: 'platform-admin', deviceId: 'dev_blue' },
    );
    await app.client.as({ tenant: 'red' }).post('/api/jobs', echo);
    expect((await someone.client.get('/api/jobs')).body.items).toEqual([]);
    expect((await someone.client.get('/api/users')).body.items).toEqual([]);
    expect((await someone.client.get('/api/audit')).body.items).toEqual([]);
  });

  test('are listed inside the scope only, filtered and paged', async () => {
    const red = await person(app, { roleId: 'delegate', tenantId: 'red' });
    await person(
      app,
      { roleId: 'viewer', tenantId: 'blue' },
      { roleId: 'viewer', siteId: 'site_blue' },
      { roleId: 'viewer', siteId: 'site_red' },
    );
    const { body } = await red.client.get('/api/rbac/assignments?limit=200');
    expect(body.items.length).toBeGreaterThan(1);
    expect(new Set(body.items.map((item: any) => item.tenantId))).toEqual(new Set(['red']));
    const first = await admin(app).get('/api/rbac/assignments?limit=1&tenantId=blue');
    const second = await admin(app).get(
      `/api/rbac/assignments?limit=1&tenantId=blue&cursor=${first.body.nextCursor}`,
    );
    expect(second.body.items[0].id < first.body.items[0].id).toBe(true);
    const blue = first.body.items[0].id;
    expect(codeOf(await red.client.get(`/api/rbac/assignments/${blue}`))).toEqual([
      404,
      'not_found',
    ]);
    expect(codeOf(await red.client.delete(`/api/rbac/assignments/${blue}`))).toEqual([
      404,
      'not_found',
    ]);
    const mapping = {
      providerId: 'local',
      externalGroup: 'filtered',
      roleId: 'viewer',
      tenantId: 'blue',
    };
    const made = await admin(app).post('/api/rbac/provider-mappings', mapping);
    const mappings = async (query: string) =>
      (await admin(app).get(`/api/rbac/provider-mappings?${query}`)).body.items.map(
        (item: any) => item.id,
      );
    expect([
      await mappings('externalGroup=filtered'),
      await mappings('externalGroup=other'),
      await mappings('roleId=operator'),
    ]).toEqual([[made.body.id], [], []]);
    const overview = await red.client.get('/api/rbac');
    expect(overview.body.roles.map((role: any) => role.id)).toEqual(
      expect.arrayContaining(['platform-admin', 'viewer', 'delegate']),
    );
    expect(overview.body.assignments.every((item: any) => item.tenantId === 'red')).toBe(true);
  });
});

describe('nobody grants what they do not hold', () => {
  test('a delegate of one tenant gives its own permissions there, nothing more, and nowhere else', async () => {
    const boss = await person(app, { roleId: 'delegate', tenantId: 'red' });
    const { id: userId } = await person(app);
    const give = (body: object) => boss.client.post('/api/rbac/assignments', { userId, ...body });
    expect((await give({ roleId: 'delegate', tenantId: 'red' })).status).toBe(201);
    expect((await give({ roleId: 'delegate', siteId: 'site_red' })).status).toBe(201);
    for (const body of [
      { roleId: 'operator', tenantId: 'red' },
      { roleId: 'platform-admin', tenantId: 'red' },
      { roleId: 'delegate', tenantId: 'blue' },
      { roleId: 'delegate' },
      { roleId: 'delegate', tenantId: 'platform' },
    ])
      expect(codeOf(await give(body))).toEqual([403, 'permission_denied']);
    // A site elsewhere does not exist for them.
    expect(codeOf(await give({ roleId: 'delegate', siteId: 'site_blue' }))).toEqual([
      400,
      'invalid_request',
    ]);
    expect(
      codeOf(
        await boss.client.post('/api/rbac/provider-mappings', {
          providerId: 'local',
          externalGroup: 'x',
          roleId: 'operator',
          tenantId: 'red',
        }),
      ),
    ).toEqual([403, 'permission_denied']);
    const denied = await admin(app).get(`/api/audit?action=access.denied&actorId=${boss.id}`);
    expect(denied.body.items.length).toBeGreaterThan(3);
  });

  test('a role is not widened by somebody who lacks what is added', async () => {
    await admin(app).post('/api/rbac/roles', {
      id: 'rbac-only',
      name: 'x',
      permissions: ['rbac:read', 'rbac:write'],
    });
    const someone = await person(app, 'rbac-only');
    expect(
      codeOf(
        await someone.client.put('/api/rbac/roles/rbac-only', {
          permissions: ['rbac:read', 'rbac:write', 'job:write'],
        }),
      ),
    ).toEqual([403, 'permission_denied']);
    expect(
      codeOf(
        await someone.client.post('/api/rbac/roles', { name: 'y', permissions: ['job:write'] }),
      ),
    ).toEqual([403, 'permission_denied']);
    expect(
      (await someone.client.put('/api/rbac/roles/rbac-only', { name: 'renamed' })).body.name,
    ).toBe('renamed');
    const tenantOnly = await person(app, { roleId: 'rbac-only', tenantId: 'red' });
    expect(
      codeOf(
        await tenantOnly.client.post('/api/rbac/roles', { name: 'z', permissions: ['rbac:read'] }),
      ),
    ).toEqual([403, 'permission_denied']);
  });

  test('an account is not taken over by somebody who holds less than its owner', async () => {
    await admin(app).post('/api/rbac/roles', {
      id: 'helpdesk',
      name: 'Help desk',
      permissions: ['user:read', 'user:write', 'job:read'],
    });
    const helper = await person(app, 'helpdesk');
    const [operator, viewer] = [await person(app, 'operator'), await person(app, 'helpdesk')];
    expect(
      codeOf(await helper.client.post(`/api/users/${operator.id}/reset-password`, {})),
    ).toEqual([403, 'permission_denied']);
    expect(
      codeOf(await helper.client.put(`/api/users/${operator.id}`, { tenantId: 'red' })),
    ).toEqual([403, 'permission_denied']);
    // To disable somebody hands no power to anybody; to enable them again may.
    expect((await helper.client.put(`/api/users/${operator.id}`, { enabled: false })).status).toBe(
      200,
    );
    expect(codeOf(await helper.client.put(`/api/users/${operator.id}`, { enabled: true }))).toEqual(
      [403, 'permission_denied'],
    );
    // Neither by calling oneself the owner, nor one's own account without the current password.
    const gateway = app.client.as({ actor: operator.id, roles: 'helpdesk' });
    expect(codeOf(await gateway.post(`/api/users/${operator.id}/reset-password`, {}))).toEqual([
      403,
      'permission_denied',
    ]);
    expect(codeOf(await helper.client.post(`/api/users/${helper.id}/reset-password`, {}))).toEqual([
      409,
      'own_account',
    ]);
    expect((await helper.client.post(`/api/users/${viewer.id}/reset-password`, {})).status).toBe(
      200,
    );
  });
});

describe('the last administrator', () => {
  test('stays, by every way, and of two who remove each other one stays', async () => {
    const fresh = await startApp({ HOLDFAST_ROLE: 'api' });
    try {
      const [one, two] = [
        await person(fresh, 'platform-admin'),
        await person(fresh, 'platform-admin'),
      ];
      const assignments = (await admin(fresh).get('/api/rbac/assignments')).body.items;
      const of = (id: string) => assignments.find((item: any) => item.userId === id).id;
      const both = await Promise.all([
        one.client.delete(`/api/rbac/assignments/${of(two.id)}`),
        two.client.delete(`/api/rbac/assignments/${of(one.id)}`),
      ]);
      const statuses = both.map(({ status }) => status).sort();
      expect(statuses[0]).toBe(204);
      expect([403, 404, 409]).toContain(statuses[1]);
      const left = (await admin(fresh).get('/api/rbac/assignments?roleId=platform-admin')).body
        .items;
      expect(left).toHaveLength(1);
      const last = left[0];
      expect(codeOf(await admin(fresh).delete(`/api/rbac/assignments/${last.id}`))).toEqual([
        409,
        'last_administrator',
      ]);
      expect(
        codeOf(await admin(fresh).put(`/api/users/${last.userId}`, { enabled: false })),
      ).toEqual([409, 'last_administrator']);
      expect(
        codeOf(await admin(fresh).put('/api/auth/providers/local', { enabled: false })),
      ).toEqual([409, 'last_administrator']);
      // The same when the last one comes by a provider, and that is deleted.
      const made = await admin(fresh).post('/api/auth/providers', {
        kind: 'oidc',
        name: 'x',
        config: { issuer: 'https://x.example', clientId: 'x' },
      });
      await fresh.deps.db('users').insert({
        id: `usr_${'7'.repeat(26)}`,
        provider_id: made.body.id,
        external_id: 'x',
        username: 'x',
        display_name: 'x',
        tenant_id: 'platform',
        enabled: true,
        created_at: new Date(),
        updated_at: new Date(),
      });
      await admin(fresh).post('/api/rbac/assignments', {
        userId: `usr_${'7'.repeat(26)}`,
        roleId: 'platform-admin',
      });
      await admin(fresh).delete(`/api/rbac/assignments/${last.id}`);
      expect(codeOf(await admin(fresh).delete(`/api/auth/providers/${made.body.id}`))).toEqual([
        409,
        'last_administrator',
      ]);
      await admin(fresh).post('/api/rbac/assignments', {
        userId: last.userId,
        roleId: 'platform-admin',
      });
      expect((await admin(fresh).get(`/api/users/${last.userId}`)).body.enabled).toBe(true);
    } finally {
      await fresh.stop();
    }
  });

  test('stays when several disable each other at once', async () => {
    const fresh = await startApp({ HOLDFAST_ROLE: 'api' });
    try {
      const all = await Promise.all([1, 2, 3, 4].map(() => person(fresh, 'platform-admin')));
      const statuses = await Promise.all(
        all.map(async ({ id }, i) => {
          const answer = await all[(i + 1) % all.length]?.client.put(`/api/users/${id}`, {
            enabled: false,
          });
          return answer?.status;
        }),
      );
      const { body } = await admin(fresh).get('/api/users?enabled=true');
      // One who was disabled meanwhile disables nobody any more.
      expect(statuses.filter((status) => ![200, 401, 403, 409].includes(status ?? 0))).toEqual([]);
      expect(body.items.length).toBe(4 - statuses.filter((status) => status === 200).length);
      expect(body.items.length).toBeGreaterThan(0);
    } finally {
      await fresh.stop();
    }
  });
});

test('changes and deletions of one role at once end well or with a clear answer', async () => {
  for (let round = 0; round < 5; round++) {
    await admin(app).post('/api/rbac/roles', {
      id: 'contended',
      name: 'x',
      permissions: ['job:read'],
    });
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        i === 7
          ? admin(app).delete('/api/rbac/roles/contended')
          : admin(app).put('/api/rbac/roles/contended', { name: `n${i}` }),
      ),
    );
    expect(
      answers.map(({ status }) => status).filter((status) => ![200, 204, 404].includes(status)),
    ).toEqual([]);
  }
});

test('a right that is taken while the body comes in is not used', async () => {
  const [boss] = [await person(app, 'platform-admin'), await person(app, 'platform-admin')];
  const { id } = await person(app);
  const body = JSON.stringify({ userId: id, roleId: 'platform-admin' });
  const { hostname, port } = new URL(app.client.base);
  const socket = connect(Number(port), hostname);
  const answer = new Promise<string>((resolve) => {
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString())).once('close', () => resolve(text));
  });
  socket.write(
    `POST /api/rbac/assignments HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${boss.accessToken}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
  );
  const began = Date.now();
  expect((await admin(app).put(`/api/users/${boss.id}`, { enabled: false })).status).toBe(200);
  await eventually(
    () => Date.now(),
    (now) => now > began + 1_300,
  );
  socket.write(body);
  expect(await answer).toContain('401 Unauthorized');
  expect((await admin(app).get(`/api/rbac/assignments?userId=${id}`)).body.items).toEqual([]);
});

test('a right that is taken while a change waits for its turn is not used', async () => {
  const [boss] = [await person(app, 'platform-admin'), await person(app, 'platform-admin')];
  const [{ id: own }] = (await admin(app).get(`/api/rbac/assignments?userId=${boss.id}`)).body
    .items;
  const accomplice = await person(app);
  let release: () => void = () => undefined;
  const held = app.deps.db.transaction(async (trx) => {
    await trx.raw('SELECT FROM access_state FOR UPDATE');
    await new Promise<void>((resolve) => (release = resolve));
  });
  const waiting = (count: number) =>
    eventually(
      async () =>
        (
          await app.deps.db.raw(
            `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
          )
        ).rows[0].count,
      (n) => n === count,
    );
  const revoked = admin(app).delete(`/api/rbac/assignments/${own}`);
  await waiting(1);
  const granted = boss.client.post('/api/rbac/assignments', {
    userId: accomplice.id,
    roleId: 'platform-admin',
  });
  await waiting(2);
  release();
  await held;
  expect([(await revoked).status, (await granted).status]).toEqual([204, 403]);
});

describe('roles', () => {
  test('custom ones can be made, read, changed, used behind a gateway, and deleted when nobody has them', async () => {
    const made = await admin(app).post('/api/rbac/roles', {
      id: 'runner',
      name: 'Runner',
      permissions: ['job:write', 'job:read', 'job:read'],
    });
    expect(made.body).toEqual({
      id: 'runner',
      name: 'Runner',
      builtIn: false,
      permissions: ['job:read', 'job:write'],
      version: 1,
    });
    const gateway = app.client.as({ actor: 'gw', roles: 'runner', tenant: 'red' });
    const job = await gateway.post('/api/jobs', echo, { prefer: 'wait=20' });
    expect(job.body).toMatchObject({ status: 'succeeded', tenantId: 'red' });
    const someone = await person(app, { roleId: 'runner', tenantId: 'red' });
    expect(codeOf(await admin(app).delete('/api/rbac/roles/runner'))).toEqual([409, 'in_use']);
    expect(
      codeOf(
        await admin(app).send(
          'PUT',
          '/api/rbac/roles/runner',
          { name: 'x' },
          { 'if-match': '"9"' },
        ),
      ),
    ).toEqual([412, 'version_stale']);
    const changed = await admin(app).put('/api/rbac/roles/runner', { permissions: ['job:read'] });
    expect([changed.body.version, changed.headers.get('etag')]).toEqual([2, '"2"']);
    await someone.client.put('/api/auth/session', { tenantId: 'red' });
    expect(codeOf(await someone.client.post('/api/jobs', echo))).toEqual([
      403,
      'permission_denied',
    ]);
    const [assignment] = (await admin(app).get('/api/rbac/assignments?roleId=runner')).body.items;
    await admin(app).delete(`/api/rbac/assignments/${assignment.id}`);
    expect((await admin(app).delete('/api/rbac/roles/runner')).status).toBe(204);
    expect(codeOf(await gateway.get('/api/jobs'))).toEqual([403, 'permission_denied']);
  });

  test.each([
    ['an unknown permission', { name: 'x', permissions: ['job:fly'] }, 400],
    ['none', { name: 'x', permissions: [] }, 400],
    ['a built-in id', { id: 'viewer', name: 'x', permissions: ['job:read'] }, 409],
    ['a bad id', { id: 'No', name: 'x', permissions: ['job:read'] }, 400],
  ])('with %s are refused', async (_what, body, status) => {
    expect((await admin(app).post('/api/rbac/roles', body)).status).toBe(status);
  });

  test('built-in ones never change', async () => {
    expect(codeOf(await admin(app).put('/api/rbac/roles/viewer', { name: 'x' }))).toEqual([
      409,
      'built_in',
    ]);
    expect(codeOf(await admin(app).delete('/api/rbac/roles/viewer'))).toEqual([409, 'built_in']);
  });
});

test('a job of a user runs with the rights that the user has when it runs', async () => {
  const someone = await person(app, 'operator');
  await app.deps.stopWorkers();
  const job = await someone.client.post('/api/jobs', echo);
  expect(job.body.status).toBe('queued');
  const [assignment] = (await admin(app).get(`/api/rbac/assignments?userId=${someone.id}`)).body
    .items;
  await admin(app).delete(`/api/rbac/assignments/${assignment.id}`);
  const { startAppOn } = await import('../support/app.ts');
  const worker = await startAppOn(app.databaseUrl, { ...app.env, HOLDFAST_ROLE: 'worker' });
  try {
    const ended = await eventually(
      () => admin(app).get(`/api/jobs/${job.body.id}`),
      ({ body }) => body.status !== 'queued' && body.status !== 'running',
    );
    expect(ended.body).toMatchObject({ status: 'failed', error: { code: 'permission_lost' } });
  } finally {
    await worker.stop();
  }
});

describe('what somebody may do', () => {
  test('the summary names each permission with its scopes', async () => {
    const someone = await person(
      app,
      { roleId: 'viewer', tenantId: 'red' },
      { roleId: 'operator', siteId: 'site_blue' },
    );
    await someone.client.put('/api/auth/session', { tenantId: 'red' });
    const { body } = await someone.client.get('/api/rbac/summary');
    expect(body).toMatchObject({ actorId: someone.id, tenantId: 'red' });
    expect(body.permissions['job:read']).toEqual({
      everywhere: false,
      complete: true,
      tenantIds: ['red'],
      siteIds: ['site_blue'],
      deviceIds: [],
    });
    expect(body.can).toMatchObject({ 'job:read': true, 'job:write': false, 'rbac:read': false });
    expect(
      (await admin(app).get('/api/rbac/summary')).body.permissions['rbac:write'].everywhere,
    ).toBe(true);
  });

  test('explain says yes or no, and by which grant', async () => {
    const someone = await person(
      app,
      { roleId: 'viewer', tenantId: 'red' },
      { roleId: 'operator', siteId: 'site_red' },
    );
    const explain = (query: string, by = admin(app)) =>
      by.get(`/api/rbac/explain?userId=${someone.id}&${query}`);
    expect((await explain('permission=job:read&tenantId=red')).body).toMatchObject({
      allowed: true,
      grants: [{ roleId: 'viewer', level: 'tenant' }],
    });
    expect(
      (await explain('permission=job:read&deviceId=dev_red')).body.grants
        .map((g: any) => g.roleId)
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
    const red = await person(app, { roleId: 'delegate', tenantId: 'red' });
    expect((await explain('permission=job:read&tenantId=red', red.client)).status).toBe(200);
    expect((await explain('permission=job:read&tenantId=blue', red.client)).status).toBe(403);
    expect((await explain('permission=job:read&siteId=site_blue', red.client)).status).toBe(400);
    expect((await explain('permission=job:read&tenantId=blue&siteId=site_red')).status).toBe(400);
  });

  test('explain finds the one grant among hundreds, and shows only those inside the scope', async () => {
    const someone = await person(app, 'operator');
    await app.deps.db.raw(
      `INSERT INTO roles (id, name, permissions, created_at, updated_at) SELECT 'many-' || n, 'x', '{event:read}', now(), now() FROM generate_series(1, 250) AS n`,
    );
    await app.deps.db.raw(
      `INSERT INTO grants (id, kind, user_id, role_id, level, tenant_id, created_by, created_at)
       SELECT 'asg_' || lpad(n::text, 26, '0'), 'assignment', ?, 'many-' || n, 'platform', 'platform', 'test', now() FROM generate_series(1, 250) AS n`,
      [someone.id],
    );
    const ask = (by: typeof someone.client) =>
      by.get(`/api/rbac/explain?userId=${someone.id}&permission=job:write&tenantId=red`);
    expect((await ask(admin(app))).body).toMatchObject({
      allowed: true,
      grants: [{ roleId: 'operator', level: 'platform' }],
    });
    const red = await person(app, { roleId: 'delegate', tenantId: 'red' });
    expect((await ask(red.client)).body).toMatchObject({
      allowed: true,
      grants: [],
      reason: expect.stringContaining('1 of them outside'),
    });
  });
});
