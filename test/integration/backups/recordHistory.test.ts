import { describe, expect, test } from '@jest/globals';
import type { Static } from 'typebox';
import type { ChangeView } from '../../../api/inventory/schemas.ts';
import { tableOf } from '../../../db/inventory/tables.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import type { TestApp } from '../../support/app.ts';
import { backupCreator, restorer, withBackups } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { withClockAhead } from '../../support/clock.ts';
import { seedEstate } from '../../support/estate.ts';
import { recordFactory, type InventoryRecord, type RecordPage } from '../../support/inventory.ts';
import type { Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
withBackups(async (fixture) => {
  ({ app, root } = fixture);
  await seedEstate(app);
});

const make = recordFactory(() => root);
const member = (tenant: string) => app.client.as({ actor: 'kim', roles: 'platform-admin', tenant });
const INVENTORY = { mode: 'partial', sections: ['settings', 'inventory'] };
const createBackup = backupCreator(() => root);
const restore = restorer(() => root);

type Changes = Page<Static<typeof ChangeView>>;
const pathOf = (resource: string, { id }: { id: string }) => `/api/inventory/${resource}/${id}`;
const changesOf = (path: string) => root.get<Changes>(`${path}/changes`).expect(200);
const at = (path: string, time: Date) =>
  root.get<InventoryRecord>(`${path}?at=${time.toISOString()}`);
/** The outlines of changes, newest first. */
const outline = ({ items }: Changes) =>
  items.map(
    ({ action, restored, version }) => `${restored ? 'restore: ' : ''}${action} ${version}`,
  );

/** A time that is neither that of the write before it nor that of the write after it. */
async function timeBetween(): Promise<Date> {
  const time = new Date(Date.now() + 2);
  while (Date.now() <= time.getTime() + 2) await new Promise((resolve) => setImmediate(resolve));
  return time;
}

test('a restored record has a version that it never had', async () => {
  const created = await Promise.all(
    ['changed', 'deleted', 'kept'].map((name) => make('sites', { name: `version ${name}` })),
  );
  const [changed, deleted, kept] = created.map((site) => pathOf('sites', site)) as [
    string,
    string,
    string,
  ];
  const backup = await createBackup(INVENTORY);
  const lastOf = async (path: string) => {
    const before = await root.put<InventoryRecord>(path, { description: 'later' }).expect(200);
    const again = await root.put<InventoryRecord>(path, { description: 'last' }).expect(200);
    expect(again.version).toBe(before.version + 1);
    return again.version;
  };
  const last = [await lastOf(changed), await lastOf(deleted)];
  await root.delete(deleted).expect(204);
  const undone = await restore({ backupId: backup.id });
  expect(undone.outcome).toMatchObject({ created: 1, changed: 1 });
  const versionOf = async (path: string) =>
    (await root.get<InventoryRecord>(path).expect(200)).version;
  expect(await versionOf(changed)).toBe((last[0] ?? 0) + 1);
  expect(await versionOf(deleted)).toBeGreaterThan(last[1] ?? 0);
  expect(await versionOf(kept)).toBe(1);
  for (const [i, path] of [changed, deleted].entries())
    for (let seen = 1; seen <= (last[i] ?? 0); seen++)
      expect((await root.put(path, {}, { 'if-match': `"${seen}"` })).status).toBe(412);
  // Only versions differ from the backup.
  const again = await restore({ backupId: backup.id });
  expect(again.outcome).toMatchObject({ created: 0, changed: 0, deleted: 0 });
});

describe('a restore is in the history of a record', () => {
  test('that was changed, that was deleted and that is newer, also when it is undone', async () => {
    const [changed, deleted] = [
      await make('sites', { name: 'changed' }),
      await make('sites', { name: 'deleted' }),
    ];
    const kept = pathOf('sites', await make('sites', { name: 'kept' }));
    const backup = await createBackup(INVENTORY);
    await root.put(pathOf('sites', changed), { name: 'renamed' }).expect(200);
    await root.delete(pathOf('sites', deleted)).expect(204);
    const newer = await make('sites', { name: 'newer' });
    const paths = [changed, deleted, newer].map((site) => pathOf('sites', site));
    const namesAt = (time: Date) =>
      Promise.all(
        paths.map(async (path) => {
          const { status, body } = await at(path, time);
          return status === 200 ? body.name : status;
        }),
      );
    const before = await timeBetween();
    const { preRestoreBackupId } = await restore({ backupId: backup.id, preRestoreBackup: true });
    const between = await timeBetween();
    await restore({ backupId: preRestoreBackupId });
    expect(await namesAt(before)).toEqual(['renamed', 404, 'newer']);
    expect(await namesAt(between)).toEqual(['changed', 'deleted', 404]);
    expect(await namesAt(await timeBetween())).toEqual(['renamed', 404, 'newer']);
    const [first, second, third] = await Promise.all(paths.map(changesOf));
    expect(first && outline(first)).toEqual([
      'restore: update 4',
      'restore: update 3',
      'update 2',
      'create 1',
    ]);
    expect(first?.items[1]).toMatchObject({
      actorId: 'root',
      changes: [{ field: 'name', before: 'renamed', after: 'changed' }],
    });
    expect(first?.items[1]?.requestId).toMatch(/^job:job_/);
    expect(second && outline(second)).toEqual([
      expect.stringMatching(/^restore: delete 1\d{3}$/),
      expect.stringMatching(/^restore: create 1\d{3}$/),
      'delete 1',
      'create 1',
    ]);
    expect(third && outline(third)).toEqual([
      expect.stringMatching(/^restore: create 1\d{3}$/),
      'restore: delete 1',
      'create 1',
    ]);
    expect(outline(await changesOf(kept))).toEqual(['create 1']);
  });

  test('of every resource, in the form of its responses', async () => {
    await make('tenants', { id: 'red', name: 'Red' });
    await make('prefixes', { cidr: '::ffff:0:0/96' });
    await make('ip-addresses', { address: '::ffff:10.9.8.7/96' });
    const backup = await createBackup(INVENTORY);
    for (const resource of Object.values(RESOURCES))
      await app.deps.db(tableOf(resource)).update({ description: 'changed behind its back' });
    await restore({ backupId: backup.id });
    const after = await timeBetween();
    for (const { name } of Object.values(RESOURCES)) {
      const { items } = await root.get<RecordPage>(`/api/inventory/${name}`).expect(200);
      expect(items.length).toBeGreaterThan(0);
      for (const record of items) {
        const path = pathOf(name, record);
        expect([name, (await at(path, after)).body]).toEqual([name, record]);
        const { items: changes } = await changesOf(path);
        expect([name, changes[0]]).toEqual([
          name,
          expect.objectContaining({
            restored: true,
            changes: [expect.objectContaining({ field: 'description' })],
          }),
        ]);
      }
    }
    await app.deps.auditSealer.seal();
    expect(await app.deps.auditSealer.verify('platform')).toMatchObject({ broken: null });
  });

  test('of a tenant in the audit log of the tenant, and of nobody else', async () => {
    await make('tenants', { id: 'acme', name: 'Acme' });
    const acme = app.client.as({ actor: 'kim', roles: 'platform-admin', tenant: 'acme' });
    const mine = await make('sites', { name: 'mine', tenantId: 'acme' });
    const theirs = await make('sites', { name: 'theirs' });
    const backup = await backupCreator(() => acme)(INVENTORY);
    for (const site of [mine, theirs])
      await root.put(pathOf('sites', site), { description: 'changed' }).expect(200);
    await restorer(() => acme)({ backupId: backup.id });
    const restored = (site: InventoryRecord) =>
      app.deps
        .db('audit_entries')
        .where({ subject_id: site.id, action: 'inventory.site.restore' })
        .select('tenant_id', 'actor_id', 'outcome');
    expect([await restored(mine), await restored(theirs)]).toEqual([
      [{ tenant_id: 'acme', actor_id: 'kim', outcome: 'done' }],
      [],
    ]);
  });

  test('of one that moves back in both tenants', async () => {
    for (const id of ['home', 'away']) await make('tenants', { id, name: id });
    const site = await make('sites', { name: 'moves', tenantId: 'home' });
    const path = pathOf('sites', site);
    const backup = await createBackup(INVENTORY);
    await root.put(path, { tenantId: 'away' }).expect(200);
    await restore({ backupId: backup.id });
    const after = await timeBetween();
    const historyIn = async (tenant: string) =>
      outline(await member(tenant).get<Changes>(`${path}/changes`).expect(200));
    expect(await historyIn('home')).toEqual(['restore: create 3', 'delete 1', 'create 1']);
    expect(await historyIn('away')).toEqual(['restore: delete 2', 'create 2']);
    expect((await at(path, after)).body).toEqual({ ...site, version: 3 });
    const restored = await app.deps
      .db('audit_entries')
      .where({ subject_id: site.id, action: 'inventory.site.restore' })
      .orderBy('id')
      .pluck('tenant_id');
    expect(restored).toEqual(['away', 'home']);
  });

  test('of a prefix of another tenant that gets its parent back', async () => {
    for (const id of ['owner', 'guest']) await make('tenants', { id, name: id });
    const shared = { name: 'common', tenantId: 'owner', sharedWith: ['guest'] };
    const { id: vrfId } = await make('vrfs', shared);
    const block = await make('prefixes', { cidr: '10.1.0.0/16', vrfId, tenantId: 'owner' });
    const theirs = { cidr: '10.1.1.0/24', vrfId, tenantId: 'guest' };
    const path = pathOf('prefixes', await make('prefixes', theirs));
    const backup = await backupCreator(() => member('owner'))(INVENTORY);
    await root.delete(pathOf('prefixes', block)).expect(204);
    const released = await root.get<InventoryRecord>(path).expect(200);
    expect(released.parentPrefixId).toBeNull();
    await restorer(() => member('owner'))({ backupId: backup.id });
    const after = await member('guest').get<InventoryRecord>(path).expect(200);
    expect(after).toMatchObject({ parentPrefixId: block.id, version: released.version + 1 });
    const { items } = await member('guest').get<Changes>(`${path}/changes`).expect(200);
    expect(items[0]).toMatchObject({
      restored: true,
      version: after.version,
      changes: [{ field: 'parentPrefixId', before: null, after: block.id }],
    });
    expect((await at(path, await timeBetween())).body).toEqual(after);
    const events = await app.deps
      .db('events')
      .where({ type: 'restore.completed', subject_id: backup.id, tenant_id: 'guest' })
      .pluck('data');
    expect(events).toMatchObject([{ created: 0, changed: 1, deleted: 0 }]);
  });

  test('of interfaces whose device moves back', async () => {
    const types = await root.get<RecordPage>('/api/inventory/device-types?limit=1').expect(200);
    const sites = [];
    for (const name of ['there', 'elsewhere'])
      sites.push(await make('sites', { name, tenantId: 'owner' }));
    const [there, elsewhere] = sites as [InventoryRecord, InventoryRecord];
    const device = await make('devices', {
      name: 'moves',
      siteId: there.id,
      deviceTypeId: types.items[0]?.id,
      tenantId: 'owner',
    });
    const path = pathOf(
      'interfaces',
      await make('interfaces', { deviceId: device.id, name: 'e0' }),
    );
    const backup = await backupCreator(() => member('owner'))(INVENTORY);
    const { db } = app.deps;
    await db('devices').where({ id: device.id }).update({ site_id: elsewhere.id });
    await db('interfaces').where({ device_id: device.id }).update({ site_id: elsewhere.id });
    await restorer(() => member('owner'))({ backupId: backup.id });
    const after = await root.get<InventoryRecord>(path).expect(200);
    expect(after).toMatchObject({ siteId: there.id, version: 2 });
    expect(outline(await changesOf(path))).toEqual(['restore: update 2', 'create 1']);
  });

  test.each([
    ['by a process whose clock is ahead', { writerMs: 60_000, workerMs: 0 }],
    ['in front of a worker whose clock is behind', { writerMs: 0, workerMs: -60_000 }],
  ])('after changes %s', async (name, { writerMs, workerMs }) => {
    const changed = pathOf('sites', await make('sites', { name }));
    const deleted = pathOf('sites', await make('sites', { name: `${name}, too` }));
    const backup = await createBackup(INVENTORY);
    await withClockAhead(writerMs, async () => {
      await root.put(changed, { name: `${name}, renamed` }).expect(200);
      await root.delete(deleted).expect(204);
    });
    await withClockAhead(workerMs, () => restore({ backupId: backup.id }));
    const after = new Date(Date.now() + 120_000);
    expect((await at(changed, after)).body.name).toBe(name);
    expect((await at(deleted, after)).body.name).toBe(`${name}, too`);
  });
});

test('what a restore without entries has changed is not known, and what it is now is', async () => {
  const site = await make('sites', { name: 'then' });
  const path = pathOf('sites', site);
  await root.put(path, { name: 'now' }).expect(200);
  // As a restore of an earlier version did.
  await app.deps
    .db('sites')
    .where({ id: site.id })
    .update({ name: 'then', version: 1, updated_at: site.updatedAt });
  const unknown = await at(path, await timeBetween());
  expect([unknown.status, unknown.body]).toMatchObject([410, { code: 'history_incomplete' }]);
  expect(await root.get<InventoryRecord>(path).expect(200)).toMatchObject({ name: 'then' });
  const later = await root.put<InventoryRecord>(path, { name: 'later' }).expect(200);
  expect((await at(path, new Date(later.updatedAt))).body.name).toBe('later');
});
