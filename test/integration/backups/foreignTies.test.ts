import { describe, expect, test } from '@jest/globals';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import type { RestoreRunRecord } from '../../../api/backups/runSchemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import type { TestApp } from '../../support/app.ts';
import {
  backupCreator,
  restorer,
  restoreRequester,
  restoreValidator,
  withBackups,
} from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { recordFactory, type InventoryRecord } from '../../support/inventory.ts';
import { expectProblem } from '../../support/problem.ts';
import { createUser } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
const make = recordFactory(() => root);
withBackups(async (there) => {
  ({ app, root } = there);
  for (const id of ['acme', 'other']) await make('tenants', { id, name: id });
  const permissions = ['backup:read', 'backup:write', 'backup:restore', 'inventory:write'];
  await root.post('/api/rbac/roles', { id: 'keeper', name: 'Keeper', permissions }).expect(201);
});

const inventory = { mode: 'partial', sections: ['inventory'] };
const keeper = () => app.client.as({ actor: 'kim', roles: 'keeper', tenant: 'acme' });
const backUp = () => backupCreator(keeper)(inventory);

/** What prevents the restore of a backup, by table. */
async function errorsOf(client: () => TestClient, backupId: string) {
  const { errors } = await restoreValidator(client)({ backupId });
  return [...new Set(errors.map(({ code, table }) => `${code} ${String(table)}`))].sort();
}

const update = (resource: string, { id }: InventoryRecord, fields: object) =>
  root.put(`/api/inventory/${resource}/${id}`, fields).expect(200);
const remove = (resource: string, { id }: InventoryRecord) =>
  root.delete(`/api/inventory/${resource}/${id}`).expect(204);

describe('a restore of a tenant', () => {
  test('takes no space of the platform that was taken back, also not that of another tenant', async () => {
    await make('prefixes', { cidr: '10.0.0.0/16', tenantId: 'platform', status: 'container' });
    const taken = await make('prefixes', { cidr: '10.0.1.0/24', tenantId: 'acme' });
    const kept = await make('prefixes', { cidr: '10.0.2.0/24', tenantId: 'acme' });
    const inside = await make('prefixes', { cidr: '10.0.1.0/25', tenantId: 'acme' });
    const address = await make('ip-addresses', { address: '10.0.1.200/24', tenantId: 'acme' });
    const range = { startAddress: '10.0.2.10', endAddress: '10.0.2.20', tenantId: 'acme' };
    const lost = await make('ip-ranges', range);
    const { id } = await backUp();
    await remove('ip-addresses', address);
    await remove('prefixes', inside);
    await remove('prefixes', taken);
    // Inside what the tenant has, it may add and change everything.
    await remove('ip-ranges', lost);
    await update('prefixes', kept, { description: 'changed' });
    expect(await errorsOf(keeper, id)).toEqual(['not_assigned prefixes']);
    const { client } = await createUser(app, 'platform-admin');
    expect(await errorsOf(() => client, id)).toEqual([]);
    const given = await make('prefixes', { cidr: '10.0.1.0/24', tenantId: 'other' });
    expect(await errorsOf(keeper, id)).toEqual(['not_assigned prefixes']);
    expect(await errorsOf(() => client, id)).toEqual(['already_assigned prefixes']);
    // The tenant reads the report of the platform, but not who has the space.
    const reader = app.client.as({ actor: 'rita', roles: 'keeper,viewer', tenant: 'acme' });
    const reportOf = async (by: TestClient) => {
      const { restorePreview } = await by.get<BackupRecord>(`/api/backup/${id}`).expect(200);
      const { jobId, errors } = assertDefined(restorePreview.lastValidation, 'last validation');
      const run = await by.get<RestoreRunRecord>(`/api/backup/${id}/runs/${jobId}`).expect(200);
      expect(run.errors).toEqual(errors);
      return errors[0]?.message;
    };
    expect(await reportOf(client)).toContain('10.0.1.0/24 of tenant other');
    expect(await reportOf(reader)).toBe(
      'A record of inventory that you may not read prevents the restore',
    );
    await expectProblem(restoreRequester(keeper)({ backupId: id }), 409, 'restore_invalid');
    const { items } = await root
      .get<{ items: InventoryRecord[] }>('/api/inventory/prefixes?cidr=10.0.1.0/24')
      .expect(200);
    expect(items.map(({ tenantId }) => tenantId)).toEqual(['other']);
    await remove('prefixes', given);
    await make('prefixes', { cidr: '10.0.0.0/22', tenantId: 'acme' });
    expect(await errorsOf(keeper, id)).toEqual([]);
    await restorer(keeper)({ backupId: id });
  });

  test('does not refer again to what another tenant shares no more', async () => {
    const sharedWith = ['acme'];
    const other = { tenantId: 'other', sharedWith };
    const region = await make('regions', { name: 'shared', ...other });
    const site = await make('sites', { name: 'shared', ...other });
    const location = await make('locations', { name: 'shared', siteId: site.id, ...other });
    const rack = await make('racks', { name: 'shared', siteId: site.id, ...other });
    const vrf = await make('vrfs', { name: 'shared', ...other });
    const group = await make('vlan-groups', { name: 'shared', ...other });
    const vlan = await make('vlans', { name: 'shared', vid: 10, ...other });
    const { id: manufacturerId } = await make('manufacturers', { name: 'Acme' });
    const type = await make('device-types', { manufacturerId, model: 'one' });
    const port = async (tenantId: string, more: object) => {
      const at = { siteId: site.id, deviceTypeId: type.id, tenantId, ...more };
      const device = await make('devices', { name: `of ${tenantId}`, ...at });
      return make('interfaces', { deviceId: device.id, name: 'e0' });
    };
    const theirs = await port('other', {});
    await update('interfaces', theirs, { sharedWith });

    const acme = { tenantId: 'acme' };
    const own = await port('acme', { rackId: rack.id });
    await update('interfaces', own, { vrfId: vrf.id, untaggedVlanId: vlan.id, mode: 'access' });
    await make('cables', { ...acme, aInterfaceId: own.id, bInterfaceId: theirs.id });
    const ownSite = await make('sites', { ...acme, name: 'own', regionId: region.id });
    await make('racks', { ...acme, name: 'own', siteId: site.id, locationId: location.id });
    await make('vlans', { ...acme, name: 'own', vid: 11, groupId: group.id });
    const net = await make('prefixes', { ...acme, cidr: '10.9.0.0/16', vrfId: vrf.id });
    await make('ip-addresses', { ...acme, address: '10.9.0.1/16', vrfId: vrf.id });
    const { id } = await backUp();
    expect(await errorsOf(keeper, id)).toEqual([]);

    const shared = [
      ...(['regions', 'sites', 'locations', 'racks', 'vrfs', 'vlan-groups', 'vlans'] as const),
      'interfaces',
    ];
    const records = [region, site, location, rack, vrf, group, vlan, theirs];
    // Withdrawing a share keeps the references: they are no new ones.
    for (const [i, resource] of shared.entries())
      await update(resource, records[i] as InventoryRecord, { sharedWith: [] });
    await update('prefixes', net, { description: 'changed' });
    await update('sites', ownSite, { description: 'changed' });
    expect(await errorsOf(keeper, id)).toEqual([]);

    for (const [i, resource] of shared.entries())
      await update(resource, records[i] as InventoryRecord, { evict: true });
    expect(await errorsOf(keeper, id)).toEqual([
      'not_shared cables',
      'not_shared devices',
      'not_shared interfaces',
      'not_shared ip_addresses',
      'not_shared prefixes',
      'not_shared racks',
      'not_shared sites',
      'not_shared vlans',
    ]);
    await expectProblem(restoreRequester(keeper)({ backupId: id }), 409, 'restore_invalid');
    // Who may write at the other tenant could add the references, too.
    const { client } = await createUser(
      app,
      { roleId: 'keeper', tenantId: 'acme' },
      { roleId: 'operator', tenantId: 'other' },
    );
    expect(await errorsOf(() => client, id)).toEqual([]);
    await restorer(() => client)({ backupId: id });
  });
});

test('the records of a VRF follow whether the restored VRF enforces uniqueness', async () => {
  const vrf = await make('vrfs', { name: 'free', tenantId: 'acme', enforceUnique: false });
  const at = { vrfId: vrf.id, tenantId: 'acme' };
  await make('prefixes', { ...at, cidr: '10.50.0.0/24' });
  await make('ip-addresses', { ...at, address: '10.50.0.1/24' });
  const { id } = await backUp();
  await update('vrfs', vrf, { enforceUnique: true });
  await make('ip-addresses', { ...at, address: '10.50.0.2/24' });
  await restorer(keeper)({ backupId: id });
  const { db } = app.deps;
  for (const table of ['prefixes', 'ip_addresses'])
    expect(await db(table).where({ vrf_id: vrf.id }).pluck('unique_in_vrf')).toEqual([false]);
  await make('prefixes', { ...at, cidr: '10.50.0.0/24' });
  const counted = () => db('used_blocks').orderBy(['vrf_key', 'block', 'space_key']);
  const kept = await counted();
  await db.raw('SELECT recount_used_blocks()');
  expect(await counted()).toEqual(kept);
});

test('a restore of a tenant neither deletes nor adds the tenant', async () => {
  const late = app.client.as({ actor: 'kim', roles: 'keeper', tenant: 'late' });
  const back = backupCreator(() => late);
  const before = await back(inventory);
  const tenant = await make('tenants', { id: 'late', name: 'late' });
  await root.put('/api/quotas/late', { limits: { users: 5 } }).expect(200);
  const during = await back(inventory);
  await update('tenants', tenant, { description: 'changed' });
  const { db } = app.deps;
  const read = () => db('tenants').where({ id: 'late' }).pluck('description');
  await restorer(() => late)({ backupId: before.id });
  expect(await read()).toEqual(['changed']);
  await restorer(() => late)({ backupId: during.id });
  expect(await read()).toEqual(['']);
  expect(await db('tenant_quotas').where({ tenant_id: 'late' })).toHaveLength(1);
  await db('tenants').where({ id: 'late' }).del();
  const { preview } = await restoreValidator(() => late)({ backupId: during.id });
  expect(preview.counts).toMatchObject({ created: 0, changed: 0, deleted: 0 });
  await restorer(() => late)({ backupId: during.id });
  expect(await read()).toEqual([]);
});
