import { describe, expect, test } from '@jest/globals';
import { assertDefined } from '../../../domain/shared/assert.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { lockAccess } from '../../../db/access/access.ts';
import type { TestApp } from '../../support/app.ts';
import {
  backupCreator,
  dumpTables,
  restoreRequester,
  restorer,
  restoreValidator,
  STATE_TABLES,
  withBackups,
  type Validation,
} from '../../support/backups.ts';
import type { ProblemBody, TestClient, TestRequest } from '../../support/client.ts';
import { seedEstate } from '../../support/estate.ts';
import { eventually } from '../../support/eventually.ts';
import { recordFactory } from '../../support/inventory.ts';
import { attemptCalls, createHandRunner } from '../../support/runner.ts';
import { login, createUser } from '../../support/users.ts';
import { waitingForLock } from '../../support/waitingForLock.ts';

let app: TestApp;
let root: TestClient;
withBackups(async (fixture) => {
  ({ app, root } = fixture);
  await seedEstate(app);
});

const make = recordFactory(() => root);
const createBackup = backupCreator(() => root);
/** Most tests need a few sections only, which are restored in a fraction of the time. */
const partial = (...sections: string[]) => ({ mode: 'partial', sections });
const validate = restoreValidator(() => root);
const restore = restorer(() => root);

/** Requests a restore that must be refused. */
const refuseRestore = (request: object, status: number) =>
  (restoreRequester(() => root)(request) as TestRequest<unknown> as TestRequest<Refusal>).expect(
    status,
  );

type Finding = Validation['errors'][number];
type Refusal = ProblemBody & { report: { errors: Finding[] } };

const codes = (findings: readonly Finding[]) =>
  findings.map(({ code, table }) => `${code} ${table}`);
const sitePath = ({ id }: { id: string }) => `/api/inventory/sites/${id}`;
const descriptionOf = async (site: { id: string }) =>
  (await root.get<{ description: string }>(sitePath(site)).expect(200)).description;
const firstOf = async (resource: string) => {
  const { items } = await root
    .get<{ items: { id: string }[] }>(`/api/inventory/${resource}`)
    .expect(200);
  return assertDefined(items[0], `first of ${resource}`);
};
const readJob = (id: string) => root.get<JobRecord>(`/api/jobs/${id}`).expect(200);

describe('the preview of a restore', () => {
  test('lists exactly the changes of the restore', async () => {
    const backup = await createBackup();
    const newerSite = await make('sites', { name: 'newer' });
    const changed = await firstOf('vlans');
    await root.put(`/api/inventory/vlans/${changed.id}`, { name: 'renamed' }).expect(200);
    const deleted = await firstOf('ip-ranges');
    await root.delete(`/api/inventory/ip-ranges/${deleted.id}`).expect(204);
    const { preview, planHash, valid, warnings } = await validate({
      backupId: backup.id,
      sections: ['inventory'],
    });
    expect([valid, codes(warnings)]).toEqual([true, ['records_deleted sites']]);
    expect(
      preview.differences.map(({ table, key, change, fields }) => [
        table,
        key,
        change,
        fields.find(({ field }) => field === 'name'),
      ]),
    ).toEqual([
      [
        'sites',
        newerSite.id,
        'deleted',
        expect.objectContaining({ current: 'newer', restored: null }),
      ],
      ['vlans', changed.id, 'changed', { field: 'name', current: 'renamed', restored: 'mgmt' }],
      ['ip_ranges', deleted.id, 'created', undefined],
    ]);
    expect(preview.counts).toMatchObject({ created: 1, changed: 1, deleted: 1 });
    const done = await restore({
      backupId: backup.id,
      sections: ['inventory'],
      planHash,
    });
    expect(done.outcome).toMatchObject({ created: 1, changed: 1, deleted: 1, planHash });
    expect(
      (await validate({ backupId: backup.id, sections: ['inventory'] })).preview.differences,
    ).toEqual([]);
  });

  test('expires when a record changes, and the restore is refused', async () => {
    const backup = await createBackup(partial('inventory', 'access'));
    const site = await make('sites', { name: 'one more' });
    const { planHash } = await validate({ backupId: backup.id });
    await root.put(`/api/inventory/sites/${site.id}`, { description: 'changed' });
    const stale = await refuseRestore({ backupId: backup.id, planHash }, 409);
    expect(stale.code).toBe('restore_stale');
    expect(await descriptionOf(site)).toBe('changed');
    const withoutWaiting = await root
      .post<ProblemBody>('/api/backup/restore', {
        backupId: backup.id,
        planHash,
        preRestoreBackup: false,
      })
      .expect(409);
    expect(withoutWaiting.code).toBe('restore_stale');
    // The time of the last login is not compared.
    const again = (await validate({ backupId: backup.id })).planHash;
    await app.deps.db('users').update({ last_login_at: new Date() });
    await restore({ backupId: backup.id, planHash: again });
  });
});

describe('a restore is refused', () => {
  test('when it would delete a record that others refer to', async () => {
    const backup = await createBackup(partial('inventory', 'access'));
    const site = await make('sites', { name: 'with a right' });
    const siteViewer = await createUser(app, { roleId: 'viewer', siteId: site.id });
    const refused = await refuseRestore({ backupId: backup.id, sections: ['inventory'] }, 409);
    expect([refused.code, codes(refused.report.errors)]).toEqual([
      'restore_invalid',
      ['still_referenced grants'],
    ]);
    expect(refused.report.errors[0]?.message).toContain(site.id);
    await root.get(sitePath(site)).expect(200);
    // Restoring the section of the referring record, too, deletes both.
    await restore({ backupId: backup.id, sections: ['inventory', 'access'] });
    await siteViewer.client.get('/api/auth/session').expect(401);
    const events = await root
      .get<{ items: unknown[] }>('/api/events?type=restore.failed', {
        'x-service-tenant-id': 'platform',
      })
      .expect(200);
    expect(events.items).not.toEqual([]);
  });

  test('when it would lock out all administrators, unless confirmed', async () => {
    await app.deps.db('grants').where({ role_id: 'platform-admin' }).del();
    const backup = await createBackup(partial('access'));
    const administrator = await createUser(app, 'platform-admin');
    const report = await validate({ backupId: backup.id });
    expect([report.valid, codes(report.errors)]).toEqual([false, ['no_administrator null']]);
    expect((await refuseRestore({ backupId: backup.id }, 409)).code).toBe('restore_invalid');
    await administrator.client.get('/api/rbac').expect(200);
    const ownValidation = await restoreValidator(() => administrator.client)({
      backupId: backup.id,
    });
    expect(codes(ownValidation.errors)).toEqual(['no_administrator null', 'own_account null']);
    const confirmed = await validate({ backupId: backup.id, confirm: true });
    expect([confirmed.valid, codes(confirmed.warnings)]).toEqual([
      true,
      expect.arrayContaining(['no_administrator null']),
    ]);
    await restore({ backupId: backup.id, confirm: true });
    await administrator.client.get('/api/rbac').expect(401);
  });

  test('when the request is not valid', async () => {
    const backup = await createBackup(partial('settings'));
    expect([backup.sections, backup.includes]).toEqual([['settings'], []]);
    for (const [body, status, code] of [
      [{ backupId: 'bkp_01jd0cmxk5e5v8kyzwq0q8s3rt' }, 404, 'not_found'],
      [{}, 400, 'invalid_request'],
      [{ backupId: backup.id, sections: ['inventory'] }, 400, 'invalid_request'],
      [{ backupId: backup.id, sections: [] }, 400, 'invalid_request'],
      [{ backupId: backup.id, planHash: 'x' }, 400, 'invalid_request'],
      [{ backupId: backup.id, more: 1 }, 400, 'invalid_request'],
      [{ backupId: backup.id, planHash: '0'.repeat(64) }, 409, 'restore_stale'],
    ] as const) {
      const refused = await refuseRestore(body, status);
      expect([body, refused.code]).toEqual([body, code]);
    }
  });
});

describe('a partial backup', () => {
  test('includes the sections that it refers to', async () => {
    const backup = await createBackup(partial('webhooks'));
    expect([backup.sections, [...backup.includes].sort()]).toEqual([
      ['webhooks'],
      ['events', 'jobs'],
    ]);
    expect((await createBackup(partial('access'))).includes.sort()).toEqual([
      'inventory',
      'settings',
    ]);
  });

  test('restores missing records that it refers to, and no other records of their section', async () => {
    const site = await make('sites', { name: 'base', description: 'then' });
    const other = await make('sites', { name: 'beside', description: 'then' });
    const siteViewer = await createUser(app, { roleId: 'viewer', siteId: site.id });
    const backup = await createBackup(partial('access'));
    await app.deps.db('grants').where({ user_id: siteViewer.id }).del();
    await app.deps.db('sessions').where({ user_id: siteViewer.id }).del();
    await app.deps.db('users').where({ id: siteViewer.id }).del();
    await root.delete(`/api/inventory/sites/${site.id}`);
    await root.put(`/api/inventory/sites/${other.id}`, { description: 'now' });
    const report = await validate({ backupId: backup.id });
    expect([report.valid, report.errors]).toEqual([true, []]);
    const sites = report.preview.tables.find(({ table }) => table === 'sites');
    expect(sites).toMatchObject({ created: 1, changed: 0, deleted: 0, includedByReference: true });
    await restore({ backupId: backup.id, planHash: report.planHash });
    expect(await descriptionOf(site)).toBe('then');
    expect(await descriptionOf(other)).toBe('now');
    expect((await login(app, siteViewer.username)).status).toBe(401);
    await root.put(`/api/users/${siteViewer.id}`, { enabled: true }).expect(200);
    expect((await login(app, siteViewer.username)).status).toBe(200);
  });

  test('is not restored when the dry run finds that a name is in use', async () => {
    const site = await make('sites', { name: 'taken' });
    const siteViewer = await createUser(app, { roleId: 'viewer', siteId: site.id });
    const backup = await createBackup(partial('access'));
    await app.deps.db('grants').where({ user_id: siteViewer.id }).del();
    await root.delete(`/api/inventory/sites/${site.id}`);
    await make('sites', { name: 'taken' });
    const report = await validate({ backupId: backup.id });
    expect([report.valid, codes(report.errors)]).toEqual([false, ['conflict sites']]);
    expect((await refuseRestore({ backupId: backup.id }, 409)).code).toBe('restore_invalid');
  });
});

describe('after a restore', () => {
  test('schedules have the names of the backup, also if others have taken or exchanged them', async () => {
    const [first, second, third] = [
      await createSchedule('first'),
      await createSchedule('second'),
      await createSchedule('third'),
    ];
    const backup = await createBackup(partial('schedules'));
    const rename = ({ id }: ScheduleRecord, name: string) =>
      root.put(`/api/schedules/${id}`, { name }).expect(200);
    await rename(first, 'interim');
    await rename(second, 'first');
    await rename(first, 'second');
    await root.delete(`/api/schedules/${third.id}`).expect(204);
    const successor = await createSchedule('third');
    await restore({ backupId: backup.id });
    const names = await app.deps
      .db('schedules')
      .whereIn('id', [first.id, second.id, third.id, successor.id])
      .whereNull('deleted_at')
      .orderBy('id')
      .pluck('name');
    expect(names).toEqual(['first', 'second', 'third']);
  });

  const createSchedule = (name: string) =>
    root
      .post<ScheduleRecord>('/api/schedules', {
        name,
        cronExpression: '@hourly',
        timezone: 'UTC',
        jobType: 'core.echo',
        payload: {},
      })
      .expect(201);

  test('schedules continue with their next occurrence and deliveries of deleted webhooks are cancelled', async () => {
    const schedule = await createSchedule('hourly');
    const backup = await createBackup(partial('schedules', 'webhooks'));
    await root.delete(`/api/schedules/${schedule.id}`);
    const newer = await createSchedule('newer');
    const platform = app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' });
    const webhook = await platform
      .post<{ id: string }>('/api/webhooks', {
        endpointUrl: 'http://127.0.0.1:9/newer',
        eventTypes: ['inventory.site.created'],
      })
      .expect(201);
    await make('sites', { name: 'delivered' });
    const { db } = app.deps;
    await eventually(
      () => db('deliveries').where({ webhook_id: webhook.id }).pluck('status'),
      (found) => found.length > 0,
    );
    await restore({ backupId: backup.id });
    const back = await root.get<ScheduleRecord>(`/api/schedules/${schedule.id}`).expect(200);
    expect([back.name, back.state]).toEqual(['hourly', 'active']);
    expect(
      (await db('schedules').where({ id: schedule.id }).first()).next_due_at.getTime(),
    ).toBeGreaterThan(Date.now());
    expect([
      (await root.get(`/api/schedules/${newer.id}`)).status,
      (await platform.get(`/api/webhooks/${webhook.id}`)).status,
    ]).toEqual([404, 404]);
    await eventually(
      async () => db('deliveries').where({ webhook_id: webhook.id }).pluck('status'),
      (found) => found.every((status) => status === 'cancelled'),
      { withinMs: 30_000 },
    );
    const hasTemporalSchedule = (id: string) =>
      app.deps.temporal
        .call(20_000, (client) => client.schedule.getHandle(`schedule:${id}`).describe())
        .then(
          () => true,
          () => false,
        );
    await eventually(
      async () => [await hasTemporalSchedule(schedule.id), await hasTemporalSchedule(newer.id)],
      ([old, later]) => old === true && later === false,
    );
    expect(await db('schedule_runs').whereIn('schedule_id', [schedule.id, newer.id])).toEqual([]);
  });

  test('the audit log is complete and names who restored the backup', async () => {
    const backup = await createBackup(partial('audit'));
    const { db } = app.deps;
    const before = await db('audit_entries').pluck('id');
    await restore({ backupId: backup.id });
    expect(await db('audit_entries').whereIn('id', before).count({ n: '*' })).toEqual([
      { n: before.length },
    ]);
    await app.deps.auditSealer.seal();
    expect(await app.deps.auditSealer.verify('platform')).toMatchObject({ broken: null });
    const { items } = await root
      .get<{ items: { action: string; actorId: string }[] }>(`/api/audit?subjectId=${backup.id}`)
      .expect(200);
    const entries = items.map(({ action, actorId }) => `${action} ${actorId}`);
    expect(entries).toEqual(expect.arrayContaining(['backup.create root', 'backup.restore root']));
  });

  test('the pre-restore backup restores the state before the restore', async () => {
    const backup = await createBackup(partial('inventory'));
    const site = await make('sites', { name: 'precious' });
    const before = await dumpTables(
      app.databaseUrl,
      STATE_TABLES.filter((name) => name !== 'schedules' && name !== 'webhooks'),
    );
    const first = await restore({ backupId: backup.id, preRestoreBackup: true });
    await root.get(`/api/inventory/sites/${site.id}`).expect(404);
    await restore({ backupId: first.preRestoreBackupId });
    expect(
      await dumpTables(
        app.databaseUrl,
        STATE_TABLES.filter((name) => name !== 'schedules' && name !== 'webhooks'),
      ),
    ).toEqual(before);
  });

  test('the staging schema is dropped and newer jobs remain', async () => {
    const backup = await createBackup(partial('inventory', 'jobs'));
    const job = await root
      .post<JobRecord>(
        '/api/jobs',
        { type: 'core.echo', payload: { message: 'later' } },
        { prefer: 'wait=20' },
      )
      .expect(201);
    const ends = await app.deps.db('cable_ends').orderBy('interface_id');
    await app.deps.db('cables').del();
    await restore({ backupId: backup.id });
    expect([ends.length, await app.deps.db('cable_ends').orderBy('interface_id')]).toEqual([
      4,
      ends,
    ]);
    expect((await readJob(job.id)).status).toBe('succeeded');
    const { rows } = await app.deps.db.raw(
      `SELECT nspname FROM pg_namespace WHERE nspname LIKE 'staging%'`,
    );
    expect(rows).toEqual([]);
  });

  test('ended jobs of a type of runners that was deleted are restored', async () => {
    const hand = await createHandRunner(app, 'hand.deleted');
    const { id } = await root
      .post<JobRecord>('/api/jobs', { type: 'hand.deleted', payload: {} })
      .expect(201);
    await root.post(`/api/jobs/${id}/cancel`, {});
    await hand.leave();
    await root.delete('/api/job-types/hand.deleted').expect(204);
    const backup = await createBackup(partial('jobs'));
    await app.deps.db('jobs').where({ id }).del();
    await restore({ backupId: backup.id });
    expect(await readJob(id)).toMatchObject({ status: 'cancelled', type: 'hand.deleted' });
  });

  test('jobs that wait for a runner go on waiting, restored ones do not; schedules need their type', async () => {
    const hand = await createHandRunner(app, 'hand.restored', {
      targets: 'site',
      access: 'granted',
    });
    const target = { kind: 'site', id: (await make('sites', { name: 'of runners' })).id };
    const job = { type: 'hand.restored', payload: {}, target };
    const create = () => root.post<JobRecord>('/api/jobs', job).expect(201);
    const [kept, missing] = [await create(), await create()];
    const schedule = { name: 'of runners', cronExpression: '0 3 1 1 *', payload: {}, target };
    const { id } = await root
      .post<ScheduleRecord>('/api/schedules', { ...schedule, jobType: job.type })
      .expect(201);
    const trigger = () =>
      root.post<ProblemBody & { jobId: string }>(`/api/schedules/${id}/trigger`, {});
    const backup = await createBackup(partial('jobs', 'schedules', 'access', 'secrets'));
    await app.deps.db('jobs').where({ id: missing.id }).del();
    await root.delete(`/api/schedules/${id}`).expect(204);
    await root.post('/api/job-types/hand.restored/disable').expect(200);
    await restore({ backupId: backup.id });
    expect(await readJob(missing.id)).toMatchObject({
      status: 'failed',
      error: { code: 'outcome_unknown' },
      target,
      siteId: target.id,
    });
    expect(await readJob(kept.id)).toMatchObject({
      status: 'queued',
      waitingFor: { pool: 'hand' },
    });
    expect(await root.get(`/api/schedules/${id}`).expect(200)).toMatchObject({ target });
    expect((await trigger().expect(409)).detail).toContain('its job type is disabled');
    const dueAt = new Date(Date.UTC(new Date().getUTCFullYear(), 0, 1, 3));
    await app.deps
      .db('schedules')
      .where({ id })
      .update({ next_due_at: dueAt, catchup_window_seconds: 31_536_000 });
    expect(await app.deps.runner.fireOccurrence(id, dueAt)).toMatchObject({
      outcome: 'failed',
      reason: 'job_type_disabled',
    });
    await root.post('/api/job-types/hand.restored/accept').expect(200);
    await trigger().expect(202);
    await hand.granted(kept.id);
    const { attemptToken } = await hand.begin(kept.id, 'run-1').expect(200);
    await attemptCalls(hand.client, kept.id, attemptToken).end({ result: {} }).expect(200);
    expect((await readJob(kept.id)).status).toBe('succeeded');
  });

  test('missing jobs are restored, and those that had not ended are failed', async () => {
    const { db } = app.deps;
    const slow = await root
      .post<JobRecord>('/api/jobs', { type: 'core.sleep', payload: { durationMs: 3000 } })
      .expect(201);
    const done = await root
      .post<JobRecord>(
        '/api/jobs',
        { type: 'core.echo', payload: { message: 'done' } },
        { prefer: 'wait=20' },
      )
      .expect(201);
    const backup = await createBackup(partial('jobs'));
    await eventually(
      async () => (await readJob(slow.id)).status,
      (status) => status === 'succeeded',
    );
    await db('jobs').whereIn('id', [slow.id, done.id]).del();
    const report = await validate({ backupId: backup.id });
    expect(codes(report.warnings)).toContain('jobs_not_run_again jobs');
    expect((await restore({ backupId: backup.id })).outcome.jobsEnded).toBe(1);
    const [one, other] = [await readJob(slow.id), await readJob(done.id)];
    expect([one.status, one.error?.code, other.status, other.result]).toEqual([
      'failed',
      'outcome_unknown',
      'succeeded',
      expect.anything(),
    ]);
  });

  test('of a tenant, the interfaces and cables of a device that had moved are at its site again', async () => {
    const tenantId = 'movers';
    await make('tenants', { id: tenantId, name: tenantId });
    const [from, to] = [
      await make('sites', { name: 'from', tenantId }),
      await make('sites', { name: 'to', tenantId }),
    ];
    const { id: deviceTypeId } = await firstOf('device-types');
    const port = async (name: string) => {
      const device = await make('devices', { name, tenantId, siteId: from.id, deviceTypeId });
      return { device, ...(await make('interfaces', { deviceId: device.id, name: 'e0' })) };
    };
    const [moving, staying] = [await port('moving'), await port('staying')];
    await make('cables', { tenantId, aInterfaceId: moving.id, bInterfaceId: staying.id });
    const sitesOf = async () => {
      const { db } = app.deps;
      return {
        ports: await db('interfaces').whereIn('id', [moving.id, staying.id]).pluck('site_id'),
        cables: await db('cables').where({ tenant_id: tenantId }).select('a_site_id', 'b_site_id'),
      };
    };
    const before = await sitesOf();
    const keeper = app.client.as({ actor: 'kim', roles: 'platform-admin', tenant: tenantId });
    const backup = await backupCreator(() => keeper)(partial('inventory'));
    // A trigger moves the interfaces. The API would also change their versions.
    await app.deps.db('devices').where({ id: moving.device.id }).update({ site_id: to.id });
    expect(await sitesOf()).not.toEqual(before);
    await restorer(() => keeper)({ backupId: backup.id });
    expect(before.ports).toEqual([from.id, from.id]);
    expect(await sitesOf()).toEqual(before);
  });
});

test('a restore waits for a change of permissions before it locks what that may write', async () => {
  const backup = await createBackup(partial('access'));
  await createUser(app, 'viewer');
  const { db } = app.deps;
  const [restored] = await db.transaction(async (trx) => {
    await lockAccess(trx);
    const restoring = restore({ backupId: backup.id });
    await eventually(
      () => waitingForLock(db, 'transactionid'),
      (waiting) => waiting.length > 0,
    );
    await trx.raw(`SET LOCAL lock_timeout = '200ms'`);
    await trx('users').whereNotNull('id').update({ display_name: 'changed' });
    return [restoring];
  });
  expect((await restored).outcome.deleted).toBeGreaterThan(0);
});
