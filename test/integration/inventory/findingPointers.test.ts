import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import {
  recordFactory,
  type BatchValidation,
  type InventoryRecord,
} from '../../support/inventory.ts';
import { admin, createUser } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
let pool: InventoryRecord;
let site: InventoryRecord;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
  site = await make('sites', { name: 'first' });
  pool = await make('prefixes', { cidr: '10.0.0.0/24', allocationMode: 'pool' });
});
afterAll(() => app.stop());
const make = recordFactory(() => root);

const NO_MUTATION = { resource: 'unicorns', operation: 'ride', record: 5 };
const BAD_FIELD = { resource: 'sites', operation: 'create', record: { name: 7, slug: 'x' } };

type Findings = { pointer: string }[];
const pointersOf = (findings: readonly { pointer: string | null }[] | undefined) =>
  (findings ?? []).map(({ pointer }) => pointer);

/** The value at a pointer of a body. Undefined where the pointer leads to nothing. */
const at = (body: unknown, pointer: string): unknown =>
  pointer
    .split('/')
    .slice(1)
    .reduce((value, name) => (value as Record<string, unknown> | undefined)?.[name], body);

describe('pointers in the findings of several mutations lead into the body', () => {
  const body = { mutations: [BAD_FIELD, NO_MUTATION] };
  const expected = [
    '/mutations/0/record/name',
    '/mutations/1/resource',
    '/mutations/1/operation',
    '/mutations/1/record',
  ];
  const values = [7, 'unicorns', 'ride', 5];

  test('of a validation', async () => {
    const { validation } = await root
      .post<BatchValidation>('/api/validation/inventory', body)
      .expect(400);
    const pointers = (validation.errors as Findings).map(({ pointer }) => pointer);
    expect(pointers).toEqual(expect.arrayContaining(expected));
    expect(expected.map((pointer) => at(body, pointer))).toEqual(values);
  });

  test('of a write of all', async () => {
    // Other records are refused by the schema of the body.
    const mutations = [BAD_FIELD, { ...NO_MUTATION, record: {} }];
    const { errors } = await root
      .post<ProblemBody>('/api/inventory/bulk', { mutations, mode: 'all' })
      .expect(400);
    expect(pointersOf(errors)).toEqual(expect.arrayContaining(expected.slice(0, 3)));
  });
});

test.each([
  ['sites', { name: 'ams1', regionId: { name: 'Europe' }, tenantId: 'a\0b' }, 'tenantId'],
  ['sites', { name: 'ams1', regionId: { name: 'a\0b' } }, 'regionId/name'],
  ['vlans', { name: 'one', vid: 1, groupId: { name: 'group' }, tenantId: 'a\0b' }, 'tenantId'],
  ['locations', { name: 'hall', siteId: 'a\0b' }, 'siteId'],
])('a reference of %s with text that cannot be stored is an error', async (...each) => {
  const [resource, record, field] = each;
  const path = '/api/validation/inventory';
  const body = { resource, operation: 'create', record };
  const { validation } = await root.post<BatchValidation>(path, body).expect(400);
  expect(pointersOf(validation.errors as Findings)).toContain(`/${field}`);
  // For people of one site other records are read.
  const ofSite = await createUser(app, { roleId: 'operator', siteId: site.id });
  const { body: answer } = await ofSite.client.post<object>(path, body);
  expect(answer).not.toHaveProperty('detail', expect.stringContaining('cannot be stored'));
});

describe('a record with more errors than an answer lists', () => {
  const UNKNOWN = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`x${n}`, n]));
  test.each([5, {}, [[]], true, 'a\n'])('is invalid: all fields are %j', async (value) => {
    const mutations = Object.values(RESOURCES).flatMap(({ name, fields }) => {
      const wrong = Object.fromEntries(Object.keys(fields).map((field) => [field, value]));
      const record = { id: value, ...wrong, ...UNKNOWN };
      return [{ resource: name, operation: 'create', record }];
    });
    const { results } = await root
      .post<BatchValidation>('/api/validation/inventory', { mutations })
      .expect(400);
    expect(results.map(({ validation }) => validation.valid)).toEqual(mutations.map(() => false));
  });

  test('is invalid: it has more values than a check reads to the end', async () => {
    const large = { customFields: { note: Array.from({ length: 50_001 }, () => 1) } };
    for (const record of [{ tags: 5 }, { cidr: 5 }, { tags: 5, cidr: 5, vrfId: 5, tenantId: 5 }])
      await root
        .post('/api/inventory/prefixes', { cidr: '10.9.0.0/16', ...record, ...large })
        .expect(400);
  });

  test('is invalid in an update, where the caller may write the record', async () => {
    const path = `/api/inventory/prefixes/${pool.id}`;
    const change = { cidr: 5, tags: 5, ...UNKNOWN };
    const { errors } = await root.put<ProblemBody>(path, change).expect(400);
    expect(errors?.length).toBe(50);
    const reader = app.client.as({ actor: 'ann', roles: 'viewer' });
    await reader.put(path, change).expect(403);
  });
});

test('pointers in the findings of an allocation lead into its body', async () => {
  const body = { kind: 'address', record: { status: 'melted', nonsense: 1 } };
  const { errors } = await root
    .post<ProblemBody>(`/api/inventory/prefixes/${pool.id}/allocate`, body)
    .expect(400);
  expect(pointersOf(errors).sort()).toEqual(['/record/nonsense', '/record/status']);
});
