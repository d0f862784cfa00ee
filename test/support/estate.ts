import pg from 'pg';
import { columnsOf, quoted, type Column } from '../../db/backups/catalog.ts';
import { askOf } from '../../db/backups/snapshot.ts';
import type { TestApp } from './app.ts';
import { STATE } from './backups.ts';
import { admin, PASSWORD } from './users.ts';

/** What belongs to no tenant. */
const SHARED: ReadonlySet<string> = new Set([
  'tags',
  'manufacturers',
  'device-types',
  'device-roles',
  'platforms',
  'users',
]);

/** Records of every section, made as people make them: an estate, accounts with rights, webhooks, schedules, jobs, a request. */
export async function furnish(app: TestApp, tenant = 'platform'): Promise<void> {
  const root = admin(app);
  const here = app.client.as({ actor: 'root', roles: 'platform-admin', tenant });
  const post = async (path: string, body: object): Promise<any> => {
    const answer = await (SHARED.has(path.split('/').at(-1) ?? '') ? root : here).post(path, body);
    if (answer.status >= 300) throw new Error(`${path} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const make = (resource: string, record: object) => post(`/api/inventory/${resource}`, record);
  const called = (name: string) => `${tenant}-${name}`;
  await make('tags', { id: called('core'), name: 'Core', color: '#ff0000' });
  await make('custom-fields', { resource: 'sites', name: `owner_${tenant}`, type: 'text' });
  const region = await make('regions', { name: called('europe') });
  await make('regions', { name: called('nl'), parentId: region.id });
  const site = await make('sites', {
    name: called('ams1'),
    regionId: region.id,
    tags: [called('core')],
    customFields: { [`owner_${tenant}`]: 'noc "1"\\2\t3' },
    description: 'Zürich\nline two',
  });
  const location = await make('locations', { name: 'room 1', siteId: site.id });
  const rack = await make('racks', { name: 'r1', siteId: site.id, locationId: location.id });
  const maker = await make('manufacturers', { name: called('maker') });
  const type = await make('device-types', { manufacturerId: maker.id, model: 'm1', uHeight: 2 });
  await make('device-roles', { name: called('leaf') });
  await make('platforms', { name: called('os'), manufacturerId: maker.id });
  const devices = [];
  for (const [name, position] of [
    ['d1', 1],
    ['d2', 5],
    ['d3', 9],
  ] as const)
    devices.push(
      await make('devices', {
        name,
        siteId: site.id,
        rackId: rack.id,
        position,
        face: 'front',
        deviceTypeId: type.id,
      }),
    );
  const ports = [];
  for (const device of devices)
    for (const name of ['e0', 'e1'])
      ports.push(await make('interfaces', { deviceId: device.id, name, kind: 'fiber' }));
  await make('cables', { aInterfaceId: ports[0].id, bInterfaceId: ports[2].id, label: 'c1' });
  await make('cables', { aInterfaceId: ports[3].id, bInterfaceId: ports[4].id });
  const vrf = await make('vrfs', { name: called('blue') });
  await make('vlan-groups', { name: called('g1'), siteId: site.id });
  await make('vlans', { vid: 10, name: 'mgmt', groupId: { name: called('g1') } });
  for (const cidr of ['10.0.0.0/8', '10.1.0.0/16', '10.1.1.0/24', '10.1.2.0/24', '2001:db8::/32'])
    await make('prefixes', { cidr, vrfId: vrf.id });
  await make('ip-ranges', { startAddress: '10.1.1.10', endAddress: '10.1.1.20', vrfId: vrf.id });
  for (let i = 1; i <= 8; i++)
    await make('ip-addresses', {
      address: `10.1.2.${i}/24`,
      vrfId: vrf.id,
      ...(i <= 6 && { interfaceId: ports[i - 1].id }),
    });
  const first = await here.get(`/api/inventory/ip-addresses?deviceId=${devices[0].id as string}`);
  await here.put(`/api/inventory/devices/${devices[0].id as string}`, {
    primaryIp4Id: first.body.items[0].id,
  });
  await root.post('/api/rbac/roles', {
    id: called('jobber'),
    name: 'Jobber',
    permissions: ['job:read', 'job:write'],
  });
  for (const name of ['ann', 'bob']) {
    const user = await post('/api/users', {
      username: called(name),
      password: PASSWORD,
      mustChangePassword: false,
      tenantId: tenant,
    });
    await root.post('/api/rbac/assignments', {
      userId: user.id,
      roleId: called('jobber'),
      tenantId: tenant,
    });
    await root.post('/api/rbac/assignments', {
      userId: user.id,
      roleId: 'viewer',
      siteId: site.id,
    });
  }
  await post('/api/webhooks', {
    endpointUrl: 'http://127.0.0.1:9/hook',
    eventTypes: ['job.failed'],
  });
  for (const name of ['nightly', 'yearly'])
    await post('/api/schedules', {
      name,
      cronExpression: '0 3 1 1 *',
      timezone: 'UTC',
      jobType: 'core.echo',
      payload: { message: name },
    });
  await here.post(
    '/api/jobs',
    { type: 'core.echo', payload: { message: 'hello' } },
    { prefer: 'wait=20' },
  );
  await post('/api/workflows', {
    type: 'change',
    title: 'Decide',
    payload: { why: 'test' },
    assignedUserIds: [],
    assignedRoleIds: ['approver'],
  });
}

/** Columns that may have any text, so that a change of them stands against nothing. */
const WORDS = new Set([
  'description',
  'display_name',
  'serial',
  'dns_name',
  'label',
  'color',
  'address',
]);
const FIXED = new Set(['cables', 'grants']);

/** Changes the records at random, as far as the rules of the database let it; some hundreds of changes, most of which hold. */
export async function shake(url: string, random: () => number, changes: number): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const columns = new Map<string, Column[]>();
  for (const name of STATE) columns.set(name, await columnsOf(askOf(client), 'public', name));
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  const word = () =>
    pick(['alpha', 'beta', 'gamma\\', 'δ', 'a\tb', 'line\nbreak', '"quoted"', '\\N']) +
    Math.floor(random() * 1e6).toString(36);
  let held = 0;
  try {
    for (let i = 0; i < changes; i++) {
      const table = pick(STATE);
      const own = columns.get(table) ?? [];
      const row = `(SELECT ctid FROM ${quoted(table)} OFFSET floor(${random()} * (SELECT count(*) FROM ${quoted(table)})) LIMIT 1)`;
      const text = own.filter(({ name, type }) => type === 'text' && WORDS.has(name));
      const roll = random();
      const sql =
        roll < 0.3
          ? `DELETE FROM ${quoted(table)} WHERE ctid = ${row}`
          : roll < 0.65 && text.length > 0
            ? `UPDATE ${quoted(table)} SET ${quoted(pick(text).name)} = ${client.escapeLiteral(table === 'sites' || table === 'users' ? word() : word().slice(0, 200))}, version = version + 1 WHERE ctid = ${row}`
            : FIXED.has(table)
              ? ''
              : `INSERT INTO ${quoted(table)} (${own.map(({ name }) => quoted(name)).join(', ')}) SELECT ${own.map(({ name }) => copied(name, table, `${i}${Math.floor(random() * 1e9).toString(36)}`)).join(', ')} FROM ${quoted(table)} WHERE ctid = ${row}`;
      if (sql === '') continue;
      try {
        await client.query('BEGIN');
        await client.query(sql);
        await client.query('SET CONSTRAINTS ALL IMMEDIATE');
        await client.query('COMMIT');
        held += 1;
      } catch {
        await client.query('ROLLBACK');
      }
    }
  } finally {
    await client.end();
  }
  return held;
}

/** A column of a copy: its own id and names, the rest as it was. */
function copied(name: string, table: string, suffix: string): string {
  if (name === 'id')
    return table === 'tags' || table === 'tenants' || table === 'roles'
      ? `left(id, 20) || '-${suffix.slice(0, 12)}'`
      : `left(id, 30 - length('${suffix.slice(0, 10)}')) || '${suffix.slice(0, 10)}'`;
  if (['name', 'username', 'model', 'external_id'].includes(name))
    return `${quoted(name)} || '-${suffix}'`;
  if (
    [
      'rd',
      'position',
      'rack_id',
      'face',
      'units',
      'depth',
      'asset_tag',
      'primary_ip4_id',
      'primary_ip6_id',
    ].includes(name) &&
    !(table === 'vlans')
  )
    return 'NULL';
  if (name === 'vid') return String(100 + (Number.parseInt(suffix, 36) % 3_000));
  if (name === 'cidr')
    return `network(set_masklen('172.16.0.0'::inet + ${Number.parseInt(suffix, 36) % 1_000_000}, 30))`;
  if (name === 'parent_prefix_id') return 'NULL';
  if (name === 'address' && table === 'ip_addresses')
    return `set_masklen('172.20.0.0'::inet + ${Number.parseInt(suffix, 36) % 1_000_000}, 24)`;
  return quoted(name);
}

/** Random numbers that are the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
