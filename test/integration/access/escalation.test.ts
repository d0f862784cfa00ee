import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import {
  admin,
  createUser,
  first,
  seedSiteAndDevice,
  seedTenant,
  type Page,
} from '../../support/users.ts';
import type { AssignmentRecord, RoleRecord } from '../../../api/access/schemas.ts';
import type { UserRecord } from '../../../api/auth/schemas.ts';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type { ProviderRecord } from '../../../api/auth/providerRoutes.ts';
import { expectProblem } from '../../support/problem.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
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

describe('nobody grants permissions that they do not hold', () => {
  test('a delegate of a tenant grants only their own permissions, and only there', async () => {
    const boss = await createUser(app, { roleId: 'delegate', tenantId: 'red' });
    const { id: userId } = await createUser(app);
    const grant = (body: object) =>
      boss.client.post<AssignmentRecord>('/api/rbac/assignments', { userId, ...body });
    await grant({ roleId: 'delegate', tenantId: 'red' }).expect(201);
    await grant({ roleId: 'delegate', siteId: 'site_red' }).expect(201);
    for (const body of [
      { roleId: 'operator', tenantId: 'red' },
      { roleId: 'platform-admin', tenantId: 'red' },
      { roleId: 'delegate', tenantId: 'blue' },
      { roleId: 'delegate' },
      { roleId: 'delegate', tenantId: 'platform' },
    ])
      await expectProblem(grant(body), 403, 'permission_denied');
    // Sites outside the scope of the caller are reported as missing.
    await expectProblem(grant({ roleId: 'delegate', siteId: 'site_blue' }), 400, 'invalid_request');
    await expectProblem(
      boss.client.post('/api/rbac/provider-mappings', {
        providerId: 'local',
        externalGroup: 'x',
        roleId: 'operator',
        tenantId: 'red',
      }),
      403,
      'permission_denied',
    );
    const denied = await admin(app).get<Page<AuditEntryRecord>>(
      `/api/audit?action=access.denied&actorId=${boss.id}`,
    );
    expect(denied.body.items.length).toBeGreaterThan(3);
  });

  test('adding permissions to a role requires holding them', async () => {
    await admin(app).post('/api/rbac/roles', {
      id: 'rbac-only',
      name: 'x',
      permissions: ['rbac:read', 'rbac:write'],
    });
    const someone = await createUser(app, 'rbac-only');
    await expectProblem(
      someone.client.put('/api/rbac/roles/rbac-only', {
        permissions: ['rbac:read', 'rbac:write', 'job:write'],
      }),
      403,
      'permission_denied',
    );
    await expectProblem(
      someone.client.post('/api/rbac/roles', { name: 'y', permissions: ['job:write'] }),
      403,
      'permission_denied',
    );
    expect(
      (await someone.client.put<RoleRecord>('/api/rbac/roles/rbac-only', { name: 'renamed' })).body
        .name,
    ).toBe('renamed');
    const tenantOnly = await createUser(app, { roleId: 'rbac-only', tenantId: 'red' });
    await expectProblem(
      tenantOnly.client.post('/api/rbac/roles', { name: 'z', permissions: ['rbac:read'] }),
      403,
      'permission_denied',
    );
  });

  test('changing an account requires the permissions of its owner', async () => {
    await admin(app).post('/api/rbac/roles', {
      id: 'helpdesk',
      name: 'Help desk',
      permissions: ['user:read', 'user:write', 'job:read'],
    });
    const helper = await createUser(app, 'helpdesk');
    const [operator, viewer] = [
      await createUser(app, 'operator'),
      await createUser(app, 'helpdesk'),
    ];
    await expectProblem(
      helper.client.post(`/api/users/${operator.id}/reset-password`, {}),
      403,
      'permission_denied',
    );
    await expectProblem(
      helper.client.put(`/api/users/${operator.id}`, { tenantId: 'red' }),
      403,
      'permission_denied',
    );
    // Disabling an account grants nothing; enabling it does.
    await helper.client.put(`/api/users/${operator.id}`, { enabled: false }).expect(200);
    await expectProblem(
      helper.client.put(`/api/users/${operator.id}`, { enabled: true }),
      403,
      'permission_denied',
    );
    // Not by using the owner's id at the gateway either, nor for one's own account.
    const gateway = app.client.as({ actor: operator.id, roles: 'helpdesk' });
    await expectProblem(
      gateway.post(`/api/users/${operator.id}/reset-password`, {}),
      403,
      'permission_denied',
    );
    await expectProblem(
      helper.client.post(`/api/users/${helper.id}/reset-password`, {}),
      409,
      'own_account',
    );
    await helper.client.post(`/api/users/${viewer.id}/reset-password`, {}).expect(200);
  });
});

describe('the last administrator', () => {
  test('cannot be removed, and of two who remove each other one remains', async () => {
    const fresh = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
    try {
      const [one, two] = [
        await createUser(fresh, 'platform-admin'),
        await createUser(fresh, 'platform-admin'),
      ];
      const assignments = (await admin(fresh).get<Page<AssignmentRecord>>('/api/rbac/assignments'))
        .body.items;
      const of = (id: string) =>
        assertDefined(
          assignments.find((item) => item.userId === id),
          'assignment',
        ).id;
      const both = await Promise.all([
        one.client.delete(`/api/rbac/assignments/${of(two.id)}`),
        two.client.delete(`/api/rbac/assignments/${of(one.id)}`),
      ]);
      const statuses = both.map(({ status }) => status).sort();
      expect(statuses[0]).toBe(204);
      expect([403, 404, 409]).toContain(statuses[1]);
      const left = (
        await admin(fresh).get<Page<AssignmentRecord>>(
          '/api/rbac/assignments?roleId=platform-admin',
        )
      ).body.items;
      expect(left).toHaveLength(1);
      const last = assertDefined(left[0], 'last assignment');
      await expectProblem(
        admin(fresh).delete(`/api/rbac/assignments/${last.id}`),
        409,
        'last_administrator',
      );
      await expectProblem(
        admin(fresh).put(`/api/users/${last.userId}`, { enabled: false }),
        409,
        'last_administrator',
      );
      await expectProblem(
        admin(fresh).put('/api/auth/providers/local', { enabled: false }),
        409,
        'last_administrator',
      );
      // The last administrator is a user of a provider that is deleted.
      const made = await admin(fresh).post<ProviderRecord>('/api/auth/providers', {
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
      await expectProblem(
        admin(fresh).delete(`/api/auth/providers/${made.body.id}`),
        409,
        'last_administrator',
      );
      await admin(fresh).post('/api/rbac/assignments', {
        userId: last.userId,
        roleId: 'platform-admin',
      });
      expect((await admin(fresh).get<UserRecord>(`/api/users/${last.userId}`)).body.enabled).toBe(
        true,
      );
    } finally {
      await fresh.stop();
    }
  });

  test('remains when several disable each other concurrently', async () => {
    const fresh = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
    try {
      const all = await Promise.all([1, 2, 3, 4].map(() => createUser(fresh, 'platform-admin')));
      const statuses = await Promise.all(
        all.map(async ({ id }, i) => {
          const answer = await all[(i + 1) % all.length]?.client.put<UserRecord>(
            `/api/users/${id}`,
            {
              enabled: false,
            },
          );
          return answer?.status;
        }),
      );
      const { body } = await admin(fresh).get<Page<UserRecord>>('/api/users?enabled=true');
      // An administrator who was disabled first cannot disable another one.
      expect(statuses.filter((status) => ![200, 401, 403, 409].includes(status ?? 0))).toEqual([]);
      expect(body.items.length).toBe(4 - statuses.filter((status) => status === 200).length);
      expect(body.items.length).toBeGreaterThan(0);
    } finally {
      await fresh.stop();
    }
  });
});

test('concurrent changes and deletions of a role succeed or find it deleted', async () => {
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
          : admin(app).put<RoleRecord>('/api/rbac/roles/contended', { name: `n${i}` }),
      ),
    );
    expect(
      answers.map(({ status }) => status).filter((status) => ![200, 204, 404].includes(status)),
    ).toEqual([]);
  }
});

test('a right that is revoked while the request body arrives is not used', async () => {
  const [boss] = [await createUser(app, 'platform-admin'), await createUser(app, 'platform-admin')];
  const { id } = await createUser(app);
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
  await admin(app).put(`/api/users/${boss.id}`, { enabled: false }).expect(200);
  await eventually(
    () => Date.now(),
    (now) => now > began + 1_300,
  );
  socket.write(body);
  expect(await answer).toContain('401 Unauthorized');
  expect(
    (await admin(app).get<Page<AssignmentRecord>>(`/api/rbac/assignments?userId=${id}`)).body.items,
  ).toEqual([]);
});

/** Holds the lock of rights while `queued` requests begin one after another, each waiting for it. */
async function whileLocked<T>(...queued: (() => PromiseLike<T>)[]): Promise<T[]> {
  const lock = await app.deps.db.transaction();
  await lock.raw('SELECT FROM access_state FOR UPDATE');
  const answers: Promise<T>[] = [];
  for (const send of queued) {
    answers.push(Promise.resolve(send()));
    await eventually(
      async () =>
        (
          await app.deps.db.raw(
            `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
          )
        ).rows[0].count,
      (n) => n === answers.length,
    );
  }
  await lock.commit();
  return Promise.all(answers);
}

test.each<[string, string, (userId: string) => object]>([
  [
    'a role assignment',
    '/api/rbac/assignments',
    (userId) => ({ userId, roleId: 'platform-admin' }),
  ],
  ['a role', '/api/rbac/roles', () => ({ name: 'Left behind', permissions: ['rbac:write'] })],
  [
    'an identity provider',
    '/api/auth/providers',
    () => ({
      kind: 'oidc',
      name: 'left-behind',
      config: { issuer: 'https://idp.example.com', clientId: 'a', clientSecret: 'b' },
    }),
  ],
  ['a user', '/api/users', () => ({ username: 'left-behind' })],
  ['a service account', '/api/service-accounts', () => ({ name: 'left-behind' })],
])('a right that is revoked while %s waits for the lock is not used', async (_, path, bodyOf) => {
  const [boss] = [await createUser(app, 'platform-admin'), await createUser(app, 'platform-admin')];
  const { id: own } = first(
    await admin(app)
      .get<Page<AssignmentRecord>>(`/api/rbac/assignments?userId=${boss.id}`)
      .expect(200),
  );
  const accomplice = await createUser(app);
  const answers = await whileLocked<{ status: number }>(
    () => admin(app).delete(`/api/rbac/assignments/${own}`),
    () => boss.client.post(path, bodyOf(accomplice.id)),
  );
  expect(answers.map(({ status }) => status)).toEqual([204, 403]);
});

test.each([true, false])(
  'no right is granted at a site that moves to another tenant at the same time (with grants: %s)',
  async (hasGrants) => {
    const site = `sit_${hasGrants ? 'a' : 'b'}`.padEnd(30, '0');
    await seedTenant(app, 'blue');
    await seedSiteAndDevice(app, { tenant: 'red', site });
    const boss = await createUser(app, { roleId: 'delegate', tenantId: 'red' });
    const { id: userId } = await createUser(app);
    const grant = (to: string) => ({ userId: to, roleId: 'delegate', siteId: site });
    if (hasGrants)
      await admin(app)
        .post('/api/rbac/assignments', grant((await createUser(app)).id))
        .expect(201);
    const answers = await whileLocked<{ status: number }>(
      () => admin(app).put(`/api/inventory/sites/${site}`, { tenantId: 'blue' }),
      () => boss.client.post('/api/rbac/assignments', grant(userId)),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 400]);
    const { items } = await admin(app)
      .get<Page<AssignmentRecord>>(`/api/rbac/assignments?userId=${userId}`)
      .expect(200);
    expect(items).toEqual([]);
  },
);
