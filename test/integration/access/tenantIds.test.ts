import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { allRoutes } from '../../../api/app.ts';
import { compileCheck } from '../../../platform/schemaCheck.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { admin, type Page } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
});
afterAll(() => app.stop());

/** The longest id that a record of a tenant can have. Another one follows it in lists. */
const LONGEST = 'a'.repeat(64);
/** Ids that only gateways can name. */
const OF_GATEWAYS = ['ACME', 'acme-', 'Z'.repeat(64)];

const asTenant = (tenant: string) =>
  app.client.as({ actor: 'root', roles: 'platform-admin', tenant });

type Node = Record<string, unknown>;

/** The schemas of ids of tenants in a schema, each of which is a pattern. */
const tenantSchemas = (node: unknown): Node[] =>
  typeof node !== 'object' || node === null
    ? []
    : [
        ...('pattern' in node && (node as Node)['x-reference'] === 'tenants' ? [node as Node] : []),
        ...Object.values(node).flatMap(tenantSchemas),
      ];

test('every request accepts the ids that tenants can have', () => {
  const schemas = allRoutes(app.deps, 'test').flatMap(({ params, query, body }) =>
    [params, query, body].flatMap(tenantSchemas),
  );
  const rules = [...new Map(schemas.map((schema) => [schema.pattern, schema])).values()];
  expect(rules).not.toEqual([]);
  for (const rule of rules) {
    const check = compileCheck(rule);
    for (const id of [LONGEST, ...OF_GATEWAYS]) expect([id, check(id)]).toEqual([id, []]);
  }
});

test('a tenant with the longest id can be used everywhere', async () => {
  const root = admin(app);
  await root.post('/api/inventory/tenants', { id: LONGEST, name: 'Longest' }).expect(201);
  await asTenant(LONGEST).post('/api/inventory/sites', { name: 'ams' }).expect(201);
  await root.get(`/api/inventory/sites?tenantId=${LONGEST}`).expect(200);
  for (const list of ['/api/quotas', '/api/retention']) {
    await root.put(`${list}/${LONGEST}`, {}).expect(200);
    await root.get(`${list}/${LONGEST}`).expect(200);
    expect(await allOf(list)).toContain(LONGEST);
  }
});

test('none is no id of a new tenant, and means an older one of this id in every list', async () => {
  const root = admin(app);
  await root.post('/api/inventory/tenants', { id: 'none', name: 'None' }).expect(400);
  await root.post('/api/inventory/tenants', { id: 'nones', name: 'None' }).expect(201);
  await app.deps.db('tenants').where({ id: 'nones' }).update({ id: 'none' });
  const older = asTenant('none');
  const site = await older.post<{ id: string }>('/api/inventory/sites', { name: 'a' }).expect(201);
  const job = { type: 'core.echo', payload: {} };
  const { id: jobId } = await older.post<{ id: string }>('/api/jobs', job).expect(201);
  const idsOf = async (path: string) =>
    (await root.get<Page<{ id: string }>>(path).expect(200)).items.map(({ id }) => id);
  for (const [path, id] of [
    ['/api/inventory/sites', site.id],
    ['/api/jobs', jobId],
  ] as const) {
    expect(await idsOf(`${path}?tenantId=none`)).toEqual([id]);
    expect(await idsOf(`${path}?tenantId!=none`)).not.toContain(id);
  }
});

/** The tenants of a list, page by page. */
async function allOf(list: string): Promise<string[]> {
  const found: string[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const page: Page<{ tenantId: string }> = await admin(app)
      .get<Page<{ tenantId: string }>>(`${list}?limit=1${cursor && `&cursor=${cursor}`}`)
      .expect(200);
    found.push(...page.items.map(({ tenantId }) => tenantId));
    cursor = page.nextCursor;
  }
  return found;
}

test.each(OF_GATEWAYS)('lists find records of the tenant %s', async (tenant) => {
  const site = await asTenant(tenant)
    .post<{ id: string; tenantId: string }>('/api/inventory/sites', { name: tenant.slice(0, 9) })
    .expect(201);
  expect(site.tenantId).toBe(tenant);
  for (const filter of [`tenantId=${tenant}`, `tenantId.not=platform&facets=tenantId`]) {
    const { items } = await admin(app)
      .get<Page<{ id: string }>>(`/api/inventory/sites?${filter}`)
      .expect(200);
    expect(items.map(({ id }) => id)).toContain(site.id);
  }
});
