// One table of every operation that acts on a record: it is read as a whole.
/* oxlint-disable max-lines */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { allRoutes } from '../../../api/app.ts';
import { permissionsOf } from '../../../api/http/route.ts';
import { PERMISSIONS, type Permission } from '../../../domain/access/permissions.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import type { EventWithDeliveries } from '../../../api/events/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { DeliveryRecord, WebhookWithDeliveries } from '../../../api/webhooks/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { createArchiveFolder } from '../../support/backups.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { startSink, type Sink } from '../../support/sink.ts';
import { acceptedType } from '../../support/runner.ts';
import { admin, createUser, PASSWORD, seedTenant } from '../../support/users.ts';

const WAIT = { prefer: 'wait=20' };

/** The tenant of all records of this file. */
const TENANT = 'red';

let app: TestApp;
let sink: Sink;
let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
/** Creates the records: an administrator of the tenant. */
let owner: TestClient;
/** May read everything where the records are, and act on everything elsewhere. */
let reader: TestClient;
/** The same for records of the platform. */
let platformReader: TestClient;
/** Holds every permission elsewhere. */
let outsider: TestClient;

const roleOf = (permission: Permission) => `only-${permission.replace(':', '-')}`;

/** A caller who holds nothing but one permission at a tenant. */
const holderOf = (permission: Permission, tenant = TENANT): TestClient =>
  app.client.as({ actor: 'holder', roles: roleOf(permission), tenant });

beforeAll(async () => {
  archives = await createArchiveFolder();
  [app, sink] = await Promise.all([startApp(archives.env), startSink()]);
  await seedTenant(app, TENANT);
  await seedTenant(app, 'blue');
  const addRole = (id: string, permissions: readonly Permission[]) =>
    admin(app).post('/api/rbac/roles', { id, name: id, permissions }).expect(201);
  const isRead = (permission: Permission) => permission.endsWith(':read');
  await addRole('reads', PERMISSIONS.filter(isRead));
  await addRole(
    'acts',
    PERMISSIONS.filter((permission) => !isRead(permission)),
  );
  for (const permission of PERMISSIONS) await addRole(roleOf(permission), [permission]);
  owner = app.client.as({ actor: 'owner', roles: 'platform-admin', tenant: TENANT });
  const acts = { roleId: 'acts', tenantId: 'blue' };
  reader = (await createUser(app, { roleId: 'reads', tenantId: TENANT }, acts)).client;
  platformReader = (await createUser(app, 'reads', acts)).client;
  outsider = (await createUser(app, { roleId: 'reads', tenantId: 'blue' }, acts)).client;
});
afterAll(async () => {
  await app.stop();
  await sink.stop();
  await archives.remove();
});

type WithId = { id: string };
/** A record to act on: the path of the request, and its body. */
type Prepared = { path: string; body?: object };
type Acting = {
  permission: Permission;
  /** The status for a caller with nothing but the permission. */
  status: number;
  /** The record belongs to the platform: without permission there, every id is 403. */
  atPlatform?: true;
  prepare(): Promise<Prepared>;
};
const echo = { type: 'core.echo', payload: {} };
const prefixCounter = { next: 0 };
const newPrefix = () => ({ cidr: `10.77.${prefixCounter.next++}.0/24`, allocationMode: 'pool' });
const created = (path: string, body: object, client = owner): Promise<WithId> =>
  client.post<WithId>(path, body).expect(201);
let names = 0;
const newName = () => `name-${names++}`;
const schedule = () => ({ name: newName(), cronExpression: '0 3 * * *', jobType: 'core.echo' });
const newJob = async (job: object, headers = {}) =>
  owner.post<JobRecord>('/api/jobs', job, headers).expect(201);
const newWebhook = () =>
  created('/api/webhooks', { endpointUrl: sink.url('/hook'), eventTypes: ['webhook.created'] });
const newUser = () => created('/api/users', { username: newName(), tenantId: TENANT });
const service = async () => ({ name: newName(), ownerId: (await newUser()).id });
const newService = async () => created('/api/service-accounts', await service());
const newRole = () =>
  created('/api/rbac/roles', { id: newName(), name: 'x', permissions: ['job:read'] }, admin(app));
const LDAP = { url: 'ldaps://127.0.0.1:1', bindDn: 'cn=x', bindPassword: 'x', userBaseDn: 'ou=x' };
const ldap = { kind: 'ldap', config: { ...LDAP, allowPrivateNetwork: true } };
const provider = () => ({ ...ldap, name: newName() });
const newProvider = () => created('/api/auth/providers', provider(), admin(app));
const newAssignment = async () =>
  created('/api/rbac/assignments', {
    userId: (await newUser()).id,
    roleId: 'viewer',
    tenantId: TENANT,
  });
const newMapping = () =>
  created('/api/rbac/provider-mappings', {
    providerId: 'local',
    externalGroup: newName(),
    roleId: 'viewer',
    tenantId: TENANT,
  });
const newApproval = () =>
  created('/api/workflows', {
    type: 'change',
    title: 'a request',
    payload: {},
    assignedUserIds: [],
    assignedRoleIds: [roleOf('workflow:approve')],
  });
const newBackup = () =>
  owner
    .post<WithId>('/api/backup/create', { mode: 'partial', sections: ['settings'] }, WAIT)
    .expect(201);
async function newDelivery(): Promise<DeliveryRecord> {
  const { id } = await newWebhook();
  const { body } = await eventually(
    () => owner.get<WebhookWithDeliveries>(`/api/webhooks/${id}`),
    ({ body: { deliveries } }) => deliveries.some(({ status }) => status === 'succeeded'),
  );
  const isSent = ({ status }: DeliveryRecord) => status === 'succeeded';
  return assertDefined(body.deliveries.find(isSent), 'delivery');
}
const acting = (
  permission: Permission,
  status: number,
  make: () => Promise<WithId>,
  path: (id: string) => string,
  body?: object,
): Acting => ({
  permission,
  status,
  prepare: async () => ({ path: path((await make()).id), ...(body && { body }) }),
});
const onPlatform = (each: Acting): Acting => ({ ...each, atPlatform: true });
const byTypeWriter = (status: number, path: string, make: () => Promise<WithId>, body = {}) =>
  onPlatform(acting('jobtype:write', status, make, (id) => path.replace('*', id), body));

// One in force would keep the other tests from deleting.
const hold = () => ({ reason: 'A case', startsAt: '2100-01-01T00:00:00Z' });
const newPool = () => created('/api/pools', { name: newName() }, admin(app));
const newRunner = async () => ({ id: (await acceptedType(app, newName())).runner });
const newType = async () => ({ id: (await acceptedType(app, newName())).type });
const secret = () => ({ name: newName(), value: 'a value' });
const newSecret = () => created('/api/secrets', secret());
/** A session of a user, as the path below `/api/users`. */
const newUserSession = async () => {
  const account = { username: newName(), password: PASSWORD, mustChangePassword: false };
  const { id } = await created('/api/users', { ...account, tenantId: TENANT });
  const { username, password } = account;
  await app.client
    .as({ token: null })
    .post('/api/auth/login/local', { username, password })
    .expect(200);
  const { items } = await owner.get<{ items: WithId[] }>(`/api/users/${id}/sessions`).expect(200);
  return { id: `${id}/sessions/${assertDefined(items[0], 'session').id}` };
};
const newSchedule = () => created('/api/schedules', schedule());
const newPrefixRecord = () => created('/api/inventory/prefixes', newPrefix());
const longJob = () => newJob({ type: 'core.sleep', payload: { durationMs: 60_000 } });
const endedJob = () => newJob(echo, WAIT);
const tenant = () => Promise.resolve({ id: TENANT });
const ofTenant = (area: string) => (id: string) => `/api/${area}/${id}`;
const actionOf = (area: string, action: string) => (id: string) => `/api/${area}/${id}/${action}`;
const prefixOf = (id: string) => `/api/inventory/prefixes/${id}`;
const onService = (status: number, action: string, body: object) =>
  acting('user:write', status, newService, (id) => `/api/service-accounts/${id}${action}`, body);

const scheduleAction = (action: string, status: number, body: object): Acting =>
  acting('schedule:write', status, newSchedule, actionOf('schedules', action), body);
const BACKFILL = { since: '2026-01-01T00:00:00Z', until: '2026-01-02T12:00:00Z' };

/** Every operation on one record, by method and path. */
const ACTING: Readonly<Record<string, Acting>> = {
  'POST /api/jobs/{jobId}/cancel': acting('job:cancel', 202, longJob, actionOf('jobs', 'cancel')),
  'POST /api/jobs/{jobId}/retry': acting('job:write', 201, endedJob, actionOf('jobs', 'retry')),
  'DELETE /api/rbac/assignments/{id}': acting(
    'rbac:write',
    204,
    newAssignment,
    (id) => `/api/rbac/assignments/${id}`,
  ),
  'DELETE /api/rbac/provider-mappings/{id}': acting(
    'rbac:write',
    204,
    newMapping,
    (id) => `/api/rbac/provider-mappings/${id}`,
  ),
  'PUT /api/pools/{name}': byTypeWriter(200, '/api/pools/*', newPool),
  'DELETE /api/pools/{name}': byTypeWriter(204, '/api/pools/*', newPool),
  'DELETE /api/runners/{id}': byTypeWriter(204, '/api/runners/*', newRunner),
  'POST /api/job-types/{name}/accept': byTypeWriter(200, '/api/job-types/*/accept', newType),
  'POST /api/job-types/{name}/disable': byTypeWriter(200, '/api/job-types/*/disable', newType),
  'DELETE /api/job-types/{name}': byTypeWriter(204, '/api/job-types/*', newType),
  'PUT /api/rbac/roles/{id}': onPlatform(
    acting('rbac:write', 200, newRole, (id) => `/api/rbac/roles/${id}`, { name: 'y' }),
  ),
  'DELETE /api/rbac/roles/{id}': onPlatform(
    acting('rbac:write', 204, newRole, (id) => `/api/rbac/roles/${id}`),
  ),
  'PUT /api/users/{id}': acting('user:write', 200, newUser, (id) => `/api/users/${id}`, {
    displayName: 'Someone',
  }),
  'DELETE /api/users/{id}/sessions': acting(
    'user:write',
    204,
    newUser,
    actionOf('users', 'sessions'),
  ),
  'DELETE /api/users/{id}/sessions/{sessionId}': acting(
    'user:write',
    204,
    newUserSession,
    (path) => `/api/users/${path}`,
  ),
  'POST /api/users/{id}/reset-password': acting(
    'user:write',
    200,
    newUser,
    actionOf('users', 'reset-password'),
    {},
  ),
  'PUT /api/service-accounts/{id}': onService(200, '', { displayName: 'A program' }),
  'POST /api/service-accounts/{id}/tokens': onService(201, '/tokens', { name: 'a token' }),
  'PUT /api/auth/providers/{id}': onPlatform(
    acting('auth:write', 200, newProvider, (id) => `/api/auth/providers/${id}`, {
      enabled: false,
    }),
  ),
  'DELETE /api/auth/providers/{id}': onPlatform(
    acting('auth:write', 204, newProvider, (id) => `/api/auth/providers/${id}`),
  ),
  'POST /api/auth/providers/{id}/test': onPlatform(
    acting('auth:write', 200, newProvider, actionOf('auth/providers', 'test'), {}),
  ),
  'PUT /api/webhooks/{id}': acting(
    'webhook:write',
    200,
    newWebhook,
    (id) => `/api/webhooks/${id}`,
    {
      enabled: false,
    },
  ),
  'DELETE /api/webhooks/{id}': acting(
    'webhook:delete',
    204,
    newWebhook,
    (id) => `/api/webhooks/${id}`,
  ),
  'POST /api/webhooks/{id}/test': acting(
    'webhook:write',
    200,
    newWebhook,
    actionOf('webhooks', 'test'),
  ),
  'POST /api/webhooks/{id}/rotate-secret': acting(
    'webhook:write',
    200,
    newWebhook,
    actionOf('webhooks', 'rotate-secret'),
    {},
  ),
  'POST /api/webhooks/{id}/replay': acting(
    'webhook:write',
    202,
    newWebhook,
    actionOf('webhooks', 'replay'),
    { afterSequence: 0 },
  ),
  'POST /api/deliveries/{id}/redeliver': acting(
    'webhook:write',
    202,
    newDelivery,
    actionOf('deliveries', 'redeliver'),
  ),
  'PUT /api/schedules/{id}': acting(
    'schedule:write',
    200,
    newSchedule,
    (id) => `/api/schedules/${id}`,
    {
      description: 'changed',
    },
  ),
  'DELETE /api/schedules/{id}': acting(
    'schedule:write',
    204,
    newSchedule,
    (id) => `/api/schedules/${id}`,
  ),
  'POST /api/schedules/{id}/trigger': acting(
    'schedule:write',
    202,
    newSchedule,
    actionOf('schedules', 'trigger'),
  ),
  'POST /api/schedules/{id}/pause': scheduleAction('pause', 200, {}),
  'POST /api/schedules/{id}/resume': scheduleAction('resume', 200, {}),
  'POST /api/schedules/{id}/backfill': scheduleAction('backfill', 202, BACKFILL),
  'POST /api/schedules/{id}/backfill/preview': scheduleAction('backfill/preview', 200, BACKFILL),
  'POST /api/workflows/{id}/approve': acting(
    'workflow:approve',
    200,
    newApproval,
    actionOf('workflows', 'approve'),
    {},
  ),
  'POST /api/workflows/{id}/reject': acting(
    'workflow:approve',
    200,
    newApproval,
    actionOf('workflows', 'reject'),
    {},
  ),
  'POST /api/workflows/{id}/comments': acting(
    'workflow:write',
    200,
    newApproval,
    actionOf('workflows', 'comments'),
    { text: 'why?' },
  ),
  'DELETE /api/backup/{backupId}': acting(
    'backup:write',
    204,
    newBackup,
    (id) => `/api/backup/${id}`,
  ),
  'POST /api/backup/restore': {
    permission: 'backup:restore',
    status: 202,
    prepare: async () => ({
      path: '/api/backup/restore',
      body: { backupId: (await newBackup()).id, preRestoreBackup: false },
    }),
  },
  'PUT /api/inventory/prefixes/{id}': acting('inventory:write', 200, newPrefixRecord, prefixOf, {
    description: 'changed',
  }),
  'DELETE /api/inventory/prefixes/{id}': acting('inventory:write', 204, newPrefixRecord, prefixOf),
  'POST /api/inventory/prefixes/{id}/allocate': acting(
    'inventory:write',
    201,
    newPrefixRecord,
    actionOf('inventory/prefixes', 'allocate'),
    { kind: 'address' },
  ),
  'PUT /api/quotas/{tenantId}': onPlatform(
    acting('rbac:write', 200, tenant, ofTenant('quotas'), {}),
  ),
  'DELETE /api/quotas/{tenantId}': onPlatform(
    acting('rbac:write', 204, tenant, ofTenant('quotas')),
  ),
  'PUT /api/retention/{tenantId}': acting('rbac:write', 200, tenant, ofTenant('retention'), {}),
  'DELETE /api/retention/{tenantId}': acting('rbac:write', 204, tenant, ofTenant('retention')),
  'PUT /api/secrets/{id}': acting('secret:write', 200, newSecret, (id) => `/api/secrets/${id}`, {
    value: 'the next value',
  }),
  'DELETE /api/secrets/{id}': acting('secret:write', 204, newSecret, (id) => `/api/secrets/${id}`),
  'POST /api/legal-holds/{id}/release': acting(
    'hold:release',
    200,
    () => created('/api/legal-holds', hold()),
    actionOf('legal-holds', 'release'),
    { reason: 'The case is closed' },
  ),
};

describe('acting on a record', () => {
  test('every operation is in the table of this test', () => {
    const paths = allRoutes(app.deps, 'test')
      .filter((route) => route.method !== 'GET' && route.path.includes('{'))
      .filter((route) => permissionsOf(route).length > 0)
      .map(({ method, path }) => `${method} ${path}`)
      // Only who has sent a file may apply it, which the tests of imports judge.
      .filter((each) => each !== 'POST /api/inventory/imports/{id}/apply')
      // All resources of the inventory have the same operations.
      .map((each) => each.replace(/inventory\/[a-z-]+\/\{id\}/, 'inventory/prefixes/{id}'));
    expect(paths.filter((each) => !Object.hasOwn(ACTING, each))).toEqual([]);
  });

  describe.each(Object.entries(ACTING))(
    '%s',
    (operation, { permission, status, atPlatform, prepare }) => {
      const method = operation.slice(0, operation.indexOf(' '));

      test(`needs ${permission} alone; reading it is 403, neither is 404`, async () => {
        const { path, body } = await prepare();
        if (!atPlatform) {
          const hidden = await outsider.send<ProblemBody>(method, path, body);
          expect([hidden.status, hidden.body.code]).toEqual([404, 'not_found']);
        }
        const denied = await (atPlatform ? platformReader : reader).send<ProblemBody>(
          method,
          path,
          body,
        );
        const where = atPlatform ? 'the platform' : `tenant ${TENANT}`;
        expect([denied.status, denied.body.code, denied.body.detail]).toEqual([
          403,
          'permission_denied',
          `Permission ${permission} is missing at ${where}.`,
        ]);
        const holder = holderOf(permission, atPlatform ? 'platform' : TENANT);
        await holder.send(method, path, body, WAIT).expect(status);
      });
    },
  );
});

/** Every operation that creates a record, by path: the permission that suffices and a body. */
const CREATING: Readonly<
  Record<string, [Permission, () => Promise<object> | object, tenant?: 'platform']>
> = {
  '/api/jobs': ['job:write', () => echo],
  '/api/legal-holds': ['hold:write', hold],
  '/api/secrets': ['secret:write', secret],
  '/api/schedules': ['schedule:write', schedule],
  '/api/backup/schedules': [
    'schedule:write',
    () => ({ name: 'nightly', cronExpression: '0 3 * * *', mode: 'full', label: 'nightly' }),
  ],
  '/api/webhooks': [
    'webhook:write',
    () => ({ endpointUrl: sink.url('/made'), eventTypes: '*', enabled: false }),
  ],
  '/api/users': ['user:write', () => ({ username: newName(), password: PASSWORD })],
  '/api/service-accounts': ['user:write', service],
  '/api/backup/create': ['backup:write', () => ({ mode: 'partial', sections: ['settings'] })],
  '/api/inventory/prefixes': ['inventory:write', newPrefix],
  '/api/rbac/assignments': [
    'rbac:write',
    async () => ({
      userId: (await newUser()).id,
      roleId: roleOf('rbac:write'),
      tenantId: TENANT,
    }),
  ],
  '/api/rbac/provider-mappings': [
    'rbac:write',
    () => ({
      providerId: 'local',
      externalGroup: newName(),
      roleId: roleOf('rbac:write'),
      tenantId: TENANT,
    }),
  ],
  '/api/rbac/roles': [
    'rbac:write',
    () => ({ id: newName(), name: 'x', permissions: ['rbac:write'] }),
    'platform',
  ],
  '/api/auth/providers': ['auth:write', provider, 'platform'],
  '/api/pools': ['jobtype:write', () => ({ name: newName() }), 'platform'],
  '/api/workflows': [
    'workflow:write',
    () => ({
      type: 'change',
      title: 'a request',
      payload: {},
      assignedUserIds: [],
      assignedRoleIds: ['approver'],
    }),
  ],
};

test('every operation that creates a record is in the table of this test', () => {
  // A file and a batch are written with the permission of their records; a validation is no record.
  const others = ['/api/inventory/import', '/api/inventory/bulk', '/api/backup/restore/validate'];
  const paths = allRoutes(app.deps, 'test')
    .filter((route) => route.method === 'POST' && route.replayResponse !== undefined)
    .filter((route) => !route.path.includes('{') && permissionsOf(route).length > 0)
    .map(({ path }) =>
      path.replace(/^\/api\/inventory\/(?!import|bulk).*/, '/api/inventory/prefixes'),
    )
    .filter((path) => !others.includes(path) && !Object.hasOwn(ACTING, `POST ${path}`));
  expect(paths.filter((path) => !Object.hasOwn(CREATING, path))).toEqual([]);
});

describe.each(Object.entries(CREATING))('POST %s', (path, [permission, bodyOf, tenant]) => {
  test(`needs ${permission} alone, also when it is repeated`, async () => {
    const client = holderOf(permission, tenant);
    const body = await bodyOf();
    const key = { 'idempotency-key': `key-${path}` };
    const made = await client.post<WithId>(path, body, { ...WAIT, ...key }).expect(201);
    expect(made.id).toEqual(expect.any(String));
    // As if the process had stopped between the commit and the response.
    await app.deps
      .db('idempotency_keys')
      .where({ key: `key-${path}` })
      .update({ answer: null });
    const again = await client.post<WithId>(path, body, key);
    expect([again.status, again.headers.get('idempotent-replayed'), again.body.id]).toEqual([
      201,
      'true',
      made.id,
    ]);
  });
});

test('event:read alone reads an event with its deliveries and their attempts', async () => {
  const { id, eventId } = await newDelivery();
  const read = (client: TestClient) =>
    client.get<EventWithDeliveries>(`/api/events/${eventId}`).expect(200);
  expect((await read(holderOf('event:read'))).deliveries).toContainEqual(
    expect.objectContaining({ id, attempts: [expect.objectContaining({ httpStatus: 204 })] }),
  );
  // A webhook of the platform is none of the tenant.
  const platform = app.client.as({ roles: 'platform-admin', tenant: 'platform' });
  const hook = { endpointUrl: sink.url('/platform'), eventTypes: ['webhook.created'] };
  await created('/api/webhooks', hook, platform);
  const other = await newDelivery();
  await eventually(
    () => platform.get<EventWithDeliveries>(`/api/events/${other.eventId}`),
    ({ body }) => body.deliveries.some(({ tenantId }) => tenantId === 'platform'),
  );
  const { deliveries } = await holderOf('event:read')
    .get<EventWithDeliveries>(`/api/events/${other.eventId}`)
    .expect(200);
  expect(new Set(deliveries.map(({ tenantId }) => tenantId))).toEqual(new Set([TENANT]));
});

test('rbac:write alone reads grants and roles', async () => {
  const client = holderOf('rbac:write');
  const { id } = await newAssignment();
  for (const path of [
    '/api/rbac',
    '/api/rbac/roles',
    '/api/rbac/roles/viewer',
    '/api/rbac/assignments',
    `/api/rbac/assignments/${id}`,
    '/api/rbac/provider-mappings',
    `/api/rbac/provider-mappings/${(await newMapping()).id}`,
    `/api/rbac/explain?userId=${(await newUser()).id}&permission=job:read&tenantId=${TENANT}`,
  ])
    await client.get(path).expect(200);
});

describe('a permission that is missing for a change of the inventory', () => {
  const change = { resource: 'prefixes', operation: 'create', record: { cidr: '10.99.0.0/16' } };
  const { record } = change;
  const request = {
    type: 'change',
    title: 'a change',
    payload: {},
    assignedUserIds: [],
    assignedRoleIds: ['approver'],
    validationRequest: change,
  };

  const expectDenied = async (
    sent: Promise<{ status: number; body: ProblemBody }>,
    permission: Permission,
    where: string,
  ) => {
    const { status, body } = await sent;
    expect([status, body.code, body.detail]).toEqual([
      403,
      'permission_denied',
      `Permission ${permission} is missing at ${where}.`,
    ]);
  };

  test('is named when an approval is requested, and nothing else is reported', async () => {
    await owner.post('/api/inventory/prefixes', record).expect(201);
    for (const tenant of [TENANT, 'platform'])
      await expectDenied(
        holderOf('workflow:write', tenant).post<ProblemBody>('/api/workflows', request),
        'inventory:write',
        tenant === TENANT ? 'tenant red' : 'the platform',
      );
  });

  test.each(['red', 'no-such-tenant', 'platform'])(
    'is named at the tenant %s, whether the tenant exists or not',
    async (tenantId) => {
      const where = tenantId === 'platform' ? 'the platform' : `tenant ${tenantId}`;
      const inBlue = { ...record, tenantId };
      const client = holderOf('inventory:write', 'blue');
      await expectDenied(
        client.post<ProblemBody>('/api/inventory/prefixes', inBlue),
        'inventory:write',
        where,
      );
      await expectDenied(
        holderOf('inventory:read', 'blue').post<ProblemBody>('/api/validation/inventory', {
          ...change,
          record: inBlue,
        }),
        'inventory:read',
        where,
      );
      const each = await client
        .post<{ results: { errors: object[] }[] }>('/api/inventory/bulk', {
          mode: 'each',
          mutations: [{ ...change, record: inBlue }],
        })
        .expect(200);
      expect(each.results[0]?.errors).toEqual([
        {
          pointer: '/tenantId',
          code: 'permission_denied',
          message: `permission inventory:write is missing at ${where}`,
        },
      ]);
    },
  );

  test('is not reported to holders, who may refer to what they may write', async () => {
    const client = holderOf('inventory:write');
    const site = await created('/api/inventory/sites', { name: newName() }, client);
    const rack = { name: newName(), siteId: site.id };
    expect(await created('/api/inventory/racks', rack, client)).toMatchObject(rack);
    await client
      .post('/api/validation/inventory', { ...change, record: { cidr: '10.98.0.0/16' } })
      .expect(200);
  });
});
