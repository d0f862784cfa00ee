import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import {
  recordFactory,
  type BatchValidation,
  type BulkReport,
  type InventoryRecord,
  type Validation,
  type WriteProblem,
} from '../../support/inventory.ts';
import { admin, createUser, type Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
});
afterAll(() => app.stop());
const make = recordFactory(() => root);

type Step = [operation: 'create' | 'update' | 'delete', resource: string, record: object];

/** What the validation allows must be written; the results of both. */
async function validateAndWrite(...steps: Step[]) {
  const mutations = steps.map(([operation, resource, record]) => ({ operation, resource, record }));
  const validation = root.post<BatchValidation>('/api/validation/inventory', { mutations });
  await validation;
  const { status, body } = await root.post<BulkReport | WriteProblem>('/api/inventory/bulk', {
    mutations,
  });
  await validation.expect(status);
  return status === 200
    ? { status, ids: (body as BulkReport).results.map(({ id }) => id), conflicts: [] }
    : { status, ids: [], conflicts: (body as WriteProblem).conflicts };
}

describe('a batch has the result of single writes in order', () => {
  test('a record of the batch that is in the way has no id while nothing is written', async () => {
    const steps: Step[] = ['double', 'double'].map((name) => ['create', 'sites', { name }]);
    const [conflict] = (await validateAndWrite(...steps)).conflicts;
    const message = expect.stringMatching(/, in the same request$/);
    expect(conflict).toMatchObject({ code: 'duplicate', resource: 'sites', id: null, message });
    const tenants: Step[] = [1, 2].map((n) => [
      'create',
      'tenants',
      { id: 'double', name: `double ${n}` },
    ]);
    const [ofTenant] = (await validateAndWrite(...tenants)).conflicts;
    expect(ofTenant).toMatchObject({ code: 'duplicate', resource: 'tenants', id: null, message });
    const report = await root
      .post<BulkReport>('/api/inventory/bulk', {
        mode: 'each',
        mutations: steps.map(([operation, resource, record]) => ({ operation, resource, record })),
      })
      .expect(200);
    const [made, refused] = report.results;
    expect(refused?.conflicts).toMatchObject([{ code: 'duplicate', id: made?.id, message }]);
  });

  test('names that pass from one record to the next, and back', async () => {
    const [a, b, c] = [
      await make('regions', { name: 'a' }),
      await make('regions', { name: 'b' }),
      await make('regions', { name: 'c' }),
    ];
    expect(
      (
        await validateAndWrite(
          ['update', 'regions', { id: b.id, name: 'b2' }],
          ['update', 'regions', { id: a.id, name: 'b' }],
          ['update', 'regions', { id: c.id, name: 'a' }],
        )
      ).status,
    ).toBe(200);
    expect(
      (
        await validateAndWrite(
          ['update', 'regions', { id: a.id, description: 'x' }],
          ['update', 'regions', { id: b.id, name: 'tmp' }],
          ['update', 'regions', { id: a.id, name: 'b2' }],
          ['update', 'regions', { id: b.id, name: 'b' }],
        )
      ).status,
    ).toBe(200);
    expect(
      (
        await validateAndWrite(
          ['delete', 'regions', { id: c.id }],
          ['create', 'regions', { name: 'a' }],
          ['update', 'regions', { id: a.id, name: 'z' }],
          ['create', 'regions', { name: 'b2' }],
        )
      ).status,
    ).toBe(200);
    expect((await root.get(`/api/inventory/regions/${a.id}`)).body).toMatchObject({
      name: 'z',
      description: 'x',
    });
  });
  test('a VRF that is made or loosened in it, and prefixes that come into it before or after', async () => {
    const moved = await make('prefixes', { cidr: '10.9.0.0/16' });
    const vrf = await make('vrfs', { name: 'loosened' });
    const [one, two] = [
      await make('prefixes', { cidr: '10.0.0.0/16', vrfId: vrf.id }),
      await make('prefixes', { cidr: '10.1.0.0/16', vrfId: vrf.id }),
    ];
    expect(
      (
        await validateAndWrite(
          ['update', 'vrfs', { id: vrf.id, enforceUnique: false }],
          ['update', 'prefixes', { id: two.id, cidr: '10.0.0.0/16' }],
        )
      ).status,
    ).toBe(200);
    const made = await validateAndWrite(
      ['create', 'prefixes', { cidr: '10.77.0.0/16' }],
      ['create', 'vrfs', { name: 'new', enforceUnique: false }],
      ['create', 'prefixes', { cidr: '10.0.0.0/8', vrfId: { name: 'new' } }],
      ['create', 'prefixes', { cidr: '10.0.0.0/8', vrfId: { name: 'new' } }],
      ['update', 'prefixes', { id: moved.id, vrfId: { name: 'new' } }],
    );
    expect(made.status).toBe(200);
    const wrong = await app.deps.db.raw(
      'SELECT p.id FROM prefixes AS p LEFT JOIN vrfs AS v ON v.id = p.vrf_id WHERE p.unique_in_vrf <> coalesce(v.enforce_unique, true)',
    );
    expect(wrong.rows).toEqual([]);
    expect((await root.get(`/api/inventory/prefixes/${one.id}`)).status).toBe(200);
  });
  test('a device whose type and rack are made after another device', async () => {
    await make('sites', { name: 's' });
    await make('manufacturers', { name: 'M' });
    await make('device-types', { manufacturerId: { name: 'M' }, model: 'old' });
    const { status } = await validateAndWrite(
      ['create', 'devices', { name: 'd0', siteId: { name: 's' }, deviceTypeId: { model: 'old' } }],
      ['create', 'device-types', { manufacturerId: { name: 'M' }, model: 'tall', uHeight: 3 }],
      ['create', 'racks', { name: 'r', siteId: { name: 's' } }],
      [
        'create',
        'devices',
        {
          name: 'd1',
          siteId: { name: 's' },
          deviceTypeId: { model: 'tall' },
          rackId: { name: 'r' },
          position: 5,
          face: 'rear',
        },
      ],
    );
    expect(status).toBe(200);
    const [row] = await app.deps
      .db('devices')
      .where({ name: 'd1' })
      .select(app.deps.db.raw('units::text, depth::text'));
    expect(row).toEqual({ units: '[5,8)', depth: '[0,2)' });
  });
  test('a record that is made, changed and deleted in it; one entry for each that is left', async () => {
    const { ids } = await validateAndWrite(
      ['create', 'tags', { id: 't1', name: 'T1' }],
      ['create', 'tags', { id: 't2', name: 'T2' }],
      ['update', 'tags', { id: 't1', name: 'T1 again' }],
      ['delete', 'tags', { id: 't2' }],
    );
    expect(ids).toEqual(['t1', 't2', 't1', 't2']);
    expect(
      (await root.get<Page<object>>('/api/inventory/tags/t1/changes').expect(200)).items,
    ).toMatchObject([{ action: 'create', version: 2 }]);
    expect((await root.get('/api/inventory/tags/t1')).body).toMatchObject({
      name: 'T1 again',
      version: 2,
    });
    expect((await app.deps.db('audit_entries').where({ subject_id: 't2' })).length).toBe(0);
  });
  test('fifty tags and a hundred devices that use one go in one', async () => {
    await validateAndWrite(
      ...Array.from({ length: 50 }, (_, i): Step => [
        'create',
        'tags',
        { id: `many-${i}`, name: 'x' },
      ]),
    );
    const site = await make('sites', { name: 'many' });
    const { ids } = await validateAndWrite(
      ...Array.from({ length: 100 }, (_, i): Step => [
        'create',
        'devices',
        { name: `m${i}`, siteId: site.id, deviceTypeId: { model: 'old' }, tags: ['many-0'] },
      ]),
    );
    expect(
      (
        await validateAndWrite(
          ...ids.map((id): Step => ['delete', 'devices', { id }]),
          ...Array.from({ length: 50 }, (_, i): Step => ['delete', 'tags', { id: `many-${i}` }]),
        )
      ).status,
    ).toBe(200);
  }, 60_000);
  test('users that go in it are none, those that stay are', async () => {
    const group = await make('vlan-groups', { name: 'g' });
    const [one, two] = [
      await make('vlans', { vid: 1, name: 'v1', groupId: group.id }),
      await make('vlans', { vid: 2, name: 'v2', groupId: group.id }),
    ];
    const drop = (...ids: string[]): Step[] => ids.map((id) => ['delete', 'vlans', { id }]);
    expect(
      (await validateAndWrite(...drop(one.id), ['delete', 'vlan-groups', { id: group.id }]))
        .conflicts,
    ).toMatchObject([{ pointer: '/mutations/1', code: 'in_use', id: two.id }]);
    expect(
      (await validateAndWrite(...drop(one.id, two.id), ['delete', 'vlan-groups', { id: group.id }]))
        .status,
    ).toBe(200);
  });
});

describe('cascaded changes', () => {
  test('interfaces and their history follow the tenant of their device', async () => {
    await make('tenants', { id: 'acme', name: 'Acme' });
    const site = await make('sites', { name: 'from' });
    const device = await make('devices', {
      name: 'moving',
      siteId: site.id,
      deviceTypeId: { model: 'old' },
    });
    const port = await make('interfaces', { deviceId: device.id, name: 'p' });
    const { effects } = await root
      .post<Validation>('/api/validation/inventory', {
        resource: 'devices',
        operation: 'update',
        record: { id: device.id, tenantId: 'acme' },
      })
      .expect(200);
    expect(effects[1]).toMatchObject({
      resource: 'interfaces',
      id: port.id,
      reason: 'cascade',
      changes: [{ field: 'tenantId', before: 'platform', after: 'acme' }],
    });
    expect(
      (await root.put(`/api/inventory/devices/${device.id}`, { tenantId: 'acme' })).status,
    ).toBe(200);
    expect((await root.get(`/api/inventory/interfaces/${port.id}`)).body).toMatchObject({
      tenantId: 'acme',
      version: 2,
    });
    expect(
      (
        await root
          .get<InventoryRecord>(`/api/inventory/interfaces/${port.id}?at=2099-01-01T00:00:00Z`)
          .expect(200)
      ).tenantId,
    ).toBe('acme');
  });
  test('equal prefixes of a VRF never allocate the same network', async () => {
    const vrf = await make('vrfs', { name: 'duplicates', enforceUnique: false });
    const [one, two] = [
      await make('prefixes', { cidr: '10.0.0.0/16', vrfId: vrf.id }),
      await make('prefixes', { cidr: '10.0.0.0/16', vrfId: vrf.id }),
    ];
    const got = [];
    for (const { id } of [one, two, one, two])
      got.push(
        await root
          .post<InventoryRecord>(`/api/inventory/prefixes/${id}/allocate`, {
            kind: 'prefix',
            prefixLength: 24,
          })
          .expect(201),
      );
    expect(got.map(({ cidr, parentPrefixId }) => [cidr, parentPrefixId])).toEqual([
      ['10.0.0.0/24', one.id],
      ['10.0.1.0/24', two.id],
      ['10.0.2.0/24', one.id],
      ['10.0.3.0/24', two.id],
    ]);
  });
  test('a value too large for the database is an error of its field', async () => {
    const group = await make('vlan-groups', { name: 'large' });
    for (const vid of [99_999_999_999, 'x', 1.5, null]) {
      const { validation } = await root
        .post<Validation>('/api/validation/inventory', {
          resource: 'vlans',
          operation: 'create',
          record: { vid, name: 'n', groupId: group.id },
        })
        .expect(400);
      expect([vid, validation.errors[0]?.pointer]).toEqual([vid, '/vid']);
    }
    const nul = await root
      .post<Validation>('/api/validation/inventory', {
        resource: 'vlans',
        operation: 'create',
        record: { vid: 1, name: 'a\u0000', groupId: 'x\u0000y' },
      })
      .expect(400);
    expect(nul.validation.errors.map(({ pointer }) => pointer).sort()).toEqual([
      '/groupId',
      '/name',
    ]);
    for (const id of ['a\u0000', 'x'.repeat(500), 5, {}])
      expect(
        (
          await root.post('/api/validation/inventory', {
            resource: 'vlans',
            operation: 'delete',
            record: { id },
          })
        ).status,
      ).toBe(400);
  });
});

describe('large records', () => {
  test('a device with sixty interfaces goes, a rack of forty types shrinks, thirty tags and thirty regions above are no matter', async () => {
    const site = await make('sites', { name: 'large' });
    const device = await make('devices', {
      name: 'big',
      siteId: site.id,
      deviceTypeId: { model: 'old' },
    });
    await validateAndWrite(
      ...Array.from({ length: 60 }, (_, i): Step => [
        'create',
        'interfaces',
        { deviceId: device.id, name: `i${i}` },
      ]),
    );
    expect((await root.delete(`/api/inventory/devices/${device.id}`)).status).toBe(204);
    const rack = await make('racks', { name: 'big', siteId: site.id });
    await validateAndWrite(
      ...Array.from({ length: 40 }, (_, i): Step[] => [
        ['create', 'device-types', { manufacturerId: { name: 'M' }, model: `type ${i}` }],
        [
          'create',
          'devices',
          {
            name: `u${i}`,
            siteId: site.id,
            deviceTypeId: { model: `type ${i}` },
            rackId: rack.id,
            position: i + 1,
            face: 'front',
          },
        ],
      ]).flat(),
    );
    expect((await root.put(`/api/inventory/racks/${rack.id}`, { uHeight: 41 })).status).toBe(200);
    expect((await root.put(`/api/inventory/racks/${rack.id}`, { uHeight: 39 })).status).toBe(409);
    await validateAndWrite(
      ...Array.from({ length: 45 }, (_, i): Step => [
        'create',
        'tags',
        { id: `tag-${i}`, name: 'x' },
      ]),
    );
    let parentId: string | null = null;
    for (let i = 0; i < 40; i++)
      parentId = (
        await make('regions', {
          name: `deep ${i}`,
          parentId,
          ...(i === 39 && { tags: Array.from({ length: 45 }, (_, n) => `tag-${n}`) }),
        })
      ).id;
  }, 60_000);
  test('an object that cannot be turned into a text is an error of its field', async () => {
    const odd = { toString: 1 };
    for (const [resource, record] of [
      ['prefixes', { cidr: odd }],
      ['ip-addresses', { address: odd }],
      ['tags', { id: odd, name: 'x' }],
      ['sites', { name: 'x', tenantId: { name: odd } }],
    ] as const) {
      expect([
        resource,
        (await root.post('/api/validation/inventory', { resource, operation: 'create', record }))
          .status,
        (await root.post(`/api/inventory/${resource}`, record)).status,
      ]).toEqual([resource, 400, 400]);
    }
    expect(
      (
        await root.post('/api/inventory/bulk', {
          mutations: [{ resource: 'sites', operation: 'update', record: { id: odd } }],
        })
      ).status,
    ).toBe(400);
  });
});

describe('permissions end at their scope', () => {
  let site: InventoryRecord;
  let device: InventoryRecord;
  beforeAll(async () => {
    site = await make('sites', { name: 'acme1', tenantId: 'acme' });
    device = await make('devices', {
      name: 'theirs',
      siteId: site.id,
      deviceTypeId: { model: 'old' },
      tenantId: 'acme',
    });
  });
  test('nobody takes a device or a site out of where the right is', async () => {
    const atDevice = await createUser(
      app,
      { roleId: 'operator', deviceId: device.id },
      { roleId: 'viewer' },
    );
    const other = await make('sites', { name: 'other' });
    for (const change of [{ tenantId: 'platform' }, { siteId: other.id }])
      expect([
        change,
        (await atDevice.client.put(`/api/inventory/devices/${device.id}`, change)).status,
      ]).toEqual([change, 403]);
    expect(
      (
        await atDevice.client.put(`/api/inventory/devices/${device.id}`, {
          description: 'mine',
        })
      ).status,
    ).toBe(200);
    const atSite = await createUser(app, { roleId: 'operator', siteId: site.id });
    expect(
      (
        await atSite.client.put(`/api/inventory/sites/${site.id}`, {
          tenantId: 'platform',
        })
      ).status,
    ).toBeGreaterThanOrEqual(400);
    const { detail } = await atSite.client
      .post<ProblemBody>('/api/inventory/racks', {
        name: 'q',
        siteId: site.id,
        tenantId: 'platform',
      })
      .expect(403);
    expect(detail).toBe('Permission inventory:write is missing at the platform.');
    const rack = await recordFactory(() => atSite.client)('racks', { name: 'q', siteId: site.id });
    expect(rack.tenantId).toBe('acme');
  });
  test('what goes with a record must be theirs, too, or of another tenant', async () => {
    const port = await make('interfaces', { deviceId: device.id, name: 'p' });
    const far = await make('sites', { name: 'far', tenantId: 'acme' });
    const acme = { tenantId: 'acme' };
    await make('prefixes', { ...acme, cidr: '10.250.0.0/24', siteId: far.id });
    const near = { ...acme, address: '10.250.0.1', interfaceId: port.id };
    const address = await make('ip-addresses', near);
    const other = await make('ip-addresses', { address: '10.251.0.1', interfaceId: port.id });
    const atDevice = await createUser(app, { roleId: 'operator', deviceId: device.id });
    expect((await atDevice.client.delete(`/api/inventory/interfaces/${port.id}`)).status).toBe(403);
    expect((await root.get(`/api/inventory/interfaces/${port.id}`)).status).toBe(200);
    await root.delete(`/api/inventory/ip-addresses/${address.id}`).expect(204);
    await atDevice.client.delete(`/api/inventory/interfaces/${port.id}`).expect(204);
    expect(await root.get(`/api/inventory/ip-addresses/${other.id}`).expect(200)).toMatchObject({
      interfaceId: null,
    });
  });
  test('warnings do not speak of a prefix that the caller may not read', async () => {
    await make('prefixes', { cidr: '203.0.112.0/23', status: 'container' });
    const acme = root.as({ actor: 'ann', roles: 'operator', tenant: 'acme' });
    const { validation, effects } = await acme
      .post<Validation>('/api/validation/inventory', {
        resource: 'ip-addresses',
        operation: 'create',
        record: { address: '203.0.112.1' },
      })
      .expect(400);
    expect(validation.errors).toEqual([
      {
        pointer: '/address',
        code: 'permission_denied',
        message:
          'the platform assigns the space in its prefixes: permission inventory:write is missing at the platform',
      },
    ]);
    expect(JSON.stringify([validation, effects])).not.toContain('/23');
  });
});
