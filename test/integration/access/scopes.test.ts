import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { findGrants, principalsOf } from '../../../db/access/access.ts';
import { scopeCondition } from '../../../db/core/scopeSql.ts';
import { PERMISSIONS, type Permission } from '../../../domain/access/permissions.ts';
import { BUILT_IN_ROLES } from '../../../domain/access/roles.ts';
import { covers, scopeOf } from '../../../domain/access/scope.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { propertyRuns } from '../../support/effort.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
});
afterAll(() => app.stop());

const TENANTS = ['platform', 'red', 'blue', 'green'];
const SITES = ['s0', 's1', 's2', 's3', 's4'];
const DEVICES = ['d0', 'd1', 'd2', 'd3', 'd4', 'd5', 'd6', 'd7'];
const GROUPS = ['net', 'ops', 'dc'];
type DeviceRow = { id: string; tenant_id: string; site_id: string | null };

const COLUMNS = { tenant: 't.tenant_id', site: 't.site_id', device: 't.id' };

const pick = (values: readonly string[]) => fc.constantFrom(...values);

/**
 * Tenants of sites, and tenants and sites of devices. A device may have another tenant than its
 * site.
 */
const tree = fc.record({
  sites: fc.array(pick(TENANTS), { minLength: SITES.length, maxLength: SITES.length }),
  devices: fc.array(fc.record({ tenant: pick(TENANTS), site: fc.option(pick(SITES)) }), {
    minLength: DEVICES.length,
    maxLength: DEVICES.length,
  }),
});

const target = fc.oneof(
  fc.record({ level: fc.constant('tenant' as const), id: pick(TENANTS) }),
  fc.record({ level: fc.constant('site' as const), id: pick(SITES) }),
  fc.record({ level: fc.constant('device' as const), id: pick(DEVICES) }),
);
const grant = fc.record({
  role: fc.oneof(pick([...BUILT_IN_ROLES.keys()]), fc.constant('custom')),
  target,
  to: fc.oneof(fc.constant('user'), fc.constant('stranger'), pick(GROUPS)),
});
const example = fc.record({
  tree,
  grants: fc.array(grant, { maxLength: 12 }),
  memberOf: fc.subarray(GROUPS),
  custom: fc.subarray([...PERMISSIONS]),
  permission: fc.constantFrom<Permission>(...PERMISSIONS),
  movedSite: fc.option(fc.record({ site: fc.nat(SITES.length - 1), to: pick(TENANTS) })),
  movedDevice: fc.option(
    fc.record({
      device: fc.nat(DEVICES.length - 1),
      to: pick(TENANTS),
      site: fc.option(pick(SITES)),
    }),
  ),
});

test('the predicate and both forms of the SQL condition agree, also after records moved', async () => {
  await app.deps.db('providers').insert({
    id: 'idp_x',
    kind: 'oidc',
    name: 'x',
    enabled: true,
    config: '{}',
    secrets: '{}',
    created_at: new Date(),
    updated_at: new Date(),
  });
  for (const id of ['usr_me', 'usr_stranger']) {
    await app.deps.db('users').insert({
      id,
      provider_id: 'local',
      username: id,
      display_name: id,
      tenant_id: 'platform',
      enabled: true,
      created_at: new Date(),
      updated_at: new Date(),
    });
  }
  const seen = { everywhere: 0, some: 0, none: 0 };
  await fc.assert(
    fc.asyncProperty(
      example,
      async ({
        tree: { sites, devices },
        grants,
        memberOf,
        custom,
        permission,
        movedSite,
        movedDevice,
      }) => {
        await app.deps.db
          .transaction(async (trx) => {
            await trx('roles').insert({
              id: 'custom',
              name: 'custom',
              permissions: custom,
              created_at: new Date(),
              updated_at: new Date(),
            });
            await trx('sites').insert(
              SITES.map((id, i) => ({ id, tenant_id: sites[i], name: id })),
            );
            await trx('devices').insert(
              DEVICES.map((id, i) => ({
                id,
                tenant_id: devices[i]?.tenant,
                site_id: devices[i]?.site ?? null,
                name: id,
              })),
            );
            const scopeColumnsOf = {
              tenant: (id: string) => ({ tenant_id: id }),
              site: (id: string) => ({ tenant_id: sites[SITES.indexOf(id)], site_id: id }),
              device: (id: string) => {
                const { tenant, site } = assertDefined(devices[DEVICES.indexOf(id)], id);
                const isOwn = site !== null && sites[SITES.indexOf(site)] === tenant;
                return { tenant_id: tenant, site_id: isOwn ? site : null, device_id: id };
              },
            };
            for (const [i, given] of grants.entries()) {
              const { level, id } = given.target;
              const who =
                given.to === 'user' || given.to === 'stranger'
                  ? { kind: 'assignment', user_id: given.to === 'user' ? 'usr_me' : 'usr_stranger' }
                  : { kind: 'mapping', provider_id: 'idp_x', external_group: given.to };
              await trx('grants')
                .insert({
                  id: `g${i}`,
                  ...who,
                  role_id: given.role,
                  level: level === 'tenant' && id === 'platform' ? 'platform' : level,
                  ...scopeColumnsOf[level](id),
                  created_by: 'test',
                  created_at: new Date(),
                })
                .onConflict(['principal', 'level', 'target_id', 'role_id'])
                .ignore();
            }
            if (movedSite)
              await trx('sites')
                .where({ id: SITES[movedSite.site] })
                .update({ tenant_id: movedSite.to });
            if (movedDevice)
              await trx('devices')
                .where({ id: DEVICES[movedDevice.device] })
                .update({ tenant_id: movedDevice.to, site_id: movedDevice.site });

            const principals = principalsOf('usr_me', 'idp_x', memberOf);
            const rights = { grants: await findGrants(trx, principals), principals };
            const scope = scopeOf(rights, permission);
            const records = await trx('devices').select('id', 'tenant_id', 'site_id').orderBy('id');
            const covered = records
              .filter((r: DeviceRow) =>
                covers(scope, { tenantId: r.tenant_id, siteId: r.site_id, deviceId: r.id }),
              )
              .map((r: DeviceRow) => r.id);
            for (const maxIdsSent of [1_000, 0]) {
              const { sql, bindings } = scopeCondition(scope, COLUMNS, maxIdsSent);
              const { rows } = await trx.raw(
                `SELECT t.id FROM devices AS t WHERE ${sql} ORDER BY t.id`,
                bindings,
              );
              expect(rows.map((row: DeviceRow) => row.id)).toEqual(covered);
            }
            // The scope columns of grants follow the records that they cover, also after a move. A
            // site of another tenant than the device is not one of them.
            const astray = await trx.raw(
              `SELECT g.id FROM grants g JOIN sites s ON s.id = g.site_id WHERE g.level = 'site' AND g.tenant_id <> s.tenant_id`,
            );
            expect(astray.rows).toEqual([]);
            const lost =
              await trx.raw(`SELECT g.id FROM grants g JOIN devices d ON d.id = g.device_id
                LEFT JOIN sites s ON s.id = d.site_id AND s.tenant_id = d.tenant_id
        WHERE g.level = 'device' AND (g.tenant_id <> d.tenant_id OR g.site_id IS DISTINCT FROM s.id)`);
            expect(lost.rows).toEqual([]);
            seen[
              scope.kind === 'everywhere' ? 'everywhere' : covered.length > 0 ? 'some' : 'none'
            ] += 1;
            await trx.rollback();
          })
          .catch((error: unknown) => {
            if (!(error instanceof Error) || !error.message.includes('Transaction rejected'))
              throw error;
          });
      },
    ),
    { numRuns: propertyRuns(100) },
  );
  // The examples must not all be trivial.
  expect(Math.min(seen.everywhere, seen.some, seen.none)).toBeGreaterThan(0);
});

test('rights are read again when a grant changes, and only then', async () => {
  const { db, rights } = app.deps;
  const authState = async () => ({
    enabled: true,
    providerId: 'local',
    externalGroups: [],
    version: (await db('access_state').first()).version,
  });
  const first = await rights.forUser('usr_me', await authState());
  expect(await rights.forUser('usr_me', await authState())).toBe(first);
  await db('grants').insert({
    id: 'g_new',
    kind: 'assignment',
    user_id: 'usr_me',
    role_id: 'viewer',
    level: 'tenant',
    tenant_id: 'red',
    created_by: 'test',
    created_at: new Date(),
  });
  const second = await rights.forUser('usr_me', await authState());
  expect(covers(scopeOf(first, 'job:read'), { tenantId: 'red' })).toBe(false);
  expect(covers(scopeOf(second, 'job:read'), { tenantId: 'red' })).toBe(true);
});
