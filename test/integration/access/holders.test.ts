import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { findHolders } from '../../../db/access/access.ts';
import { listHolders } from '../../../db/access/holders.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { propertyRuns } from '../../support/effort.ts';
import { ALL } from '../../support/movingTargets.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
});
afterAll(() => app.stop());

const GROUPS = ['net', 'ops'];
const PROVIDERS = ['idp_on', 'idp_off', 'local', 'service'];
const now = { created_at: new Date(), updated_at: new Date() };

const account = fc.record({
  provider: fc.constantFrom(...PROVIDERS),
  enabled: fc.boolean(),
  groups: fc.subarray(GROUPS),
  isAssigned: fc.boolean(),
});
const grant = fc.record({
  provider: fc.constantFrom('idp_on', 'idp_off'),
  group: fc.constantFrom(...GROUPS),
  role: fc.constantFrom('approver', 'viewer'),
  tenant: fc.constantFrom('red', 'blue'),
});

test('the list of holders has those of whom the reads by id say that they hold the permission', async () => {
  const { db } = app.deps;
  for (const id of ['idp_on', 'idp_off'])
    await db('providers').insert({
      ...{ id, kind: 'oidc', name: id, enabled: id === 'idp_on', config: '{}', secrets: '{}' },
      ...now,
    });
  const scope = { tenantId: 'red' };
  let seen = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(account, { minLength: 1, maxLength: 6 }),
      fc.array(grant, { maxLength: 3 }),
      async (accounts, mappings) => {
        await db('grants').where({ created_by: 'test' }).delete();
        await db('users').whereLike('id', 'usr_test%').delete();
        await db('users').insert(
          accounts.map(({ provider, enabled, groups }, i) => ({
            external_id: provider === 'local' ? null : `x${i}`,
            ...{ id: `usr_test${i}`, username: `test${i}`, display_name: 'x', tenant_id: 'red' },
            ...{ provider_id: provider, enabled, external_groups: groups, ...now },
          })),
        );
        const given = { tenant_id: 'red', level: 'tenant', created_by: 'test', ...now };
        const { updated_at: _, ...at } = given;
        for (const [i, { isAssigned }] of accounts.entries())
          if (isAssigned)
            await db('grants').insert({
              ...{ id: `a${i}`, kind: 'assignment', user_id: `usr_test${i}`, role_id: 'approver' },
              ...at,
            });
        for (const [i, { provider, group, role, tenant }] of mappings.entries())
          await db('grants')
            .insert({
              ...{ id: `m${i}`, kind: 'mapping', provider_id: provider, external_group: group },
              ...{ ...at, role_id: role, tenant_id: tenant },
            })
            .onConflict()
            .ignore();
        const ids = accounts.map((_, i) => `usr_test${i}`);
        const expected = (await findHolders(db, ids, 'workflow:approve', scope))
          .filter(({ enabled, holds }) => enabled && holds)
          .map(({ id }) => id);
        const asked = { permission: 'workflow:approve' as const, resourceScope: scope };
        const { items } = await listHolders(db, { ...asked, ofTenant: 'red', q: undefined }, ALL);
        expect(items.map(({ id }) => id).sort()).toEqual(expected.sort());
        seen += expected.length;
      },
    ),
    { numRuns: propertyRuns(60), includeErrorInReport: true },
  );
  expect(seen).toBeGreaterThan(10);
}, 60_000);
