import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../support/app.ts';
import { assignedToApprovers } from '../support/approvals.ts';
import type { ProblemBody, TestClient } from '../support/client.ts';
import { recordFactory, type BulkReport, type InventoryRecord } from '../support/inventory.ts';
import { admin, createUser } from '../support/users.ts';

/**
 * Two tenants. `mallory` may write at one site of red, or in all of red, and only read blue: nothing
 * that belongs to blue is written, tied up or named.
 */
let app: TestApp;
let root: TestClient;
const make = recordFactory(() => root);
const paths = (resource: string) => `/api/inventory/${resource}`;

type Side = Awaited<ReturnType<typeof createSide>>;
let red: Side;
let blue: Side;
let mallory: { atSite: TestClient; atTenant: TestClient };
let deviceTypeId: string;

const name = (() => {
  let count = 0;
  return () => `x${count++}`;
})();

async function createSide(tenantId: string, network: number) {
  await make('tenants', { id: tenantId, name: tenantId });
  const own = (resource: string, record: object) => make(resource, { tenantId, ...record });
  const region = await own('regions', { name: 'region' });
  const site = await own('sites', { name: 'site', regionId: region.id });
  const far = await own('sites', { name: 'far' });
  const rack = await own('racks', { name: 'rack', siteId: site.id });
  const device = await own('devices', { name: 'device', siteId: site.id, deviceTypeId });
  const port = (of: InventoryRecord) => make('interfaces', { deviceId: of.id, name: name() });
  const vrf = await own('vrfs', { name: 'vrf' });
  const group = await own('vlan-groups', { name: 'group', siteId: site.id });
  const vlan = await own('vlans', { name: 'vlan', vid: 7, groupId: group.id });
  const prefix = await own('prefixes', { cidr: `10.${network}.0.0/16`, siteId: site.id });
  await own('prefixes', { cidr: `10.${network}.9.0/24`, siteId: far.id });
  return { tenantId, own, region, site, far, rack, device, port, vrf, group, vlan, prefix };
}

beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  root = admin(app);
  const maker = await make('manufacturers', { name: 'm' });
  deviceTypeId = (await make('device-types', { manufacturerId: maker.id, model: 't' })).id;
  red = await createSide('red', 1);
  blue = await createSide('blue', 2);
  const viewer = { roleId: 'viewer', tenantId: 'blue' };
  const atSite = { roleId: 'operator', siteId: red.site.id };
  const atTenant = { roleId: 'operator', tenantId: 'red' };
  mallory = {
    atSite: (await createUser(app, viewer, atSite)).client,
    atTenant: (await createUser(app, viewer, atTenant)).client,
  };
});
afterAll(() => app.stop());

/** Every door through which a mutation comes in, with the status or the code that it answers. */
async function everyDoor(
  client: TestClient,
  resource: string,
  record: { id?: string } & Record<string, unknown>,
) {
  const { id, ...fields } = record;
  const operation = id === undefined ? 'create' : 'update';
  const mutation = { resource, operation, record };
  const direct =
    id === undefined
      ? client.post<ProblemBody>(paths(resource), record)
      : client.put<ProblemBody>(`${paths(resource)}/${id}`, fields);
  const bulk = (mode: string) =>
    client.post<BulkReport>('/api/inventory/bulk', { mode, mutations: [mutation] });
  const each = await bulk('each').expect(200);
  return [
    (await direct).status,
    (await bulk('all')).status,
    each.results[0]?.errors[0]?.code ?? each.results[0]?.outcome,
    (
      await client.post('/api/workflows', {
        ...assignedToApprovers,
        title: 'x',
        tenantId: 'red',
        validationRequest: mutation,
      })
    ).status,
  ];
}
const REFUSED = [403, 403, 'permission_denied', 403];

describe('every part of what a record belongs to is judged', () => {
  test('a record of a tenant is not created by a right at a site of another one', async () => {
    const siteId = red.site.id;
    const tenantId = 'blue';
    for (const [resource, record] of [
      ['racks', { name: name(), siteId, tenantId }],
      ['locations', { name: name(), siteId, tenantId }],
      ['devices', { name: name(), siteId, tenantId, deviceTypeId, assetTag: 'taken' }],
      ['vlan-groups', { name: name(), siteId, tenantId }],
      ['vlans', { name: name(), vid: 9, siteId, tenantId }],
      ['prefixes', { cidr: '10.77.0.0/24', siteId, tenantId }],
    ] as const)
      for (const client of [mallory.atSite, mallory.atTenant])
        expect([resource, await everyDoor(client, resource, record)]).toEqual([resource, REFUSED]);
  });

  test('nor changed, moved or deleted, when its tenant has put it there', async () => {
    const siteId = red.site.id;
    const rack = await blue.own('racks', { name: name(), siteId });
    for (const client of [mallory.atSite, mallory.atTenant]) {
      expect(await everyDoor(client, 'racks', { id: rack.id, name: name() })).toEqual(REFUSED);
      expect((await client.delete(`${paths('racks')}/${rack.id}`)).status).toBe(403);
      const own = await red.own('racks', { name: name(), siteId });
      expect(await everyDoor(client, 'racks', { id: own.id, tenantId: 'blue' })).toEqual(REFUSED);
    }
    const prefix = await blue.own('prefixes', {
      cidr: '10.78.0.0/24',
      siteId,
      allocationMode: 'pool',
    });
    for (const kind of [{ kind: 'address' }, { kind: 'prefix', prefixLength: 28 }])
      await mallory.atSite.post(`${paths('prefixes')}/${prefix.id}/allocate`, kind).expect(403);
  });

  test('a right at a site takes no space of other sites or of the tenant', async () => {
    const siteId = red.site.id;
    for (const [resource, record] of [
      ['prefixes', { cidr: '10.99.0.0/24', siteId }],
      ['prefixes', { cidr: '10.1.8.0/22', siteId }],
      ['prefixes', { cidr: '10.1.9.128/25', siteId }],
      ['ip-ranges', { startAddress: '10.1.8.0', endAddress: '10.1.9.7' }],
      ['ip-ranges', { startAddress: '10.1.9.250', endAddress: '10.1.10.7' }],
      ['ip-ranges', { startAddress: '10.1.8.0', endAddress: '10.1.11.0' }],
      ['ip-addresses', { address: '10.1.9.7' }],
    ] as const) {
      const record_ = { ...record, tenantId: 'red' };
      const client = mallory.atSite;
      expect([record, await everyDoor(client, resource, record_)]).toEqual([record, REFUSED]);
    }
    const range = { startAddress: '10.1.8.0', endAddress: '10.1.8.9' };
    await mallory.atSite.post(paths('ip-ranges'), range).expect(201);
    await mallory.atTenant
      .post(paths('ip-ranges'), { startAddress: '10.1.9.250', endAddress: '10.1.10.7' })
      .expect(201);
  });

  test('an error names no site that its reader may not read', async () => {
    const { detail } = await mallory.atSite
      .post<ProblemBody>(paths('ip-addresses'), { address: '10.1.9.7', tenantId: 'red' })
      .expect(403);
    expect(detail).toBe(
      'Permission inventory:write is missing at a tenant, site or device that you may not read.',
    );
    const named = await mallory.atSite
      .post<ProblemBody>(paths('racks'), { name: name(), siteId: red.site.id, tenantId: 'blue' })
      .expect(403);
    expect(named.detail).toBe('Permission inventory:write is missing at tenant blue.');
  });
});
