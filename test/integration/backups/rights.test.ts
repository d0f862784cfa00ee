import { describe, expect, test } from '@jest/globals';
import type { TestApp } from '../../support/app.ts';
import { backUp, dump, withBackups } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { furnish } from '../../support/estate.ts';
import { eventually } from '../../support/eventually.ts';
import { person } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
withBackups(async (there) => {
  ({ app, root } = there);
  await furnish(app);
  await furnish(app, 'acme');
  await furnish(app, 'other');
  await root.post('/api/rbac/roles', {
    id: 'keeper',
    name: 'Keeper',
    permissions: [
      'backup:read',
      'backup:write',
      'backup:restore',
      'job:read',
      'job:write',
      'schedule:write',
      'schedule:read',
      'workflow:read',
      'workflow:write',
      'workflow:approve',
    ],
  });
});

const as = (roles: string, tenant: string, actor = 'kim') =>
  app.client.as({ actor, roles, tenant });
const restoring = (client: TestClient, body: object) =>
  client.post('/api/backup/restore', { safetyBackup: false, ...body }, { prefer: 'wait=50' });

describe('a tenant', () => {
  test("backs up and restores its own records, and nobody else's", async () => {
    const acme = as('keeper', 'acme');
    const backup = await backUp(() => acme)({ label: 'acme' });
    expect(backup).toMatchObject({
      tenantId: 'acme',
      sections: ['settings', 'inventory', 'jobs', 'events', 'webhooks', 'schedules', 'workflows'],
    });
    const rows = (name: string) =>
      backup.restorePreview.tables.find((each: any) => each.table === name)?.rows as number;
    expect([
      rows('sites'),
      rows('devices'),
      rows('ip_addresses'),
      rows('webhooks'),
      rows('users'),
    ]).toEqual([1, 3, 8, 1, undefined]);
    const tables = [
      'sites',
      'devices',
      'interfaces',
      'cables',
      'ip_addresses',
      'prefixes',
      'racks',
    ];
    const [mine, others] = [
      await dump(app.databaseUrl, tables, `t.tenant_id = 'acme'`),
      await dump(app.databaseUrl, tables, `t.tenant_id <> 'acme'`),
    ];
    const { db } = app.deps;
    await db('devices').where({ tenant_id: 'acme' }).update({ primary_ip4_id: null });
    await db('ip_addresses').where({ tenant_id: 'acme' }).del();
    await db('cables').where({ tenant_id: 'acme' }).del();
    await db('sites').where({ tenant_id: 'acme' }).update({ description: 'changed' });
    await db('sites').where({ tenant_id: 'other' }).update({ description: 'stays' });
    const theirs = await dump(app.databaseUrl, ['sites'], `t.tenant_id = 'other'`);
    const look = await acme.post('/api/backup/restore/validate', { backupId: backup.id });
    expect([look.body.errors, look.body.preview.counts]).toEqual([
      [],
      expect.objectContaining({ created: 10, changed: 2, deleted: 0 }),
    ]);
    const restored = await restoring(acme, { backupId: backup.id, planHash: look.body.planHash });
    expect([restored.body.status, restored.body.error]).toEqual(['succeeded', null]);
    expect(await dump(app.databaseUrl, tables, `t.tenant_id = 'acme'`)).toEqual(mine);
    expect(await dump(app.databaseUrl, ['sites'], `t.tenant_id = 'other'`)).toEqual(theirs);
    expect({
      ...(await dump(app.databaseUrl, tables, `t.tenant_id <> 'acme'`)),
      sites: [],
    }).toEqual({ ...others, sites: [] });
  });

  test('sees no backup of the platform, and none of another tenant', async () => {
    const [ofAll, ofOther] = [
      await backUp(() => root)({ label: 'all' }),
      await backUp(() => as('keeper', 'other'))({ label: 'other' }),
    ];
    const acme = as('keeper', 'acme');
    expect(
      (await acme.get('/api/backup')).body.backups.map((each: any) => each.tenantId),
    ).not.toContain('platform');
    for (const { id } of [ofAll, ofOther]) {
      expect((await acme.get(`/api/backup/${id as string}`)).status).toBe(404);
      expect((await acme.delete(`/api/backup/${id as string}`)).status).toBe(404);
      expect((await acme.post('/api/backup/restore/validate', { backupId: id })).status).toBe(404);
      expect((await restoring(acme, { backupId: id })).status).toBe(404);
      const job = await acme.post(
        '/api/jobs',
        { type: 'backup.restore', payload: { backupId: id } },
        { prefer: 'wait=30' },
      );
      expect([job.body.status, job.body.error.code]).toEqual(['failed', 'backup_not_found']);
    }
  });

  test("gets nothing of the installation's own sections", async () => {
    for (const section of ['access', 'audit']) {
      const answer = await as('keeper', 'acme').post('/api/backup/create', {
        mode: 'partial',
        sections: [section],
      });
      expect([answer.status, answer.body.code]).toEqual([403, 'permission_denied']);
    }
    const job = await as('keeper', 'acme').post(
      '/api/jobs',
      { type: 'backup.create', payload: { mode: 'partial', sections: ['access'] } },
      { prefer: 'wait=30' },
    );
    expect([job.body.status, job.body.error.code]).toEqual(['failed', 'permission_denied']);
  });
});

describe('records between those of others', () => {
  test('get their parents from what is there, and rights follow what they are about', async () => {
    const acme = as('platform-admin', 'acme');
    const { db } = app.deps;
    await root.post('/api/inventory/prefixes', { cidr: '192.168.0.0/16' });
    const mine = (await acme.post('/api/inventory/prefixes', { cidr: '192.168.1.0/24' })).body;
    const outer = await db('prefixes').where({ cidr: '192.168.0.0/16' }).first();
    expect(mine.parentPrefixId).toBe(outer.id);
    const backup = await backUp(() => acme)({ label: 'between' });
    await acme.delete(`/api/inventory/prefixes/${mine.id as string}`);
    await root.delete(`/api/inventory/prefixes/${outer.id as string}`);
    const inner = (await root.post('/api/inventory/prefixes', { cidr: '192.168.1.128/25' })).body;
    const restored = await restoring(acme, { backupId: backup.id });
    expect([restored.body.status, restored.body.error]).toEqual(['succeeded', null]);
    expect((await db('prefixes').where({ id: mine.id }).first()).parent_prefix_id).toBeNull();
    expect((await db('prefixes').where({ id: inner.id }).first()).parent_prefix_id).toBe(mine.id);
    // A site that moved, and a right at it.
    const site = (
      await root.post('/api/inventory/sites', { name: 'moving', tags: ['platform-core'] })
    ).body;
    const keeper = await person(app, { roleId: 'viewer', siteId: site.id });
    const whole = await backUp(() => root)({ label: 'whole' });
    await db('sites').where({ id: site.id }).update({ tenant_id: 'acme' });
    await db('sites').whereRaw(`'platform-core' = ANY (tags)`).update({ tags: [] });
    await db('tags').where({ id: 'platform-core' }).del();
    expect((await db('grants').where({ user_id: keeper.id }).first()).tenant_id).toBe('acme');
    expect(
      (await restoring(root, { backupId: whole.id, sections: ['inventory'] })).body.status,
    ).toBe('succeeded');
    expect((await db('grants').where({ user_id: keeper.id }).first()).tenant_id).toBe('platform');
    // Tags that records use come back with them.
    expect(await db('tags').where({ id: 'platform-core' }).pluck('name')).toEqual(['Core']);
  });
});

describe('who may', () => {
  test('restore is asked wherever a restore can be made', async () => {
    const backup = await backUp(() => root)({ label: 'rights' });
    const operator = as('operator', 'platform');
    const denied = [
      await restoring(operator, { backupId: backup.id }),
      await operator.post('/api/jobs', {
        type: 'backup.restore',
        payload: { backupId: backup.id },
      }),
      await operator.post('/api/schedules', {
        name: 's',
        cronExpression: '@daily',
        timezone: 'UTC',
        jobType: 'backup.restore',
        payload: { backupId: backup.id },
      }),
      await operator.post('/api/workflows', {
        type: 'restore',
        title: 'Restore',
        payload: {},
        jobType: 'backup.restore',
        jobPayload: { backupId: backup.id },
        assignedUserIds: [],
        assignedRoleIds: ['approver'],
      }),
    ];
    expect(denied.map(({ status, body }) => [status, body.detail])).toEqual(
      Array.from({ length: 4 }, () => [403, expect.stringContaining('backup:restore')]),
    );
    expect((await as('viewer', 'platform').get('/api/backup')).status).toBe(403);
    expect((await as('auditor', 'platform').post('/api/backup/create', {})).status).toBe(403);
    expect(
      (
        await as('auditor', 'platform').post('/api/backup/restore/validate', {
          backupId: backup.id,
        })
      ).status,
    ).toBe(200);
  });

  test('restores accounts and roles must hold what changes them: rights that were lost do not come back by a backup', async () => {
    await root.post('/api/rbac/roles', {
      id: 'schemer',
      name: 'Schemer',
      permissions: [
        'backup:read',
        'backup:write',
        'backup:restore',
        'rbac:write',
        'user:write',
        'auth:write',
      ],
    });
    const backup = await backUp(() => root)({ mode: 'partial', sections: ['access'] });
    await root.put('/api/rbac/roles/schemer', {
      permissions: ['backup:read', 'backup:write', 'backup:restore'],
    });
    const denied = await restoring(as('schemer', 'platform', 'mallory'), { backupId: backup.id });
    expect([denied.status, denied.body.detail]).toEqual([
      403,
      expect.stringContaining('rbac:write'),
    ]);
    const job = await as('keeper', 'platform').post(
      '/api/jobs',
      { type: 'backup.restore', payload: { backupId: backup.id } },
      { prefer: 'wait=30' },
    );
    expect([job.body.status, job.body.error.code]).toEqual(['failed', 'permission_denied']);
    // The rest needs `backup:restore` alone.
    const settings = await backUp(() => root)({ mode: 'partial', sections: ['settings'] });
    expect(
      (await restoring(as('schemer', 'platform', 'mallory'), { backupId: settings.id })).body
        .status,
    ).toBe('succeeded');
    const nul = await root.post('/api/jobs', {
      type: 'backup.verify',
      payload: { label: '\u0000' },
    });
    expect(nul.status).toBe(400);
  });

  test('has a restore done by others, after they approved it', async () => {
    const backup = await backUp(() => root)({ label: 'approved' });
    await app.deps.db('sites').where({ tenant_id: 'platform' }).update({ description: 'wrong' });
    const request = await as('platform-admin', 'platform', 'ann').post('/api/workflows', {
      type: 'restore',
      title: 'Restore',
      payload: {},
      jobType: 'backup.restore',
      jobPayload: { backupId: backup.id },
      assignedUserIds: [],
      assignedRoleIds: ['approver'],
    });
    expect(request.status).toBe(201);
    const approved = await as('approver', 'platform', 'eve').post(
      `/api/workflows/${request.body.id as string}/approve`,
      {},
    );
    expect(approved.status).toBe(200);
    const done = await eventually(
      async () => (await root.get(`/api/workflows/${request.body.id as string}`)).body,
      ({ execution }) => ['succeeded', 'failed'].includes(execution),
      { withinMs: 50_000 },
    );
    expect([done.execution, done.error]).toEqual(['succeeded', null]);
    expect(
      await app.deps.db('sites').where({ tenant_id: 'platform' }).pluck('description'),
    ).not.toContain('wrong');
  });

  test('has lost the right meanwhile, does not restore', async () => {
    const backup = await backUp(() => root)({ label: 'lost' });
    const keeper = await person(app, 'keeper');
    const schedule = await keeper.client.post('/api/schedules', {
      name: 'restore',
      cronExpression: '@yearly',
      timezone: 'UTC',
      jobType: 'backup.restore',
      payload: { backupId: backup.id, safetyBackup: false },
    });
    expect(schedule.status).toBe(201);
    await app.deps.db('grants').where({ user_id: keeper.id }).del();
    const run = await root.post(`/api/schedules/${schedule.body.id as string}/trigger`);
    expect([run.status, run.body.code, run.body.detail]).toEqual([
      409,
      'schedule_cannot_run',
      expect.stringContaining('may no longer run backup.restore'),
    ]);
  });
});

describe('what a preview shows', () => {
  test('is of sections whose records the reader may read, and never a secret', async () => {
    await root.post('/api/rbac/roles', {
      id: 'reader',
      name: 'Reader',
      permissions: ['backup:read'],
    });
    const backup = await backUp(() => root)({ label: 'preview' });
    const { db } = app.deps;
    await db('sites').where({ tenant_id: 'platform' }).update({ description: 'not for everybody' });
    await db('users')
      .where({ username: 'platform-ann' })
      .update({ password_hash: '$argon2id$other-secret-hash', display_name: 'Ann B.' });
    await db('webhooks').update({ secret: 'v1.sealed.other-secret' });
    const report = async (client: TestClient) =>
      (await client.post('/api/backup/restore/validate', { backupId: backup.id })).body;
    const full = await report(root);
    expect(full.preview.differences).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          table: 'sites',
          change: 'changed',
          fields: [expect.objectContaining({ field: 'description', now: 'not for everybody' })],
        }),
        expect.objectContaining({
          table: 'users',
          change: 'changed',
          fields: expect.arrayContaining([
            { field: 'password_hash', now: null, then: null },
            expect.objectContaining({ field: 'display_name', now: 'Ann B.' }),
          ]),
        }),
      ]),
    );
    const little = await report(as('reader', 'platform'));
    expect([little.valid, little.preview.counts, little.preview.differences]).toEqual([
      true,
      full.preview.counts,
      [],
    ]);
    expect(
      (await as('reader', 'platform').get(`/api/backup/${backup.id as string}`)).body.restorePreview
        .lastValidation.preview.differences,
    ).toEqual([]);
    const words = JSON.stringify([
      full,
      await root.get(`/api/backup/${backup.id as string}`),
      await db('restore_runs').select(),
      await db('jobs').where('type', 'like', 'backup.%').select(),
      await db('audit_entries').where({ subject_type: 'backup' }).select(),
      await db('events').where('type', 'like', 'backup.%').select(),
    ]);
    for (const secret of ['other-secret', 'argon2', 'v1.test.', 'whsec_'])
      expect(words.includes(secret)).toBe(false);
    await restoring(root, { backupId: backup.id });
  });
});
