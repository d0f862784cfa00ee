import pg from 'pg';
import { quoteIdentifier, readColumns } from '../../db/backups/catalog.ts';
import { queryOn } from '../../db/backups/sql.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { TestApp } from './app.ts';
import { STATE_TABLES } from './backups.ts';
import type { RecordPage } from './inventory.ts';
import { admin, PASSWORD } from './users.ts';

/** What belongs to no tenant. */
const PLATFORM_RESOURCES: ReadonlySet<string> = new Set([
  'tags',
  'manufacturers',
  'device-types',
  'device-roles',
  'platforms',
  'users',
]);

/** Text that JSON can contain and PostgreSQL's text cannot. Payloads are stored as they were sent. */
const ODD = '\u0000 \ud800';

/** Records of every section, made as people make them: an estate, accounts with rights, webhooks, schedules, jobs, a request. */
export async function seedEstate(app: TestApp, tenant = 'platform'): Promise<void> {
  const root = admin(app);
  const atTenant = app.client.as({ actor: 'root', roles: 'platform-admin', tenant });
  const post = async (path: string, body: object): Promise<{ id: string }> => {
    const answer = await (
      PLATFORM_RESOURCES.has(path.split('/').at(-1) ?? '') ? root : atTenant
    ).post<{ id: string }>(path, body);
    if (answer.status >= 300) throw new Error(`${path} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const make = (resource: string, record: object) => post(`/api/inventory/${resource}`, record);
  const prefixed = (name: string) => `${tenant}-${name}`;
  await make('tags', { id: prefixed('core'), name: 'Core', color: '#ff0000' });
  await make('custom-fields', { resource: 'sites', name: `owner_${tenant}`, type: 'text' });
  const region = await make('regions', { name: prefixed('europe') });
  await make('regions', { name: prefixed('nl'), parentId: region.id });
  const site = await make('sites', {
    name: prefixed('ams1'),
    regionId: region.id,
    tags: [prefixed('core')],
    customFields: { [`owner_${tenant}`]: 'noc "1"\\2\t3' },
    description: 'Zürich\nline two',
  });
  const location = await make('locations', { name: 'hall 1', siteId: site.id });
  const rack = await make('racks', { name: 'r1', siteId: site.id, locationId: location.id });
  const maker = await make('manufacturers', { name: prefixed('maker') });
  const type = await make('device-types', { manufacturerId: maker.id, model: 'm1', uHeight: 2 });
  await make('device-roles', { name: prefixed('leaf') });
  await make('platforms', { name: prefixed('os'), manufacturerId: maker.id });
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
  await make('cables', { aInterfaceId: ports[0]?.id, bInterfaceId: ports[2]?.id, label: 'c1' });
  await make('cables', { aInterfaceId: ports[3]?.id, bInterfaceId: ports[4]?.id });
  const vrf = await make('vrfs', { name: prefixed('blue') });
  await make('vlan-groups', { name: prefixed('g1'), siteId: site.id });
  await make('vlans', { vid: 10, name: 'mgmt', groupId: { name: prefixed('g1') } });
  for (const cidr of ['10.0.0.0/8', '10.1.0.0/16', '10.1.1.0/24', '10.1.2.0/24', '2001:db8::/32'])
    await make('prefixes', { cidr, vrfId: vrf.id });
  await make('ip-ranges', { startAddress: '10.1.1.10', endAddress: '10.1.1.20', vrfId: vrf.id });
  for (let i = 1; i <= 8; i++)
    await make('ip-addresses', {
      address: `10.1.2.${i}/24`,
      vrfId: vrf.id,
      ...(i <= 6 && { interfaceId: ports[i - 1]?.id }),
    });
  const { id: deviceId } = assertDefined(devices[0], 'd1');
  const addresses = await atTenant
    .get<RecordPage>(`/api/inventory/ip-addresses?deviceId=${deviceId}`)
    .expect(200);
  await atTenant.put(`/api/inventory/devices/${deviceId}`, {
    primaryIp4Id: assertDefined(addresses.items[0], 'address of d1').id,
  });
  await post('/api/secrets', { name: prefixed('key'), value: 'of the estate', pools: ['default'] });
  await root.post('/api/rbac/roles', {
    id: prefixed('jobber'),
    name: 'Jobber',
    permissions: ['job:read', 'job:write'],
    jobTypes: ['net.*'],
  });
  for (const name of ['ann', 'bob']) {
    const user = await post('/api/users', {
      username: prefixed(name),
      password: PASSWORD,
      mustChangePassword: false,
      tenantId: tenant,
    });
    await root.post('/api/rbac/assignments', {
      userId: user.id,
      roleId: prefixed('jobber'),
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
      payload: { message: name, odd: ODD },
    });
  await atTenant.post(
    '/api/jobs',
    { type: 'core.echo', payload: { message: 'hello', odd: ODD } },
    { prefer: 'wait=20' },
  );
  await post('/api/workflows', {
    type: 'change',
    title: 'Decide',
    payload: { why: 'test', odd: ODD },
    assignedUserIds: [],
    assignedRoleIds: ['approver'],
  });
}

/** Columns without rules: any text is valid. */
const FREE_TEXT_COLUMNS = new Set([
  'description',
  'display_name',
  'serial',
  'dns_name',
  'label',
  'color',
  'address',
]);
const NOT_COPIED = new Set(['cables', 'grants']);

/** Changes the records at random, as far as the rules of the database let it; some hundreds of changes, most of which hold. */
export async function mutateRandomly(
  url: string,
  random: () => number,
  changes: number,
): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const columns = await readColumns(queryOn(client), 'public');
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  const word = () =>
    pick(['alpha', 'beta', 'gamma\\', 'δ', 'a\tb', 'line\nbreak', '"quoted"', '\\N']) +
    Math.floor(random() * 1e6).toString(36);
  let applied = 0;
  try {
    for (let i = 0; i < changes; i++) {
      const table = pick(STATE_TABLES);
      const own = columns.get(table) ?? [];
      const row = `(SELECT ctid FROM ${quoteIdentifier(table)} OFFSET floor(${random()} * (SELECT count(*) FROM ${quoteIdentifier(table)})) LIMIT 1)`;
      const text = own.filter(({ name, type }) => type === 'text' && FREE_TEXT_COLUMNS.has(name));
      const roll = random();
      const sql =
        roll < 0.3
          ? `DELETE FROM ${quoteIdentifier(table)} WHERE ctid = ${row}`
          : roll < 0.65 && text.length > 0
            ? `UPDATE ${quoteIdentifier(table)} SET ${quoteIdentifier(pick(text).name)} = ${client.escapeLiteral(table === 'sites' || table === 'users' ? word() : word().slice(0, 200))}, version = version + 1 WHERE ctid = ${row}`
            : NOT_COPIED.has(table)
              ? ''
              : `INSERT INTO ${quoteIdentifier(table)} (${own.map(({ name }) => quoteIdentifier(name)).join(', ')}) SELECT ${own.map(({ name }) => copiedColumn(name, table, `${i}${Math.floor(random() * 1e9).toString(36)}`)).join(', ')} FROM ${quoteIdentifier(table)} WHERE ctid = ${row}`;
      if (sql === '') continue;
      try {
        await client.query('BEGIN');
        await client.query(sql);
        await client.query('SET CONSTRAINTS ALL IMMEDIATE');
        await client.query('COMMIT');
        applied += 1;
      } catch {
        await client.query('ROLLBACK');
      }
    }
  } finally {
    await client.end();
  }
  return applied;
}

/** A column of a copy: its own id and names, the rest as it was. */
function copiedColumn(name: string, table: string, suffix: string): string {
  if (name === 'id')
    return table === 'tags' || table === 'tenants' || table === 'roles'
      ? `left(id, 20) || '-${suffix.slice(0, 12)}'`
      : `left(id, 30 - length('${suffix.slice(0, 10)}')) || '${suffix.slice(0, 10)}'`;
  if (['name', 'username', 'model', 'external_id'].includes(name))
    return `${quoteIdentifier(name)} || '-${suffix}'`;
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
  return quoteIdentifier(name);
}

/** Random numbers that are the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
