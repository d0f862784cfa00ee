import { describe, expect, test } from '@jest/globals';
import { allRoutes } from '../../api/app.ts';
import type { Route } from '../../api/http/route.ts';
import type { TestApp } from '../support/app.ts';
import { pathOf, targetOf } from '../support/attacks/routes.ts';
import { idsOf, inParallel } from '../support/attacks/tenantRows.ts';
import type { SharedEstate, TenantEstate } from '../support/attacks/tenantEstate.ts';
import { withTwoTenants } from '../support/attacks/twoTenants.ts';
import type { TestClient, TestResponse } from '../support/client.ts';
import { admin, createUser, type Page } from '../support/users.ts';

/**
 * People who may do everything in beta, or at a site of it, only read acme, and hold nothing at the platform, where their
 * account is. Each POST route gets their request for the tenant acme, and for the platform: no record of these is
 * created. Routes come from the registry, bodies from their examples.
 */
const WHERE = ['acme', 'platform'];

let app: TestApp;
let routes: Route[];
let estate: SharedEstate & TenantEstate;
let callers: Record<'tenant' | 'site', TestClient>;

withTwoTenants(async (fixture) => {
  ({ app } = fixture);
  estate = { ...fixture.shared, ...fixture.beta };
  routes = allRoutes(app.deps, 'test').filter(
    ({ method, public: isPublic, session, path }) =>
      method === 'POST' &&
      isPublic === undefined &&
      session === undefined &&
      !path.startsWith('/api/runner/'),
  );
  const holding = async (scope: object) =>
    (
      await createUser(
        app,
        { roleId: 'platform-admin', ...scope },
        { roleId: 'viewer', tenantId: 'acme' },
      )
    ).client;
  callers = {
    tenant: await holding({ tenantId: 'beta' }),
    site: await holding({ siteId: estate.sites }),
  };
});

/** Queries without which a route does nothing. */
const QUERIES: Readonly<Record<string, string>> = {
  '/api/inventory/import': '?resource=sites&dryRun=true',
};

function send(client: TestClient, route: Route, tenant: string): Promise<TestResponse> {
  const id = route.path.includes('{') ? (targetOf(route, estate) ?? 'none') : '';
  const path = `${pathOf(route, id)}${QUERIES[route.path] ?? ''}`;
  const identity = { 'x-service-tenant-id': tenant };
  const [file] = Object.entries(route.upload?.examples ?? {});
  if (file) return client.post(path, file[1], { ...identity, 'content-type': file[0] });
  return client.post(path, route.example ?? (route.body ? {} : undefined), identity);
}

/** The kinds of the records that appear in tenants while `act` runs, by the first letters of their ids. */
async function kindsCreated(
  tenants: readonly string[],
  act: () => Promise<void>,
): Promise<string[]> {
  const ids = async () =>
    (await Promise.all(tenants.map((tenant) => idsOf(app.deps.db, tenant)))).flatMap((some) => [
      ...some,
    ]);
  const before = new Set(await ids());
  await act();
  const created = (await ids()).filter((id) => /^[a-z]{3}_/.test(id) && !before.has(id));
  return [...new Set(created.map((id) => id.slice(0, 4)))].toSorted();
}

const sendAll = (client: TestClient, tenants: readonly string[]): Promise<void> =>
  inParallel(
    tenants.flatMap((tenant) => routes.map((route) => ({ tenant, route }))),
    async ({ tenant, route }) => {
      const { status } = await send(client, route, tenant);
      if (status >= 500) throw new Error(`${route.path}: ${status}`);
    },
  );

/** Denied attempts; and views for oneself, which need only a right to read the list that they are of. */
const OWN_TRACES = ['aud_', 'viw_'];

describe('a right that is held elsewhere', () => {
  test.each(['tenant', 'site'] as const)(
    'creates no record of another tenant, by any route: at a %s',
    async (level) => {
      const created = await kindsCreated(WHERE, () => sendAll(callers[level], WHERE));
      expect(created.filter((kind) => !OWN_TRACES.includes(kind))).toEqual([]);
    },
    60_000,
  );

  test('imports no rows that were checked while it was held there', async () => {
    const grants = ['acme', 'beta'].map((tenantId) => ({ roleId: 'operator', tenantId }));
    const { id, client } = await createUser(app, ...grants);
    const header = { 'x-service-tenant-id': 'acme' };
    const dryRun = await client
      .post<{ id: string }>('/api/inventory/import?resource=sites&dryRun=true', 'name\nnew\n', {
        'content-type': 'text/csv',
        ...header,
      })
      .expect(202);
    const root = admin(app);
    const list = `/api/rbac/assignments?userId=${id}&tenantId=acme`;
    const { items } = await root.get<Page<{ id: string }>>(list).expect(200);
    for (const assignment of items)
      await root.delete(`/api/rbac/assignments/${assignment.id}`).expect(204);
    const viewer = { userId: id, roleId: 'viewer', tenantId: 'acme' };
    await root.post('/api/rbac/assignments', viewer).expect(201);
    const path = `/api/inventory/imports/${dryRun.id}/apply`;
    await client.post(path, undefined, header).expect(403);
  });

  test('and the same requests create records where the right is', async () => {
    const created = await kindsCreated(['beta'], () => sendAll(callers.tenant, ['beta']));
    const kinds = ['apr', 'bkp', 'imp', 'job', 'reg', 'sch', 'sec', 'usr', 'vrf', 'whk'];
    expect(created).toEqual(expect.arrayContaining(kinds.map((kind) => `${kind}_`)));
  });
});
