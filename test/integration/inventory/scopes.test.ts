import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { listRecords, readRecord } from '../../../db/inventory/records.ts';
import type { Scope } from '../../../domain/access/scope.ts';
import type { ResourceName } from '../../../domain/inventory/names.ts';
import { isReadable, resourceScopesOf } from '../../../domain/inventory/ownership.ts';
import type { Mutation } from '../../../domain/inventory/planning.ts';
import type { Row } from '../../../domain/inventory/resource.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { pageOf } from '../../../domain/shared/lists.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { propertyRuns } from '../../support/effort.ts';
import {
  expectedScopes,
  expectedWriteScopes,
  type ScopedResource,
  type ScopeEstate,
} from '../../support/scopeModel.ts';
import { recordFactory, type BulkReport, type InventoryRecord } from '../../support/inventory.ts';
import { admin, createUser, type Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
const make = recordFactory(() => root);
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  root = admin(app);
  for (const id of ['red', 'blue']) await make('tenants', { id, name: id });
});
afterAll(() => app.stop());

const name = (() => {
  let count = 0;
  return () => `n${count++}`;
})();

const makeType = async () => {
  const maker = await make('manufacturers', { name: name() });
  return (await make('device-types', { manufacturerId: maker.id, model: name() })).id;
};

describe('a right at a site', () => {
  const estate = async () => {
    const site = await make('sites', { name: name(), tenantId: 'red' });
    const other = await make('sites', { name: name(), tenantId: 'red' });
    const deviceTypeId = await makeType();
    const device = async (siteId: string) => {
      const { id } = await make('devices', {
        name: name(),
        siteId,
        tenantId: 'red',
        deviceTypeId,
      });
      return (await make('interfaces', { deviceId: id, name: 'e0' })).id;
    };
    const vrf = await make('vrfs', { name: name(), tenantId: 'red' });
    const prefix = (record: object) =>
      make('prefixes', { vrfId: vrf.id, tenantId: 'red', ...record });
    await prefix({ cidr: '10.0.0.0/8' });
    return {
      site,
      other,
      vrf,
      prefix,
      ours: await prefix({ cidr: '10.1.0.0/16', siteId: site.id, allocationMode: 'pool' }),
      theirs: await prefix({ cidr: '10.2.0.0/16', siteId: other.id, allocationMode: 'pool' }),
      port: await device(site.id),
      farPort: await device(other.id),
      group: await make('vlan-groups', { name: name(), siteId: site.id, tenantId: 'red' }),
      farGroup: await make('vlan-groups', { name: name(), siteId: other.id, tenantId: 'red' }),
      client: (await createUser(app, { roleId: 'operator', siteId: site.id })).client,
    };
  };

  test('is enough to create, list, read, change, delete and allocate what belongs there', async () => {
    const { site, vrf, ours, port, group, client } = await estate();
    const create = recordFactory(() => client);
    const vrfId = vrf.id;
    const records: [ResourceName, object][] = [
      ['locations', { name: name(), siteId: site.id }],
      ['racks', { name: name(), siteId: site.id }],
      ['vlan-groups', { name: name(), siteId: site.id }],
      ['vlans', { name: name(), vid: 7, groupId: group.id }],
      ['prefixes', { cidr: '10.1.4.0/24', vrfId }],
      ['ip-ranges', { startAddress: '10.1.0.10', endAddress: '10.1.0.20', vrfId }],
      ['ip-addresses', { address: '10.1.0.30', vrfId }],
      ['ip-addresses', { address: '10.3.0.1', interfaceId: port }],
      ['interfaces', { deviceId: { name: await nameOfDevice(port) }, name: 'e1' }],
    ];
    for (const [resource, record] of records) {
      const { id, tenantId } = await create(resource, record);
      expect(tenantId).toBe('red');
      const path = `/api/inventory/${resource}`;
      expect(await client.get(`${path}/${id}`).expect(200)).toMatchObject({ id });
      const { items } = await client.get<Page<InventoryRecord>>(`${path}?limit=200`).expect(200);
      expect(items.map((item) => item.id)).toContain(id);
      await client.put(`${path}/${id}`, { description: 'changed' }).expect(200);
      await client
        .get<Page<object>>(`${path}/${id}/changes`)
        .expect(200)
        .then((page) => expect(page.items).toHaveLength(2));
      await client.delete(`${path}/${id}`).expect(204);
      expect((await client.get(`${path}/${id}/changes`)).status).toBe(200);
    }
    const peer = (await create('interfaces', { deviceId: await deviceOf(port), name: 'e2' })).id;
    const cable = await create('cables', { aInterfaceId: port, bInterfaceId: peer });
    expect(cable.tenantId).toBe('red');
    await client.delete(`/api/inventory/cables/${cable.id}`).expect(204);
    for (const request of [{ kind: 'address' }, { kind: 'prefix', prefixLength: 28 }])
      expect(
        await client.post(`/api/inventory/prefixes/${ours.id}/allocate`, request).expect(201),
      ).toMatchObject({ tenantId: 'red' });
  });

  test('says what is missing where for everything else, and never names a tenant that is there', async () => {
    const { site, vrf, theirs, farPort, farGroup, client, other } = await estate();
    const vrfId = vrf.id;
    const refused: [ResourceName, object][] = [
      ['prefixes', { cidr: '10.9.0.0/24' }],
      ['ip-addresses', { address: '10.9.0.1' }],
      ['ip-ranges', { startAddress: '10.9.0.1', endAddress: '10.9.0.2' }],
      ['vlans', { name: name(), vid: 9 }],
      ['vrfs', { name: name() }],
      ['vlans', { name: name(), vid: 9, tenantId: 'platform' }],
      ['racks', { name: name(), siteId: site.id, tenantId: 'platform' }],
      ['ip-addresses', { address: '10.1.0.77', vrfId, tenantId: 'platform' }],
      ['regions', { name: name(), tenantId: 'platform' }],
    ];
    for (const [resource, record] of refused) {
      const { code, detail } = await client
        .post<ProblemBody>(`/api/inventory/${resource}`, record)
        .expect(403);
      const at = 'tenantId' in record ? 'the platform' : 'tenant red';
      expect([code, detail]).toEqual([
        'permission_denied',
        `Permission inventory:write is missing at ${at}.`,
      ]);
    }
    // What the caller may not read is not there.
    for (const [resource, record, status] of [
      ['ip-addresses', { address: '10.2.0.1', vrfId }, 403],
      ['ip-addresses', { address: '10.1.0.1', vrfId, interfaceId: farPort }, 400],
      ['vlans', { name: name(), vid: 9, groupId: farGroup.id }, 403],
      ['prefixes', { cidr: '10.1.9.0/24', vrfId, siteId: other.id }, 400],
    ] as const)
      await client.post(`/api/inventory/${resource}`, record).expect(status);
    expect(
      (await client.post(`/api/inventory/prefixes/${theirs.id}/allocate`, { kind: 'address' }))
        .status,
    ).toBe(404);
    const { results } = await client
      .post<BulkReport>('/api/inventory/bulk', {
        mode: 'each',
        mutations: [
          { resource: 'vlans', operation: 'create', record: { name: name(), vid: 9 } },
          { resource: 'racks', operation: 'create', record: { name: name(), siteId: site.id } },
        ],
      })
      .expect(200);
    expect(results.map(({ outcome, errors }) => [outcome, errors[0]?.message])).toEqual([
      ['invalid', 'permission inventory:write is missing at tenant red'],
      ['created', undefined],
    ]);
  });

  test('at one end of a cable shows it, and is not enough to change it', async () => {
    const { port, farPort, client } = await estate();
    const cable = await make('cables', {
      aInterfaceId: port,
      bInterfaceId: farPort,
      tenantId: 'red',
    });
    const path = `/api/inventory/cables/${cable.id}`;
    await client.get(path).expect(200);
    for (const refused of [client.put(path, { label: 'x' }), client.delete(path)])
      expect((await refused).status).toBe(403);
  });

  test('does not extend to the contents of a new prefix', async () => {
    const { site, vrf, client } = await estate();
    const vrfId = vrf.id;
    const central = await make('ip-addresses', { address: '10.50.0.1', vrfId, tenantId: 'red' });
    const create = (cidr: string, more: object = {}) =>
      client.post<ProblemBody>('/api/inventory/prefixes', { cidr, siteId: site.id, ...more });
    // Space that no prefix of the site contains is the tenant's.
    const { detail } = await create('172.30.0.0/24').expect(403);
    expect(detail).toBe('Permission inventory:write is missing at tenant red.');
    const own = await create('10.1.5.0/24', { vrfId }).expect(201);
    expect(own).toMatchObject({ siteId: site.id });
    expect((await client.get(`/api/inventory/ip-addresses/${central.id}`)).status).toBe(404);
  });

  const deviceOf = async (port: string) =>
    String(
      (await root.get<InventoryRecord>(`/api/inventory/interfaces/${port}`).expect(200)).deviceId,
    );
  const nameOfDevice = async (port: string) =>
    String(
      (
        await root
          .get<InventoryRecord>(`/api/inventory/devices/${await deviceOf(port)}`)
          .expect(200)
      ).name,
    );
});

const SCOPED: readonly ScopedResource[] = [
  'prefixes',
  'ip-ranges',
  'ip-addresses',
  'vlans',
  'cables',
];
const CONTEXT: readonly ResourceName[] = ['sites', 'devices', 'interfaces', 'vlan-groups'];
const EVERYWHERE: Scope = { kind: 'everywhere' };

const step = fc.record({
  what: fc.constantFrom(
    ...(['prefix', 'prefix', 'prefix', 'range', 'address', 'address', 'vlan', 'cable'] as const),
    ...(['change', 'change', 'change', 'delete', 'moveDevice', 'changeGroup'] as const),
  ),
  of: fc.nat(4),
  pick: fc.nat(1_000),
  // Networks may exist several times in the VRF, and so crowded together they do.
  vrf: fc.constantFrom(true, true, false),
  tenant: fc.constantFrom('red', 'red', 'blue'),
  site: fc.constantFrom(null, null, 0, 1, 2),
  shorter: fc.integer({ min: 0, max: 5 }),
  at: fc.nat(31),
  to: fc.nat(31),
  port: fc.constantFrom(null, 0, 1, 2, 3, 4, 5),
  peer: fc.nat(5),
  group: fc.constantFrom(null, 0, 1, 2),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

const scope = fc.record({
  tenants: fc.subarray(['red', 'blue']),
  sites: fc.subarray([0, 1, 2]),
  devices: fc.subarray([0, 1, 2]),
});

/** The records of one round: three sites, a device with two interfaces at each, three groups. */
async function createRound(round: number) {
  const deviceTypeId = await makeType();
  const sites: string[] = [];
  const devices: string[] = [];
  const ports: string[] = [];
  const groups: string[] = [];
  for (const tenantId of ['red', 'red', 'blue']) {
    sites.push((await make('sites', { name: name(), tenantId })).id);
    const siteId = sites.at(-1);
    const device = await make('devices', { name: name(), siteId, tenantId, deviceTypeId });
    devices.push(device.id);
    for (const port of ['a', 'b'])
      ports.push((await make('interfaces', { deviceId: device.id, name: port })).id);
    groups.push(
      (
        await make('vlan-groups', {
          name: name(),
          tenantId,
          ...(groups.length !== 1 && { siteId }),
        })
      ).id,
    );
  }
  const vrf = (await make('vrfs', { name: name(), enforceUnique: false })).id;
  return { sites, devices, ports, groups, vrf, base: `10.${round % 200}` };
}
type Round = Awaited<ReturnType<typeof createRound>>;

function spaceOf({ base, vrf, sites }: Round, asked: Step) {
  const size = 2 ** asked.shorter;
  const host = (at: number) => `${base}.0.${at}`;
  const [low = 0, high = 0] = [asked.at, asked.to].sort((a, b) => a - b);
  return {
    cidr: `${host(Math.floor(asked.at / size) * size)}/${32 - asked.shorter}`,
    address: host(asked.at),
    startAddress: host(low),
    endAddress: host(high),
    vrfId: asked.vrf ? vrf : null,
    tenantId: asked.tenant,
    siteId: asked.site === null ? null : sites[asked.site],
  };
}

/** The fields of a record of each resource that decide what it belongs to. */
function fieldsOf(resource: ScopedResource, round: Round, asked: Step): Record<string, unknown> {
  const { cidr, address, startAddress, endAddress, vrfId, tenantId, siteId } = spaceOf(
    round,
    asked,
  );
  const port = (i: number | null) => (i === null ? null : round.ports[i]);
  switch (resource) {
    case 'prefixes':
      return { cidr, vrfId, tenantId, siteId };
    case 'ip-ranges':
      return { startAddress, endAddress, vrfId, tenantId };
    case 'ip-addresses':
      return { address, vrfId, tenantId, interfaceId: port(asked.port) };
    case 'vlans':
      return {
        tenantId,
        siteId: asked.group === null ? siteId : null,
        groupId: asked.group === null ? null : round.groups[asked.group],
      };
    case 'cables':
      return { tenantId, aInterfaceId: port(asked.port ?? 0), bInterfaceId: port(asked.peer) };
  }
}

const RESOURCE_OF = {
  prefix: 'prefixes',
  range: 'ip-ranges',
  address: 'ip-addresses',
  vlan: 'vlans',
  cable: 'cables',
} as const;

const allOf = async (resource: ResourceName, within: Scope = EVERYWHERE): Promise<Row[]> =>
  (await listRecords(app.deps.db, RESOURCES[resource], within, {}, pageOf(10_000))).items;

function mutationOf(round: Round, created: Map<ResourceName, Set<string>>, asked: Step) {
  const { what, pick } = asked;
  if (what === 'moveDevice')
    return {
      resource: 'devices' as const,
      operation: 'update',
      record: {
        id: round.devices[pick % 3],
        siteId: round.sites[asked.site ?? 0],
        tenantId: asked.tenant,
      },
    };
  if (what === 'changeGroup')
    return {
      resource: 'vlan-groups' as const,
      operation: 'update',
      record: {
        id: round.groups[pick % 3],
        siteId: asked.site === null ? null : round.sites[asked.site],
        tenantId: asked.tenant,
      },
    };
  if (what !== 'change' && what !== 'delete') {
    const resource = RESOURCE_OF[what];
    const more = resource === 'vlans' ? { name: name(), vid: (pick % 4_000) + 1 } : {};
    return {
      resource,
      operation: 'create',
      record: { ...fieldsOf(resource, round, asked), ...more },
    };
  }
  const resource = SCOPED[asked.of] ?? 'prefixes';
  const ids = [...(created.get(resource) ?? [])];
  const id = ids[pick % Math.max(1, ids.length)];
  if (id === undefined) return null;
  if (what === 'delete') return { resource, operation: 'delete', record: { id } };
  // Some of the fields change, so that the others stay as they were.
  const fields = Object.entries(fieldsOf(resource, round, asked)).filter(
    (_, i) => ((pick >> i) & 1) === 1,
  );
  return { resource, operation: 'update', record: { id, ...Object.fromEntries(fields) } };
}

const sorted = (scopes: readonly object[]): string[] =>
  scopes
    .map((each) => JSON.stringify(Object.entries({ siteId: null, deviceId: null, ...each }).sort()))
    .sort();

let rounds = 0;
const seen = { written: 0, atSites: 0, atOthers: 0, hidden: 0, visible: 0 };

async function write(mutation: Mutation & { resource: ResourceName }): Promise<string | null> {
  const { planned } = await app.deps.inventory.writes.apply(
    systemCaller('platform', 'req_scopes'),
    [mutation],
    'each',
  );
  const subject = planned[0]?.subject;
  if (!subject?.after || (planned[0]?.effects.length ?? 0) === 0) return null;
  seen.written++;
  // The planner and the triggers of the database agree on the record just written.
  const stored = await readRecord(app.deps.db, mutation.resource, subject.id);
  if (stored)
    expect(sorted(resourceScopesOf(RESOURCES[mutation.resource], subject.after))).toEqual(
      sorted(resourceScopesOf(RESOURCES[mutation.resource], stored)),
    );
  return subject.id;
}

type CreatedIds = ReadonlyMap<ResourceName, ReadonlySet<string>>;

/** The records of one round; those of others have not changed since theirs. */
const createdOf = (estate: ScopeEstate, created: CreatedIds, resource: ScopedResource): Row[] =>
  estate[resource].filter(({ id }) => created.get(resource)?.has(id));

/** The planner asks for permission where the model does. */
async function compareWriteScopes(estate: ScopeEstate, created: CreatedIds): Promise<void> {
  const rows = SCOPED.flatMap((resource) =>
    createdOf(estate, created, resource).map((row) => ({ resource, row })),
  );
  const { planned } = await app.deps.inventory.questions.dryRun(
    systemCaller('platform', 'req_scopes'),
    rows.map(({ resource, row }) => ({ resource, operation: 'update', record: { id: row.id } })),
  );
  for (const [i, { resource, row }] of rows.entries()) {
    const expected = expectedWriteScopes(estate, resource, row);
    expect([row.id, sorted(planned[i]?.presentScopes ?? [])]).toEqual([row.id, sorted(expected)]);
    const named = expectedScopes(estate, resource, row);
    if (sorted(named).join() !== sorted(expected).join()) seen.atOthers++;
  }
}

async function readEstate(): Promise<ScopeEstate> {
  const estate: Partial<Record<ResourceName, Row[]>> = {};
  for (const resource of [...SCOPED, ...CONTEXT]) estate[resource] = await allOf(resource);
  return estate as ScopeEstate;
}

test('planner, triggers, lists and a simple model agree on what everything belongs to', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 30, maxLength: 60, size: 'max' }),
      fc.array(scope, { minLength: 3, maxLength: 3 }),
      async (steps, scopes) => {
        const round = await createRound(rounds++);
        const created = new Map<ResourceName, Set<string>>(SCOPED.map((each) => [each, new Set()]));
        for (const asked of steps) {
          const mutation = mutationOf(round, created, asked);
          const id = mutation && (await write(mutation));
          if (mutation?.operation === 'create' && id) created.get(mutation.resource)?.add(id);
        }
        const estate = await readEstate();
        for (const resource of SCOPED)
          for (const row of createdOf(estate, created, resource)) {
            const found = resourceScopesOf(RESOURCES[resource], row);
            expect([row.id, sorted(found)]).toEqual([
              row.id,
              sorted(expectedScopes(estate, resource, row)),
            ]);
            if (found.some(({ siteId }) => typeof siteId === 'string')) seen.atSites++;
          }
        await compareWriteScopes(estate, created);
        for (const { tenants, sites, devices } of scopes) {
          const within: Scope = {
            kind: 'within',
            tenantIds: new Set(tenants),
            siteIds: new Set(sites.flatMap((i) => round.sites[i] ?? [])),
            deviceIds: new Set(devices.flatMap((i) => round.devices[i] ?? [])),
          };
          for (const resource of SCOPED) {
            const covered = estate[resource].filter((row) =>
              isReadable(within, RESOURCES[resource], row),
            );
            const listed = await allOf(resource, within);
            expect(listed.map(({ id }) => id)).toEqual(covered.map(({ id }) => id));
            seen.visible += covered.length;
            seen.hidden += estate[resource].length - covered.length;
          }
        }
      },
    ),
    // Shrinking would run hundreds of rounds.
    { numRuns: propertyRuns(4), endOnFailure: true },
  );
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(5);
}, 180_000);

test('a list of one site reads what it returns, in a table of many records of others', async () => {
  const site = await make('sites', { name: name(), tenantId: 'red' });
  const { db } = app.deps;
  const insert = (id: string, count: number, network: string) =>
    db.raw(
      `INSERT INTO ip_addresses (id, tenant_id, address, status)
       SELECT 'ipa_' || ? || n, 'red', ?::inet + n, 'active' FROM generate_series(1, ?::integer) AS n`,
      [id, network, count],
    );
  await insert('0', 2_000, '172.16.0.0');
  await make('prefixes', { cidr: '192.168.0.0/16', siteId: site.id, tenantId: 'red' });
  await insert('1', 60, '192.168.0.0');
  await insert('2', 2_000, '172.18.0.0');
  await db.raw('ANALYZE ip_addresses');
  const within: Scope = {
    kind: 'within',
    tenantIds: new Set(),
    siteIds: new Set([site.id]),
    deviceIds: new Set(),
  };
  const statements: { sql: string; bindings: readonly unknown[] }[] = [];
  db.on('query', (query: { sql: string; bindings: readonly unknown[] }) => statements.push(query));
  const page = await listRecords(db, RESOURCES['ip-addresses'], within, {}, pageOf(50));
  db.removeAllListeners('query');
  expect([page.items.length, page.next === null]).toEqual([50, false]);
  const list = assertDefined(
    statements.find(({ sql }) => sql.includes('"ip_addresses"')),
    'query of the list',
  );
  const { rows } = await db.raw<{ rows: { 'QUERY PLAN': string }[] }>(
    `EXPLAIN (ANALYZE, TIMING OFF) ${list.sql.replaceAll(/\$\d+/g, '?')}`,
    list.bindings as never,
  );
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).not.toMatch(/Seq Scan/);
  for (const [, read] of plan.matchAll(/rows=(\d+)(?:\.\d+)? loops/g))
    expect(Number(read)).toBeLessThanOrEqual(60);
  expect(plan).not.toMatch(/Rows Removed by Filter/);
}, 60_000);

test('the columns are computed again from nothing', async () => {
  const before = await readEstate();
  await app.deps.db.raw(
    'UPDATE prefixes SET scope_site_id = NULL; UPDATE ip_ranges SET scope_site_id = NULL; UPDATE vlans SET scope_site_id = NULL; UPDATE ip_addresses SET scope_site_id = NULL, device_site_id = NULL, scope_device_id = NULL; UPDATE cables SET a_site_id = NULL, a_device_id = NULL, b_site_id = NULL, b_device_id = NULL',
  );
  await app.deps.db.raw('SELECT recalculate_inventory_scopes()');
  const after = await readEstate();
  for (const resource of SCOPED)
    expect(
      after[resource].map((row) => sorted(resourceScopesOf(RESOURCES[resource], row))),
    ).toEqual(before[resource].map((row) => sorted(resourceScopesOf(RESOURCES[resource], row))));
});
