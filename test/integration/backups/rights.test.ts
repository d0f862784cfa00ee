import { describe, expect, test } from '@jest/globals';
import type { ApprovalRecord } from '../../../api/approvals/schemas.ts';
import type { BackupList, BackupRecord } from '../../../api/backups/schemas.ts';
import type { RestoreRunRecord } from '../../../api/backups/runSchemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import type { TestApp } from '../../support/app.ts';
import {
  backupCreator,
  dumpTables,
  restoreRequester,
  restorer,
  restoreValidator,
  withBackups,
} from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { seedEstate } from '../../support/estate.ts';
import { eventually } from '../../support/eventually.ts';
import { recordFactory } from '../../support/inventory.ts';
import { expectProblem } from '../../support/problem.ts';
import { createUser, seedTenant } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
withBackups(async (there) => {
  ({ app, root } = there);
  await seedEstate(app);
  await seedEstate(app, 'acme');
  await seedTenant(app, 'other');
  const name = 'other-ams1';
  await as('platform-admin', 'other').post('/api/inventory/sites', { name }).expect(201);
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

/** A few sections are restored in a fraction of the time. */
const partial = (...sections: string[]) => ({ mode: 'partial', sections });
const as = (roles: string, tenant: string, actor = 'kim') =>
  app.client.as({ actor, roles, tenant });
/** Requests a job and waits for its end. */
const runJob = (client: TestClient, type: string, payload: object) =>
  client.post<JobRecord>('/api/jobs', { type, payload }, { prefer: 'wait=30' }).expect(201);
const expectFailed = ({ status, error }: JobRecord, code: string) =>
  expect([status, error?.code]).toEqual(['failed', code]);

describe('a tenant', () => {
  test('backs up and restores only its own records', async () => {
    const acme = as('keeper', 'acme');
    const backup = await backupCreator(() => acme)({ label: 'acme' });
    expect(backup).toMatchObject({
      tenantId: 'acme',
      sections: [
        'settings',
        'inventory',
        'jobs',
        'events',
        'webhooks',
        'secrets',
        'schedules',
        'workflows',
      ],
    });
    const rows = (name: string) =>
      backup.restorePreview.tables.find(({ table }) => table === name)?.rows;
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
      await dumpTables(app.databaseUrl, tables, `t.tenant_id = 'acme'`),
      await dumpTables(app.databaseUrl, tables, `t.tenant_id <> 'acme'`),
    ];
    const { db } = app.deps;
    await db('devices').where({ tenant_id: 'acme' }).update({ primary_ip4_id: null });
    await db('ip_addresses').where({ tenant_id: 'acme' }).del();
    await db('cables').where({ tenant_id: 'acme' }).del();
    await db('sites').where({ tenant_id: 'acme' }).update({ description: 'changed' });
    await db('sites').where({ tenant_id: 'other' }).update({ description: 'stays' });
    const theirs = await dumpTables(app.databaseUrl, ['sites'], `t.tenant_id = 'other'`);
    const validation = await restoreValidator(() => acme)({ backupId: backup.id });
    expect([validation.errors, validation.preview.counts]).toEqual([
      [],
      expect.objectContaining({ created: 10, changed: 2, deleted: 0 }),
    ]);
    await restorer(() => acme)({ backupId: backup.id, planHash: validation.planHash });
    expect(await dumpTables(app.databaseUrl, tables, `t.tenant_id = 'acme'`)).toEqual(mine);
    expect(await dumpTables(app.databaseUrl, ['sites'], `t.tenant_id = 'other'`)).toEqual(theirs);
    expect({
      ...(await dumpTables(app.databaseUrl, tables, `t.tenant_id <> 'acme'`)),
      sites: [],
    }).toEqual({ ...others, sites: [] });
  });

  test('sees no backups of the platform or of other tenants', async () => {
    const [ofAll, ofOther] = [
      await backupCreator(() => root)(partial('settings')),
      await backupCreator(() => as('keeper', 'other'))(partial('settings')),
    ];
    const acme = as('keeper', 'acme');
    expect(
      (await acme.get<BackupList>('/api/backup').expect(200)).backups.map(
        ({ tenantId }) => tenantId,
      ),
    ).not.toContain('platform');
    for (const { id } of [ofAll, ofOther]) {
      await acme.get(`/api/backup/${id}`).expect(404);
      await acme.get(`/api/backup/${id}/runs`).expect(404);
      await acme.delete(`/api/backup/${id}`).expect(404);
      await acme.post('/api/backup/restore/validate', { backupId: id }).expect(404);
      await restoreRequester(() => acme)({ backupId: id }).expect(404);
      expectFailed(await runJob(acme, 'backup.restore', { backupId: id }), 'backup_not_found');
    }
  });

  test('cannot back up sections of the installation', async () => {
    const keeper = as('keeper', 'acme');
    for (const section of ['access', 'audit']) {
      const payload = { mode: 'partial', sections: [section] };
      await expectProblem(keeper.post('/api/backup/create', payload), 403, 'permission_denied');
      const job = { type: 'backup.create', payload };
      await expectProblem(keeper.post('/api/jobs', job), 403, 'permission_denied');
    }
  });
});

describe('restored records of a tenant', () => {
  test('belong to the same sites as before', async () => {
    const acme = as('platform-admin', 'acme');
    const { db } = app.deps;
    const make = recordFactory(() => acme);
    const site = await make('sites', { name: 'scopes' });
    // In whatever order they are inserted, some come before the one that contains them.
    const inner: string[] = [];
    for (let i = 0; i < 16; i++)
      inner.push((await make('prefixes', { cidr: `192.0.2.${16 * i}/28` })).id);
    const outer = await make('prefixes', { cidr: '192.0.2.0/24', siteId: site.id });
    const address = await make('ip-addresses', { address: '192.0.2.1' });
    const sitesOf = (table: string, ids: readonly string[]) =>
      db(table).whereIn('id', ids).distinct().pluck('scope_site_id');
    const sites = async () => [
      await sitesOf('prefixes', [outer.id, ...inner]),
      await sitesOf('ip_addresses', [address.id]),
    ];
    expect(await sites()).toEqual([[site.id], [site.id]]);
    const backup = await backupCreator(() => acme)(partial('inventory'));
    await acme.delete(`/api/inventory/prefixes/${outer.id}`).expect(204);
    expect(await sites()).toEqual([[null], [null]]);
    await acme.delete(`/api/inventory/ip-addresses/${address.id}`).expect(204);
    for (const id of inner) await acme.delete(`/api/inventory/prefixes/${id}`).expect(204);
    await restorer(() => acme)({ backupId: backup.id });
    expect(await sites()).toEqual([[site.id], [site.id]]);
  });

  test('get their parents from current records, and grants do not follow their sites to another tenant', async () => {
    const acme = as('platform-admin', 'acme');
    const { db } = app.deps;
    const make = recordFactory(() => root);
    await make('prefixes', { cidr: '192.168.0.0/16' });
    // The platform assigns the space of its prefixes.
    await seedTenant(app, 'acme');
    const mine = await make('prefixes', { cidr: '192.168.1.0/24', tenantId: 'acme' });
    const small = await recordFactory(() => acme)('prefixes', { cidr: '192.168.1.192/26' });
    expect(small.parentPrefixId).toBe(mine.id);
    const outer = await db('prefixes').where({ cidr: '192.168.0.0/16' }).first();
    expect(mine.parentPrefixId).toBe(outer.id);
    const backup = await backupCreator(() => acme)(partial('inventory'));
    for (const { id } of [small, mine])
      await acme.delete(`/api/inventory/prefixes/${id}`).expect(204);
    await root.delete(`/api/inventory/prefixes/${outer.id as string}`);
    const inner = await make('prefixes', { cidr: '192.168.1.128/25' });
    // Only the platform assigns the space in its new prefix.
    await restorer(() => root)({ backupId: backup.id });
    const parentOf = async (id: string) =>
      (await db('prefixes').where({ id }).first('parent_prefix_id')).parent_prefix_id;
    expect(await parentOf(mine.id)).toBeNull();
    expect(await parentOf(small.id)).toBe(inner.id);
    // A prefix of the platform is in no prefix of a tenant.
    expect(await parentOf(inner.id)).toBeNull();
    // A site that moved to another tenant, and a grant at it.
    const site = await make('sites', { name: 'moving', tags: ['platform-core'] });
    const platformBackup = await backupCreator(() => root)(partial('inventory'));
    await db('sites').where({ id: site.id }).update({ tenant_id: 'acme' });
    await db('sites').whereRaw(`'platform-core' = ANY (tags)`).update({ tags: [] });
    await db('tags').where({ id: 'platform-core' }).del();
    const siteViewer = await createUser(app, { roleId: 'viewer', siteId: site.id });
    expect((await db('grants').where({ user_id: siteViewer.id }).first()).tenant_id).toBe('acme');
    await restorer(() => root)({ backupId: platformBackup.id, sections: ['inventory'] });
    expect((await db('sites').where({ id: site.id }).first()).tenant_id).toBe('platform');
    expect(await db('grants').where({ user_id: siteViewer.id })).toEqual([]);
    // Missing tags are restored with the records that use them.
    expect(await db('tags').where({ id: 'platform-core' }).pluck('name')).toEqual(['Core']);
  });
});

describe('permissions', () => {
  test('backup:restore is required for every way to start a restore', async () => {
    const backup = await backupCreator(() => root)(partial('settings'));
    const operator = as('operator', 'platform');
    const denied = [
      restoreRequester(() => operator)({ backupId: backup.id }),
      operator.post('/api/jobs', {
        type: 'backup.restore',
        payload: { backupId: backup.id },
      }),
      operator.post('/api/workflows', {
        type: 'restore',
        title: 'Restore',
        payload: {},
        jobType: 'backup.restore',
        jobPayload: { backupId: backup.id },
        assignedUserIds: [],
        assignedRoleIds: ['approver'],
      }),
    ];
    for (const request of denied) {
      const { detail } = await expectProblem(request, 403, 'permission_denied');
      expect(detail).toContain('backup:restore');
    }
    // A schedule can be saved, but it can neither run nor be triggered.
    const schedule = await operator
      .post<ScheduleRecord>('/api/schedules', {
        name: 's',
        cronExpression: '@daily',
        jobType: 'backup.restore',
        payload: { backupId: backup.id },
      })
      .expect(201);
    expect(schedule.warnings?.[0]?.message).toContain('need backup:restore at the platform');
    const path = `/api/schedules/${schedule.id}/trigger`;
    await expectProblem(operator.post(path), 403, 'permission_denied');
    await expectProblem(root.post(path), 409, 'schedule_not_runnable');
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

  test('restoring access requires the permissions to change it', async () => {
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
    const backup = await backupCreator(() => root)(partial('access'));
    await root.put('/api/rbac/roles/schemer', {
      permissions: ['backup:read', 'backup:write', 'backup:restore'],
    });
    const schemer = as('schemer', 'platform', 'mallory');
    const denied = await expectProblem(
      restoreRequester(() => schemer)({ backupId: backup.id }),
      403,
      'permission_denied',
    );
    expect(denied.detail).toContain('rbac:write');
    const job = await runJob(as('keeper', 'platform'), 'backup.restore', { backupId: backup.id });
    expectFailed(job, 'permission_denied');
    // Other sections require `backup:restore` only.
    const settings = await backupCreator(() => root)(partial('settings'));
    await restorer(() => schemer)({ backupId: settings.id });
    const nul = await root.post('/api/jobs', {
      type: 'backup.verify',
      payload: { label: '\u0000' },
    });
    expect(nul.status).toBe(400);
  });

  test('an approved restore is executed', async () => {
    const backup = await backupCreator(() => root)(partial('inventory'));
    await app.deps.db('sites').where({ tenant_id: 'platform' }).update({ description: 'wrong' });
    const { id } = await as('platform-admin', 'platform', 'ann')
      .post<ApprovalRecord>('/api/workflows', {
        type: 'restore',
        title: 'Restore',
        payload: {},
        jobType: 'backup.restore',
        jobPayload: { backupId: backup.id },
        assignedUserIds: [],
        assignedRoleIds: ['approver'],
      })
      .expect(201);
    await as('approver', 'platform', 'eve').post(`/api/workflows/${id}/approve`, {}).expect(200);
    const done = await eventually(
      () => root.get<ApprovalRecord>(`/api/workflows/${id}`).expect(200),
      ({ execution }) => ['succeeded', 'failed'].includes(execution),
      { withinMs: 50_000 },
    );
    expect([done.execution, done.error]).toEqual(['succeeded', null]);
    expect(
      await app.deps.db('sites').where({ tenant_id: 'platform' }).pluck('description'),
    ).not.toContain('wrong');
  });

  test('a schedule does not restore after its owner has lost the permission', async () => {
    const backup = await backupCreator(() => root)(partial('settings'));
    const keeperUser = await createUser(app, 'keeper');
    const schedule = await keeperUser.client
      .post<ScheduleRecord>('/api/schedules', {
        name: 'restore',
        cronExpression: '@yearly',
        timezone: 'UTC',
        jobType: 'backup.restore',
        payload: { backupId: backup.id, preRestoreBackup: false },
      })
      .expect(201);
    await app.deps.db('grants').where({ user_id: keeperUser.id }).del();
    const { detail } = await expectProblem(
      root.post(`/api/schedules/${schedule.id}/trigger`),
      409,
      'schedule_not_runnable',
    );
    expect(detail).toContain('may no longer run backup.restore');
  });
});

describe('a preview', () => {
  test('shows only sections that the reader may read, and no secrets', async () => {
    await root.post('/api/rbac/roles', {
      id: 'reader',
      name: 'Reader',
      permissions: ['backup:read'],
    });
    const backup = await backupCreator(() => root)({ label: 'preview' });
    const { db } = app.deps;
    await db('sites').where({ tenant_id: 'platform' }).update({ description: 'not for everybody' });
    await db('users')
      .where({ username: 'platform-ann' })
      .update({ password_hash: '$argon2id$other-secret-hash', display_name: 'Ann B.' });
    await db('webhooks').update({ secret: 'v1.sealed.other-secret' });
    await db('schedules').update({ payload: '{"token":"other-secret"}' });
    const report = (client: TestClient) => restoreValidator(() => client)({ backupId: backup.id });
    const full = await report(root);
    expect(full.preview.differences).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          table: 'sites',
          change: 'changed',
          fields: [expect.objectContaining({ field: 'description', current: 'not for everybody' })],
        }),
        expect.objectContaining({
          table: 'users',
          change: 'changed',
          fields: expect.arrayContaining([
            expect.objectContaining({ field: 'display_name', current: 'Ann B.' }),
          ]),
        }),
        expect.objectContaining({
          table: 'schedules',
          change: 'changed',
          fields: expect.arrayContaining([{ field: 'payload', current: null, restored: null }]),
        }),
      ]),
    );
    const redacted = await report(as('reader', 'platform'));
    expect([redacted.valid, redacted.preview.counts, redacted.preview.differences]).toEqual([
      true,
      full.preview.counts,
      [],
    ]);
    const read = await as('reader', 'platform')
      .get<BackupRecord>(`/api/backup/${backup.id}`)
      .expect(200);
    expect(read.restorePreview.lastValidation?.preview?.differences).toEqual([]);
    const run = await as('reader', 'platform')
      .get<RestoreRunRecord>(`/api/backup/${backup.id}/runs/${full.jobId}`)
      .expect(200);
    expect(run.preview?.differences).toEqual([]);
    const stored = JSON.stringify([
      full,
      await root.get(`/api/backup/${backup.id}`),
      await db('restore_runs').select(),
      await db('jobs').where('type', 'like', 'backup.%').select(),
      await db('audit_entries').where({ subject_type: 'backup' }).select(),
      await db('events').where('type', 'like', 'backup.%').select(),
    ]);
    for (const secret of ['other-secret', 'argon2', 'v1.test.', 'whsec_'])
      expect(stored.includes(secret)).toBe(false);
    await restoreRequester(() => root)({ backupId: backup.id });
  });
});
