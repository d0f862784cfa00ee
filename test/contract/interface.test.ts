import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { PERMISSIONS, type Permission } from '../../domain/access/permissions.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { createArchiveFolder } from '../support/backups.ts';
import type { TestClient, TestResponse } from '../support/client.ts';
import {
  OPERATIONS,
  SESSION_OPERATIONS,
  type ContractOperation,
  type TargetId,
} from '../support/contract/operations.ts';
import { targetMaker } from '../support/contract/targets.ts';
import { isThorough } from '../support/effort.ts';
import { createUser } from '../support/users.ts';

/**
 * A client that knows the published interface and nothing else: the paths, fields, headers and permissions that it
 * names. What the operations are is stated in `OPERATIONS`.
 */
let app: TestApp;
let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
let idOf: TargetId;
let root: TestClient;
beforeAll(async () => {
  archives = await createArchiveFolder();
  app = await startApp(archives.env);
  idOf = targetMaker(app);
  root = callerWith('platform-admin');
  for (const permission of PERMISSIONS)
    await root
      .post('/api/rbac/roles', {
        id: onlyRole(permission),
        name: `Only ${permission}`,
        permissions: [permission],
      })
      .expect(201);
});
afterAll(async () => {
  await app.stop();
  await archives.remove();
});

/** The headers that the interface lists, with these roles. */
const callerWith = (roles: string, actor = 'alice'): TestClient =>
  app.client.as({ actor, roles, tenant: 'platform' });
const onlyRole = (permission: Permission): string => `${permission.replace(':', '-')}-only`;

type Choice = 'required' | 'null' | 'all';

/** The body with the required fields, the others being absent, null or given. */
async function bodyOf({ body }: ContractOperation, choice: Choice): Promise<object | undefined> {
  if (body === undefined) return undefined;
  const { required = {}, optional = {} } = await body(idOf);
  const nulls = Object.fromEntries(Object.keys(optional).map((name) => [name, null]));
  return { ...required, ...(choice === 'all' && optional), ...(choice === 'null' && nulls) };
}

async function call(
  client: TestClient,
  operation: ContractOperation,
  choice: Choice = 'all',
): Promise<TestResponse> {
  const [method = '', template = ''] = operation.name.split(' ');
  const id = operation.target && (await idOf(operation.target));
  const path = template.replace(/\{\w+\}/, id ?? '');
  return client.send(method, path, await bodyOf(operation, choice), { ...operation.headers });
}

const tried = ({ status, body }: TestResponse): unknown =>
  status < 300 ? status : { status, body };

const withBody = OPERATIONS.filter(({ body }) => body !== undefined);
const named = (operations: readonly ContractOperation[]) =>
  operations.map((operation) => [operation.name, operation] as const);

test('the interface has 52 operations', () => {
  expect(new Set([...OPERATIONS.map(({ name }) => name), ...SESSION_OPERATIONS]).size).toBe(52);
});

describe('fields', () => {
  test.each(named(OPERATIONS))('%s with all fields', async (_, operation) => {
    expect(tried(await call(root, operation))).toBe(operation.status);
  });

  test.each(named(withBody))('%s with the required fields', async (_, operation) => {
    expect(tried(await call(root, operation, 'required'))).toBe(operation.status);
  });

  test.each(named(withBody))('%s with null for the optional fields', async (_, operation) => {
    expect(tried(await call(root, operation, 'null'))).toBe(operation.status);
  });
});

describe('identity', () => {
  /** Every second operation: the others prove the same with the other form, unless the run is thorough. */
  const everySecond = (rest: 0 | 1) =>
    named(OPERATIONS.filter((_, n) => isThorough() || n % 2 === rest));

  test.each(everySecond(0))('%s with a token', async (_, operation) => {
    const { client } = await administrator();
    expect(tried(await call(client, operation))).toBe(operation.status);
  });

  test.each(everySecond(1))('%s with a token and the headers', async (_, operation) => {
    const { id, client } = await administrator();
    const headers = {
      'x-service-actor-id': id,
      'x-service-role-ids': 'platform-admin',
      'x-service-tenant-id': 'platform',
    };
    expect(tried(await call(withHeaders(client, headers), operation))).toBe(operation.status);
  });

  test.each([
    ['x-service-actor-id', 'bob'],
    ['x-service-role-ids', 'viewer'],
    ['x-service-tenant-id', 'elsewhere'],
  ])('a token with another %s is refused', async (header, value) => {
    await root.post('/api/inventory/tenants', { id: 'acme', name: 'Acme' });
    const { client } = await createUser(app, { roleId: 'operator', tenantId: 'acme' });
    const { status, body } = await client.get('/api/jobs', { [header]: value });
    expect([status, (body as { code: string }).code]).toEqual([400, 'identity_mismatch']);
  });

  test.each(['/api/schedules', '/api/webhooks', '/api/events', '/api/jobs'])(
    '%s requires the headers',
    async (path) => {
      const complete: Record<string, string> = {
        'x-service-actor-id': 'alice',
        'x-service-role-ids': 'operator',
        'x-service-tenant-id': 'platform',
      };
      const optional = /webhooks|events/.test(path) ? [] : ['x-service-tenant-id'];
      const anonymous = app.client.as({ token: null });
      expect((await anonymous.get(path, complete)).status).toBe(200);
      for (const name of Object.keys(complete)) {
        const headers = Object.fromEntries(
          Object.entries(complete).filter(([header]) => header !== name),
        );
        const { status } = await anonymous.get(path, headers);
        expect([name, status]).toEqual([name, optional.includes(name) ? 200 : 401]);
      }
    },
  );

  test('the tenant of a schedule is platform unless the header names one', async () => {
    const { tenantId } = await app.client
      .as({ actor: 'alice', roles: 'operator' })
      .post<{ tenantId: string }>('/api/schedules', {
        name: 'of the default tenant',
        cronExpression: '0 3 1 1 *',
        timezone: 'UTC',
        jobType: 'core.echo',
        payload: {},
        enabled: true,
      })
      .expect(201);
    expect(tenantId).toBe('platform');
  });
});

let signedIn: Promise<{ id: string; client: TestClient }> | undefined;
const administrator = () => (signedIn ??= createUser(app, 'platform-admin'));

/** The client with more headers on every request. */
const withHeaders = (client: TestClient, headers: Record<string, string>): TestClient => ({
  ...client,
  send: (method, path, body, more) => client.send(method, path, body, { ...headers, ...more }),
});

describe('permissions', () => {
  const guarded = OPERATIONS.flatMap((operation) =>
    operation.permission === undefined
      ? []
      : [[operation.name, operation.permission, operation] as const],
  );

  test.each(guarded)('%s needs no more than %s', async (_, permission, operation) => {
    const client = callerWith(onlyRole(permission), 'another');
    expect(tried(await call(client, operation))).toBe(operation.status);
  });

  const closed = guarded.filter(([, , { isOpen }]) => isOpen !== true);
  test.each(closed)('%s is refused without %s', async (_, permission, operation) => {
    const others = PERMISSIONS.filter(
      (each) => each !== permission && !impliedBy(each, permission),
    );
    const client = callerWith(others.map(onlyRole).join(','), 'another');
    expect([403, 404]).toContain((await call(client, operation)).status);
  });

  test('rbac:write is enough to read RBAC', async () => {
    await callerWith(onlyRole('rbac:write')).get('/api/rbac').expect(200);
  });
});

/** Permissions that allow what another one is for: who may change may read. */
const impliedBy = (held: Permission, wanted: Permission): boolean =>
  held.split(':')[0] === wanted.split(':')[0] && wanted.endsWith(':read');
