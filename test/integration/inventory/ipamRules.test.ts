import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import {
  attemptFactory,
  recordFactory,
  type BatchValidation,
  type InventoryRecord,
  type RecordPage,
  type Validation,
} from '../../support/inventory.ts';
import { expectProblem } from '../../support/problem.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
});
afterAll(() => app.stop());

const make = recordFactory(() => root);
const attempt = attemptFactory(() => root);

/** A VRF of each test's own, with 10.0.0.0/8 and 10.1.0.0/16 in it. */
let vrfId: string;
let top: InventoryRecord;
let inner: InventoryRecord;
let made = 0;
beforeEach(async () => {
  vrfId = (await make('vrfs', { name: `vrf-${made++}` })).id;
  top = await make('prefixes', { cidr: '10.0.0.0/8', vrfId, allocationMode: 'pool' });
  inner = await make('prefixes', { cidr: '10.1.0.0/16', vrfId, allocationMode: 'pool' });
});
const prefix = (cidr: string, more: object = {}) => attempt('prefixes', { cidr, vrfId, ...more });
const address = (text: string, more: object = {}) =>
  attempt('ip-addresses', { address: text, vrfId, ...more });
const range = (startAddress: string, endAddress: string) =>
  attempt('ip-ranges', { startAddress, endAddress, vrfId });

describe('400: invalid by itself', () => {
  test.each([
    '10.0.0',
    '10.0.0.0',
    '10.0.0.0/33',
    '010.0.0.0/8',
    '0x0a.0.0.0/8',
    '10.0.0.0/08',
    '2001:db8::/129',
    'fe80::%eth0/64',
    '10.0.0.0/-1',
    ' 10.0.0.0/8',
    '',
  ])('unparsable: %j', async (cidr) => {
    expect((await prefix(cidr)).found).toEqual(['/cidr cidr']);
  });
  test('host bits set: the network meant is suggested', async () => {
    const v4 = await prefix('10.1.2.3/16');
    expect([v4.found, v4.errors[0]?.message]).toEqual([
      ['/cidr host_bits'],
      'has host bits set; suggested: 10.1.0.0/16',
    ]);
    expect((await prefix('2001:DB8::1/32')).errors[0]?.message).toContain('2001:db8::/32');
  });
  test.each([
    ['prefixes', { cidr: '10.9.0.0/16' }],
    ['ip-ranges', { startAddress: '10.9.0.1', endAddress: '10.9.0.2' }],
    ['ip-addresses', { address: '10.9.0.1/16' }],
  ])('a VRF that is no id: %s', async (resource, record) => {
    // More dimensions than an array of PostgreSQL can have.
    const nested: unknown = JSON.parse('['.repeat(10) + ']'.repeat(10));
    for (const noId of [nested, ['a'], [['a'], []], 'a\n'])
      expect((await attempt(resource, { ...record, vrfId: noId })).status).toBe(400);
  });
  test.each(['0.0.0.0/0', '::/0'])('the whole address space: %s', async (cidr) =>
    expect((await prefix(cidr)).found).toEqual(['/cidr zero_length']),
  );
  test('not strictly inside the declared parent', async () => {
    expect((await prefix('11.0.0.0/16', { parentPrefixId: top.id })).found).toEqual([
      '/parentPrefixId not_inside_parent',
    ]);
    expect((await prefix('10.0.0.0/8', { parentPrefixId: top.id })).found).toEqual([
      '/parentPrefixId not_inside_parent',
      '/cidr duplicate',
    ]);
  });
  test('a parent of the other family, and of another VRF', async () => {
    expect((await prefix('2001:db8::/32', { parentPrefixId: top.id })).found).toEqual([
      '/parentPrefixId parent_family',
    ]);
    const other = (await make('vrfs', { name: `other-${made++}` })).id;
    expect(
      (await attempt('prefixes', { cidr: '10.2.0.0/16', vrfId: other, parentPrefixId: top.id }))
        .found,
    ).toEqual(['/parentPrefixId parent_vrf']);
  });
  test('itself, or what is inside it, as the parent', async () => {
    expect(
      (await attempt('prefixes', { id: top.id, parentPrefixId: top.id }, 'update')).found,
    ).toEqual(['/parentPrefixId parent_self']);
    expect(
      (await attempt('prefixes', { id: top.id, parentPrefixId: inner.id }, 'update')).found,
    ).toEqual(['/parentPrefixId cycle']);
  });
  test('all unknown values, unknown fields and wrong types are reported together', async () => {
    const { found } = await prefix('10.2.0.1/16', {
      status: 'lost',
      allocationMode: 'magic',
      siteId: 'sit_none',
      vlanId: 5,
      colour: 'red',
      tags: ['none'],
    });
    expect(found.sort()).toEqual([
      '/allocationMode enum',
      '/cidr host_bits',
      '/colour unknown_field',
      '/siteId not_found',
      '/status enum',
      '/tags/0 not_found',
      '/vlanId type',
    ]);
  });
  test('VLAN ids are 1 to 4094', async () => {
    for (const vid of [0, 4095, 1.5, '7'])
      expect((await attempt('vlans', { vid, name: 'x' })).status).toBe(400);
    for (const vid of [1, 4094])
      expect((await attempt('vlans', { vid, name: 'x' })).status).toBe(201);
  });
  test('a range that ends before it begins, or in the other family', async () => {
    expect((await range('10.1.0.9', '10.1.0.8')).found).toEqual(['/endAddress range_reversed']);
    expect((await range('10.1.0.9', '2001:db8::1')).found).toEqual(['/endAddress range_family']);
    expect((await range('10.1.0.9', '10.1.0.9')).status).toBe(201);
  });
  test('the network and the broadcast address of an IPv4 prefix shorter than /31', async () => {
    expect((await address('10.1.0.0')).found).toEqual(['/address reserved_address']);
    expect((await address('10.1.255.255')).found).toEqual(['/address reserved_address']);
    expect((await address('10.9.9.255/24')).found).toEqual(['/address reserved_address']);
    await make('prefixes', { cidr: '10.1.2.0/31', vrfId });
    await make('prefixes', { cidr: '2001:db8::/64', vrfId });
    for (const free of [
      '10.1.2.0',
      '10.1.2.1',
      '10.1.3.0',
      '2001:db8::',
      '2001:db8::ffff:ffff:ffff:ffff',
    ])
      expect((await address(free)).status).toBe(201);
  });
  test('a reference that is unknown, invisible, or says several', async () => {
    expect((await prefix('10.2.0.0/16', { vlanId: 'vln_none' })).found).toEqual([
      '/vlanId not_found',
    ]);
    const site = await make('sites', { name: `s-${made++}`, tenantId: 'platform' });
    const acme = root.as({ actor: 'ann', roles: 'operator', tenant: 'acme' });
    const { found } = await attemptFactory(() => acme)('prefixes', {
      cidr: '172.16.0.0/12',
      siteId: site.id,
    });
    expect(found).toEqual(['/siteId not_found']);
    for (const name of ['twice', 'twice']) await make('vlans', { vid: 5, name });
    expect((await prefix('10.2.0.0/16', { vlanId: { name: 'twice' } })).found).toEqual([
      '/vlanId ambiguous',
    ]);
  });
});

describe('409: conflicts with other records', () => {
  test('the same prefix, where the VRF enforces uniqueness; the global table does', async () => {
    const again = await prefix('10.1.0.0/16');
    expect([again.found, again.conflicts[0]?.id]).toEqual([['/cidr duplicate'], inner.id]);
    const lax = (await make('vrfs', { name: `lax-${made++}`, enforceUnique: false })).id;
    for (const status of [201, 201])
      expect((await attempt('prefixes', { cidr: '10.0.0.0/8', vrfId: lax })).status).toBe(status);
    expect((await attempt('vrfs', { id: lax, enforceUnique: true }, 'update')).found).toEqual([
      '/enforceUnique duplicate',
    ]);
    expect((await attempt('prefixes', { cidr: '198.18.0.0/15' })).status).toBe(201);
    expect((await attempt('prefixes', { cidr: '198.18.0.0/15' })).found).toEqual([
      '/cidr duplicate',
    ]);
  });
  test('the same address, unless both have a shared role', async () => {
    const first = await make('ip-addresses', { address: '10.1.0.5/24', vrfId, role: 'vrrp' });
    const plain = await address('10.1.0.5');
    expect([plain.found, plain.conflicts[0]?.id]).toEqual([['/address duplicate'], first.id]);
    expect((await address('10.1.0.5', { role: 'loopback' })).found).toEqual(['/address duplicate']);
    for (const role of ['anycast', 'vip', 'vrrp', 'hsrp', 'glbp', 'carp', 'secondary'])
      expect((await address('10.1.0.5', { role })).status).toBe(201);
    expect((await attempt('ip-addresses', { id: first.id, role: null }, 'update')).found).toEqual([
      '/address duplicate',
    ]);
  });
  test('a sibling contains the candidate: the closer parent is named', async () => {
    const { found, conflicts } = await prefix('10.1.2.0/24', { parentPrefixId: top.id });
    expect([found, conflicts[0]?.id]).toEqual([['/parentPrefixId more_specific_parent'], inner.id]);
  });
  test('ranges that partly overlap; one in the other is fine', async () => {
    const first = await make('ip-ranges', {
      startAddress: '10.1.0.10',
      endAddress: '10.1.0.20',
      vrfId,
    });
    expect((await range('10.1.0.15', '10.1.0.25')).conflicts).toMatchObject([
      { code: 'range_overlap', id: first.id },
    ]);
    expect((await range('10.1.0.10', '10.1.0.20')).found).toEqual(['/startAddress duplicate']);
    for (const [start, end] of [
      ['10.1.0.12', '10.1.0.13'],
      ['10.1.0.1', '10.1.0.30'],
      ['10.1.0.31', '10.1.0.31'],
    ] as const)
      expect((await range(start, end)).status).toBe(201);
  });
  test('a delete, a move or a shrink that would orphan addresses', async () => {
    const lone = await make('prefixes', { cidr: '192.0.2.0/24', vrfId });
    const held = await make('ip-addresses', { address: '192.0.2.200', vrfId });
    for (const [operation, more] of [
      ['delete', {}],
      ['update', { cidr: '192.0.2.0/25' }],
      ['update', { cidr: '198.51.100.0/24' }],
      ['update', { vrfId: null }],
    ] as const) {
      expect(
        (await attempt('prefixes', { id: lone.id, ...more }, operation)).conflicts,
      ).toMatchObject([{ code: 'would_orphan_addresses', id: held.id, resource: 'ip-addresses' }]);
    }
    expect(
      (await attempt('prefixes', { id: lone.id, cidr: '192.0.2.128/25' }, 'update')).status,
    ).toBe(200);
    const inInner = await make('ip-addresses', { address: '10.1.0.7', vrfId });
    expect((await attempt('prefixes', { id: inner.id }, 'delete')).status).toBe(204);
    expect((await root.get(`/api/inventory/ip-addresses/${inInner.id}`)).status).toBe(200);
  });
  test('an exhausted prefix', async () => {
    const small = await make('prefixes', { cidr: '10.1.2.0/30', vrfId, allocationMode: 'pool' });
    const next = () =>
      root.post<InventoryRecord>(`/api/inventory/prefixes/${small.id}/allocate`, {
        kind: 'address',
      });
    expect((await next().expect(201)).address).toBe('10.1.2.1/30');
    expect((await next().expect(201)).address).toBe('10.1.2.2/30');
    await expectProblem(next(), 409, 'prefix_exhausted');
  });
  test('a stale version', async () => {
    expect(
      (
        await root.put(
          `/api/inventory/prefixes/${inner.id}`,
          { description: 'x' },
          { 'if-match': '"1"' },
        )
      ).status,
    ).toBe(200);
    expect(
      (
        await root.put(
          `/api/inventory/prefixes/${inner.id}`,
          { description: 'y' },
          { 'if-match': '"1"' },
        )
      ).status,
    ).toBe(412);
    expect(
      (await root.delete(`/api/inventory/prefixes/${inner.id}`, { 'if-match': '"1"' })).status,
    ).toBe(412);
    const { validation } = await root
      .post<Validation>('/api/validation/inventory', {
        resource: 'prefixes',
        operation: 'update',
        record: { id: inner.id, version: 1, description: 'z' },
      })
      .expect(409);
    expect(validation.conflicts[0]?.code).toBe('version_conflict');
  });
  test('an address in a prefix that DHCP owns', async () => {
    const dynamic = await make('prefixes', {
      cidr: '10.1.9.0/24',
      vrfId,
      allocationMode: 'dynamic',
    });
    const { conflicts } = await address('10.1.9.9');
    expect(conflicts).toMatchObject([{ code: 'dynamic_prefix', id: dynamic.id }]);
    await expectProblem(
      root.post(`/api/inventory/prefixes/${dynamic.id}/allocate`, { kind: 'address' }),
      409,
      'allocation_refused',
    );
  });
});

describe('warnings and effects', () => {
  test('a prefix that contains siblings takes them over, and says so', async () => {
    const { warnings, effects, status } = await prefix('10.0.0.0/12');
    expect([status, warnings]).toEqual([201, ['contains_siblings']]);
    expect(effects).toMatchObject([
      { action: 'create', resource: 'prefixes', reason: 'requested', id: null },
      {
        action: 'update',
        id: inner.id,
        reason: 'reparented',
        changes: [{ field: 'parentPrefixId', before: top.id, after: null }],
      },
    ]);
    const { items } = await root
      .get<RecordPage>(`/api/inventory/prefixes?vrfId=${vrfId}&cidr=10.0.0.0/12`)
      .expect(200);
    const between = assertDefined(items[0], '10.0.0.0/12');
    expect((await root.get(`/api/inventory/prefixes/${inner.id}`)).body).toMatchObject({
      parentPrefixId: between.id,
      version: 2,
    });
    expect((await attempt('prefixes', { id: between.id }, 'delete')).effects[1]).toMatchObject({
      id: inner.id,
      reason: 'reparented',
      changes: [{ before: between.id, after: top.id }],
    });
  });
  test('a container with addresses of its own', async () => {
    await make('ip-addresses', { address: '10.1.0.9', vrfId });
    expect(
      (await attempt('prefixes', { id: inner.id, status: 'container' }, 'update')).warnings,
    ).toEqual(['container_with_addresses']);
    expect((await address('10.1.0.10')).warnings).toEqual(['container_with_addresses']);
  });
  test('a parent over 80 % full, by children and by addresses', async () => {
    await make('prefixes', { cidr: '10.1.0.0/17', vrfId });
    expect((await prefix('10.1.128.0/18')).warnings).toEqual([]);
    const full = await prefix('10.1.192.0/19');
    expect([full.warnings, full.status]).toEqual([['parent_full'], 201]);
    const tiny = await make('prefixes', { cidr: '10.1.255.0/29', vrfId, allocationMode: 'pool' });
    for (let i = 0; i < 3; i++)
      await root.post(`/api/inventory/prefixes/${tiny.id}/allocate`, { kind: 'address' });
    expect((await address('10.1.255.4')).warnings).toEqual([]);
    expect((await address('10.1.255.5')).warnings).toEqual(['parent_full']);
    await make('prefixes', { cidr: '10.2.0.0/30', vrfId });
    for (const [i, warnings] of [
      [1, ['gateway_address']],
      [2, ['parent_full']],
    ] as const)
      expect((await address(`10.2.0.${i}`)).warnings).toEqual(warnings);
  });
  test('the usual gateway address, and an address in no prefix', async () => {
    expect((await address('10.1.0.1')).warnings).toEqual(['gateway_address']);
    expect((await address('203.0.113.5')).warnings).toEqual(['no_prefix']);
  });
  test('the smallest containing prefix becomes the parent', async () => {
    expect((await prefix('10.1.2.0/24')).candidate).toMatchObject({
      parentPrefixId: inner.id,
      status: 'active',
      allocationMode: 'static',
      tenantId: 'platform',
    });
    expect((await prefix('2001:DB8:0:0::/64')).candidate).toMatchObject({
      cidr: '2001:db8::/64',
      parentPrefixId: null,
    });
  });
});

describe('the validation endpoint', () => {
  test('its body is that of the interface, for 200, 400 and 409', async () => {
    const say = (record: object) =>
      root.post<Validation>('/api/validation/inventory', {
        resource: 'prefixes',
        operation: 'create',
        record,
      });
    const valid = await say({
      cidr: '10.7.0.0/16',
      vrfId,
      parentPrefixId: top.id,
      status: 'active',
      allocationMode: 'static',
      tenantId: 'platform',
    });
    expect([valid.status, valid.body]).toEqual([
      200,
      {
        resource: 'prefixes',
        operation: 'create',
        actorId: 'root',
        validation: { valid: true, errors: [], conflicts: [], warnings: [] },
        candidateRecord: {
          cidr: '10.7.0.0/16',
          vrfId,
          parentPrefixId: top.id,
          status: 'active',
          allocationMode: 'static',
          tenantId: 'platform',
          siteId: null,
          vlanId: null,
          roleId: null,
          description: '',
          tags: [],
          customFields: {},
        },
        effects: [
          {
            action: 'create',
            resource: 'prefixes',
            id: null,
            label: '10.7.0.0/16',
            reason: 'requested',
            changes: [],
          },
        ],
      },
    ]);
    const invalid = await say({ cidr: 'x', vrfId });
    expect([
      invalid.status,
      invalid.body.validation.valid,
      invalid.headers.get('content-type'),
    ]).toEqual([400, false, 'application/json; charset=utf-8']);
    expect((await say({ cidr: '10.1.0.0/16', vrfId })).status).toBe(409);
  });
  test('what is no mutation is said in the same body', async () => {
    const errorsOf = async (body: object) => {
      const { validation } = await root
        .post<Validation>('/api/validation/inventory', body)
        .expect(400);
      return validation.errors.map(({ pointer }) => pointer);
    };
    expect(await errorsOf({ resource: 'unicorns', operation: 'ride', record: 5 })).toEqual([
      '/resource',
      '/operation',
      '/record',
    ]);
    expect(await errorsOf({})).toHaveLength(3);
    for (const bad of ['[]', '{"mutations":[]}', '{"resource":"sites","extra":1}', '{'])
      expect((await root.post('/api/validation/inventory', bad)).status).toBe(400);
  });
  test('several are planned in order, each on top of the valid ones before it, and nothing is kept', async () => {
    const tables = [
      'prefixes',
      'ip_addresses',
      'sites',
      'devices',
      'audit_entries',
      'events',
      'free_hints',
      'outbox',
    ];
    const dump = async () =>
      JSON.stringify(
        await Promise.all(
          tables.map((table) =>
            app.deps
              .db(table)
              .orderByRaw('1')
              .select(app.deps.db.raw('?? :: text', [table])),
          ),
        ),
      );
    const site = await make('sites', { name: `val-${made++}` });
    const before = await dump();
    const validation = root.post<BatchValidation>('/api/validation/inventory', {
      mutations: [
        { resource: 'prefixes', operation: 'create', record: { cidr: '10.1.2.0/24', vrfId } },
        { resource: 'prefixes', operation: 'create', record: { cidr: '10.1.2.0/24', vrfId } },
        {
          resource: 'prefixes',
          operation: 'create',
          record: { cidr: '10.1.2.0/25', vrfId, parentPrefixId: inner.id },
        },
        { resource: 'ip-addresses', operation: 'create', record: { address: '10.1.2.0', vrfId } },
        { resource: 'prefixes', operation: 'delete', record: { id: inner.id } },
        { resource: 'prefixes', operation: 'delete', record: { id: inner.id } },
        { resource: 'sites', operation: 'delete', record: { id: site.id } },
        {
          resource: 'devices',
          operation: 'create',
          record: { name: 'd', siteId: site.id, deviceTypeId: 'dty_none' },
        },
      ],
    });
    const { results } = await validation.expect(400);
    expect(
      results.map(({ validation: { errors, conflicts } }) =>
        [...errors, ...conflicts].map(({ code }) => code),
      ),
    ).toEqual([
      [],
      ['duplicate'],
      ['more_specific_parent'],
      ['reserved_address'],
      [],
      ['not_found'],
      [],
      ['not_found', 'not_found'],
    ]);
    expect(await dump()).toBe(before);
  });
});
