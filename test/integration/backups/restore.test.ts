import { describe, expect, test } from '@jest/globals';
import type { TestApp } from '../../support/app.ts';
import { backUp, dump, STATE, withBackups } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { furnish } from '../../support/estate.ts';
import { eventually } from '../../support/eventually.ts';
import { making } from '../../support/inventory.ts';
import { login, person } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
withBackups(async (there) => {
  ({ app, root } = there);
  await furnish(app);
});

const make = making(() => root);
const take = backUp(() => root);
const validate = async (body: object) =>
  (await root.post('/api/backup/restore/validate', body)).body;
const restore = (body: object) =>
  root.post('/api/backup/restore', { safetyBackup: false, ...body }, { prefer: 'wait=50' });
const restored = async (body: object) => {
  const answer = await restore(body);
  expect([answer.status, answer.body.status, answer.body.error]).toEqual([202, 'succeeded', null]);
  return answer.body;
};
const codes = (findings: any[]) =>
  findings.map(({ code, table }) => `${code as string} ${table as string}`);

describe('the preview', () => {
  test('is what the restore does, record by record', async () => {
    const backup = await take();
    const gone = await make('sites', { name: 'newer' });
    const [changed] = (await root.get('/api/inventory/vlans')).body.items;
    await root.put(`/api/inventory/vlans/${changed.id as string}`, { name: 'renamed' });
    const [deleted] = (await root.get('/api/inventory/ip-ranges')).body.items;
    await root.delete(`/api/inventory/ip-ranges/${deleted.id as string}`);
    const { preview, planHash, valid, warnings } = await validate({
      backupId: backup.id,
      sections: ['inventory'],
    });
    expect([valid, codes(warnings)]).toEqual([true, ['would_be_lost sites']]);
    expect(
      preview.differences.map(({ table, key, change, fields }: any) => [
        table,
        key,
        change,
        fields.find((field: any) => field.field === 'name'),
      ]),
    ).toEqual([
      ['sites', gone.id, 'deleted', expect.objectContaining({ now: 'newer', then: null })],
      ['vlans', changed.id, 'changed', { field: 'name', now: 'renamed', then: 'mgmt' }],
      ['ip_ranges', deleted.id, 'created', undefined],
    ]);
    expect(preview.counts).toMatchObject({ created: 1, changed: 1, deleted: 1 });
    const done = await restored({ backupId: backup.id, sections: ['inventory'], planHash });
    expect(done.outcome).toMatchObject({ created: 1, changed: 1, deleted: 1, planHash });
    expect(
      (await validate({ backupId: backup.id, sections: ['inventory'] })).preview.differences,
    ).toEqual([]);
  });

  test('does not fit any more when a record has changed since: the restore says so, and does nothing', async () => {
    const backup = await take();
    const site = await make('sites', { name: 'one more' });
    const { planHash } = await validate({ backupId: backup.id });
    await root.put(`/api/inventory/sites/${site.id as string}`, { description: 'meanwhile' });
    const stale = await restore({ backupId: backup.id, planHash });
    expect([stale.status, stale.body.code]).toEqual([409, 'restore_stale']);
    expect((await root.get(`/api/inventory/sites/${site.id as string}`)).body.description).toBe(
      'meanwhile',
    );
    const atOnce = await root.post('/api/backup/restore', {
      backupId: backup.id,
      planHash,
      safetyBackup: false,
    });
    expect([atOnce.status, atOnce.body.code]).toEqual([409, 'restore_stale']);
    // A login, which changes an account, is no reason.
    const again = (await validate({ backupId: backup.id })).planHash;
    await app.deps.db('users').update({ last_login_at: new Date() });
    await restored({ backupId: backup.id, planHash: again });
  });
});

describe('what stands against a restore', () => {
  test('is named, and nothing happens', async () => {
    const backup = await take();
    const site = await make('sites', { name: 'with a right' });
    const keeper = await person(app, { roleId: 'viewer', siteId: site.id });
    const answer = await restore({ backupId: backup.id, sections: ['inventory'] });
    expect([answer.status, answer.body.code, codes(answer.body.report.errors)]).toEqual([
      409,
      'restore_invalid',
      ['still_referred grants'],
    ]);
    expect(answer.body.report.errors[0].message).toContain(site.id);
    expect((await root.get(`/api/inventory/sites/${site.id as string}`)).status).toBe(200);
    // With its section it is no reason any more.
    await restored({ backupId: backup.id, sections: ['inventory', 'access'] });
    expect((await keeper.client.get('/api/auth/session')).status).toBe(401);
    const events = (
      await root.get('/api/events?type=restore.failed', { 'x-service-tenant-id': 'platform' })
    ).body;
    expect(events.items ?? []).not.toEqual([]);
  });

  test('that nobody could administer the platform any more must be confirmed', async () => {
    await app.deps.db('grants').where({ role_id: 'platform-admin' }).del();
    const backup = await take();
    const chief = await person(app, 'platform-admin');
    const report = await validate({ backupId: backup.id });
    expect([report.valid, codes(report.errors)]).toEqual([false, ['no_administrator null']]);
    expect((await restore({ backupId: backup.id })).body.code).toBe('restore_invalid');
    expect((await chief.client.get('/api/rbac')).status).toBe(200);
    const own = await chief.client.post('/api/backup/restore/validate', { backupId: backup.id });
    expect(codes(own.body.errors)).toEqual(['no_administrator null', 'own_account null']);
    const confirmed = await validate({ backupId: backup.id, confirm: true });
    expect([confirmed.valid, codes(confirmed.warnings)]).toEqual([
      true,
      expect.arrayContaining(['no_administrator null']),
    ]);
    await restored({ backupId: backup.id, confirm: true });
    expect((await chief.client.get('/api/rbac')).status).toBe(401);
  });

  test('of an archive, or a request, is told before anything is touched', async () => {
    const backup = await take({ mode: 'partial', sections: ['settings'] });
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
      const answer = await restore(body);
      expect([body, answer.status, answer.body.code]).toEqual([body, status, code]);
    }
    const failed = await root.post('/api/backup/create', {
      mode: 'partial',
      sections: ['nothing'],
    });
    expect([failed.status, failed.body.errors[0].pointer]).toEqual([400, '/sections/0']);
    expect(
      (await root.post('/api/backup/create', { mode: 'partial' })).body.errors[0].pointer,
    ).toBe('/sections');
    expect(
      (await root.post('/api/backup/create', { mode: 'full', sections: ['jobs'] })).body.errors[0]
        .code,
    ).toBe('not_full');
    expect((await root.post('/api/backup/create', { engine: 'tape' })).status).toBe(400);
  });
});

describe('a part', () => {
  test('takes along what it refers to, when it is made', async () => {
    const backup = await take({ mode: 'partial', sections: ['webhooks'] });
    expect([backup.sections, [...backup.includes].sort()]).toEqual([
      ['webhooks'],
      ['events', 'jobs'],
    ]);
    expect((await take({ mode: 'partial', sections: ['access'] })).includes.sort()).toEqual([
      'inventory',
      'settings',
    ]);
  });

  test('brings back what it refers to and what is gone, and leaves the rest as it is', async () => {
    const site = await make('sites', { name: 'base', description: 'then' });
    const other = await make('sites', { name: 'beside', description: 'then' });
    const keeper = await person(app, { roleId: 'viewer', siteId: site.id });
    const backup = await take({ mode: 'partial', sections: ['access'] });
    await app.deps.db('grants').where({ user_id: keeper.id }).del();
    await app.deps.db('sessions').where({ user_id: keeper.id }).del();
    await app.deps.db('users').where({ id: keeper.id }).del();
    await root.delete(`/api/inventory/sites/${site.id as string}`);
    await root.put(`/api/inventory/sites/${other.id as string}`, { description: 'now' });
    const report = await validate({ backupId: backup.id });
    expect([report.valid, report.errors]).toEqual([true, []]);
    const sites = report.preview.tables.find(({ table }: any) => table === 'sites');
    expect(sites).toMatchObject({ created: 1, changed: 0, deleted: 0, broughtAlong: true });
    await restored({ backupId: backup.id, planHash: report.planHash });
    expect((await root.get(`/api/inventory/sites/${site.id as string}`)).body.description).toBe(
      'then',
    );
    expect((await root.get(`/api/inventory/sites/${other.id as string}`)).body.description).toBe(
      'now',
    );
    expect((await login(app, keeper.username)).status).toBe(200);
  });

  test('that cannot be brought back since its name is taken is refused by the rehearsal', async () => {
    const site = await make('sites', { name: 'taken' });
    const keeper = await person(app, { roleId: 'viewer', siteId: site.id });
    const backup = await take({ mode: 'partial', sections: ['access'] });
    await app.deps.db('grants').where({ user_id: keeper.id }).del();
    await root.delete(`/api/inventory/sites/${site.id as string}`);
    await make('sites', { name: 'taken' });
    const report = await validate({ backupId: backup.id });
    expect([report.valid, codes(report.errors)]).toEqual([false, ['conflict sites']]);
    expect((await restore({ backupId: backup.id })).body.code).toBe('restore_invalid');
  });
});

describe('after a restore', () => {
  test('schedules are due again, deliveries that wait of webhooks that are gone are cancelled, and nothing of the past fires', async () => {
    const schedule = (
      await root.post('/api/schedules', {
        name: 'hourly',
        cronExpression: '@hourly',
        timezone: 'UTC',
        jobType: 'core.echo',
        payload: {},
      })
    ).body;
    const backup = await take();
    await root.delete(`/api/schedules/${schedule.id as string}`);
    const newer = (
      await root.post('/api/schedules', {
        name: 'newer',
        cronExpression: '@hourly',
        timezone: 'UTC',
        jobType: 'core.echo',
        payload: {},
      })
    ).body;
    const platform = app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' });
    const webhook = (
      await platform.post('/api/webhooks', {
        endpointUrl: 'http://127.0.0.1:9/newer',
        eventTypes: ['inventory.site.created'],
      })
    ).body;
    await make('sites', { name: 'told' });
    const { db } = app.deps;
    await eventually(
      () => db('deliveries').where({ webhook_id: webhook.id }).pluck('status'),
      (found) => found.length > 0,
    );
    await restored({ backupId: backup.id });
    const back = (await root.get(`/api/schedules/${schedule.id as string}`)).body;
    expect([back.name, back.state]).toEqual(['hourly', 'active']);
    expect(
      (await db('schedules').where({ id: schedule.id }).first()).next_due_at.getTime(),
    ).toBeGreaterThan(Date.now());
    expect([
      (await root.get(`/api/schedules/${newer.id as string}`)).status,
      (await platform.get(`/api/webhooks/${webhook.id as string}`)).status,
    ]).toEqual([404, 404]);
    await eventually(
      async () => db('deliveries').where({ webhook_id: webhook.id }).pluck('status'),
      (found) => found.every((status) => status === 'cancelled'),
      { withinMs: 30_000 },
    );
    const mirror = (id: string) =>
      app.deps.link
        .call(5_000, (client) => client.schedule.getHandle(`schedule:${id}`).describe())
        .then(
          () => true,
          () => false,
        );
    await eventually(
      async () => [await mirror(schedule.id), await mirror(newer.id)],
      ([old, later]) => old === true && later === false,
    );
    expect(await db('schedule_runs').whereIn('schedule_id', [schedule.id, newer.id])).toEqual([]);
  });

  test('people stay signed in, but for those whose account has another password again, or is disabled', async () => {
    const [stays, other, disabled] = [
      await person(app, 'viewer'),
      await person(app, 'viewer'),
      await person(app, 'viewer'),
    ];
    const { db } = app.deps;
    await db('users').where({ id: disabled.id }).update({ enabled: false });
    const backup = await take({ mode: 'partial', sections: ['access'] });
    await db('users').where({ id: disabled.id }).update({ enabled: true });
    await db('users')
      .where({ id: other.id })
      .update({ password_hash: '$argon2id$changed', last_login_at: '2031-01-01T00:00:00Z' });
    const signedIn = async () =>
      Promise.all(
        [stays, other, disabled].map(
          async ({ client }) => (await client.get('/api/auth/session')).status,
        ),
      );
    expect(await signedIn()).toEqual([200, 200, 200]);
    await restored({ backupId: backup.id });
    expect(await signedIn()).toEqual([200, 401, 401]);
    expect(await db('sessions').where({ user_id: other.id }).pluck('end_reason')).toEqual([
      'password_change',
    ]);
    // When somebody signed in last is no state to go back to.
    expect((await db('users').where({ id: other.id }).first()).last_login_at.toISOString()).toBe(
      '2031-01-01T00:00:00.000Z',
    );
  });

  test('the audit trail has gone on, and is whole; who did it is in it', async () => {
    const backup = await take();
    const { db } = app.deps;
    const before = await db('audit_entries').pluck('id');
    await restored({ backupId: backup.id });
    expect(await db('audit_entries').whereIn('id', before).count({ n: '*' })).toEqual([
      { n: before.length },
    ]);
    await app.deps.sealer.seal();
    expect(await app.deps.sealer.verify('platform')).toMatchObject({ broken: null });
    const entries = (await root.get(`/api/audit?subjectId=${backup.id as string}`)).body.items.map(
      ({ action, actorId }: any) => `${action as string} ${actorId as string}`,
    );
    expect(entries).toEqual(expect.arrayContaining(['backup.create root', 'backup.restore root']));
  });

  test('a safety backup brings back what was there before it', async () => {
    const backup = await take();
    const site = await make('sites', { name: 'precious' });
    const before = await dump(
      app.databaseUrl,
      STATE.filter((name) => name !== 'schedules' && name !== 'webhooks'),
    );
    const first = await restored({ backupId: backup.id, safetyBackup: true });
    expect((await root.get(`/api/inventory/sites/${site.id as string}`)).status).toBe(404);
    await restored({ backupId: first.safetyBackupId });
    expect(
      await dump(
        app.databaseUrl,
        STATE.filter((name) => name !== 'schedules' && name !== 'webhooks'),
      ),
    ).toEqual(before);
  });

  test('nothing that was loaded is left, and what has happened since is still known', async () => {
    const backup = await take();
    const job = (
      await root.post(
        '/api/jobs',
        { type: 'core.echo', payload: { message: 'later' } },
        { prefer: 'wait=20' },
      )
    ).body;
    const ends = await app.deps.db('cable_ends').orderBy('interface_id');
    await app.deps.db('cables').del();
    await restored({ backupId: backup.id });
    expect([ends.length, await app.deps.db('cable_ends').orderBy('interface_id')]).toEqual([
      4,
      ends,
    ]);
    expect((await root.get(`/api/jobs/${job.id as string}`)).body.status).toBe('succeeded');
    const { rows } = await app.deps.db.raw(
      `SELECT nspname FROM pg_namespace WHERE nspname LIKE 'scratch%'`,
    );
    expect(rows).toEqual([]);
  });

  test('what had happened and is gone comes back; a job that had not ended is not run again', async () => {
    const { db } = app.deps;
    const slow = (
      await root.post('/api/jobs', { type: 'core.sleep', payload: { durationMs: 3000 } })
    ).body;
    const done = (
      await root.post(
        '/api/jobs',
        { type: 'core.echo', payload: { message: 'done' } },
        { prefer: 'wait=20' },
      )
    ).body;
    const backup = await take();
    await eventually(
      async () => (await root.get(`/api/jobs/${slow.id as string}`)).body.status,
      (status) => status === 'succeeded',
    );
    await db('jobs').whereIn('id', [slow.id, done.id]).del();
    const report = await validate({ backupId: backup.id });
    expect(codes(report.warnings)).toContain('jobs_not_run_again jobs');
    expect((await restored({ backupId: backup.id })).outcome.jobsEnded).toBe(1);
    const [one, other] = [
      (await root.get(`/api/jobs/${slow.id as string}`)).body,
      (await root.get(`/api/jobs/${done.id as string}`)).body,
    ];
    expect([one.status, one.error.code, other.status, other.result.echo ?? other.result]).toEqual([
      'failed',
      'restored',
      'succeeded',
      expect.anything(),
    ]);
  });
});
