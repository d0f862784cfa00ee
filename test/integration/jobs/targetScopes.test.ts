import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Job } from '../../../db/models/Job.ts';
import { BUILT_IN_ROLES } from '../../../domain/access/roles.ts';
import {
  covers,
  scopeOf,
  type Grant,
  type ResourceScope,
  type Rights,
} from '../../../domain/access/scope.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import type { Caller } from '../../../domain/shared/caller.ts';
import { propertyRuns } from '../../support/effort.ts';
import { withTargets } from '../../support/targets.ts';

const fixture = withTargets();

const TENANTS = ['red', 'blue'] as const;
const SITES = ['s0', 's1', 's2'] as const;
const DEVICES = ['d0', 'd1', 'd2', 'd3'] as const;
type Site = (typeof SITES)[number];
type Device = (typeof DEVICES)[number];

/** The tenants of sites, and the tenants and sites of devices. */
type World = {
  sites: Record<Site, string>;
  devices: Record<Device, { tenant: string; site: Site | null }>;
};
type ModelJob = {
  id: string;
  tenant: string;
  site: string | null;
  device: Device | null;
  ended: boolean;
};

const tenant = fc.constantFrom(...TENANTS);
const site = fc.constantFrom(...SITES);
const device = fc.constantFrom(...DEVICES);
const position = fc.record({ tenant, site: fc.option(site) });
const world: fc.Arbitrary<World> = fc.record({
  sites: fc.record({ s0: tenant, s1: tenant, s2: tenant }),
  devices: fc.record({ d0: position, d1: position, d2: position, d3: position }),
});
const job = fc.record({
  tenant,
  target: fc.oneof(
    fc.constant(null),
    fc.record({ kind: fc.constant('site' as const), id: site }),
    fc.record({ kind: fc.constant('device' as const), id: device }),
  ),
  ended: fc.boolean(),
});
const move = fc.oneof(fc.record({ site, to: tenant }), fc.record({ device, to: position }));
const grant = fc.oneof(
  fc.record({ level: fc.constant('tenant' as const), id: tenant }),
  fc.record({ level: fc.constant('site' as const), id: site }),
  fc.record({ level: fc.constant('device' as const), id: device }),
);

const ownSite = ({ sites, devices }: World, id: Device): Site | null => {
  const { tenant: owner, site: at } = devices[id];
  return at !== null && sites[at] === owner ? at : null;
};

/** What a job belongs to: its target as long as that is of its tenant. */
const scopeIn = ({ sites, devices }: World, each: ModelJob): ResourceScope => ({
  tenantId: each.tenant,
  siteId: each.site !== null && sites[each.site as Site] === each.tenant ? each.site : null,
  deviceId:
    each.device !== null && devices[each.device].tenant === each.tenant ? each.device : null,
});

/** A device takes its unfinished jobs along to another site of their tenant, and a site those of its devices. */
function follow(now: World, moved: Device, jobs: readonly ModelJob[]): void {
  for (const each of jobs)
    if (each.device === moved && !each.ended && now.devices[moved].tenant === each.tenant)
      each.site = ownSite(now, moved);
}

test('a list of jobs is the union of the scopes of its reader, also after moves', async () => {
  const { db, jobs: service, access } = fixture.app.deps;
  const template = await fixture
    .admin('platform')
    .post<{ id: string }>('/api/jobs', { type: 'core.echo', payload: {} })
    .expect(201);
  const row: object = await db('jobs').where({ id: template.id }).first();
  let seen = 0;
  const ids = (from: object) => Object.keys(from);

  async function insertWorld({ sites, devices }: World): Promise<void> {
    await db('jobs').whereNot({ id: template.id }).delete();
    await db('devices').whereIn('id', ids(devices)).delete();
    await db('sites').whereIn('id', ids(sites)).delete();
    await db('sites').insert(
      Object.entries(sites).map(([id, tenant_id]) => ({ id, tenant_id, name: id })),
    );
    await db('devices').insert(
      Object.entries(devices).map(([id, at]) => ({
        id,
        tenant_id: at.tenant,
        site_id: at.site,
        name: id,
      })),
    );
  }

  await fc.assert(
    fc.asyncProperty(
      world,
      fc.array(job, { minLength: 1, maxLength: 8 }),
      fc.array(move, { maxLength: 4 }),
      fc.array(grant, { maxLength: 3 }),
      async (start, given, moves, granted) => {
        const now = structuredClone(start);
        await insertWorld(now);
        const model: ModelJob[] = given.map(({ tenant: of, target, ended }, i) => ({
          id: `job_${i}`,
          tenant: of,
          site:
            target?.kind === 'site'
              ? target.id
              : target && now.devices[target.id].tenant === of
                ? ownSite(now, target.id)
                : null,
          device: target?.kind === 'device' ? target.id : null,
          ended,
        }));
        await db('jobs').insert(
          model.map((each) => ({
            ...row,
            id: each.id,
            tenant_id: each.tenant,
            slot: null,
            target_site_id: each.site,
            target_device_id: each.device,
          })),
        );
        await Job.query(db)
          .patch({ status: 'cancelled', finishedAt: new Date() })
          .whereIn(
            'id',
            model.filter(({ ended }) => ended).map(({ id }) => id),
          );
        for (const each of moves) {
          if ('site' in each) {
            now.sites[each.site] = each.to;
            await db('sites').where({ id: each.site }).update({ tenant_id: each.to });
            for (const device of DEVICES)
              if (now.devices[device].site === each.site) follow(now, device, model);
          } else {
            now.devices[each.device] = each.to;
            const { tenant: tenant_id, site: site_id } = each.to;
            await db('devices').where({ id: each.device }).update({ tenant_id, site_id });
            follow(now, each.device, model);
          }
        }
        const role = assertDefined(BUILT_IN_ROLES.get('viewer'), 'viewer');
        const rights: Rights = {
          grants: granted.map(({ level, id }): Grant => ({ role, level, targetId: id })),
        };
        const caller: Caller = {
          kind: 'gateway',
          actorId: 'reader',
          tenantId: 'red',
          rights,
          requestId: 'req_1',
          address: null,
        };
        const scope = scopeOf(rights, 'job:read');
        const expected = model.filter((each) => covers(scope, scopeIn(now, each)));
        const check = async () => {
          const request = {
            where: [],
            facets: [],
            count: false,
            sort: undefined,
            after: undefined,
            limit: 50,
          };
          const { items } = await service.list(caller, {}, request);
          expect(items.map(({ id }) => id).sort()).toEqual(expected.map(({ id }) => id).sort());
          for (const each of items) expect(access.holds(rights, 'job:read', each)).toBe(true);
        };
        await check();
        await db.raw('SELECT recalculate_job_scopes()');
        await check();
        seen += expected.length;
      },
    ),
    { numRuns: propertyRuns(60), includeErrorInReport: true },
  );
  expect(seen).toBeGreaterThan(20);
}, 60_000);
