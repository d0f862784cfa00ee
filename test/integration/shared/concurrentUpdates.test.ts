import { expect, test } from '@jest/globals';
import { allRoutes } from '../../../api/app.ts';
import type { Route } from '../../../api/http/route.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import type { TestApp } from '../../support/app.ts';
import { pathOf, targetOf } from '../../support/attacks/routes.ts';
import { seedShared, seedTenantEstate } from '../../support/attacks/tenantEstate.ts';
import { withIdleApp } from '../../support/attacks/twoTenants.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { waitingForLock } from '../../support/waitingForLock.ts';

/** Two changes of one record at the same time: neither undoes what the other one changed. */
let app: TestApp;
let beta: TestClient;
let estate: Parameters<typeof targetOf>[1];
withIdleApp(async (started) => {
  app = started;
  beta = app.client.as({ actor: 'beta-admin', roles: 'platform-admin', tenant: 'beta' });
  const shared = await seedShared(app);
  const own = await seedTenantEstate(app, { tenant: 'beta', label: 'beta', network: 12 }, shared);
  estate = { ...shared, ...own };
});

type Change = Record<string, unknown>;
type Update = { table: string; key?: string; changes: [Change, Change]; isOfPlatform?: true };

/** Two changes of different fields for each record that has a PUT, and the row of the record. */
const UPDATES: Readonly<Record<string, Update>> = {
  '/api/auth/providers/{id}': {
    table: 'providers',
    changes: [{ name: 'Other' }, { config: { clientId: 'other' } }],
    isOfPlatform: true,
  },
  '/api/auth/tokens/{id}': {
    table: 'tokens',
    changes: [{ name: 'other' }, { readOnly: true }],
  },
  '/api/inventory/sites/{id}': {
    table: 'sites',
    changes: [{ latitude: 1.5 }, { description: 'other' }],
  },
  '/api/pools/{name}': {
    table: 'pools',
    key: 'name',
    changes: [{ description: 'other' }, { tenantSharePercent: 50 }],
    isOfPlatform: true,
  },
  '/api/quotas/{tenantId}': {
    table: 'tenants',
    changes: [{ limits: { schedules: 77 } }, { limits: { webhooks: 78 } }],
    isOfPlatform: true,
  },
  '/api/rbac/roles/{id}': {
    table: 'roles',
    changes: [{ name: 'Other' }, { permissions: ['job:read', 'job:write'] }],
    isOfPlatform: true,
  },
  '/api/retention/{tenantId}': {
    table: 'tenants',
    changes: [{ days: { scheduleRuns: 77 } }, { days: { importRows: 78 } }],
  },
  '/api/schedules/{id}': {
    table: 'schedules',
    changes: [{ name: 'other' }, { cronExpression: '5 3 1 1 *' }],
  },
  '/api/secrets/{id}': {
    table: 'secrets',
    changes: [{ description: 'other' }, { pools: ['other'] }],
  },
  '/api/service-accounts/{id}': {
    table: 'users',
    changes: [{ name: 'other-program' }, { displayName: 'Other' }],
  },
  '/api/users/{id}': {
    table: 'users',
    changes: [{ displayName: 'Other' }, { email: 'other@example.net' }],
  },
  '/api/views/{id}': { table: 'views', changes: [{ name: 'other' }, { search: { q: 'other' } }] },
  '/api/webhooks/{id}': {
    table: 'webhooks',
    changes: [{ description: 'other' }, { eventTypes: ['job.failed'] }],
  },
};

/** The tenant of a session, and a file that is replaced as a whole; all of the inventory is written as sites are. */
const OTHERS = /^\/api\/(auth\/session$|runner\/|inventory\/(?!sites\/))/;

const updateRoutes = (): Route[] =>
  allRoutes(app.deps, 'test').filter(({ method, path }) => method === 'PUT' && !OTHERS.test(path));

/** Sends both changes while another transaction has the row, and lets them go on when both wait. */
async function changeTogether(
  path: string,
  id: string,
  { table, key = 'id', changes, isOfPlatform }: Update,
) {
  const client = isOfPlatform
    ? app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' })
    : beta;
  const { version } = await client.get<{ version: number }>(path).expect(200);
  const trx = await app.deps.db.transaction();
  await trx(table)
    .where({ [key]: id })
    .forUpdate();
  const both = Promise.all(changes.map((change) => client.put(path, change).expect(200)));
  await Promise.race([
    both,
    eventually(
      () => waitingForLock(app.deps.db),
      (waiting) => waiting.length >= changes.length,
    ),
  ]);
  await trx.commit();
  await both;
  return { before: version, after: await client.get<{ version: number }>(path).expect(200) };
}

test('every PUT of a record is tried', () => {
  expect(
    updateRoutes()
      .map(({ path }) => path)
      .sort(),
  ).toEqual(Object.keys(UPDATES).sort());
});

test.each(Object.entries(UPDATES))(
  'two changes at the same time are both made: PUT %s',
  async (path, update) => {
    const route = assertDefined(
      updateRoutes().find((each) => each.path === path),
      path,
    );
    const id = assertDefined(targetOf(route, estate), path);
    const { before, after } = await changeTogether(pathOf(route, id), id, update);
    expect(after.version).toBe(before + 2);
    for (const change of update.changes) expect(after).toMatchObject(change);
  },
);
