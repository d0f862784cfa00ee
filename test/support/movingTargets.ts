import fc from 'fast-check';
import type { Knex } from '../../db/core/knex.ts';
import { BUILT_IN_ROLES } from '../../domain/access/roles.ts';
import type { Grant, ResourceScope, Rights } from '../../domain/access/scope.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Caller } from '../../domain/shared/caller.ts';

/** Sites and devices of two tenants that move, for models of what belongs to them. */
const TENANTS = ['red', 'blue'] as const;
const SITES = ['s0', 's1', 's2'] as const;
const DEVICES = ['d0', 'd1', 'd2', 'd3'] as const;
type Site = (typeof SITES)[number];
type Device = (typeof DEVICES)[number];

/** The tenants of sites, and the tenants and sites of devices. */
export type World = {
  sites: Record<Site, string>;
  devices: Record<Device, { tenant: string; site: Site | null }>;
};

/** A record that belongs to its target: a tenant, a site, or a device and the site of that. */
export type ModelRecord = {
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
const record = fc.record({
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

export type Move = typeof move extends fc.Arbitrary<infer T> ? T : never;

/** A world, records in it, moves of its sites and devices, and what a reader of records is granted. */
export const movingTargets = fc.record({
  start: world,
  given: fc.array(record, { minLength: 1, maxLength: 8 }),
  moves: fc.array(move, { maxLength: 4 }),
  granted: fc.array(grant, { maxLength: 3 }),
});

type Example = typeof movingTargets extends fc.Arbitrary<infer T> ? T : never;

const ownSite = ({ sites, devices }: World, id: Device): Site | null => {
  const { tenant: owner, site: at } = devices[id];
  return at !== null && sites[at] === owner ? at : null;
};

/** What the records of an example belong to when they are created. */
export const modelOf = ({ start, given }: Pick<Example, 'start' | 'given'>): ModelRecord[] =>
  given.map(({ tenant: of, target, ended }, i) => ({
    id: `record_${i}`,
    tenant: of,
    site:
      target?.kind === 'site'
        ? target.id
        : target && start.devices[target.id].tenant === of
          ? ownSite(start, target.id)
          : null,
    device: target?.kind === 'device' ? target.id : null,
    ended,
  }));

/** What a record belongs to: its target as long as that is of its tenant. */
export const scopeIn = ({ sites, devices }: World, each: ModelRecord): ResourceScope => ({
  tenantId: each.tenant,
  siteId: each.site !== null && sites[each.site as Site] === each.tenant ? each.site : null,
  deviceId:
    each.device !== null && devices[each.device].tenant === each.tenant ? each.device : null,
});

/** A device takes its unfinished records along to another site of their tenant, and a site those of its devices. */
function follow(now: World, moved: Device, records: readonly ModelRecord[]): void {
  for (const each of records)
    if (each.device === moved && !each.ended && now.devices[moved].tenant === each.tenant)
      each.site = ownSite(now, moved);
}

/** Replaces all sites and devices by those of a world. */
export async function insertWorld(db: Knex, { sites, devices }: World): Promise<void> {
  await db('devices')
    .whereIn('id', [...DEVICES])
    .delete();
  await db('sites')
    .whereIn('id', [...SITES])
    .delete();
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

/** Moves a site or a device, in the database and in the model. */
export async function applyMove(
  db: Knex,
  now: World,
  records: readonly ModelRecord[],
  each: Move,
): Promise<void> {
  if ('site' in each) {
    now.sites[each.site] = each.to;
    await db('sites').where({ id: each.site }).update({ tenant_id: each.to });
    for (const moved of DEVICES)
      if (now.devices[moved].site === each.site) follow(now, moved, records);
  } else {
    now.devices[each.device] = each.to;
    const { tenant: tenant_id, site: site_id } = each.to;
    await db('devices').where({ id: each.device }).update({ tenant_id, site_id });
    follow(now, each.device, records);
  }
}

/** A reader with the role `viewer` where it is granted. */
export function readerWith(granted: Example['granted']): Caller & { rights: Rights } {
  const role = assertDefined(BUILT_IN_ROLES.get('viewer'), 'viewer');
  const rights: Rights = {
    grants: granted.map(({ level, id }): Grant => ({ role, level, targetId: id })),
  };
  return {
    kind: 'gateway',
    actorId: 'reader',
    tenantId: 'red',
    rights,
    requestId: 'req_1',
    address: null,
  };
}

/** Everything that a list has. */
export const ALL = {
  where: [],
  facets: [],
  count: false,
  sort: undefined,
  after: undefined,
  limit: 50,
};
