import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { RESOURCE_NAMES } from '../../../domain/inventory/names.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { recordFactory, type InventoryRecord } from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
let deviceTypeId: string;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
  for (const id of ['acme', 'blue']) await make('tenants', { id, name: id.toUpperCase() });
  const { id: manufacturerId } = await make('manufacturers', { name: 'Acme' });
  deviceTypeId = (await make('device-types', { manufacturerId, model: 'one' })).id;
});
afterAll(() => app.stop());

const make = recordFactory(() => root);
const device = (name: string, more: object) =>
  make('devices', { name, deviceTypeId, tenantId: 'acme', ...more });

test('the global table decides as a VRF does', async () => {
  const cidr = '10.0.0.0/8';
  const ofAcme = { cidr, tenantId: 'acme' };
  const { id: vrfId } = await make('vrfs', { name: 'v1', tenantId: 'acme' });
  const [inVrf, global] = [
    await make('prefixes', { ...ofAcme, vrfId }),
    await make('prefixes', ofAcme),
  ];
  const child = { cidr: '10.1.0.0/16', tenantId: 'acme', parentPrefixId: { cidr } };
  expect((await make('prefixes', { ...child, vrfId })).parentPrefixId).toBe(inVrf.id);
  expect((await make('prefixes', child)).parentPrefixId).toBe(global.id);
  expect(
    (await make('prefixes', { ...child, cidr: '10.2.0.0/16', vrfId: null })).parentPrefixId,
  ).toBe(global.id);
});

test('a tenant by name decides as its id does', async () => {
  const [, site] = [
    await make('sites', { name: 'hq', tenantId: 'acme' }),
    await make('sites', { name: 'hq', tenantId: 'blue' }),
  ];
  const rack = { name: 'r1', siteId: { name: 'hq' } };
  for (const tenantId of [{ name: 'BLUE' }, 'blue'])
    expect(
      await make('racks', { ...rack, name: JSON.stringify(tenantId), tenantId }),
    ).toMatchObject({ siteId: site.id, tenantId: 'blue' });
  const unknown = { ...rack, tenantId: { name: 'GREEN' } };
  expect(await root.post('/api/inventory/racks', unknown).expect(400)).toMatchObject({
    errors: [{ pointer: '/tenantId', code: 'not_found' }, { pointer: '/siteId' }],
  });
});

test('what a device refers to is on it', async () => {
  const { id: siteId } = await make('sites', { name: 'dc', tenantId: 'acme' });
  const address = '192.0.2.5';
  const devices: InventoryRecord[] = [];
  const addresses: InventoryRecord[] = [];
  for (const name of ['d1', 'd2']) {
    const { id: vrfId } = await make('vrfs', { name: `vrf of ${name}`, tenantId: 'acme' });
    const own = await device(name, { siteId });
    const port = await make('interfaces', { deviceId: own.id, name: 'e0' });
    const more = { tenantId: 'acme', vrfId, interfaceId: port.id };
    devices.push(own);
    addresses.push(await make('ip-addresses', { address, ...more }));
  }
  for (const [i, { id }] of devices.entries())
    expect(
      await root.put(`/api/inventory/devices/${id}`, { primaryIp4Id: { address } }).expect(200),
    ).toMatchObject({ primaryIp4Id: addresses[i]?.id });
});

test('the site that a rule requires decides before the tenant', async () => {
  const { id: siteId } = await make('sites', { name: 'ams1', tenantId: 'acme' });
  const { id: elsewhere } = await make('sites', { name: 'fra1', tenantId: 'platform' });
  const [inSite] = [
    await make('racks', { name: 'r1', siteId, tenantId: 'acme' }),
    await make('racks', { name: 'r1', siteId: elsewhere, tenantId: 'platform' }),
  ];
  // Without a tenant in the request it is the platform, whose rack with the name is at another site.
  const leaf = await make('devices', {
    name: 'leaf',
    deviceTypeId,
    siteId,
    rackId: { name: 'r1' },
  });
  expect(leaf).toMatchObject({ tenantId: 'platform', rackId: inSite.id });
});

test('an immutable reference can be named as it is, and not otherwise', async () => {
  const { id: siteId } = await make('sites', { name: 'lab', tenantId: 'acme' });
  const [one] = [await device('one', { siteId }), await device('two', { siteId })];
  const port = await make('interfaces', { deviceId: one.id, name: 'e0' });
  const path = `/api/inventory/interfaces/${port.id}`;
  const change = { deviceId: { name: 'one' }, description: 'uplink' };
  expect(await root.put(path, change).expect(200)).toMatchObject({
    ...{ deviceId: one.id, description: 'uplink', version: 2 },
  });
  for (const [name, code] of [
    ['two', 'immutable'],
    ['three', 'not_found'],
  ])
    expect(await root.put(path, { deviceId: { name } }).expect(400)).toMatchObject({
      errors: [{ pointer: '/deviceId', code }],
    });
});

test('errors have words for the records that a reference or a duplicate is about', async () => {
  const unknown = RESOURCE_NAMES.flatMap((resource) => {
    const fields = Object.entries(RESOURCES[resource].fields);
    const references = fields.flatMap(([name, { reference }]) =>
      reference && name !== 'tenantId' ? [[name, 'none'] as const] : [],
    );
    return references.length === 0
      ? []
      : [{ resource, operation: 'create', record: Object.fromEntries(references) }];
  });
  const { manufacturerId } = await root
    .get<{ manufacturerId: string }>(`/api/inventory/device-types/${deviceTypeId}`)
    .expect(200);
  const duplicate = {
    resource: 'device-types',
    operation: 'create',
    record: { manufacturerId, model: 'one' },
  };
  const { validation } = await root
    .post<{ validation: Record<'errors' | 'conflicts', { message: string }[]> }>(
      '/api/validation/inventory',
      { mutations: [...unknown, duplicate] },
    )
    .expect(400);
  const messages = [...validation.errors, ...validation.conflicts].map(({ message }) => message);
  expect(messages).toContain('a device type with this manufacturer and model exists');
  expect(messages).toContain('there is no VLAN group with id none');
  const names = RESOURCE_NAMES.filter((name) => /-|^vrfs|^vlans/.test(name)).flatMap((name) => [
    name,
    RESOURCES[name].kind,
  ]);
  for (const name of names) expect(messages.join('\n')).not.toMatch(new RegExp(`\\b${name}\\b`));
});
