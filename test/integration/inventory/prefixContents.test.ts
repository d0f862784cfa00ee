import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { formatHost } from '../../../domain/inventory/cidr.ts';
import { MAX_FREE } from '../../../services/inventory/addressSpace.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { recordFactory } from '../../support/inventory.ts';
import { admin, createUser } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
});
afterAll(() => app.stop());
const make = recordFactory(() => root);

type TreePage = {
  children: { cidr: string }[];
  free: string[];
  complete: boolean;
  nextCursor: string | null;
};

test('a page of a tree starts at a network, or ends before one', async () => {
  const top = await make('prefixes', { cidr: '172.27.0.0/16' });
  for (const third of [0, 1, 2, 4, 5, 9]) await make('prefixes', { cidr: `172.27.${third}.0/24` });
  const path = `/api/inventory/prefixes/${top.id}/tree`;
  const page = async (query: string) => {
    const { children, free, nextCursor } = await root.get<TreePage>(`${path}?${query}`).expect(200);
    return { children: children.map(({ cidr }) => cidr), free, nextCursor };
  };
  const from = await page('limit=2&from=172.27.3.0/24');
  expect([from.children, from.free]).toEqual([
    ['172.27.4.0/24', '172.27.5.0/24'],
    ['172.27.3.0/24'],
  ]);
  const rest = await page(`limit=9&cursor=${from.nextCursor}`);
  expect(rest.children).toEqual(['172.27.9.0/24']);
  expect(rest.free.slice(0, 2)).toEqual(['172.27.6.0/23', '172.27.8.0/24']);
  const before = await page('limit=2&before=172.27.5.0/24');
  expect(before).toEqual({
    children: ['172.27.2.0/24', '172.27.4.0/24'],
    free: ['172.27.3.0/24'],
    nextCursor: null,
  });
  const first = await page('limit=9&before=172.27.2.0/24');
  expect([first.children, first.free]).toEqual([['172.27.0.0/24', '172.27.1.0/24'], []]);
  for (const query of ['from=10.0.0.0/24', 'before=x', `from=172.27.3.0/24&before=172.27.4.0/24`])
    await root.get(`${path}?${query}`).expect(400);
});

test('a page of a tree that starts inside a child has nothing of it as free', async () => {
  const top = await make('prefixes', { cidr: '172.26.0.0/16' });
  await make('prefixes', { cidr: '172.26.0.0/24' });
  await make('prefixes', { cidr: '172.26.2.0/24' });
  const path = `/api/inventory/prefixes/${top.id}/tree?limit=2&from=172.26.0.128/25`;
  const { children, free } = await root.get<TreePage>(path).expect(200);
  expect(children.map(({ cidr }) => cidr)).toEqual(['172.26.2.0/24']);
  expect(free[0]).toBe('172.26.1.0/24');
});

test('no page of a tree has what a child of an earlier page contains as free', async () => {
  for (const id of ['wide', 'narrow']) await make('tenants', { id, name: id });
  await make('prefixes', { cidr: '172.25.0.0/16', tenantId: 'wide' });
  for (const third of [1, 2, 9])
    await make('prefixes', { cidr: `172.25.${third}.0/24`, tenantId: 'narrow' });
  const top = await make('prefixes', { cidr: '172.24.0.0/13' });
  const path = `/api/inventory/prefixes/${top.id}/tree`;
  const free: string[] = [];
  let cursor = '';
  do {
    const page = await root.get<TreePage>(`${path}?limit=1${cursor}`).expect(200);
    free.push(...page.free);
    cursor = page.nextCursor === null ? '' : `&cursor=${page.nextCursor}`;
  } while (cursor !== '');
  expect(free.filter((network) => network.startsWith('172.25.'))).toEqual([]);
  const before = await root.get<TreePage>(`${path}?limit=1&before=172.25.9.0/24`).expect(200);
  expect(before.free).toEqual([]);
});

test('a tree lists a part of very many free networks', async () => {
  const top = await make('prefixes', { cidr: '2001:db8:26::/64' });
  const first = 0x20010db800260000n << 64n;
  const address = (n: number) =>
    formatHost(6, first + ((BigInt(n) * 0x9e3779b97f4a7c15n) & (2n ** 64n - 1n)));
  const mutations = Array.from({ length: 200 }, (_, n) => ({
    resource: 'ip-addresses',
    operation: 'create',
    record: { address: address(n + 1) },
  }));
  await root.post('/api/inventory/bulk', { mutations }).expect(200);
  const path = `/api/inventory/prefixes/${top.id}/tree`;
  const { free, ...page } = await root.get<TreePage>(path).expect(200);
  expect([free.length, page.complete]).toEqual([MAX_FREE, false]);
});

test('IPv6 networks that PostgreSQL writes with an IPv4 suffix are read as they were written', async () => {
  const top = await make('prefixes', { cidr: '::a00:0/104' });
  const inside = await make('prefixes', { cidr: '::a00:100/120' });
  const { id } = await make('ip-addresses', { address: '::10.0.1.5/120' });
  type Read = { cidr?: string; address?: string; parentPrefixId?: string };
  expect(await root.get<Read>(`/api/inventory/prefixes/${inside.id}`).expect(200)).toMatchObject({
    cidr: '::a00:100/120',
    parentPrefixId: top.id,
  });
  expect((await root.get<Read>(`/api/inventory/ip-addresses/${id}`).expect(200)).address).toBe(
    '::a00:105/120',
  );
  type Map = { prefixes: { cidr: string }[] };
  const path = `/api/inventory/prefixes/${top.id}`;
  expect((await root.get<Map>(`${path}/map`).expect(200)).prefixes).toMatchObject([
    { cidr: '::a00:100/120' },
  ]);
  const { children, free } = await root.get<TreePage>(`${path}/tree`).expect(200);
  expect([children[0]?.cidr, free[0], free.at(-1)]).toEqual([
    '::a00:100/120',
    '::a00:0/120',
    '::a80:0/105',
  ]);
});

type Contents = {
  addresses: { address: string; id: string | null; interfaceId: string | null }[];
  ranges: { start: string; end: string }[];
  complete: boolean;
};

test('the contents of a prefix are its addresses and ranges, or those of a part', async () => {
  const top = await make('prefixes', { cidr: '172.28.0.0/16' });
  await make('prefixes', { cidr: '172.28.1.0/24' });
  for (const address of ['172.28.1.9', '172.28.0.7', '172.28.1.2'])
    await make('ip-addresses', { address });
  await make('ip-ranges', { startAddress: '172.28.0.200', endAddress: '172.28.1.1' });
  const path = `/api/inventory/prefixes/${top.id}/contents`;
  const whole = await root.get<Contents>(path).expect(200);
  expect(whole.addresses.map(({ address }) => address)).toEqual([
    ...['172.28.0.7', '172.28.1.2', '172.28.1.9'],
  ]);
  expect(whole).toMatchObject({
    complete: true,
    ranges: [{ start: '172.28.0.200', end: '172.28.1.1', status: 'active' }],
  });
  const part = await root.get<Contents>(`${path}?within=172.28.1.0/30`).expect(200);
  expect(part.addresses.map(({ address }) => address)).toEqual(['172.28.1.2']);
  expect(part.ranges).toHaveLength(1);
  await root.get(`${path}?within=172.0.0.0/8`).expect(400);
  // An address at a site that the reader may not read is taken, and has no name.
  const [seen, hidden] = [
    await make('sites', { name: 'seen' }),
    await make('sites', { name: 'unseen' }),
  ];
  const mine = await make('prefixes', { cidr: '172.29.0.0/24', siteId: seen.id });
  await make('prefixes', { cidr: '172.29.0.128/25', siteId: hidden.id });
  await make('ip-addresses', { address: '172.29.0.129', dnsName: 'secret.example.net' });
  const { client } = await createUser(app, {
    roleId: 'viewer',
    siteId: seen.id,
    tenantId: 'platform',
  });
  const { addresses } = await client
    .get<Contents>(`/api/inventory/prefixes/${mine.id}/contents`)
    .expect(200);
  expect(addresses).toEqual([
    {
      ...{ address: '172.29.0.129', id: null, status: null },
      ...{ dnsName: null, interfaceId: null, deviceId: null },
    },
  ]);
});

test('cursors of a tree name no child that its reader may not read, and no child is lost or repeated', async () => {
  const site = await make('sites', { name: 'cursors' });
  const vrf = await make('vrfs', { name: 'cursors', enforceUnique: false });
  const other = await make('sites', { name: 'cursors elsewhere' });
  const top = await make('prefixes', { cidr: '172.24.0.0/16', vrfId: vrf.id, siteId: site.id });
  const networks = ['0', '1', '1', '1', '2', '3'].map((third) => `172.24.${third}.0/24`);
  for (const [i, cidr] of networks.entries())
    await make('prefixes', { cidr, vrfId: vrf.id, siteId: i === 4 ? site.id : other.id });
  const { client: reader } = await createUser(app, { roleId: 'viewer', siteId: site.id });
  const children: string[] = [];
  const named: string[] = [];
  for (let cursor: string | null = ''; cursor !== null && children.length < 10;) {
    const path = `/api/inventory/prefixes/${top.id}/tree?limit=1${cursor && `&cursor=${cursor}`}`;
    const page: TreePage = await reader.get<TreePage>(path).expect(200);
    children.push(...page.children.map(({ cidr }) => cidr));
    cursor = page.nextCursor;
    const text = Buffer.from(cursor ?? '', 'base64url').toString();
    named.push(String(/pfx_\w+(?="\]$)/.exec(text)?.[0]));
  }
  expect(children).toEqual(networks);
  // Equal networks need their ids.
  expect(named.map((id) => id.startsWith('pfx_'))).toEqual([false, true, true, false, true, false]);
});
