import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../support/app.ts';
import { assignedToApprovers } from '../support/approvals.ts';
import type { ProblemBody, TestClient } from '../support/client.ts';
import {
  recordFactory,
  type BulkReport,
  type InventoryRecord,
  type RecordPage,
  type Validation,
  type WriteProblem,
} from '../support/inventory.ts';
import { admin, createUser, type Page } from '../support/users.ts';

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
  const inner = await own('prefixes', { cidr: `10.${network}.9.0/24`, siteId: far.id });
  await own('prefixes', { cidr: `10.${network}.16.0/24`, siteId: far.id });
  return { tenantId, own, region, site, far, rack, device, port, vrf, group, vlan, prefix, inner };
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
      // It begins where the prefix of the other site does.
      ['prefixes', { cidr: '10.1.16.0/22', siteId }],
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

/** The records of red that hang on what blue owns, by the reference. */
const tiesTo = (
  blueSide: Side,
  target: { port: string },
): [resource: string, field: string, record: Record<string, unknown>][] => [
  ['sites', 'regionId', { name: name(), regionId: blueSide.region.id }],
  ['regions', 'parentId', { name: name(), parentId: blueSide.region.id }],
  ['racks', 'siteId', { name: name(), siteId: blueSide.site.id }],
  ['vlan-groups', 'siteId', { name: name(), siteId: blueSide.site.id }],
  ['vlans', 'siteId', { name: name(), vid: 12, siteId: blueSide.site.id }],
  ['vlans', 'groupId', { name: name(), vid: 13, groupId: blueSide.group.id }],
  ['prefixes', 'siteId', { cidr: '10.60.0.0/24', siteId: blueSide.site.id }],
  ['prefixes', 'vlanId', { cidr: '10.61.0.0/24', vlanId: blueSide.vlan.id }],
  [
    'prefixes',
    'vrfId',
    { cidr: '10.62.0.0/24', vrfId: blueSide.vrf.id, allocationMode: 'dynamic' },
  ],
  [
    'ip-ranges',
    'vrfId',
    { startAddress: '10.2.0.1', endAddress: '10.2.0.9', vrfId: blueSide.vrf.id },
  ],
  ['ip-addresses', 'vrfId', { address: '10.2.0.50', vrfId: blueSide.vrf.id }],
  ['ip-addresses', 'interfaceId', { address: '10.63.0.1', interfaceId: target.port }],
  [
    'devices',
    'rackId',
    {
      name: name(),
      siteId: blueSide.site.id,
      rackId: blueSide.rack.id,
      position: 5,
      face: 'front',
      deviceTypeId,
    },
  ],
];

describe('to tie a record needs a right on what is tied', () => {
  test('reading another tenant is not enough for any reference, by id or by name', async () => {
    const port = (await blue.port(blue.device)).id;
    const own = (await red.port(red.device)).id;
    for (const [resource, field, record] of [
      ...tiesTo(blue, { port }),
      ['cables', 'bInterfaceId', { aInterfaceId: own, bInterfaceId: port }],
      ['cables', 'aInterfaceId', { aInterfaceId: port, bInterfaceId: own }],
      ['interfaces', 'vrfId', { deviceId: red.device.id, name: name(), vrfId: blue.vrf.id }],
      [
        'interfaces',
        'untaggedVlanId',
        { deviceId: red.device.id, name: name(), mode: 'access', untaggedVlanId: blue.vlan.id },
      ],
    ] as ReturnType<typeof tiesTo>) {
      const refused = await everyDoor(mallory.atTenant, resource, {
        tenantId: 'red',
        ...record,
        ...(resource === 'interfaces' && { tenantId: undefined }),
      });
      expect([resource, field, refused]).toEqual([resource, field, REFUSED]);
    }
    // An existing record is not tied up later, nor moved into another tenant with what it is tied to.
    const site = await red.own('sites', { name: name(), regionId: red.region.id });
    const change = { id: site.id, regionId: blue.region.id };
    expect(await everyDoor(mallory.atTenant, 'sites', change)).toEqual(REFUSED);
    await mallory.atTenant
      .post<ProblemBody>(paths('sites'), {
        name: name(),
        tenantId: 'red',
        regionId: { name: 'region' },
      })
      .expect(201)
      .then((made) => expect(made).toMatchObject({ regionId: red.region.id }));
    const blueWriter = { roleId: 'operator', tenantId: 'blue' };
    const { client } = await createUser(app, blueWriter, { roleId: 'viewer', tenantId: 'red' });
    expect((await client.put(`${paths('sites')}/${blue.far.id}`, { tenantId: 'red' })).status).toBe(
      403,
    );
  });

  test('a share of its owner lets the tenant read that record and refer to it', async () => {
    const side = await createSide('green', 3);
    const { client } = await createUser(app, { roleId: 'operator', tenantId: 'red' });
    const outsider = await createUser(app, { roleId: 'operator', tenantId: 'blue' });
    const port = await side.port(side.device);
    const sharedRecords = [
      ['regions', side.region],
      ['sites', side.site],
      ['racks', side.rack],
      ['interfaces', port],
      ['vrfs', side.vrf],
      ['vlan-groups', side.group],
      ['vlans', side.vlan],
    ] as const;
    for (const [resource, { id }] of sharedRecords) {
      const path = `${paths(resource)}/${id}`;
      expect((await client.get(path)).status).toBe(404);
      await root.put(path, { sharedWith: ['red', 'yellow'] }).expect(200);
      const seen = await client.get<InventoryRecord>(path).expect(200);
      expect([seen.id, seen.sharedWith]).toEqual([id, ['red']]);
      expect((await outsider.client.get(path)).status).toBe(404);
      // The record alone: neither its history nor a right to change it, and no list without asking.
      expect((await client.get(`${path}/changes`)).status).toBe(404);
      const denied = await client.put<ProblemBody>(path, { description: 'x' }).expect(403);
      expect(denied.detail).not.toMatch(/green/);
      const mutation = { resource, operation: 'update', record: { id, description: 'x' } };
      const asked = client.post<ProblemBody>('/api/validation/inventory', mutation);
      const { detail } = await asked.expect(403);
      expect(detail).toMatch(/^Permission inventory:read is missing at (?!.*(?:yellow|green))/);
      const list = async (query: string) =>
        (await client.get<RecordPage>(`${paths(resource)}?limit=200${query}`).expect(200)).items;
      expect((await list('')).map((row) => row.id)).not.toContain(id);
      expect((await list('&shared=true')).map((row) => [row.id, row.sharedWith])).toEqual([
        [id, ['red']],
      ]);
    }
    const made: [string, InventoryRecord][] = [];
    for (const [resource, , record] of tiesTo(side, { port: port.id }))
      made.push([
        resource,
        await client
          .post<InventoryRecord>(paths(resource), { tenantId: 'red', ...record })
          .expect(201),
      ]);
    const own = (await red.port(red.device)).id;
    await client
      .post(paths('cables'), { tenantId: 'red', aInterfaceId: own, bInterfaceId: port.id })
      .expect(201);
    for (const [resource, field, record] of tiesTo(side, { port: port.id }))
      expect([
        resource,
        field,
        (await outsider.client.post(paths(resource), { tenantId: 'blue', ...record })).status,
      ]).toEqual([resource, field, 400]);
    await ownerRemoves(side, port, made);
  });

  test('names of records that another tenant shares refer to nothing', async () => {
    await blue.own('regions', { name: 'squatted', sharedWith: ['*'] });
    const { client } = await createUser(app, { roleId: 'operator', tenantId: 'red' });
    const byName = { name: name(), tenantId: 'red', regionId: { name: 'squatted' } };
    await client.post(paths('sites'), byName).expect(400);
    const platform = await make('regions', {
      name: 'world',
      tenantId: 'platform',
      sharedWith: ['*'],
    });
    expect(
      await client
        .post<InventoryRecord>(paths('sites'), { ...byName, regionId: { name: 'world' } })
        .expect(201),
    ).toMatchObject({ regionId: platform.id });
  });
});

/** The owner may change and delete everything that records of red hang on. */
async function ownerRemoves(side: Side, port: InventoryRecord, made: [string, InventoryRecord][]) {
  const { client } = await createUser(app, { roleId: 'operator', tenantId: side.tenantId });
  const audited = admin(app);
  const of = (resource: string) =>
    made.filter(([each]) => each === resource).map(([, { id }]) => id);
  const current = async (resource: string, id: string) =>
    (await root.get<InventoryRecord>(`${paths(resource)}/${id}`)).body;
  const silent = (body: unknown) =>
    expect(JSON.stringify(body)).not.toMatch(/"red"|tenant red|sit_|10\.6/);

  await client.put(`${paths('interfaces')}/${port.id}`, { kind: 'virtual' }).expect(200);
  const removal = await client.delete<WriteProblem>(`${paths('devices')}/${side.device.id}`);
  expect(removal.status).toBe(204);
  const [onPort] = of('ip-addresses').slice(-1);
  expect((await current('ip-addresses', String(onPort))).interfaceId).toBeNull();

  const inRack = of('devices')[0];
  await client.delete(`${paths('racks')}/${side.rack.id}`).expect(204);
  expect(await current('devices', String(inRack))).toMatchObject({
    rackId: null,
    position: null,
    face: null,
  });
  // The log and the events of the other tenant have the change, without the name of who made it.
  const { items } = await audited
    .get<Page<Record<string, unknown>>>(`/api/audit?tenantId=red&subjectId=${String(inRack)}`)
    .expect(200);
  expect(items[0]).toMatchObject({
    actorId: 'other-tenant',
    action: 'inventory.device.update',
    address: null,
  });
  const emitted = await app.deps.db('events').where({ subject_id: inRack }).orderBy('id', 'desc');
  expect(emitted[0]).toMatchObject({
    type: 'inventory.device.updated',
    tenant_id: 'red',
    actor_id: 'other-tenant',
  });

  await client.delete(`${paths('vlans')}/${side.vlan.id}`).expect(204);
  await client.delete(`${paths('vlan-groups')}/${side.group.id}`).expect(204);
  // What cannot exist without the record is deleted only when the owner asks for it.
  for (const { id } of [side.inner, side.prefix])
    await client.delete(`${paths('prefixes')}/${id}`).expect(204);
  for (const [resource, { id }] of [
    ['vrfs', side.vrf],
    ['sites', side.site],
  ] as const) {
    const path = `${paths(resource)}/${id}`;
    const refused = await client.delete<WriteProblem>(path).expect(409);
    expect(refused.conflicts.every(({ code }) => code === 'in_use')).toBe(true);
    silent(refused);
    const asked = await client.post<Validation>('/api/validation/inventory', {
      resource,
      operation: 'delete',
      record: { id, evict: true },
    });
    expect(asked.status).toBe(200);
    expect(asked.body.validation.warnings.map(({ code }) => code)).toEqual(['others_detached']);
    expect(asked.body.effects.map((effect) => effect.id)).toEqual([id]);
  }
  await client.put(`${paths('vrfs')}/${side.vrf.id}`, { evict: true, sharedWith: [] }).expect(200);
  await client.delete(`${paths('vrfs')}/${side.vrf.id}`).expect(204);
  await client.delete(`${paths('sites')}/${side.site.id}?evict=true`).expect(204);
  await client.delete(`${paths('regions')}/${side.region.id}`).expect(204);
  for (const resource of ['ip-ranges', 'devices', 'racks'])
    for (const id of of(resource))
      expect([id, (await root.get(`${paths(resource)}/${id}`)).status]).toEqual([id, 404]);
  const left = await Promise.all(
    of('prefixes').map(async (id) => (await root.get(`${paths('prefixes')}/${id}`)).status),
  );
  expect(left).toEqual([200, 200, 404]);
  for (const kept of of('sites')) expect((await current('sites', kept)).regionId).toBeNull();
}

const LDAP_PROVIDER = {
  kind: 'ldap',
  name: 'Directory',
  config: {
    url: 'ldaps://ldap.example.net',
    bindDn: 'cn=holdfast,dc=example,dc=net',
    bindPassword: 'secret',
    userBaseDn: 'ou=people,dc=example,dc=net',
    groupBaseDn: 'ou=groups,dc=example,dc=net',
  },
};

describe('rights do not travel', () => {
  test('role assignments and mappings stay behind when a site or a device moves', async () => {
    const provider = await root
      .post<{ id: string }>('/api/auth/providers', LDAP_PROVIDER)
      .expect(201);
    const site = await red.own('sites', { name: name() });
    const device = await red.own('devices', { name: name(), siteId: site.id, deviceTypeId });
    const friend = await createUser(app, { roleId: 'platform-admin', siteId: site.id });
    const other = await createUser(app, { roleId: 'operator', deviceId: device.id });
    await root
      .post('/api/rbac/provider-mappings', {
        providerId: provider.id,
        externalGroup: 'g',
        roleId: 'operator',
        siteId: site.id,
      })
      .expect(201);
    const operator = await createUser(
      app,
      { roleId: 'operator', tenantId: 'red' },
      { roleId: 'operator', tenantId: 'blue' },
    );
    for (const [resource, id] of [
      ['sites', site.id],
      ['devices', device.id],
    ] as const) {
      const refused = await everyDoor(operator.client, resource, { id, tenantId: 'blue' });
      expect(refused).toEqual(REFUSED);
    }
    await friend.client.put(`${paths('sites')}/${site.id}`, { description: 'mine' }).expect(200);
    const mover = await createUser(
      app,
      { roleId: 'platform-admin', tenantId: 'red' },
      { roleId: 'operator', tenantId: 'blue' },
    );
    await mover.client.put(`${paths('sites')}/${site.id}`, { tenantId: 'blue' }).expect(200);
    await mover.client.put(`${paths('devices')}/${device.id}`, { tenantId: 'blue' }).expect(200);
    for (const [{ client }, resource, id] of [
      [friend, 'sites', site.id],
      [other, 'devices', device.id],
    ] as const) {
      expect((await client.get(`${paths(resource)}/${id}`)).status).toBe(403);
      expect((await client.put(`${paths(resource)}/${id}`, { description: 'x' })).status).toBe(403);
    }
    const rows = await app.deps
      .db('grants')
      .where({ site_id: site.id })
      .orWhere({ device_id: device.id });
    expect(rows).toEqual([]);
    const { items } = await root
      .get<Page<{ action: string; tenantId: string }>>(
        `/api/audit?actorId=${mover.id}&tenantId=red`,
      )
      .expect(200);
    expect(items.map(({ action }) => action).sort()).toEqual(
      expect.arrayContaining(['assignment.delete', 'assignment.delete', 'mapping.delete']),
    );
  });
});

describe('a right at a site is none over devices that another tenant has there', () => {
  type Grant = { id: string; siteId: string | null };
  const providerId = (() => {
    let made: Promise<{ id: string }> | undefined;
    return async () =>
      (
        await (made ??= root
          .post<{ id: string }>('/api/auth/providers', { ...LDAP_PROVIDER, name: 'sites' })
          .expect(201)
          .then((body) => body))
      ).id;
  })();
  const assignmentOf = (userId: string, deviceId: string) => ({
    ...{ userId, deviceId, roleId: 'viewer' },
  });
  const mappingOf = async (deviceId: string) => ({
    ...{ providerId: await providerId(), externalGroup: name(), roleId: 'viewer', deviceId },
  });
  const requestAt = (scope: object) => ({ ...assignedToApprovers, title: 'x', ...scope });
  const GRANTS = ['/api/rbac/assignments', '/api/rbac/provider-mappings'];

  /** What the owner of the site, with every right there, finds of grants and requests. */
  async function expectHidden(client: TestClient, ids: { grants: string[]; requests: string[] }) {
    for (const [i, id] of ids.grants.entries()) {
      const path = GRANTS[i] ?? '';
      expect((await client.get(`${path}/${id}`)).status).toBe(404);
      expect((await client.delete(`${path}/${id}`)).status).toBe(404);
      const { items } = await client.get<Page<Grant>>(path).expect(200);
      expect(items.map((item) => item.id)).not.toContain(id);
    }
    for (const id of ids.requests) {
      expect((await client.get(`/api/workflows/${id}`)).status).toBe(404);
      for (const verb of ['approve', 'reject', 'cancel'])
        expect((await client.post(`/api/workflows/${id}/${verb}`, {})).status).toBe(404);
    }
    const { items } = await client.get<Page<Grant>>('/api/workflows').expect(200);
    expect(items.map(({ id }) => id).filter((id) => ids.requests.includes(id))).toEqual([]);
  }

  test('neither to grant, map, explain, request and decide, nor over what its tenant granted', async () => {
    const site = await red.own('sites', { name: name(), sharedWith: ['blue'] });
    const device = await blue.own('devices', { name: name(), siteId: site.id, deviceTypeId });
    const lord = await createUser(app, { roleId: 'platform-admin', siteId: site.id });
    const owner = await createUser(app, { roleId: 'platform-admin', tenantId: 'blue' });
    for (const scope of [{ deviceId: device.id }, { deviceId: device.id, siteId: site.id }]) {
      for (const [path, body] of [
        [GRANTS[0], assignmentOf(lord.id, device.id)],
        [GRANTS[1], await mappingOf(device.id)],
        ['/api/workflows', requestAt(scope)],
      ] as const)
        expect([path, (await lord.client.post(path ?? '', { ...body, ...scope })).status]).toEqual([
          path,
          400,
        ]);
    }
    const explain = `/api/rbac/explain?userId=${owner.id}&permission=inventory:read&deviceId=${device.id}`;
    expect((await lord.client.get(explain)).status).toBe(400);
    expect((await owner.client.get<{ allowed: boolean }>(explain).expect(200)).allowed).toBe(true);
    const of = `/api/rbac/explain?userId=${lord.id}&permission=inventory:write&deviceId=${device.id}`;
    expect((await owner.client.get<{ allowed: boolean }>(of).expect(200)).allowed).toBe(false);

    const made = async (path: string | undefined, body: object) =>
      owner.client.post<Grant>(path ?? '', body).expect(201);
    const both = { siteId: site.id, deviceId: device.id };
    const grants = [
      await made(GRANTS[0], { ...assignmentOf(owner.id, device.id), ...both }),
      await made(GRANTS[1], { ...(await mappingOf(device.id)), ...both }),
    ];
    const requests = [await made('/api/workflows', requestAt(both))];
    expect([...grants, ...requests].map(({ siteId }) => siteId)).toEqual([null, null, null]);
    const ids = { grants: grants.map(({ id }) => id), requests: requests.map(({ id }) => id) };
    await expectHidden(lord.client, ids);

    // Moves of the device within its tenant keep to the rule.
    const move = (siteId: string) =>
      root.put(`${paths('devices')}/${device.id}`, { siteId }).expect(200);
    await move(blue.site.id);
    const grantedAt = async () =>
      (await app.deps.db('grants').where({ device_id: device.id }).pluck('site_id')) as unknown;
    expect(await grantedAt()).toEqual([blue.site.id, blue.site.id]);
    await move(site.id);
    expect(await grantedAt()).toEqual([null, null]);
    await expectHidden(lord.client, ids);
  });

  test('nor when the site or the device comes to that tenant later', async () => {
    const site = await blue.own('sites', { name: name() });
    const device = await blue.own('devices', { name: name(), siteId: site.id, deviceTypeId });
    const owner = await createUser(app, { roleId: 'platform-admin', tenantId: 'blue' });
    const made = (path: string | undefined, body: object) =>
      owner.client.post<Grant>(path ?? '', body).expect(201);
    const grants = [
      await made(GRANTS[0], assignmentOf(owner.id, device.id)),
      await made(GRANTS[1], await mappingOf(device.id)),
    ];
    expect(grants.map(({ siteId }) => siteId)).toEqual([site.id, site.id]);
    const requests = [
      await made('/api/workflows', requestAt({ siteId: site.id })),
      await made('/api/workflows', requestAt({ deviceId: device.id })),
    ];
    const ids = { grants: grants.map(({ id }) => id), requests: requests.map(({ id }) => id) };
    await root.put(`${paths('sites')}/${site.id}`, { tenantId: 'red' }).expect(200);
    const lord = await createUser(app, { roleId: 'platform-admin', siteId: site.id });
    await expectHidden(lord.client, ids);
    await root.put(`${paths('sites')}/${site.id}`, { tenantId: 'blue' }).expect(200);
    const warden = await createUser(app, { roleId: 'platform-admin', siteId: site.id });
    for (const id of ids.requests) await warden.client.get(`/api/workflows/${id}`).expect(200);
    for (const [i, id] of ids.grants.entries())
      await warden.client.get(`${GRANTS[i] ?? ''}/${id}`).expect(200);

    await root.put(`${paths('devices')}/${device.id}`, { tenantId: 'red' }).expect(200);
    const keeper = await createUser(app, { roleId: 'platform-admin', deviceId: device.id });
    await expectHidden(keeper.client, { grants: [], requests: ids.requests });
    for (const id of ids.requests) await owner.client.get(`/api/workflows/${id}`).expect(200);
  });
});
