import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { recordFactory, type InventoryRecord, type RecordPage } from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
});
afterAll(() => app.stop());

const make = recordFactory(() => root);

describe('null in a field that cannot be null', () => {
  test('is not given: the default or the present value remains', async () => {
    const site = await make('sites', { name: 'null1', status: null, tags: null, regionId: null });
    expect(site).toMatchObject({ status: 'active', tags: [], regionId: null });
    const path = `/api/inventory/sites/${site.id}`;
    await root.put(path, { status: 'planned', version: null }).expect(200);
    const change = { status: null, name: null, description: null, tenantId: null };
    expect(await root.put(path, change).expect(200)).toMatchObject({
      status: 'planned',
      name: 'null1',
    });
    const record = { id: site.id, ...change };
    await root
      .post('/api/validation/inventory', { resource: 'sites', operation: 'update', record })
      .expect(200);
    await root.post('/api/inventory/sites', { name: null }).expect(400);
  });
});

describe('the estate', () => {
  test('a site with its racks, devices, interfaces, cables and addresses is made, named by names', async () => {
    await make('tenants', { id: 'acme', name: 'Acme' });
    await make('tags', { id: 'core', name: 'Core' });
    const region = await make('regions', { name: 'Europe' });
    const site = await make('sites', {
      name: 'ams1',
      regionId: { name: 'Europe' },
      tenantId: 'acme',
    });
    expect(site).toMatchObject({ regionId: region.id, status: 'active', version: 1, tags: [] });
    await make('locations', { name: 'hall 1', siteId: site.id });
    const rack = await make('racks', {
      name: 'r1',
      siteId: { name: 'ams1' },
      locationId: { name: 'hall 1' },
    });
    await make('manufacturers', { name: 'Juniper' });
    const type = await make('device-types', {
      manufacturerId: { name: 'Juniper' },
      model: 'QFX5120',
      uHeight: 2,
    });
    await make('device-roles', { name: 'leaf', color: '#00a1ff' });
    await make('platforms', { name: 'junos', manufacturerId: { name: 'Juniper' } });
    const device = await make('devices', {
      name: 'leaf1',
      siteId: site.id,
      rackId: rack.id,
      position: 10,
      face: 'front',
      deviceTypeId: type.id,
      roleId: { name: 'leaf' },
      platformId: { name: 'junos' },
      tags: ['core'],
      tenantId: 'acme',
    });
    const other = await make('devices', {
      name: 'leaf2',
      siteId: site.id,
      rackId: rack.id,
      position: 12,
      face: 'front',
      deviceTypeId: type.id,
    });
    const a = await make('interfaces', {
      deviceId: device.id,
      name: 'et-0/0/0',
      kind: 'fiber',
      macAddress: '00:11:22:33:44:55',
    });
    expect(a).toMatchObject({ tenantId: 'acme', siteId: site.id });
    const b = await make('interfaces', { deviceId: other.id, name: 'et-0/0/0', kind: 'fiber' });
    await make('cables', { aInterfaceId: a.id, bInterfaceId: b.id, label: 'c1' });
    const vrf = await make('vrfs', { name: 'blue', rd: '65000:1' });
    await make('vlan-groups', { name: 'g1', minVid: 10, maxVid: 20 });
    await make('vlans', { vid: 10, name: 'mgmt', groupId: { name: 'g1' } });
    const prefix = await make('prefixes', {
      cidr: '10.0.0.0/8',
      vrfId: { name: 'blue' },
      allocationMode: 'pool',
    });
    expect(prefix).toMatchObject({ vrfId: vrf.id, parentPrefixId: null });
    const child = await make('prefixes', { cidr: '10.1.0.0/16', vrfId: vrf.id });
    expect(child.parentPrefixId).toBe(prefix.id);
    await make('ip-ranges', { startAddress: '10.1.0.10', endAddress: '10.1.0.20', vrfId: vrf.id });
    const address = await make('ip-addresses', {
      address: '10.2.0.5/24',
      vrfId: vrf.id,
      interfaceId: a.id,
      dnsName: 'leaf1.example.net',
    });
    expect(address).toMatchObject({ address: '10.2.0.5/24', deviceId: device.id });
    const changed = await root
      .put<InventoryRecord>(`/api/inventory/devices/${device.id}`, { primaryIp4Id: address.id })
      .expect(200);
    expect(changed).toEqual({
      ...device,
      primaryIp4Id: address.id,
      version: 2,
      updatedAt: changed.updatedAt,
    });
    await make('custom-fields', { resource: 'devices', name: 'owner', type: 'text' });
    const { customFields } = await root
      .put<InventoryRecord>(`/api/inventory/devices/${device.id}`, {
        customFields: { owner: 'netops' },
      })
      .expect(200);
    expect(customFields).toEqual({ owner: 'netops' });
    const next = await root
      .post<InventoryRecord>(`/api/inventory/prefixes/${prefix.id}/allocate`, { kind: 'address' })
      .expect(201);
    expect(next.address).toBe('10.0.0.1/8');
    const deletion = await root.delete(`/api/inventory/devices/${device.id}`);
    expect(deletion.status).toBe(204);
    const { items } = await root
      .get<RecordPage>('/api/inventory/interfaces?sort=name&q=et-0')
      .expect(200);
    expect(items.map(({ id }) => id)).toEqual([b.id]);
    expect((await root.get(`/api/inventory/ip-addresses/${address.id}`)).body).toMatchObject({
      interfaceId: null,
      deviceId: null,
    });
  });
});
