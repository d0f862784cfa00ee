import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { MAX_NAMED } from '../../../domain/inventory/planSnapshot.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { importRowsAs, uploadAs } from '../../support/imports.ts';
import { recordFactory, type BulkReport, type InventoryRecord } from '../../support/inventory.ts';
import { admin, createUser } from '../../support/users.ts';

/** More records of one name than a plan loads for a name. */
const OTHERS = MAX_NAMED + 20;

let app: TestApp;
let root: TestClient;
let red: TestClient;
let deviceTypeId: string;
const make = recordFactory(() => root);

const sum = (count: number, each: (n: number) => object) =>
  Array.from({ length: count }, (_, n) => each(n));

async function bulk(resource: string, records: readonly object[]): Promise<string[]> {
  const mutations = records.map((record) => ({ resource, operation: 'create', record }));
  const { results } = await root.post<BulkReport>('/api/inventory/bulk', { mutations }).expect(200);
  return results.map(({ id }) => String(id));
}

beforeAll(async () => {
  app = await startApp();
  root = admin(app);
  for (const id of ['red', 'blue']) await make('tenants', { id, name: id });
  red = (await createUser(app, { roleId: 'operator', tenantId: 'red' })).client;
  const { id: manufacturerId } = await make('manufacturers', { name: 'Acme' });
  deviceTypeId = (await make('device-types', { manufacturerId, model: 'one' })).id;

  // The records of others are the first with these names, and the last ones.
  const crowd = async () => {
    const sites = await bulk(
      'sites',
      sum(OTHERS, (n) => ({ name: `site${n}`, tenantId: 'blue', description: `${n}` })),
    );
    const at = (n: number) => ({ tenantId: 'blue', siteId: sites[n] });
    await bulk(
      'racks',
      sum(OTHERS, (n) => ({ ...at(n), name: 'r1' })),
    );
    const devices = await bulk(
      'devices',
      sum(OTHERS, (n) => ({ ...at(n), name: 'd1', deviceTypeId })),
    );
    await bulk(
      'interfaces',
      sum(OTHERS, (n) => ({ deviceId: devices[n], name: 'ae0', kind: 'lag' })),
    );
    const vrfs = await bulk(
      'vrfs',
      sum(OTHERS, (n) => ({ name: `v${n}`, tenantId: 'blue' })),
    );
    await bulk(
      'prefixes',
      sum(OTHERS, (n) => ({ cidr: '10.0.0.0/8', vrfId: vrfs[n], tenantId: 'blue' })),
    );
    await bulk(
      'interfaces',
      sum(OTHERS, (n) => ({ deviceId: devices[n], name: 'eth0', vrfId: vrfs[n] })),
    );
  };
  await crowd();
});
afterAll(() => app.stop());

describe('of a name that many records of others have', () => {
  let site: InventoryRecord;
  let device: InventoryRecord;
  beforeAll(async () => {
    site = await make('sites', { name: 'hq', tenantId: 'red' });
    await make('racks', { name: 'r1', siteId: site.id, tenantId: 'red' });
    device = await make('devices', { name: 'd1', siteId: site.id, tenantId: 'red', deviceTypeId });
    await make('interfaces', { deviceId: device.id, name: 'ae0', kind: 'lag' });
    const vrf = await make('vrfs', { name: 'own', tenantId: 'red' });
    await make('prefixes', { cidr: '10.0.0.0/8', vrfId: vrf.id, tenantId: 'red' });
  });

  test('a tenant finds its own record', async () => {
    const mounted = { name: 'd2', siteId: { name: 'hq' }, rackId: { name: 'r1' }, deviceTypeId };
    await red.post('/api/inventory/devices', mounted).expect(201);
    const port = { deviceId: { name: 'd1' }, name: 'e0', lagId: { name: 'ae0' } };
    const { deviceId } = await red
      .post<InventoryRecord>('/api/inventory/interfaces', port)
      .expect(201);
    expect(deviceId).toBe(device.id);
    const prefix = {
      cidr: '10.0.0.0/16',
      vrfId: { name: 'own' },
      parentPrefixId: { cidr: '10.0.0.0/8' },
    };
    await red.post('/api/inventory/prefixes', prefix).expect(201);
  });

  test('who reads all finds the one of the same tenant, site, VRF and device', async () => {
    const { id: other } = await make('sites', { name: 'branch', tenantId: 'red' });
    const { id: rackId } = await make('racks', { name: 'r1', siteId: other, tenantId: 'red' });
    const mounted = { siteId: { name: 'branch' }, rackId: { name: 'r1' }, deviceTypeId };
    // The site decides: the request has another tenant by default, which has such a rack at its own site.
    const { id: third } = await make('sites', { name: 'third' });
    await make('racks', { name: 'r1', siteId: third });
    expect((await make('devices', { ...mounted, name: 'd3' })).rackId).toBe(rackId);
    expect((await make('devices', { ...mounted, name: 'd4', tenantId: 'red' })).rackId).toBe(
      rackId,
    );
    const port = await make('interfaces', {
      deviceId: device.id,
      name: 'e1',
      lagId: { name: 'ae0' },
    });
    expect(port.deviceId).toBe(device.id);
    const global = await make('prefixes', { cidr: '10.0.0.0/8', tenantId: 'red' });
    const named = { parentPrefixId: { cidr: '10.0.0.0/8' }, tenantId: 'red' };
    expect((await make('prefixes', { ...named, cidr: '10.9.0.0/16' })).parentPrefixId).toBe(
      global.id,
    );
  });

  test('the VRF decides between interfaces', async () => {
    const name = `v${OTHERS - 1}`;
    const { interfaceId, vrfId } = await make('ip-addresses', {
      address: '10.8.0.1/24',
      vrfId: { name },
      tenantId: 'blue',
      interfaceId: { name: 'eth0' },
    });
    const { vrfId: ofInterface } = await root
      .get<InventoryRecord>(`/api/inventory/interfaces/${String(interfaceId)}`)
      .expect(200);
    expect(ofInterface).toBe(vrfId);
  });

  test('the rows of a file find theirs', async () => {
    const csv = [
      'name,siteId.name,rackId.name,deviceTypeId.model',
      'd5,hq,r1,one',
      'd6,hq,r1,one',
      'd7,hq,r1,one',
    ];
    const { id, counts } = await uploadAs(red, csv.join('\n'), 'resource=devices').expect(202);
    expect(await importRowsAs(red, id, '&outcome=invalid')).toEqual([]);
    expect(counts).toMatchObject({ created: 3 });
  });

  test('without one that matches better, the name is ambiguous', async () => {
    const body = await root
      .post('/api/inventory/interfaces', { deviceId: { name: 'd1' }, name: 'e9' })
      .expect(400);
    expect(body).toMatchObject({ errors: [{ pointer: '/deviceId', code: 'ambiguous' }] });
  });
});
