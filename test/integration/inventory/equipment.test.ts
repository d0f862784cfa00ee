import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { recordFactory, type InventoryRecord } from '../../support/inventory.ts';
import { statementsOf } from '../../support/statements.ts';
import { admin, createUser } from '../../support/users.ts';

type Mount = { name: string | null; position: number; deviceId: string | null };
type Connection = { interfaceName: string | null; deviceName: string | null };
type Included = {
  included: {
    mounts: Record<string, Mount[]>;
    connections: Record<string, Connection>;
    addresses: Record<string, { address: string }[]>;
  };
};

let app: TestApp;
let acme: TestClient;
let site: InventoryRecord;
let otherSite: InventoryRecord;
let switchType: InventoryRecord;
const make = recordFactory(() => acme);

beforeAll(async () => {
  app = await startApp({}, { idle: true });
  acme = app.client.as({ actor: 'boss', roles: 'platform-admin', tenant: 'acme' });
  const ofPlatform = recordFactory(() => admin(app));
  await ofPlatform('tenants', { id: 'acme', name: 'Acme' });
  const maker = await ofPlatform('manufacturers', { name: 'maker' });
  const type = { manufacturerId: maker.id, model: 'S 2', uHeight: 2, fullDepth: false };
  switchType = await ofPlatform('device-types', type);
  site = await make('sites', { name: 'ams1' });
  otherSite = await make('sites', { name: 'fra1' });
});
afterAll(() => app.stop());

const device = (name: string, more: object = {}) =>
  make('devices', { name, siteId: site.id, deviceTypeId: switchType.id, ...more });

describe('include=mounts', () => {
  test('has the units that devices take in each rack of a page, with one statement', async () => {
    const rack = await make('racks', { name: 'r1', siteId: site.id });
    const empty = await make('racks', { name: 'r2', siteId: site.id });
    const rear = await device('rear', { rackId: rack.id, position: 9, face: 'rear' });
    await device('front', { rackId: rack.id, position: 9, face: 'front' });
    await device('lower', { rackId: rack.id, position: 1, face: 'front' });
    await device('loose', { rackId: rack.id });
    const plain = await statementsOf(app, () => acme.get('/api/inventory/racks').expect(200));
    const read = () => acme.get<Included>('/api/inventory/racks?include=mounts').expect(200);
    expect(await statementsOf(app, read)).toBe(plain + 1);
    const { mounts } = (await read()).included;
    expect(mounts[empty.id]).toEqual([]);
    expect(mounts[rack.id]?.map(({ name }) => name)).toEqual(['lower', 'front', 'rear']);
    expect(mounts[rack.id]?.[2]).toEqual({
      ...{ position: 9, uHeight: 2, front: false, rear: true, face: 'rear' },
      ...{ deviceId: rear.id, name: 'rear', status: 'active' },
      ...{ deviceTypeId: switchType.id, model: 'S 2' },
    });
    const one = await acme
      .get<Included>(`/api/inventory/racks/${rack.id}?include=mounts`)
      .expect(200);
    expect(one.included.mounts).toEqual({ [rack.id]: mounts[rack.id] });
  });

  test('does not name devices that the caller may not read, and does not call their units free', async () => {
    const rack = await make('racks', { name: 'r3', siteId: site.id, sharedWith: ['blue'] });
    await device('secret', { rackId: rack.id, position: 5, face: 'front' });
    const blue = app.client.as({ actor: 'eve', roles: 'viewer', tenant: 'blue' });
    const { included } = await blue
      .get<Included>(`/api/inventory/racks/${rack.id}?include=mounts`)
      .expect(200);
    expect(included.mounts[rack.id]).toEqual([
      {
        ...{ position: 5, uHeight: 2, front: true, rear: false, face: null },
        ...{ deviceId: null, name: null, status: null, deviceTypeId: null, model: null },
      },
    ]);
  });
});

describe('include=connections,addresses', () => {
  test('has the other ends and the addresses of each interface, with one statement each', async () => {
    const [one, two] = [await device('one'), await device('two')];
    const a = await make('interfaces', { deviceId: one.id, name: 'eth0' });
    const lone = await make('interfaces', { deviceId: one.id, name: 'eth1' });
    const b = await make('interfaces', { deviceId: two.id, name: 'xe-0' });
    const cable = await make('cables', { aInterfaceId: a.id, bInterfaceId: b.id });
    await make('prefixes', { cidr: '10.1.0.0/24' });
    await make('prefixes', { cidr: '2001:db8::/64' });
    for (const address of ['2001:db8::1.2.3.4/64', '10.1.0.9/24', '10.1.0.2/24'])
      await make('ip-addresses', { address, interfaceId: a.id });
    const path = `/api/inventory/interfaces?deviceId=${one.id}`;
    const plain = await statementsOf(app, () => acme.get(path).expect(200));
    const read = () => acme.get<Included>(`${path}&include=connections,addresses`).expect(200);
    expect(await statementsOf(app, read)).toBe(plain + 2);
    const { connections, addresses } = (await read()).included;
    expect(connections).toEqual({
      [a.id]: {
        ...{ cableId: cable.id, cableStatus: 'connected', interfaceId: b.id },
        ...{ interfaceName: 'xe-0', deviceId: two.id, deviceName: 'two' },
      },
    });
    expect(addresses[lone.id]).toEqual([]);
    expect(addresses[a.id]?.map(({ address }) => address)).toEqual([
      ...['10.1.0.2/24', '10.1.0.9/24', '2001:db8::102:304/64'],
    ]);
  });

  test('does not name the other end at a site that the caller may not read', async () => {
    const near = await device('near');
    const far = await device('far', { siteId: otherSite.id });
    const a = await make('interfaces', { deviceId: near.id, name: 'eth0' });
    const b = await make('interfaces', { deviceId: far.id, name: 'hidden0' });
    await make('cables', { aInterfaceId: a.id, bInterfaceId: b.id });
    const grant = { roleId: 'viewer', siteId: site.id, tenantId: 'acme' };
    const { client } = await createUser(app, grant);
    const { included } = await client
      .get<Included>(`/api/inventory/interfaces/${a.id}?include=connections`)
      .expect(200);
    expect(included.connections[a.id]).toMatchObject({
      ...{ interfaceId: b.id, interfaceName: null, deviceId: null, deviceName: null },
    });
  });
});
