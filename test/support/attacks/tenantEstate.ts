import { publishEvents } from '../../../db/events/publish.ts';
import type { ResourceName } from '../../../domain/inventory/names.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import type { TestApp } from '../app.ts';
import { assignedToApprovers } from '../approvals.ts';
import type { TestClient } from '../client.ts';
import { OIDC_CONFIG } from '../contract/operations.ts';
import { admin, login, PASSWORD, type Page } from '../users.ts';

type OwnResource = Exclude<
  ResourceName,
  'manufacturers' | 'device-types' | 'device-roles' | 'platforms' | 'tags'
>;

/** The kinds of records of a tenant, besides those of the inventory. */
type OtherKind =
  | 'approval'
  | 'assignment'
  | 'audit'
  | 'backup'
  | 'delivery'
  | 'event'
  | 'hold'
  | 'import'
  | 'job'
  | 'mapping'
  | 'run'
  | 'schedule'
  | 'secret'
  | 'view'
  | 'service'
  | 'session'
  | 'token'
  | 'user'
  | 'webhook';

/** One record of each kind, by its id. */
export type TenantEstate = Readonly<Record<OwnResource | OtherKind, string>>;
export type SharedEstate = Readonly<
  Record<
    Exclude<ResourceName, OwnResource> | 'role' | 'provider' | 'pool' | 'runner' | 'jobType',
    string
  >
>;

type Created = { id: string };
const creator =
  (client: TestClient) =>
  async (path: string, body: object): Promise<string> => {
    const answer = await client.post<Created>(path, body);
    if (answer.status < 300) return answer.body.id;
    throw new Error(`${path} ${answer.status} ${JSON.stringify(answer.body)}`);
  };

/** A pool with a runner and an accepted type. */
async function seedRunners(
  app: TestApp,
): Promise<{ pool: string; runner: string; jobType: string }> {
  const { db, ids } = app.deps;
  const [pool, runner, jobType] = ['shared', ids.next('rnr'), 'shared.script'];
  await admin(app).post('/api/pools', { name: pool }).expect(201);
  await db('runners').insert({
    ...{
      id: runner,
      process_id: runner,
      pool,
      token_id: ids.next('tok'),
      name: 'host',
      version: '1',
    },
    ...{ slots: 1, types: '{}', started_at: new Date(), seen_at: new Date('2100-01-01') },
  });
  await db('job_types').insert({
    ...{ name: jobType, pool, state: 'accepted', shape: 'a', digest: 'b', accepted_by: 'root' },
    definition: JSON.stringify({
      ...{ name: jobType, summary: 'Shared', pool, targets: 'none', access: 'open' },
      ...{ payload: { type: 'object' }, timeoutSeconds: 60, lostAfterSeconds: 30 },
    }),
    ...{ accepted_at: new Date(), created_at: new Date(), updated_at: new Date(), version: 1 },
  });
  return { pool, runner, jobType };
}

/** Records of the platform, which belong to no tenant. */
export async function seedShared(app: TestApp): Promise<SharedEstate> {
  const create = creator(admin(app));
  const record = (resource: ResourceName, body: object) =>
    create(`/api/inventory/${resource}`, body);
  const manufacturers = await record('manufacturers', { name: 'maker' });
  return {
    manufacturers,
    'device-types': await record('device-types', { manufacturerId: manufacturers, model: 'm1' }),
    'device-roles': await record('device-roles', { name: 'leaf' }),
    platforms: await record('platforms', { name: 'os' }),
    tags: await record('tags', { id: 'core', name: 'Core' }),
    ...(await seedRunners(app)),
    role: await create('/api/rbac/roles', { name: 'Reader', permissions: ['job:read'] }),
    provider: await create('/api/auth/providers', {
      kind: 'oidc',
      name: 'Company',
      config: OIDC_CONFIG,
      enabled: false,
    }),
  };
}

/**
 * How the records of a tenant are called: each text has `label`, each number `network`. Two tenants may have the same.
 */
type Plan = { tenant: string; label: string; network: number };

/** The inventory of a tenant. */
export async function seedInventory(
  client: TestClient,
  { label, network }: Pick<Plan, 'label' | 'network'>,
  shared: SharedEstate,
) {
  const make = (resource: ResourceName, body: object) =>
    creator(client)(`/api/inventory/${resource}`, { description: `of ${label}`, ...body });
  const named = (text: string) => `${label}-${text}`;
  const regions = await make('regions', { name: named('region') });
  const sites = await make('sites', { name: named('site'), regionId: regions });
  const locations = await make('locations', { name: named('hall'), siteId: sites });
  const racks = await make('racks', {
    name: named('rack'),
    siteId: sites,
    locationId: locations,
    serial: named('serial'),
  });
  const devices = await make('devices', {
    name: named('device'),
    siteId: sites,
    rackId: racks,
    deviceTypeId: shared['device-types'],
    assetTag: named('asset'),
  });
  const port = (name: string) => make('interfaces', { deviceId: devices, name: named(name) });
  const interfaces = await port('e0');
  const cables = await make('cables', {
    aInterfaceId: interfaces,
    bInterfaceId: await port('e1'),
    label: named('label'),
  });
  const vrfs = await make('vrfs', { name: named('vrf'), rd: `65000:${network}` });
  const groups = await make('vlan-groups', { name: named('group'), siteId: sites });
  return {
    regions,
    sites,
    locations,
    racks,
    devices,
    interfaces,
    cables,
    vrfs,
    'vlan-groups': groups,
    vlans: await make('vlans', { name: named('vlan'), vid: 3_000 + network, groupId: groups }),
    prefixes: await make('prefixes', {
      cidr: `10.${network}.0.0/16`,
      siteId: sites,
      allocationMode: 'pool',
    }),
    'ip-ranges': await make('ip-ranges', {
      startAddress: `10.${network}.1.10`,
      endAddress: `10.${network}.1.20`,
      vrfId: vrfs,
    }),
    'ip-addresses': await make('ip-addresses', {
      address: `10.${network}.2.3/24`,
      interfaceId: interfaces,
      dnsName: `host.${label}.example`,
    }),
    'custom-fields': await make('custom-fields', {
      resource: 'sites',
      name: `owner_of_${label}`,
      type: 'text',
    }),
  };
}

/** An account of a tenant, with a role there. */
export async function seedAccount(
  app: TestApp,
  { username, roleId, tenantId }: { username: string; roleId: string; tenantId: string },
) {
  const create = creator(admin(app));
  const user = await create('/api/users', {
    username,
    displayName: `${username} of ${tenantId}`,
    email: `${username}@${tenantId}.example`,
    password: PASSWORD,
    mustChangePassword: false,
    tenantId,
  });
  const assignment = await create('/api/rbac/assignments', { userId: user, roleId, tenantId });
  const { accessToken } = await login(app, username).expect(200);
  return { user, assignment, client: app.client.as({ token: accessToken }) };
}

/** Creates a tenant with records of every kind, by requests of people of the tenant. */
export async function seedTenantEstate(
  app: TestApp,
  { tenant, label, network }: Plan,
  shared: SharedEstate,
): Promise<TenantEstate> {
  const root = creator(admin(app));
  const client = app.client.as({
    actor: `${tenant}-admin`,
    roles: 'platform-admin',
    tenant,
  });
  const create = creator(client);
  const tenants = await root('/api/inventory/tenants', { id: tenant, name: `${label} Ltd` });
  const inventory = await seedInventory(client, { label, network }, shared);
  const account = await seedAccount(app, {
    username: `${tenant}-ann`,
    roleId: 'operator',
    tenantId: tenant,
  });
  const sessions = await account.client.get<Page<Created>>('/api/auth/sessions').expect(200);
  const message = { message: `of ${label}` };
  const webhook = await create('/api/webhooks', {
    endpointUrl: `https://hooks.${label}.example/`,
    eventTypes: ['schedule.created'],
    description: `of ${label}`,
  });
  const schedule = await create('/api/schedules', {
    name: `${label} yearly`,
    cronExpression: '0 3 1 1 *',
    jobType: 'core.echo',
    payload: message,
  });
  const run = await client.post<Created>(`/api/schedules/${schedule}/trigger`).expect(202);
  const csv = { 'content-type': 'text/csv' };
  const imported = await client
    .post<Created>('/api/inventory/import?resource=sites', `name\n${label}-new\n`, csv)
    .expect(202);
  const { db } = app.deps;
  const newest = async (table: string): Promise<string> =>
    assertDefined(
      (await db(table).where({ tenant_id: tenant }).orderBy('id', 'desc').first<Created>('id'))?.id,
      `a row of ${table}`,
    );
  const others = {
    approval: await create('/api/workflows', {
      ...assignedToApprovers,
      title: `${label} request`,
      jobType: 'core.echo',
      jobPayload: message,
    }),
    assignment: account.assignment,
    backup: await create('/api/backup/create', { label: `${label}-backup` }),
    // In force much later: it keeps nothing that other attacks delete.
    hold: await create('/api/legal-holds', {
      reason: `case of ${label}`,
      subject: { type: 'webhook', id: webhook },
      startsAt: '2999-01-01T00:00:00.000Z',
    }),
    import: imported.id,
    job: await create('/api/jobs', { type: 'core.echo', payload: message }),
    mapping: await root('/api/rbac/provider-mappings', {
      providerId: shared.provider,
      externalGroup: `${label}-people`,
      roleId: 'viewer',
      tenantId: tenant,
    }),
    run: run.id,
    schedule,
    view: await create('/api/views', {
      list: '/inventory/sites',
      name: `view of ${label}`,
      search: { q: label },
      shared: true,
    }),
    secret: await create('/api/secrets', {
      name: 'key',
      value: `value of ${label}`,
      description: `of ${label}`,
      pools: ['default'],
    }),
    session: assertDefined(sessions.items[0], 'session').id,
    user: account.user,
    webhook,
  };
  const service = await create('/api/service-accounts', {
    name: `${label}-program`,
    ownerId: account.user,
  });
  const token = await create(`/api/service-accounts/${service}/tokens`, {
    name: `token of ${label}`,
  });
  const archivedAt = new Date('2020-02-01T00:00:00.000Z');
  await db('audit_archives').insert({
    id: app.deps.ids.next('aar'),
    tenant_id: tenant,
    job_id: others.job,
    status: 'completed',
    first_position: 1,
    position: 2,
    previous_hash: Buffer.alloc(32),
    hash: Buffer.alloc(32, network),
    first_at: archivedAt,
    last_at: archivedAt,
    last_id: 'aud_0',
    store: 'folder',
    archive: `${label}.hfb`,
    attempts: 1,
    size_bytes: 1,
    checkpoint_at: archivedAt,
    created_at: archivedAt,
    updated_at: archivedAt,
  });
  // Nothing publishes events in the background.
  await publishEvents(db, { limit: 10_000, maxDeliveries: 10_000 });
  return {
    tenants,
    ...inventory,
    ...others,
    service,
    token,
    audit: await newest('audit_entries'),
    delivery: await newest('deliveries'),
    event: await newest('events'),
  };
}
