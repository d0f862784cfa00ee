import { describe, expect, test } from '@jest/globals';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import {
  HELD_TABLES,
  lockToHold,
  notHeld,
  shareHoldLock,
  type HistoryKind,
} from '../../../db/retention/holds.ts';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type { EventRecord } from '../../../api/events/schemas.ts';
import type { TestApp } from '../../support/app.ts';
import { assignedToApprovers } from '../../support/approvals.ts';
import {
  backupCreator,
  restoreRequester,
  restoreValidator,
  withBackups,
} from '../../support/backups.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { seedImport } from '../../support/retention.ts';
import type { Page } from '../../support/users.ts';
import { waitingForLock } from '../../support/waitingForLock.ts';

type Hold = { id: string; status: string; level: string; subject: object | null; version: number };
type Problem = ProblemBody & { conflicts?: { code: string; id: string | null }[] };

let app: TestApp;
let root: TestClient;
withBackups(async (fixture) => {
  ({ app, root } = fixture);
  await root
    .post('/api/rbac/roles', {
      id: 'keeper',
      name: 'Keeps and releases',
      permissions: ['hold:write', 'hold:release'],
    })
    .expect(201);
});

let tenants = 0;
/** A tenant with people: `admin` may do everything there, `operator` may not read holds. */
async function newTenant() {
  const id = `held-${++tenants}`;
  await root.post('/api/inventory/tenants', { id, name: id }).expect(201);
  const at = (roles: string) => app.client.as({ actor: `${roles}-of-${id}`, roles, tenant: id });
  return { id, admin: at('platform-admin'), operator: at('operator'), keeper: at('keeper') };
}

const hold = (client: TestClient, body: object = {}): Promise<Hold> =>
  client.post<Hold>('/api/legal-holds', { reason: 'Case 7', ...body }).expect(201);
const release = (client: TestClient, { id }: Hold) =>
  client.post<Hold>(`/api/legal-holds/${id}/release`, { reason: 'closed' });
const site = (client: TestClient, name: string) =>
  client.post<{ id: string }>('/api/inventory/sites', { name }).expect(201);
const refusal = { status: 409, body: { code: 'legal_hold' } };
const subjectOf = (type: string, { id }: { id: string }) => ({ subject: { type, id } });

describe('a legal hold', () => {
  test('is created, found, listed by filters, and released, once and for good', async () => {
    const { id: tenantId, admin } = await newTenant();
    const created = await hold(admin, { endsAt: '2999-01-01T00:00:00.000Z' });
    expect(created).toMatchObject({ tenantId, level: 'tenant', subject: null, status: 'in_force' });
    const planned = await hold(admin, { startsAt: '2998-01-01T00:00:00.000Z' });
    const listed = async (query: string) =>
      (await admin.get<Page<Hold>>(`/api/legal-holds?${query}`).expect(200)).items.map(
        (each) => each.id,
      );
    expect(await listed(`tenantId=${tenantId}`)).toEqual([planned.id, created.id]);
    expect(await listed('status=planned')).toEqual([planned.id]);
    expect(await listed('status=in_force')).toEqual([created.id]);
    expect((await listed('status=in_force,planned')).sort()).toEqual(
      [created.id, planned.id].sort(),
    );
    const stale = { 'if-match': '"7"' };
    await admin.post(`/api/legal-holds/${created.id}/release`, { reason: 'x' }, stale).expect(412);
    expect(await release(admin, created).expect(200)).toMatchObject({ status: 'released' });
    expect(await listed('status=released')).toEqual([created.id]);
    expect((await release(admin, created)).body).toMatchObject({ code: 'hold_released' });
    await expect(app.deps.db('legal_holds').where({ id: created.id }).del()).rejects.toThrow(
      'never deleted',
    );
  });

  test('is audited, and its events say neither why nor what', async () => {
    const { id: tenantId, admin } = await newTenant();
    const created = await hold(admin);
    await release(admin, created).expect(200);
    const { items } = await admin
      .get<Page<AuditEntryRecord>>(`/api/audit?subjectId=${created.id}`)
      .expect(200);
    expect(items.map(({ action, tenantId: of }) => [action, of])).toEqual([
      ['legal-hold.release', tenantId],
      ['legal-hold.create', tenantId],
    ]);
    const events = await eventually(
      () => admin.get<Page<EventRecord>>('/api/events').expect(200),
      ({ items: found }) => found.filter(({ type }) => type.startsWith('legal-hold')).length === 2,
    );
    expect(JSON.stringify(events)).not.toContain('Case 7');
  });

  test('names a record of its tenant, or what a user has done', async () => {
    const [one, other] = [await newTenant(), await newTenant()];
    const foreign = await site(other.admin, 'theirs');
    const refused = await one.admin.post<Problem>('/api/legal-holds', {
      reason: 'x',
      ...subjectOf('site', foreign),
    });
    expect([refused.status, refused.body.errors?.[0]]).toEqual([
      400,
      expect.objectContaining({ pointer: '/subject/id', code: 'not_found' }),
    ]);
    await hold(one.admin, subjectOf('user', { id: 'anyone' }));
    const deleted = await site(one.admin, 'deleted');
    await one.admin.delete(`/api/inventory/sites/${deleted.id}`).expect(204);
    await hold(one.admin, subjectOf('site', deleted));
    await one.admin.post('/api/legal-holds', { reason: 'x', tenantId: other.id }).expect(403);
  });

  test('of the platform is released by the platform only, and uses up no quota of the tenant', async () => {
    const { id: tenantId, admin } = await newTenant();
    await root.put(`/api/quotas/${tenantId}`, { limits: { legalHolds: 1 } }).expect(200);
    await hold(root, { tenantId, subject: { type: 'user', id: 'first' } });
    const created = await hold(root, { tenantId });
    const own = await hold(admin);
    expect((await admin.post('/api/legal-holds', { reason: 'second' })).body).toMatchObject({
      code: 'quota_exceeded',
    });
    await release(admin, own).expect(200);
    await release(admin, await hold(admin)).expect(200);
    expect(created.level).toBe('platform');
    expect((await admin.get<Hold>(`/api/legal-holds/${created.id}`)).status).toBe(200);
    expect((await release(admin, created)).status).toBe(403);
    await release(root, created).expect(200);
  });
});

describe('a legal hold refuses the deletion', () => {
  test('of a record through every door of the inventory, before and after it was planned', async () => {
    const { admin, operator } = await newTenant();
    const { id: siteId } = await site(admin, 'held');
    const held = await hold(admin, subjectOf('site', { id: siteId }));
    const path = `/api/inventory/sites/${siteId}`;
    const readable = (await admin.delete<Problem>(path)).body;
    expect(readable).toMatchObject({
      code: 'legal_hold',
      conflicts: [{ code: 'legal_hold', resource: 'legal-holds', id: held.id }],
    });
    const unreadable = await operator.delete<Problem>(path);
    expect(unreadable).toMatchObject(refusal);
    expect(JSON.stringify(unreadable.body)).not.toContain(held.id);
    const mutation = { resource: 'sites', operation: 'delete', record: { id: siteId } };
    expect(await operator.post('/api/inventory/bulk', { mutations: [mutation] })).toMatchObject(
      refusal,
    );
    expect((await operator.post('/api/validation/inventory', mutation)).status).toBe(409);
    const request = { ...assignedToApprovers, title: 'delete it', validationRequest: mutation };
    expect((await operator.post<Problem>('/api/workflows', request)).body).toMatchObject({
      validation: { conflicts: [{ code: 'legal_hold', id: null }] },
    });
    // A deletion that was planned before the hold meets the trigger.
    await expect(app.deps.db('sites').where({ id: siteId }).del()).rejects.toMatchObject({
      code: 'HF004',
    });
    await admin.put(path, { description: 'may change' }).expect(200);
    await release(admin, held).expect(200);
    await operator.delete(path).expect(204);
  });

  test('of what a deletion cascades to', async () => {
    const { admin } = await newTenant();
    const { id: siteId } = await site(admin, 'with a device');
    const make = (kind: string, body: object) =>
      admin.post<{ id: string }>(`/api/inventory/${kind}`, body).expect(201);
    const manufacturer = await root
      .post<{ id: string }>('/api/inventory/manufacturers', { name: `m${tenants}` })
      .expect(201);
    const { id: deviceTypeId } = await root
      .post<{ id: string }>('/api/inventory/device-types', {
        manufacturerId: manufacturer.id,
        model: 'm',
      })
      .expect(201);
    const device = await make('devices', { name: 'd', siteId, deviceTypeId });
    const port = await make('interfaces', { deviceId: device.id, name: 'e0' });
    const held = await hold(admin, subjectOf('interface', port));
    expect(await admin.delete(`/api/inventory/devices/${device.id}`)).toMatchObject(refusal);
    await release(admin, held).expect(200);
    await admin.delete(`/api/inventory/devices/${device.id}`).expect(204);
  });

  test('of everything of a tenant: inventory, webhooks, schedules; and of no other tenant', async () => {
    const [one, other] = [await newTenant(), await newTenant()];
    const webhook = { endpointUrl: 'https://hooks.example/', eventTypes: ['*'] };
    const schedule = { name: 's', cronExpression: '0 3 1 1 *', jobType: 'core.echo', payload: {} };
    const paths = async (client: TestClient) => {
      const { id: ofSite } = await site(client, 's');
      const { id: ofHook } = await client
        .post<{ id: string }>('/api/webhooks', webhook)
        .expect(201);
      const { id: ofSchedule } = await client
        .post<{ id: string }>('/api/schedules', schedule)
        .expect(201);
      return [
        `/api/inventory/sites/${ofSite}`,
        `/api/webhooks/${ofHook}`,
        `/api/schedules/${ofSchedule}`,
      ];
    };
    const [ofOne, ofOther] = [await paths(one.admin), await paths(other.admin)];
    const held = await hold(one.admin);
    for (const path of ofOne) {
      const refused = await one.operator.delete(path);
      expect(refused).toMatchObject(refusal);
      expect(JSON.stringify(refused.body)).not.toContain(held.id);
      expect(JSON.stringify((await one.admin.delete(path)).body)).toContain(held.id);
    }
    expect(await root.delete(`/api/inventory/tenants/${one.id}`)).toMatchObject({ status: 409 });
    for (const path of ofOther) await other.operator.delete(path).expect(204);
    await release(one.admin, held).expect(200);
    for (const path of ofOne) await one.operator.delete(path).expect(204);
  });

  test('of everything of a tenant, also by moving it to another one', async () => {
    const [one, other] = [await newTenant(), await newTenant()];
    const { id } = await site(one.admin, 'moves');
    const held = await hold(one.admin);
    const move = () => root.put(`/api/inventory/sites/${id}`, { tenantId: other.id });
    expect(await move()).toMatchObject(refusal);
    await release(one.admin, held).expect(200);
    await move().expect(200);
  });

  test('of backups that contain what is held, by request and by retention', async () => {
    const { admin } = await newTenant();
    const create = backupCreator(() => admin);
    const series = {
      mode: 'partial',
      sections: ['settings'],
      label: 'series',
      retention: { last: 1 },
    };
    const first = await create(series);
    const held = await hold(admin);
    expect(await admin.delete(`/api/backup/${first.id}`)).toMatchObject({
      ...refusal,
      body: { code: 'legal_hold', conflicts: [{ id: held.id }] },
    });
    await create(series);
    await admin.get<BackupRecord>(`/api/backup/${first.id}`).expect(200);
    await expect(
      app.deps.db('backups').where({ id: first.id }).update({ status: 'deleting' }),
    ).rejects.toMatchObject({ code: 'HF004' });
    await release(admin, held).expect(200);
    await admin.delete(`/api/backup/${first.id}`).expect(204);
  });

  test('and the overwriting of a record by a restore', async () => {
    const { admin } = await newTenant();
    const kept = await site(admin, 'kept');
    const backup = await backupCreator(() => admin)({ mode: 'partial', sections: ['inventory'] });
    await admin.put(`/api/inventory/sites/${kept.id}`, { description: 'later' }).expect(200);
    const held = await hold(admin, subjectOf('site', kept));
    const { valid, errors } = await restoreValidator(() => admin)({ backupId: backup.id });
    expect([valid, errors.map(({ code, key }) => [code, key])]).toEqual([
      false,
      [['legal_hold', kept.id]],
    ]);
    await release(admin, held).expect(200);
    await restoreRequester(() => admin)({ backupId: backup.id }).expect(202);
  });
});

test('every table of held records has the trigger that refuses deletions', async () => {
  const { rows } = await app.deps.db.raw<{ rows: { table: string }[] }>(
    `SELECT DISTINCT tgrelid::regclass::text AS table FROM pg_trigger WHERE tgname LIKE 'hold\\_%'`,
  );
  const guarded = new Set(rows.map(({ table }) => table));
  expect(HELD_TABLES.map(({ table }) => table).filter((table) => !guarded.has(table))).toEqual([]);
});

test('what expires is kept while it is held, by its kind', async () => {
  const { id: tenantId, admin } = await newTenant();
  const { db } = app.deps;
  const job = await admin
    .post<{ id: string }>('/api/jobs', { type: 'core.echo', payload: {} })
    .expect(201);
  const free = (kind: HistoryKind, where: object) =>
    db(`${kind} AS t`).where(where).whereRaw(notHeld(kind, 't'));
  const freeJobs = async () =>
    (await free('jobs', { 't.id': job.id })).length +
    (await free('job_logs', { job_id: job.id })).length;
  await eventually(freeJobs, (count) => count > 1);
  for (const body of [
    {},
    subjectOf('job', job),
    subjectOf('user', { id: `platform-admin-of-${tenantId}` }),
  ]) {
    const held = await hold(admin, body);
    expect(await freeJobs()).toBe(0);
    expect(await free('events', { subject_id: job.id, type: 'job.created' })).toEqual([]);
    await release(admin, held).expect(200);
  }
  expect(await freeJobs()).toBeGreaterThan(1);
});

test('a hold on a schedule keeps its runs from a backfill', async () => {
  const { id: tenantId, admin } = await newTenant();
  const { db, ids } = app.deps;
  const schedule = await admin
    .post<{ id: string }>('/api/schedules', {
      name: 's',
      cronExpression: '0 3 * * *',
      jobType: 'core.echo',
      payload: {},
    })
    .expect(201);
  const dueAt = new Date(Math.floor(Date.now() / 86_400_000) * 86_400_000 - 21 * 3_600_000);
  const id = ids.next('run');
  await db('schedule_runs').insert({
    id,
    schedule_id: schedule.id,
    tenant_id: tenantId,
    kind: 'backfill',
    due_at: dueAt,
    outcome: 'skipped',
    reason: 'owner_denied',
    caught_up: false,
    actor_id: 'ann',
    decided_at: new Date(),
  });
  const interval = { since: dueAt.toISOString(), until: dueAt.toISOString() };
  const path = `/api/schedules/${schedule.id}/backfill`;
  const backfill = async () =>
    (await admin.post<{ result: object }>(path, interval, { prefer: 'wait=20' }).expect(202))
      .result;
  const preview = () => admin.post<object>(`${path}/preview`, interval).expect(200);
  const held = await hold(admin, subjectOf('schedule', schedule));
  expect(await preview()).toMatchObject({ toRun: 0, held: 1 });
  expect(await backfill()).toEqual({ occurrences: 1, held: 1 });
  expect(await db('schedule_runs').where({ id }).pluck('reason')).toEqual(['owner_denied']);
  await release(admin, held).expect(200);
  expect(await preview()).toMatchObject({ toRun: 1, held: 0 });
  expect(await backfill()).toEqual({ occurrences: 1, fired: 1 });
});

test('a hold on a job keeps the import that it has run, and its rows', async () => {
  const { id: tenantId, admin } = await newTenant();
  const { db } = app.deps;
  const job = await admin
    .post<{ id: string }>('/api/jobs', { type: 'core.echo', payload: {} })
    .expect(201);
  const id = await seedImport(db, { tenant: tenantId, days: 0, jobId: job.id });
  const free = async () => [
    ...(await db('imports AS t').where({ 't.id': id }).whereRaw(notHeld('imports', 't'))),
    ...(await db('import_rows AS t')
      .where({ import_id: id })
      .whereRaw(notHeld('import_rows', 't'))),
  ];
  expect(await free()).toHaveLength(2);
  const held = await hold(admin, subjectOf('job', job));
  expect(await free()).toEqual([]);
  await release(admin, held).expect(200);
});

const waitForLocks = () =>
  eventually(
    () => waitingForLock(app.deps.db, 'advisory'),
    (waiting) => waiting.length > 0,
  );

/** Whether an operation `waits` for the locks that deletions take in a tenant, or has `ended` before. */
async function waitsForDeletions(tenantId: string, operation: () => Promise<unknown>) {
  const trx = await app.deps.db.transaction();
  try {
    await shareHoldLock(trx, [tenantId]);
    const ended = operation().then(() => 'ended');
    const first = await Promise.race([ended, waitForLocks().then(() => 'waits')]);
    await trx.commit();
    await ended;
    return first;
  } finally {
    await trx.rollback().catch(() => undefined);
  }
}

test('a hold waits for a deletion that has not seen it', async () => {
  const { id, admin } = await newTenant();
  expect(await waitsForDeletions(id, () => hold(admin))).toBe('waits');
});

test('a hold at the former tenant of a record waits for deletions at its present one', async () => {
  const [former, present, other] = [await newTenant(), await newTenant(), await newTenant()];
  const moved = await site(former.admin, 'moved');
  await root.put(`/api/inventory/sites/${moved.id}`, { tenantId: present.id }).expect(200);
  const holdIt = () => hold(former.admin, subjectOf('site', moved));
  expect(await waitsForDeletions(present.id, holdIt)).toBe('waits');
  expect(await waitsForDeletions(other.id, holdIt)).toBe('ended');
});

test('a deletion of a webhook that waits for a hold lets events be published', async () => {
  const { id: tenantId, admin } = await newTenant();
  const webhook = await admin
    .post<{ id: string }>('/api/webhooks', {
      endpointUrl: 'https://example.net/',
      eventTypes: ['job.created'],
    })
    .expect(201);
  const trx = await app.deps.db.transaction();
  try {
    await lockToHold(trx, [tenantId]);
    const deleted = admin.delete(`/api/webhooks/${webhook.id}`).expect(204);
    await waitForLocks();
    const { rows } = await app.deps.db.raw<{ rows: object[] }>(
      'SELECT FROM webhooks WHERE id = ? FOR SHARE SKIP LOCKED',
      [webhook.id],
    );
    expect(rows).toHaveLength(1);
    await trx.commit();
    await deleted;
  } finally {
    await trx.rollback().catch(() => undefined);
  }
});
