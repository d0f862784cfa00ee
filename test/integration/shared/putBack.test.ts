import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { allRoutes } from '../../../api/app.ts';
import { CREATE_EXAMPLES } from '../../../api/inventory/examples.ts';
import { readOnlyProperties } from '../../../api/http/presentedRecord.ts';
import type { Route } from '../../../api/http/route.ts';
import { RESOURCE_NAMES, type ResourceName } from '../../../domain/inventory/names.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { admin, createUser } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
let routes: Route[];
/** The path of one record for each path that has PUT. */
const paths = new Map<string, string>();
let session: TestClient;

type Created = { id: string };

const create = async (path: string, body: object): Promise<Created> =>
  root.post<Created>(path, body).expect(201);

/** How to create the record that a PUT changes, except for the inventory. */
const CREATE: Record<string, () => Promise<string>> = {
  '/api/webhooks/{id}': async () =>
    (
      await create('/api/webhooks', {
        endpointUrl: 'https://hooks.example.net/a',
        eventTypes: ['job.failed'],
        secret: 'a secret of enough characters',
      })
    ).id,
  '/api/secrets/{id}': async () =>
    (await create('/api/secrets', { name: 'put-back', value: 'a value', pools: ['default'] })).id,
  '/api/schedules/{id}': async () =>
    (
      await create('/api/schedules', {
        name: 'report',
        cronExpression: '0 3 * * *',
        jobType: 'http.request',
        payload: {
          url: 'https://reports.example.net/',
          headers: { authorization: 'Bearer of reports' },
        },
      })
    ).id,
  '/api/users/{id}': async () => (await create('/api/users', { username: 'put-back' })).id,
  '/api/pools/{name}': async () => {
    await create('/api/pools', { name: 'put-back' });
    return 'put-back';
  },
  '/api/rbac/roles/{id}': async () =>
    (await create('/api/rbac/roles', { name: 'Reader', permissions: ['job:read'] })).id,
  '/api/auth/providers/{id}': async () =>
    (
      await create('/api/auth/providers', {
        kind: 'oidc',
        name: 'Company',
        config: {
          issuer: 'https://login.example.net',
          clientId: 'holdfast',
          clientSecret: 'secret of the client',
        },
      })
    ).id,
  '/api/views/{id}': async () =>
    (
      await create('/api/views', {
        ...{ list: '/job-types', name: 'Disabled', search: { state: 'disabled' }, shared: true },
      })
    ).id,
  '/api/service-accounts/{id}': () => createServiceAccount('put-back-ci'),
  '/api/auth/tokens/{id}': async () => {
    const path = `/api/service-accounts/${await createServiceAccount('put-back-token')}/tokens`;
    return (await create(path, { name: 'deploy', permissions: ['job:read'] })).id;
  },
  '/api/auth/session': () => Promise.resolve(''),
  '/api/quotas/{tenantId}': () => Promise.resolve('acme'),
  '/api/retention/{tenantId}': () => Promise.resolve('acme'),
};

async function createServiceAccount(name: string): Promise<string> {
  const { id: ownerId } = await create('/api/users', { username: `owner-of-${name}` });
  return (await create('/api/service-accounts', { name, ownerId })).id;
}

async function createCable(): Promise<string> {
  const deviceId = paths.get('/api/inventory/devices/{id}')?.split('/').at(-1);
  const interfaces = ['a', 'b'].map((name) =>
    create('/api/inventory/interfaces', { deviceId, name, kind: 'copper' }),
  );
  const [a, b] = await Promise.all(interfaces);
  return (await create('/api/inventory/cables', { aInterfaceId: a?.id, bInterfaceId: b?.id })).id;
}

/** Creates the records of the examples, in an order in which their references exist. */
async function createInventory(): Promise<void> {
  let pending: ResourceName[] = RESOURCE_NAMES.filter((name) => name !== 'cables');
  while (pending.length > 0) {
    const failed: ResourceName[] = [];
    for (const name of pending) {
      const path = `/api/inventory/${name}`;
      const { status, body } = await root.post<Created>(path, CREATE_EXAMPLES[name]);
      if (status === 201) paths.set(`${path}/{id}`, `${path}/${body.id}`);
      else failed.push(name);
    }
    if (failed.length === pending.length)
      throw new Error(`The examples of ${failed.join(', ')} cannot be created.`);
    pending = failed;
  }
  paths.set('/api/inventory/cables/{id}', `/api/inventory/cables/${await createCable()}`);
}

beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app).as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' });
  routes = allRoutes(app.deps, 'test').filter(
    ({ method, upload }) => ['PUT', 'GET'].includes(method) && !upload,
  );
  session = (await createUser(app, 'operator')).client;
  await createInventory();
  for (const [path, make] of Object.entries(CREATE))
    paths.set(path, path.replace(/\{\w+\}/, await make()));
});
afterAll(() => app.stop());

const clientFor = (path: string) => (path === '/api/auth/session' ? session : root);

type Record_ = Record<string, unknown>;

/** Each PUT with the path of its record. */
const puts = () =>
  routes
    .filter(({ method }) => method === 'PUT')
    .map((route) => {
      const path = paths.get(route.path);
      if (path === undefined) throw new Error(`${route.path} needs a record in this test.`);
      return { route, path, client: clientFor(route.path) };
    });

/** The parts of a record that stay the same when it is put back. */
const stable = ({ route }: { route: Route }, record: Record_): Record_ =>
  Object.fromEntries(
    Object.entries(record).filter(
      ([name]) => !['version', 'updatedAt', ...(route.volatile ?? [])].includes(name),
    ),
  );

/** Another value of the same kind. */
function otherThan(value: unknown): unknown {
  if (typeof value === 'string')
    return /^\d{4}-\d\d-/.test(value) ? '2001-01-01T00:00:00Z' : `${value}x`;
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  return Array.isArray(value) ? [...(value as unknown[]), 'x'] : 'x';
}

describe('PUT', () => {
  test('takes back what GET returned, and changes nothing', async () => {
    for (const put of puts()) {
      const before = await put.client.get<Record_>(put.path).expect(200);
      const answer = await put.client.put<Record_>(put.path, before);
      expect([put.path, answer.status, answer.body]).toEqual([put.path, 200, expect.anything()]);
      const after = await put.client.get<Record_>(put.path).expect(200);
      expect(stable(put, after)).toEqual(stable(put, before));
    }
    // Masks came back: the secrets are still there.
    const [webhook] = await app.deps.db('webhooks').select('previous_secret');
    expect(webhook).toEqual({ previous_secret: null });
    const [{ payload }] = (await app.deps.db('schedules').select('payload')) as [
      { payload: Record_ },
    ];
    expect(payload.headers).toEqual({ authorization: 'Bearer of reports' });
  });

  test('accepts a time in another form, and any value that changes by itself', async () => {
    for (const { route, path, client } of puts()) {
      const record = await client.get<Record_>(path).expect(200);
      const createdAt = String(record.createdAt).replace('Z', '+00:00');
      const volatile = Object.fromEntries((route.volatile ?? []).map((name) => [name, 'x']));
      const body = { ...record, ...('createdAt' in record && { createdAt }), ...volatile };
      const answer = await client.put(path, body);
      expect([path, answer.status]).toEqual([path, 200]);
    }
  });

  test('refuses every changed read-only property by name, and then changes nothing', async () => {
    let tried = 0;
    for (const put of puts()) {
      const { route, path, client } = put;
      const before = await client.get<Record_>(path).expect(200);
      const names = Object.keys(readOnlyProperties(route, routes)).filter(
        (name) => !route.volatile?.includes(name) && Object.hasOwn(before, name),
      );
      tried += names.length;
      const changed = Object.fromEntries(names.map((name) => [name, otherThan(before[name])]));
      const { status, body } = await client.put<ProblemBody>(path, { ...before, ...changed });
      const refused = body.errors?.map(({ pointer, code }) => [pointer, code]);
      expect([path, status, refused]).toEqual([
        path,
        400,
        expect.arrayContaining(names.map((name) => [`/${name}`, 'read_only'])),
      ]);
      expect(stable(put, await client.get<Record_>(path).expect(200))).toEqual(stable(put, before));
    }
    expect(tried).toBeGreaterThan(60);
  });

  test('works with the permission to write and no permission to read', async () => {
    const permissions = [
      'secret:write',
      'webhook:write',
      'schedule:write',
      'user:write',
      'rbac:write',
      'jobtype:write',
      'auth:write',
    ];
    await root.post('/api/rbac/roles', { id: 'writer', name: 'Writer', permissions }).expect(201);
    const writer = app.client.as({ actor: 'w', roles: 'writer', tenant: 'platform' });
    for (const { path } of puts().filter(({ path: at }) => !/inventory|session/.test(at))) {
      const record = await root.get<Record_>(path).expect(200);
      const answer = await writer.put(path, record);
      expect([path, answer.status, answer.body]).toEqual([path, 200, expect.anything()]);
    }
  });

  test('a stale If-Match is 412, whatever the body has', async () => {
    for (const { path, client } of puts().filter(({ route }) =>
      route.headers?.includes('If-Match'),
    )) {
      const record = await client.get<Record_>(path).expect(200);
      const answer = await client.put(path, { ...record, version: 77 }, { 'if-match': '"77"' });
      expect([path, answer.status]).toEqual([path, 412]);
    }
  });
});

describe('validation and batches', () => {
  const inventory = () =>
    RESOURCE_NAMES.map((resource) => ({
      resource,
      path: paths.get(`/api/inventory/${resource}/{id}`) ?? '',
    }));
  const update = (resource: string, record: object) => ({
    resource,
    operation: 'update',
    record,
  });

  test('take a record of every resource as it was read; a changed read-only field is named', async () => {
    for (const { resource, path } of inventory()) {
      const record = await root.get<Record_>(path).expect(200);
      const mutation = update(resource, record);
      const validated = await root.post('/api/validation/inventory', mutation);
      expect([resource, validated.status, validated.body]).toEqual([
        resource,
        200,
        expect.anything(),
      ]);
      const { counts } = await root
        .post<{ counts: object }>('/api/inventory/bulk', { mutations: [mutation] })
        .expect(200);
      expect([resource, counts]).toEqual([resource, expect.objectContaining({ unchanged: 1 })]);
      const changed = update(resource, { ...record, createdAt: '2001-01-01T00:00:00Z' });
      const refused = await root
        .post<{ validation: { errors: object[] } }>('/api/validation/inventory', changed)
        .expect(400);
      expect(refused.validation.errors).toEqual([
        expect.objectContaining({ pointer: '/createdAt' }),
      ]);
    }
  });

  test('take null in every optional field of a new record, and say what a write says', async () => {
    for (const resource of RESOURCE_NAMES) {
      const example: Record_ = CREATE_EXAMPLES[resource];
      const absent = Object.keys(RESOURCES[resource].fields).filter(
        (name) => !Object.hasOwn(example, name) && !RESOURCES[resource].fields[name]?.derived,
      );
      const record = { ...example, ...Object.fromEntries(absent.map((name) => [name, null])) };
      const codes = async (of: object) => {
        const body = { resource, operation: 'create', record: of };
        const { validation } = (
          await root.post<{ validation: { errors: object[]; conflicts: { code: string }[] } }>(
            '/api/validation/inventory',
            body,
          )
        ).body;
        return [validation.errors, validation.conflicts.map(({ code }) => code)];
      };
      expect([resource, await codes(record)]).toEqual([resource, await codes(example)]);
    }
  });

  test('null in a field that cannot be null changes nothing, as in PUT', async () => {
    for (const { resource, path } of inventory()) {
      const { id, version } = await root.get<{ id: string; version: number }>(path).expect(200);
      const never = Object.entries(RESOURCES[resource].fields).filter(
        ([, { nullable, derived }]) => !nullable && !derived,
      );
      const nulls = Object.fromEntries(never.map(([name]) => [name, null]));
      const { results } = await root
        .post<{ results: object[] }>('/api/inventory/bulk', {
          mutations: [update(resource, { id, version: null, ...nulls })],
        })
        .expect(200);
      expect([resource, results]).toEqual([
        resource,
        [expect.objectContaining({ outcome: 'unchanged' })],
      ]);
      expect((await root.get<{ version: number }>(path).expect(200)).version).toBe(version);
    }
  });
});
