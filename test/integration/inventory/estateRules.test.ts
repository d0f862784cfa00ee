import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import {
  attemptFactory,
  recordFactory,
  type BulkReport,
  type InventoryRecord,
  type RecordPage,
} from '../../support/inventory.ts';
import { admin, type Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
const make = recordFactory(() => root);
const attempt = attemptFactory(() => root);
let site: InventoryRecord;
let elsewhere: InventoryRecord;
let one: InventoryRecord;
let two: InventoryRecord;
let flat: InventoryRecord;
let half: InventoryRecord;

beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
  site = await make('sites', { name: 'ams1' });
  elsewhere = await make('sites', { name: 'fra1' });
  await make('manufacturers', { name: 'Acme' });
  const type = (model: string, uHeight: number, fullDepth = true) =>
    make('device-types', { manufacturerId: { name: 'Acme' }, model, uHeight, fullDepth });
  [one, two, flat, half] = [
    await type('one', 1),
    await type('two', 2),
    await type('flat', 0),
    await type('half', 1, false),
  ];
});
afterAll(() => app.stop());

let made = 0;
const name = () => `n${made++}`;
const device = (more: object = {}) =>
  make('devices', { name: name(), siteId: site.id, deviceTypeId: one.id, ...more });
const port = async (more: object = {}, on?: InventoryRecord) =>
  make('interfaces', { deviceId: (on ?? (await device())).id, name: name(), ...more });

describe('racks', () => {
  test('a device fits its rack: height, face, free units', async () => {
    const rack = await make('racks', { name: name(), siteId: site.id, uHeight: 4 });
    const mount = (more: object) =>
      attempt('devices', {
        name: name(),
        siteId: site.id,
        deviceTypeId: two.id,
        rackId: rack.id,
        face: 'front',
        ...more,
      });
    expect((await mount({ position: 4 })).found).toEqual(['/position exceeds_rack_height']);
    expect((await mount({ position: 1, face: null })).found).toEqual(['/face required']);
    expect((await mount({ position: 1, rackId: null })).found).toEqual(['/position rack_required']);
    expect((await mount({ position: 1, deviceTypeId: flat.id })).found).toEqual([
      '/position not_rack_mountable',
    ]);
    const first = await mount({ position: 2 });
    expect(first.status).toBe(201);
    expect((await mount({ position: 3, face: 'rear' })).conflicts).toMatchObject([
      { code: 'rack_units_occupied', id: first.body.id },
    ]);
    expect((await mount({ position: 1 })).found).toEqual(['/position rack_units_occupied']);
    for (const face of ['front', 'rear'])
      expect((await mount({ position: 4, face, deviceTypeId: half.id })).status).toBe(201);
    expect((await mount({ position: 4, deviceTypeId: half.id })).found).toEqual([
      '/position rack_units_occupied',
    ]);
    expect((await attempt('devices', { id: first.body.id, position: 1 }, 'update')).status).toBe(
      200,
    );
  });
  test('a rack does not shrink below its devices, and does not leave its site with them', async () => {
    const rack = await make('racks', { name: name(), siteId: site.id, uHeight: 10 });
    const mounted = await device({
      rackId: rack.id,
      position: 8,
      face: 'front',
      deviceTypeId: two.id,
    });
    expect((await attempt('racks', { id: rack.id, uHeight: 8 }, 'update')).conflicts).toMatchObject(
      [{ code: 'in_use', id: mounted.id }],
    );
    expect((await attempt('racks', { id: rack.id, uHeight: 9 }, 'update')).status).toBe(200);
    expect((await attempt('racks', { id: rack.id, siteId: elsewhere.id }, 'update')).found).toEqual(
      ['- in_use'],
    );
    expect(
      (await attempt('devices', { id: mounted.id, siteId: elsewhere.id }, 'update')).found,
    ).toEqual(['/rackId other_site']);
  });
  test('a device type does not grow into other devices', async () => {
    const grown = await make('device-types', {
      manufacturerId: { name: 'Acme' },
      model: name(),
      uHeight: 1,
    });
    const rack = await make('racks', { name: name(), siteId: site.id, uHeight: 3 });
    const lower = await device({
      rackId: rack.id,
      position: 1,
      face: 'front',
      deviceTypeId: grown.id,
    });
    expect((await attempt('device-types', { id: grown.id, uHeight: 3 }, 'update')).status).toBe(
      200,
    );
    await attempt('device-types', { id: grown.id, uHeight: 1 }, 'update');
    await device({ rackId: rack.id, position: 2, face: 'front' });
    expect(
      (await attempt('device-types', { id: grown.id, uHeight: 2 }, 'update')).conflicts,
    ).toMatchObject([{ code: 'in_use', id: lower.id }]);
  });
  test('a device type changes its height and depth together, whatever the order of its devices', async () => {
    for (const mounts of [
      [
        [1, 'front'],
        [2, 'rear'],
      ],
      [
        [2, 'rear'],
        [1, 'front'],
      ],
    ] as const) {
      const rack = await make('racks', { name: name(), siteId: site.id, uHeight: 3 });
      const type = { manufacturerId: { name: 'Acme' }, model: name() };
      const { id } = await make('device-types', { ...type, uHeight: 2, fullDepth: false });
      for (const [position, face] of mounts)
        await device({ rackId: rack.id, position, face, deviceTypeId: id });
      const change = (uHeight: number, fullDepth: boolean) =>
        attempt('device-types', { id, uHeight, fullDepth }, 'update');
      expect((await change(1, true)).status).toBe(200);
      const units = await app.deps.db('devices').where({ rack_id: rack.id }).pluck('units');
      expect(units.sort()).toEqual(['[1,2)', '[2,3)']);
      expect((await change(2, false)).status).toBe(200);
    }
  });
});

describe('facilities', () => {
  test('regions and locations form no cycles', async () => {
    for (const [resource, more] of [
      ['regions', {}],
      ['locations', { siteId: site.id }],
    ] as const) {
      const a = await make(resource, { name: name(), ...more });
      const b = await make(resource, { name: name(), parentId: a.id, ...more });
      const c = await make(resource, { name: name(), parentId: b.id, ...more });
      for (const parentId of [a.id, b.id, c.id])
        expect((await attempt(resource, { id: a.id, parentId }, 'update')).found).toEqual([
          '/parentId cycle',
        ]);
      expect((await attempt(resource, { id: c.id, parentId: a.id }, 'update')).status).toBe(200);
    }
  });
  test('a location, its racks and its devices belong to one site', async () => {
    const hall = await make('locations', { name: name(), siteId: site.id });
    expect(
      (await attempt('racks', { name: name(), siteId: elsewhere.id, locationId: hall.id })).found,
    ).toEqual(['/locationId other_site']);
    expect(
      (
        await attempt('devices', {
          name: name(),
          siteId: elsewhere.id,
          locationId: hall.id,
          deviceTypeId: one.id,
        })
      ).found,
    ).toEqual(['/locationId other_site']);
    await make('racks', { name: name(), siteId: site.id, locationId: hall.id });
    expect(
      (await attempt('locations', { id: hall.id, siteId: elsewhere.id }, 'update')).found,
    ).toEqual(['- in_use']);
  });
});

describe('interfaces and cables', () => {
  test('a cable connects two interfaces without a cable', async () => {
    const [a, b, c] = [await port(), await port(), await port()];
    const cable = await make('cables', { aInterfaceId: a.id, bInterfaceId: b.id });
    expect(
      (await attempt('cables', { aInterfaceId: c.id, bInterfaceId: a.id })).conflicts,
    ).toMatchObject([{ code: 'already_cabled', id: cable.id }]);
    expect((await attempt('cables', { aInterfaceId: c.id, bInterfaceId: c.id })).found).toEqual([
      '/bInterfaceId same_interface',
    ]);
    expect(
      (
        await attempt('cables', {
          aInterfaceId: c.id,
          bInterfaceId: (await port({ kind: 'virtual' })).id,
        })
      ).found,
    ).toEqual(['/bInterfaceId not_cableable']);
    expect((await attempt('cables', { id: cable.id, bInterfaceId: c.id }, 'update')).status).toBe(
      200,
    );
    expect(
      (await attempt('cables', { aInterfaceId: b.id, bInterfaceId: (await port()).id })).status,
    ).toBe(201);
    expect((await attempt('interfaces', { id: a.id, kind: 'virtual' }, 'update')).found).toEqual([
      '/kind in_use',
    ]);
  });
  test('a member and its LAG are on one device', async () => {
    const sw = await device();
    const [lag, plain, far] = [
      await port({ kind: 'lag' }, sw),
      await port({}, sw),
      await port({ kind: 'lag' }),
    ];
    expect(
      (await attempt('interfaces', { deviceId: sw.id, name: name(), lagId: far.id })).found,
    ).toEqual(['/lagId other_device']);
    expect(
      (await attempt('interfaces', { deviceId: sw.id, name: name(), lagId: plain.id })).found,
    ).toEqual(['/lagId not_a_lag']);
    expect((await attempt('interfaces', { id: lag.id, lagId: lag.id }, 'update')).found).toEqual([
      '/lagId cycle',
    ]);
    await make('interfaces', { deviceId: sw.id, name: name(), lagId: lag.id });
    expect((await attempt('interfaces', { id: lag.id, kind: 'copper' }, 'update')).found).toEqual([
      '/kind in_use',
    ]);
    expect(
      (await attempt('interfaces', { id: plain.id, deviceId: far.deviceId }, 'update')).found,
    ).toEqual(['/deviceId immutable']);
  });
  test('one primary address per family, which belongs to the device', async () => {
    const sw = await device();
    const eth = await port({}, sw);
    const v4 = await make('ip-addresses', { address: '10.0.0.5', interfaceId: eth.id });
    const loose = await make('ip-addresses', { address: '10.0.0.6' });
    expect(
      (await attempt('devices', { id: sw.id, primaryIp4Id: loose.id }, 'update')).found,
    ).toEqual(['/primaryIp4Id not_on_device']);
    expect((await attempt('devices', { id: sw.id, primaryIp6Id: v4.id }, 'update')).found).toEqual([
      '/primaryIp6Id other_family',
    ]);
    expect((await attempt('devices', { id: sw.id, primaryIp4Id: v4.id }, 'update')).status).toBe(
      200,
    );
    for (const more of [
      { interfaceId: null },
      { interfaceId: (await port()).id },
      { address: '2001:db8::5' },
    ]) {
      expect(
        (await attempt('ip-addresses', { id: v4.id, ...more }, 'update')).conflicts,
      ).toMatchObject([{ code: 'primary_address', id: sw.id }]);
    }
    expect((await attempt('ip-addresses', { id: v4.id }, 'delete')).conflicts).toMatchObject([
      { code: 'in_use', id: sw.id },
    ]);
    expect((await attempt('interfaces', { id: eth.id }, 'delete')).conflicts).toMatchObject([
      { code: 'in_use', id: sw.id },
    ]);
  });
  test('deleting a device deletes its interfaces and clears its addresses', async () => {
    const sw = await device();
    const eth = await port({}, sw);
    const address = await make('ip-addresses', { address: '10.0.1.5', interfaceId: eth.id });
    await attempt('devices', { id: sw.id, primaryIp4Id: address.id }, 'update');
    const cable = await make('cables', { aInterfaceId: eth.id, bInterfaceId: (await port()).id });
    const { status, effects } = await attempt('devices', { id: sw.id }, 'delete');
    expect([
      status,
      effects.map(({ action, resource, id, reason }) => [action, resource, id, reason]),
    ]).toEqual([
      204,
      [
        ['delete', 'devices', sw.id, 'requested'],
        ['delete', 'interfaces', eth.id, 'cascade'],
        ['delete', 'cables', cable.id, 'cascade'],
        ['update', 'ip-addresses', address.id, 'reference_cleared'],
      ],
    ]);
    expect((await root.get(`/api/inventory/ip-addresses/${address.id}`)).body).toMatchObject({
      interfaceId: null,
      deviceId: null,
      version: 2,
    });
    const { items } = await root
      .get<Page<{ action: string }>>(`/api/inventory/cables/${cable.id}/changes`)
      .expect(200);
    expect(items.map(({ action }) => action)).toEqual(['delete', 'create']);
  });
});

describe('VLANs', () => {
  test('id and name are unique in the group, and the id is in its range', async () => {
    const group = await make('vlan-groups', { name: name(), minVid: 100, maxVid: 199 });
    const vlan = await make('vlans', { vid: 100, name: 'a', groupId: group.id });
    expect(
      (await attempt('vlans', { vid: 100, name: 'b', groupId: group.id })).conflicts,
    ).toMatchObject([{ code: 'duplicate', id: vlan.id }]);
    expect((await attempt('vlans', { vid: 101, name: 'a', groupId: group.id })).found).toEqual([
      '/name duplicate',
    ]);
    expect((await attempt('vlans', { vid: 200, name: 'c', groupId: group.id })).found).toEqual([
      '/vid outside_group',
    ]);
    expect((await attempt('vlans', { vid: 100, name: 'a' })).status).toBe(201);
    expect(
      (await attempt('vlan-groups', { id: group.id, minVid: 101 }, 'update')).conflicts,
    ).toMatchObject([{ code: 'in_use', id: vlan.id }]);
    expect((await attempt('vlan-groups', { id: group.id, minVid: 200 }, 'update')).found).toEqual([
      '/maxVid range_reversed',
      '- in_use',
    ]);
  });
});

describe('custom fields and tags', () => {
  test('the custom fields of a record have a size, also those that an update leaves', async () => {
    const FIELDS = Array.from({ length: 12 }, (_, i) => `large${i}`);
    for (const field of FIELDS)
      await make('custom-fields', { resource: 'regions', name: field, type: 'text' });
    /** 6,000 bytes in each of these fields. */
    const filled = (fields: readonly string[], letter = '€') =>
      Object.fromEntries(fields.map((field) => [field, letter.repeat(2_000)]));
    const tooLarge = ['/customFields size'];
    expect(
      (await attempt('regions', { name: name(), customFields: filled(FIELDS) })).found,
    ).toEqual(tooLarge);
    const { id } = await make('regions', { name: name(), customFields: filled(FIELDS.slice(2)) });
    const update = async (fields: object) => attempt('regions', { id, ...fields }, 'update');
    expect((await update({ customFields: filled(['large0']) })).found).toEqual(tooLarge);
    const bulk = await root
      .post<BulkReport>('/api/inventory/bulk', {
        mutations: [
          {
            ...{ resource: 'regions', operation: 'update' },
            record: { id, customFields: filled(['large0']) },
          },
        ],
      })
      .expect(400);
    expect(bulk).toMatchObject({ errors: [{ code: 'size' }] });

    // As a release without this limit has stored it.
    await app.deps
      .db('regions')
      .where({ id })
      .update({ custom_fields: JSON.stringify(filled(FIELDS)) });
    expect((await update({ description: 'large' })).body).toMatchObject({
      description: 'large',
      customFields: filled(FIELDS),
    });
    expect((await update({ customFields: filled(['large0'], '¢') })).status).toBe(200);
    expect((await update({ customFields: filled(['large0']) })).found).toEqual(tooLarge);
    expect((await update({ customFields: { large0: null } })).status).toBe(200);
    expect((await update({ customFields: { large1: null } })).status).toBe(200);
    expect((await update({ customFields: filled(['large1'], 'x') })).status).toBe(200);
  });
  test('custom fields are typed and checked', async () => {
    const define = (field: string, type: string, more: object = {}) =>
      make('custom-fields', { resource: 'racks', name: field, type, ...more });
    await define('owner', 'text');
    await define('power', 'integer', { minimum: 0, maximum: 100 });
    await define('leased', 'boolean');
    await define('since', 'date');
    await define('link', 'url');
    await define('tier', 'choice', { choices: ['gold', 'silver'] });
    await define('zones', 'choices', { choices: ['a', 'b'] });
    const put = (customFields: object) =>
      attempt('racks', { name: name(), siteId: site.id, customFields });
    const good = {
      owner: 'me',
      power: 7,
      leased: false,
      since: '2026-02-28',
      link: 'https://example.net/x',
      tier: 'gold',
      zones: ['a', 'b'],
    };
    expect((await put(good)).body.customFields).toEqual(good);
    const bad = {
      owner: 5,
      power: 101,
      leased: 'yes',
      since: '2026-02-30',
      link: 'javascript:1',
      tier: 'bronze',
      zones: ['a', 'a'],
      nobody: 1,
      'a/b~c': 1,
    };
    const { found } = await put(bad);
    expect(found.sort()).toEqual(
      [
        ...Object.keys(bad)
          .filter((field) => field !== 'nobody' && field !== 'a/b~c')
          .map((field) => `/customFields/${field} custom_field`),
        '/customFields/nobody unknown_field',
        '/customFields/a~1b~0c unknown_field',
      ].sort(),
    );
    expect((await put({ power: null })).body.customFields).toEqual({});
    const center = await define('cost_center', 'text', { required: true });
    expect((await attempt('racks', { name: name(), siteId: site.id })).found).toEqual([
      '/customFields/cost_center required',
    ]);
    expect((await attempt('custom-fields', { id: center.id }, 'delete')).status).toBe(204);
    expect(
      (await attempt('custom-fields', { resource: 'racks', name: 'owner', type: 'text' })).found,
    ).toEqual(['/name duplicate']);
    expect(
      (await attempt('custom-fields', { resource: 'racks', name: 'bad', type: 'choice' })).found,
    ).toEqual(['/choices choices']);
    for (const [type, bounds, error] of [
      ['text', { maximum: 5 }, '/maximum bounds'],
      ['text', { minimum: 5 }, '/minimum bounds'],
      ['integer', { minimum: 5, maximum: 4 }, '/maximum range_reversed'],
    ] as const)
      expect(
        (await attempt('custom-fields', { resource: 'racks', name: 'bad', type, ...bounds })).found,
      ).toEqual([error]);
    const owners = await root
      .get<RecordPage>('/api/inventory/custom-fields?name=owner')
      .expect(200);
    const owner = assertDefined(owners.items[0], 'owner');
    expect((await attempt('custom-fields', { id: owner.id }, 'delete')).conflicts).toMatchObject([
      { code: 'in_use', resource: 'racks' },
    ]);
    expect((await attempt('custom-fields', { id: owner.id, type: 'url' }, 'update')).found).toEqual(
      ['/type immutable'],
    );
  });
  test("a tenant's definitions hold for its records, the platform's for all", async () => {
    await make('custom-fields', {
      resource: 'vrfs',
      name: 'mine',
      type: 'text',
      tenantId: 'platform',
    });
    await make('tenants', { id: 'acme', name: 'Acme' });
    await make('custom-fields', {
      resource: 'vrfs',
      name: 'theirs',
      type: 'text',
      tenantId: 'acme',
    });
    expect(
      (
        await attempt('vrfs', {
          name: name(),
          tenantId: 'acme',
          customFields: { mine: 'x', theirs: 'y' },
        })
      ).status,
    ).toBe(201);
    expect((await attempt('vrfs', { name: name(), customFields: { theirs: 'y' } })).found).toEqual([
      '/customFields/theirs unknown_field',
    ]);
    expect(
      (
        await attempt('custom-fields', {
          resource: 'vrfs',
          name: 'mine',
          type: 'text',
          tenantId: 'acme',
        })
      ).found,
    ).toEqual(['/name duplicate']);
  });
  test('a tag in use names its users, and lists find by it', async () => {
    await make('tags', { id: 'prod', name: 'Production' });
    const rack = await make('regions', { name: name(), tags: ['prod'] });
    expect((await attempt('tags', { id: 'prod' }, 'delete')).conflicts).toMatchObject([
      { code: 'in_use', resource: 'regions', id: rack.id },
    ]);
    const { items } = await root.get<RecordPage>('/api/inventory/regions?tag=prod').expect(200);
    expect(items.map(({ id }) => id)).toEqual([rack.id]);
    await root.put(`/api/inventory/regions/${rack.id}`, { tags: [] });
    expect((await attempt('tags', { id: 'prod' }, 'delete')).status).toBe(204);
  });
});

describe('a delete in use names the users', () => {
  test('for every reference, and for grants at a site', async () => {
    const rack = await make('racks', { name: name(), siteId: site.id });
    const mounted = await device({ rackId: rack.id });
    const { conflicts, body } = await attempt('racks', { id: rack.id }, 'delete');
    expect([conflicts, body.code]).toEqual([
      [
        {
          pointer: null,
          code: 'in_use',
          message: `is used by device ${mounted.name as string}`,
          resource: 'devices',
          id: mounted.id,
        },
      ],
      'in_use',
    ]);
    expect(body.conflicts).toEqual(conflicts);
    const held = await make('sites', { name: name() });
    const user = await root
      .post<{ id: string }>('/api/users', { username: name(), password: 'correct horse battery' })
      .expect(201);
    const grant = await root
      .post<{ id: string }>('/api/rbac/assignments', {
        userId: user.id,
        roleId: 'viewer',
        siteId: held.id,
      })
      .expect(201);
    expect((await attempt('sites', { id: held.id }, 'delete')).conflicts).toMatchObject([
      { code: 'in_use', resource: 'assignments', id: grant.id },
    ]);
    expect((await attempt('tenants', { id: 'platform' }, 'delete')).found).toContain('- built_in');
  });
});

describe('the database enforces the rules', () => {
  const expectRejected = async (sql: string) =>
    expect(app.deps.db.raw(sql)).rejects.toMatchObject({ code: expect.stringMatching(/^23/) });
  test('constraints reject what the planner rejects', async () => {
    const rack = await make('racks', { name: name(), siteId: site.id, uHeight: 2 });
    const low = await device({ rackId: rack.id, position: 1, face: 'front' });
    const high = await device({ rackId: rack.id });
    await expectRejected(`UPDATE devices SET position = 1, face = 'rear' WHERE id = '${high.id}'`);
    await expectRejected(`UPDATE devices SET position = 3, face = 'rear' WHERE id = '${high.id}'`);
    await expectRejected(`UPDATE devices SET site_id = '${elsewhere.id}' WHERE id = '${low.id}'`);
    await expectRejected(`UPDATE device_types SET u_height = 3 WHERE id = '${one.id}'`);
    await expectRejected(`UPDATE racks SET u_height = 100 + 1 WHERE id = '${rack.id}'`);
    const [a, b] = [await port(), await port()];
    await make('cables', { aInterfaceId: a.id, bInterfaceId: b.id });
    await expectRejected(
      `INSERT INTO cables (id, tenant_id, a_interface_id, b_interface_id, kind, status) VALUES ('cab_x', 'platform', '${b.id}', '${(await port()).id}', 'other', 'planned')`,
    );
    await expectRejected(`UPDATE devices SET primary_ip4_id = 'ipa_none' WHERE id = '${low.id}'`);
    const region = await make('regions', { name: name() });
    const below = await make('regions', { name: name(), parentId: region.id });
    await expectRejected(`UPDATE regions SET parent_id = '${below.id}' WHERE id = '${region.id}'`);
    const wide = await make('prefixes', { cidr: '10.64.0.0/10' });
    const inside = await make('prefixes', { cidr: '10.64.1.0/24' });
    await expectRejected(`UPDATE prefixes SET cidr = '10.128.0.0/10' WHERE id = '${wide.id}'`);
    await expectRejected(`UPDATE prefixes SET cidr = '10.64.0.0/10' WHERE id = '${inside.id}'`);
    await expectRejected(`DELETE FROM prefixes WHERE id = '${wide.id}'`);
    await make('ip-ranges', { startAddress: '10.64.1.10', endAddress: '10.64.1.20' });
    await expectRejected(
      "INSERT INTO ip_ranges (id, tenant_id, start_address, end_address, status) VALUES ('rng_x', 'platform', '10.64.1.15', '10.64.1.30', 'active')",
    );
    await make('ip-addresses', { address: '10.64.1.5', role: 'vip' });
    await expectRejected(
      "INSERT INTO ip_addresses (id, tenant_id, address, status) VALUES ('ipa_x', 'platform', '10.64.1.5/24', 'active')",
    );
    await make('ip-addresses', { address: '10.64.1.6' });
    await expectRejected(
      "INSERT INTO ip_addresses (id, tenant_id, address, status) VALUES ('ipa_y', 'platform', '10.64.1.6', 'active')",
    );
    await expectRejected(
      "INSERT INTO vlans (id, tenant_id, vid, name, status) VALUES ('vln_x', 'platform', 4095, 'x', 'active')",
    );
  });
});
