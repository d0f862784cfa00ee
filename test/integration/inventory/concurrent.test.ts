import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { blockAt, formatBlock } from '../../../domain/inventory/cidr.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { propertyRuns } from '../../support/effort.ts';
import { recordFactory, type InventoryRecord, type WriteProblem } from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
});
afterAll(() => app.stop());
const make = recordFactory(() => root);
type WriteBody = InventoryRecord | ProblemBody;
type Allocated = InventoryRecord & { address?: string; cidr?: string };

/** Prefixes whose parent is not the smallest that contains them, and pairs with one network. */
const inconsistentPrefixes = async (vrfId: string) => {
  const { rows } = await app.deps.db.raw(
    `SELECT p.cidr FROM prefixes AS p WHERE p.vrf_id = ? AND p.parent_prefix_id IS DISTINCT FROM
       (SELECT q.id FROM prefixes AS q WHERE q.vrf_key = p.vrf_key AND q.cidr >> p.cidr ORDER BY masklen(q.cidr) DESC LIMIT 1)
     UNION ALL SELECT cidr FROM prefixes WHERE vrf_id = ? GROUP BY cidr HAVING count(*) > 1`,
    [vrfId, vrfId],
  );
  return rows as object[];
};

test('32 concurrent writers in one VRF leave no overlap and no orphan and see no failure', async () => {
  const vrfId = (await make('vrfs', { name: 'busy' })).id;
  await make('prefixes', { cidr: '10.0.0.0/8', vrfId });
  const statuses: number[] = [];
  const codes = new Set<string>();
  const steps = propertyRuns(6);
  const writer = async (seed: number) => {
    let state = seed * 7_919 + 1;
    // Its low bits repeat soon: they are left out.
    const random = (below: number) =>
      ((state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) >>> 4) % below;
    const own: string[] = [];
    for (let i = 0; i < steps; i++) {
      const length = 9 + random(16);
      const cidr = formatBlock(blockAt(4, (10n << 24n) + BigInt(random(1 << 24)), length));
      const mine = own[random(Math.max(1, own.length))];
      const act = random(10);
      const answer =
        act < 6 || mine === undefined
          ? await root.post<WriteBody>('/api/inventory/prefixes', { cidr, vrfId })
          : act < 8
            ? await root.put<WriteBody>(`/api/inventory/prefixes/${mine}`, { cidr })
            : act < 9
              ? await root.delete<WriteBody>(`/api/inventory/prefixes/${mine}`)
              : await root.post<WriteBody>('/api/inventory/bulk', {
                  mode: 'each',
                  mutations: [
                    { resource: 'prefixes', operation: 'create', record: { cidr, vrfId } },
                    {
                      resource: 'ip-addresses',
                      operation: 'create',
                      record: { address: `10.1.${seed}.${i}`, vrfId },
                    },
                  ],
                });
      if (answer.status === 201) own.push((answer.body as InventoryRecord).id);
      if (answer.status === 204) own.splice(own.indexOf(mine ?? ''), 1);
      statuses.push(answer.status);
      if (answer.status === 409) {
        const problem = answer.body as ProblemBody & Partial<WriteProblem>;
        for (const { code } of problem.conflicts ?? [problem]) codes.add(code);
      }
    }
  };
  await Promise.all(Array.from({ length: 32 }, (_, i) => writer(i + 1)));
  expect(new Set(statuses.filter((status) => ![200, 201, 204, 400, 409].includes(status)))).toEqual(
    new Set(),
  );
  expect(
    [...codes].filter((code) => !['duplicate', 'would_orphan_addresses'].includes(code)),
  ).toEqual([]);
  expect(statuses.filter((status) => status < 300).length).toBeGreaterThan(16 * steps);
  expect(await inconsistentPrefixes(vrfId)).toEqual([]);
}, 120_000);

test('50 concurrent allocations get different results, the lowest first', async () => {
  const vrfId = (await make('vrfs', { name: 'pool' })).id;
  for (const [cidr, kind, prefixLength, first] of [
    ['10.0.0.0/16', 'address', undefined, '10.0.0.1/16'],
    ['2001:db8::/32', 'address', undefined, '2001:db8::1/32'],
    ['10.1.0.0/16', 'prefix', 24, '10.1.0.0/24'],
    ['2001:db9::/32', 'prefix', 64, '2001:db9::/64'],
  ] as const) {
    const pool = await make('prefixes', { cidr, vrfId, allocationMode: 'pool' });
    const request = {
      kind,
      ...(prefixLength && { prefixLength }),
      record: { description: 'asked' },
    };
    const ask = async () => {
      const path = `/api/inventory/prefixes/${pool.id}/allocate`;
      let answer = await root.post<Allocated>(path, request);
      // On a busy machine a request may wait too long for a connection; it changed nothing then.
      while (answer.status === 503) answer = await root.post<Allocated>(path, request);
      return answer;
    };
    const answers = await Promise.all(Array.from({ length: 50 }, ask));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    const got = answers.map(({ body }) => body.address ?? body.cidr);
    expect([new Set(got).size, got.includes(first)]).toEqual([50, true]);
    expect(answers.every(({ body }) => body.description === 'asked' && body.vrfId === vrfId)).toBe(
      true,
    );
    // Freed space is allocated first.
    const freed = answers[7];
    const resource = kind === 'address' ? 'ip-addresses' : 'prefixes';
    await root.delete(`/api/inventory/${resource}/${freed?.body.id}`).expect(204);
    expect((await ask()).body[kind === 'address' ? 'address' : 'cidr']).toBe(got[7]);
  }
  expect(await inconsistentPrefixes(vrfId)).toEqual([]);
}, 60_000);

test('allocation continues after more addresses than one query reads', async () => {
  const vrfId = (await make('vrfs', { name: 'long' })).id;
  for (const [cidr, first, next] of [
    ['10.0.0.0/8', '10.0.0.0', '10.0.5.221/8'],
    ['2001:db8::/32', '2001:db8::', '2001:db8::5dd/32'],
  ] as const) {
    const pool = await make('prefixes', { cidr, vrfId, allocationMode: 'pool' });
    await app.deps.db.raw(
      "INSERT INTO ip_addresses (id, tenant_id, address, vrf_id, status) SELECT 'ipa_' || ? || n, 'platform', ?::inet + n, ?, 'active' FROM generate_series(1, 1500) AS n",
      [cidr, first, vrfId],
    );
    const ask = async () =>
      (
        await root
          .post<Allocated>(`/api/inventory/prefixes/${pool.id}/allocate`, { kind: 'address' })
          .expect(201)
      ).address;
    expect(await ask()).toBe(next);
    await app.deps
      .db('ip_addresses')
      .where({ vrf_id: vrfId })
      .whereRaw('host = ?::inet + 700', [first])
      .delete();
    expect(await ask()).toBe(first === '10.0.0.0' ? '10.0.2.188/8' : '2001:db8::2bc/32');
  }
});

test('allocation skips children, ranges and existing addresses', async () => {
  const vrfId = (await make('vrfs', { name: 'holes' })).id;
  const pool = await make('prefixes', { cidr: '10.0.0.0/27', vrfId, allocationMode: 'pool' });
  const next = async (length?: number) => {
    const { body } = await root.post<{ address?: string; cidr?: string; code?: string }>(
      `/api/inventory/prefixes/${pool.id}/allocate`,
      length === undefined ? { kind: 'address' } : { kind: 'prefix', prefixLength: length },
    );
    return body.address ?? body.cidr ?? body.code;
  };
  await make('ip-addresses', { address: '10.0.0.1', vrfId });
  await make('ip-ranges', { startAddress: '10.0.0.3', endAddress: '10.0.0.5', vrfId });
  await make('ip-ranges', { startAddress: '10.0.0.4', endAddress: '10.0.0.4', vrfId });
  expect([await next(), await next()]).toEqual(['10.0.0.2/27', '10.0.0.6/27']);
  // A child that comes to lie over where the search would go on.
  await make('prefixes', { cidr: '10.0.0.0/29', vrfId });
  expect([await next(), await next(30), await next(29), await next(29)]).toEqual([
    '10.0.0.8/27',
    '10.0.0.12/30',
    '10.0.0.16/29',
    '10.0.0.24/29',
  ]);
  expect([await next(), await next(), await next(), await next()]).toEqual([
    '10.0.0.9/27',
    '10.0.0.10/27',
    '10.0.0.11/27',
    'prefix_exhausted',
  ]);
});

test.each(['racks', 'cables', 'names'])(
  'concurrent requests for one slot: one succeeds (%s)',
  async (what) => {
    const site = await make('sites', { name: `site-${what}` });
    await root.post('/api/inventory/manufacturers', { name: 'M' });
    const type = await make('device-types', { manufacturerId: { name: 'M' }, model: `m-${what}` });
    const rack = await make('racks', { name: 'r', siteId: site.id });
    const sw = await make('devices', { name: 'sw', siteId: site.id, deviceTypeId: type.id });
    const ports = await Promise.all(
      Array.from({ length: 9 }, (_, i) => make('interfaces', { deviceId: sw.id, name: `p${i}` })),
    );
    const record = (i: number): [string, object] =>
      (
        ({
          racks: [
            'devices',
            {
              name: `d${i}`,
              siteId: site.id,
              deviceTypeId: type.id,
              rackId: rack.id,
              position: 5,
              face: 'front',
            },
          ],
          cables: [
            'cables',
            i % 2
              ? { aInterfaceId: ports[0]?.id, bInterfaceId: ports[1 + i]?.id }
              : { aInterfaceId: ports[1 + i]?.id, bInterfaceId: ports[0]?.id },
          ],
          names: ['sites', { name: 'the same' }],
        }) as Record<string, [string, object]>
      )[what] ?? ['', {}];
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        root.post(`/api/inventory/${record(i)[0]}`, record(i)[1]),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([
      201, 409, 409, 409, 409, 409, 409, 409,
    ]);
  },
);

test('a delete and concurrent new references exclude each other', async () => {
  for (let round = 0; round < propertyRuns(4); round++) {
    const region = await make('regions', { name: `deleted-${round}` });
    const [deletion, ...used] = await Promise.all([
      root.delete(`/api/inventory/regions/${region.id}`),
      ...Array.from({ length: 4 }, (_, i) =>
        root.post('/api/inventory/sites', { name: `s-${round}-${i}`, regionId: region.id }),
      ),
    ]);
    const there = used.filter(({ status }) => status === 201).length;
    expect([
      deletion.status,
      there > 0,
      used.every(({ status }) => [201, 400].includes(status)),
    ]).toEqual([there > 0 ? 409 : 204, there > 0, true]);
  }
});

test('an address that loses its interface keeps a concurrent change of itself', async () => {
  await root.post('/api/inventory/manufacturers', { name: 'M' });
  const type = await make('device-types', { manufacturerId: { name: 'M' }, model: 'freed' });
  const site = await make('sites', { name: 'freed' });
  const sw = await make('devices', { name: 'sw', siteId: site.id, deviceTypeId: type.id });
  for (let round = 0; round < propertyRuns(5); round++) {
    const port = await make('interfaces', { deviceId: sw.id, name: `p${round}` });
    const address = await make('ip-addresses', {
      address: `10.200.0.${round}`,
      interfaceId: port.id,
    });
    const [deletion, put] = await Promise.all([
      root.delete(`/api/inventory/interfaces/${port.id}`),
      root.put(`/api/inventory/ip-addresses/${address.id}`, { description: 'kept' }),
    ]);
    expect([deletion.status, put.status]).toEqual([204, 200]);
    expect((await root.get(`/api/inventory/ip-addresses/${address.id}`)).body).toMatchObject({
      description: 'kept',
      interfaceId: null,
      version: 3,
    });
  }
}, 60_000);

test.each([
  'a VLAN in a group that shrinks',
  'a value of a custom field that goes',
  'a device in a rack that shrinks',
])(
  'a referenced record is locked while another relies on it: %s',
  async (what) => {
    await root.post('/api/inventory/manufacturers', { name: 'M' });
    await root.post('/api/inventory/device-types', {
      manufacturerId: { name: 'M' },
      model: 'still',
    });
    for (let round = 0; round < propertyRuns(5); round++) {
      const name = `${what} ${round}`;
      const site = await make('sites', { name });
      let relies: [string, object];
      let change: () => Promise<{ status: number }>;
      if (what.includes('VLAN')) {
        const group = await make('vlan-groups', { name });
        relies = ['vlans', { groupId: { name }, vid: 50, name: 'v' }];
        change = () => root.put(`/api/inventory/vlan-groups/${group.id}`, { maxVid: 10 });
      } else if (what.includes('rack')) {
        const rack = await make('racks', { name, siteId: site.id });
        relies = [
          'devices',
          {
            name: 'd',
            siteId: { name },
            rackId: { name },
            position: 40,
            face: 'rear',
            deviceTypeId: { model: 'still' },
          },
        ];
        change = () => root.put(`/api/inventory/racks/${rack.id}`, { uHeight: 10 });
      } else {
        const field = await make('custom-fields', {
          resource: 'regions',
          name: `f${round}`,
          type: 'text',
        });
        relies = ['regions', { name, customFields: { [`f${round}`]: 'x' } }];
        change = () => root.delete(`/api/inventory/custom-fields/${field.id}`);
      }
      const [made, changed] = await Promise.all([
        root.post(`/api/inventory/${relies[0]}`, relies[1]),
        change(),
      ]);
      expect([made.status < 300, changed.status < 300].filter(Boolean)).toHaveLength(1);
    }
  },
  60_000,
);

test('of four changes of one version, one succeeds', async () => {
  const site = await make('sites', { name: 'versioned' });
  const answers = await Promise.all(
    [1, 2, 3, 4].map((i) =>
      root.put(
        `/api/inventory/sites/${site.id}`,
        { description: String(i) },
        { 'if-match': '"1"' },
      ),
    ),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412]);
});
