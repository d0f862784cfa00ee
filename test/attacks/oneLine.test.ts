import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { TObject, TSchema } from 'typebox';
import { allRoutes } from '../../api/app.ts';
import type { Route } from '../../api/http/route.ts';
import { createSchema } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { TRIMMED_LINE, VISIBLE_LINE } from '../../domain/shared/oneLine.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { importedRows } from '../support/attacks/files.ts';
import type { ProblemBody, TestClient } from '../support/client.ts';
import { recordFactory, type InventoryRecord, type RecordPage } from '../support/inventory.ts';
import { admin, createUser, login, PASSWORD, type Page } from '../support/users.ts';

/** Names and titles are one line, whichever characters break lines; what is stored with others stays usable. */
let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp();
  root = admin(app);
});
afterAll(() => app.stop());

const BROKEN = ['a\u0085b', 'a\u2028b', 'a\u2029b', '\u00a0a', 'a\u3000'];
const INVISIBLE = ['a\u202eb', 'a\u200bb', 'a\u00adb', 'a\u2066b', 'a\u{e0041}b'];

/** The fields of a body that are names or titles, and the texts that each refuses. */
function namesIn(schema: TSchema | undefined): { field: string; refused: string[] }[] {
  return Object.entries((schema as TObject | undefined)?.properties ?? {}).flatMap(
    ([field, each]) => {
      const alternatives = [each, ...((each as { anyOf?: TSchema[] }).anyOf ?? [])];
      const patterns = alternatives.map(({ pattern }: { pattern?: string }) => pattern);
      if (patterns.includes(VISIBLE_LINE.pattern))
        return [{ field, refused: [...BROKEN, ...INVISIBLE] }];
      return patterns.includes(TRIMMED_LINE.pattern) ? [{ field, refused: BROKEN }] : [];
    },
  );
}

const schemaOf = ({ path, body }: Route): TSchema | undefined => {
  const resource = Object.values(RESOURCES).find(({ name }) => path === `/api/inventory/${name}`);
  return resource ? createSchema(resource) : body;
};

test('every route that creates something refuses them in each name and title', async () => {
  const creating = allRoutes(app.deps, 'test').filter(
    ({ method, path, example }) =>
      method === 'POST' && !path.includes('{') && typeof example === 'object',
  );
  const { client } = await createUser(app, 'platform-admin');
  const found: string[] = [];
  const wrong: unknown[] = [];
  for (const route of creating)
    for (const { field, refused } of namesIn(schemaOf(route))) {
      found.push(`${route.path} ${field}`);
      for (const text of refused) {
        const { status, body } = await client.post<ProblemBody>(route.path, {
          ...(route.example as object),
          [field]: text,
        });
        const isRefused = body.errors?.some(({ pointer }) => pointer === `/${field}`);
        if (status !== 400 || isRefused !== true) wrong.push([route.path, field, text, status]);
      }
    }
  expect(wrong).toEqual([]);
  expect(found).toEqual(
    expect.arrayContaining([
      ...['/api/users username', '/api/users displayName', '/api/service-accounts name'],
      ...['/api/schedules name', '/api/workflows title', '/api/views name'],
      ...['/api/inventory/regions name', '/api/inventory/devices serial', '/api/rbac/roles name'],
    ]),
  );
});

describe('records that have such a name', () => {
  const make = recordFactory(() => root);
  const NAME = '\u00a0old\u2028name';

  test('of the inventory are read, found, changed, exported and imported', async () => {
    const { id } = await make('regions', { name: 'to be renamed' });
    await app.deps.db('regions').where({ id }).update({ name: NAME });
    const path = `/api/inventory/regions/${id}`;
    const present = await root.get<InventoryRecord>(path).expect(200);
    expect(present.name).toBe(NAME);
    const query = encodeURIComponent(NAME);
    const { items } = await root
      .get<RecordPage>(`/api/inventory/regions?name=${query}`)
      .expect(200);
    expect(items.map((each) => each.id)).toEqual([id]);
    await root.put(path, { ...present, description: 'changed' }).expect(200);
    await root.put(path, { name: `${NAME}\u2028` }).expect(400);
    const file = `/api/inventory/regions/export?format=ndjson&name=${query}`;
    const exported = await root.get<string>(file).expect(200);
    const rows = await importedRows(root, 'resource=regions', exported, 'application/x-ndjson');
    expect(rows.map(({ outcome }) => outcome)).toEqual(['unchanged']);
  });

  test('sign in and are changed, if they are accounts', async () => {
    const { id } = await createUser(app, { roleId: 'viewer', tenantId: 'red' });
    const username = 'o\u200bld\u2028name';
    await app.deps.db('users').where({ id }).update({ username, display_name: NAME });
    await login(app, username, PASSWORD).expect(200);
    const path = `/api/users/${id}`;
    const present = await root.get<object>(path).expect(200);
    await root.put(path, { ...present, email: 'old@example.net' }).expect(200);
    const query = encodeURIComponent(username);
    const { items } = await root
      .get<Page<{ id: string }>>(`/api/users?username=${query}`)
      .expect(200);
    expect(items.map((each) => each.id)).toEqual([id]);
  });

  test('are changed, if they are schedules', async () => {
    const { id } = await root
      .post<{ id: string }>('/api/schedules', {
        name: 'to be renamed',
        cronExpression: '0 3 1 1 *',
        jobType: 'core.echo',
        payload: {},
      })
      .expect(201);
    await app.deps.db('schedules').where({ id }).update({ name: NAME });
    const path = `/api/schedules/${id}`;
    const present = await root.get<object>(path).expect(200);
    expect(await root.put(path, { ...present, cronExpression: '0 4 1 1 *' }).expect(200)).toEqual(
      expect.objectContaining({ name: NAME }),
    );
    const query = encodeURIComponent(NAME);
    const { items } = await root
      .get<Page<{ id: string }>>(`/api/schedules?name=${query}`)
      .expect(200);
    expect(items.map((each) => each.id)).toEqual([id]);
  });
});
