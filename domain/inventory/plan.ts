import { PLATFORM } from '../access/scope.ts';
import { openDraft, type OpenDraft } from './draft.ts';
import { isPlainId, lookedUpBy } from './prefetch.ts';
import {
  isValid,
  OPERATIONS,
  type Mutation,
  type Operation,
  type PlanError,
  type Planned,
  type Viewer,
} from './planning.ts';
import { RESOURCE_NAMES, type ResourceName } from './names.ts';
import { writable, type Resource, type Row } from './resource.ts';
import { REFERRERS, RESOURCES } from './resources/index.ts';
import { checkCustomFields, checkTags } from './rules/customFields.ts';
import { RULES } from './rules/index.ts';
import type { Space } from './prefixTree.ts';
import { labelOf, placesOf } from './standing.ts';
import { gathering, Missing, Unwritten, type Need, type World } from './planSnapshot.ts';

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A plan for what cannot be read at all. */
const unreadable = ({ resource, operation, record }: Mutation, errors: PlanError[]): Planned => ({
  resource,
  operation,
  candidateRecord: isRecord(record) ? record : {},
  companions: [],
  conflicts: [],
  warnings: [],
  effects: [],
  subject: null,
  errors,
});

/** What is wrong with the request around the record. */
function shapeErrors({ resource, operation, record }: Mutation): PlanError[] {
  const oneOf = (pointer: string, allowed: readonly string[], value: string): PlanError[] =>
    allowed.includes(value)
      ? []
      : [{ pointer, code: 'enum', message: `must be one of ${allowed.join(', ')}` }];
  return [
    ...oneOf('/resource', RESOURCE_NAMES, resource),
    ...oneOf('/operation', OPERATIONS, operation),
    ...(isRecord(record) ? [] : [{ pointer: '/record', code: 'type', message: 'must be object' }]),
  ];
}

/** Users of a record that a conflict names. */
const MAX_NAMED = 10;

/** Records of one name that are looked at. */
const MAX_ALIKE = 100;

/**
 * Plans mutations in order, each on top of the valid ones before it. Throws `Missing` for the first need of the first
 * mutation whose needs are unknown; `planAll` gathers them.
 */
export function planOne(world: World, space: Space, viewer: Viewer, mutation: Mutation): Planned {
  const wrong = shapeErrors(mutation);
  if (wrong.length > 0 || !isRecord(mutation.record)) return unreadable(mutation, wrong);
  const resource = RESOURCES[mutation.resource as ResourceName];
  const operation = mutation.operation as Operation;
  if (operation === 'create')
    return finish(draftNew(world, space, viewer, resource, mutation.record), viewer);
  const { id, version, ...fields } = mutation.record;
  const before = isPlainId(id) ? world.get(resource.name, id) : undefined;
  if (!before || !viewer.sees(resource, before)) {
    const missing = { pointer: '/id', code: 'required', message: 'is required' };
    return unreadable(mutation, [
      id === undefined
        ? missing
        : {
            pointer: '/id',
            code: 'not_found',
            message: `there is no ${resource.kind} with this id`,
          },
    ]);
  }
  const draft = draftOld(world, space, viewer, resource, operation, before, fields);
  if (version !== undefined && !Number.isInteger(version))
    draft.error('version', 'type', 'must be integer');
  else if (version !== undefined && version !== before.version)
    draft.conflict(
      'version_stale',
      `the version is now ${before.version}`,
      { resource: resource.name, row: before },
      'version',
    );
  return finish(draft, viewer);
}

function draftNew(
  world: World,
  space: Space,
  viewer: Viewer,
  resource: Resource,
  record: Record<string, unknown>,
): OpenDraft {
  const { id } = record;
  const after: Record<string, unknown> & Row = {
    id: resource.ids !== null ? viewer.newId(resource, record) : typeof id === 'string' ? id : '',
    version: 1,
  };
  for (const [name, field] of Object.entries(resource.fields))
    after[name] =
      record[name] ?? (name === 'tenantId' && !field.derived ? viewer.tenantId : field.default);
  const draft = openDraft({
    world,
    space,
    viewer,
    resource,
    operation: 'create',
    before: null,
    after,
    request: record,
  });
  for (const { pointer, code, message } of viewer.check(resource, 'create', record))
    draft.error(pointer.slice(1), code, message);
  if (resource.ids === null && draft.sound('id') && world.get(resource.name, after.id)) {
    draft.conflict(
      'duplicate',
      `there is a ${resource.kind} with this id`,
      { resource: resource.name, row: { id: after.id, version: 0, tenantId: after.id } },
      'id',
    );
  }
  return draft;
}

function draftOld(
  world: World,
  space: Space,
  viewer: Viewer,
  resource: Resource,
  operation: Operation,
  before: Row,
  fields: Record<string, unknown>,
): OpenDraft {
  const known = Object.entries(fields).filter(([name]) => Object.hasOwn(resource.fields, name));
  const after =
    operation === 'delete'
      ? { ...before }
      : {
          ...before,
          ...Object.fromEntries(
            known.map(([name, value]) => [name, value ?? resource.fields[name]?.default ?? null]),
          ),
        };
  const draft = openDraft({
    world,
    space,
    viewer,
    resource,
    operation,
    before,
    after,
    request: operation === 'delete' ? {} : fields,
  });
  if (operation === 'delete') return draft;
  for (const { pointer, code, message } of viewer.check(resource, 'update', fields))
    draft.error(pointer.slice(1), code, message);
  for (const [name, { fixed }] of writable(resource)) {
    if (fixed && draft.given(name) && draft.sound(name) && draft.changes(name))
      draft.error(name, 'fixed', 'cannot be changed');
  }
  return draft;
}

/** Everything that is checked of a draft, whatever was wrong before; what is valid is put into the world. */
function finish(draft: OpenDraft, viewer: Viewer): Planned {
  if (draft.operation === 'delete') {
    RULES[draft.resource.name]?.remove?.(draft);
    takeAlong(draft, draft.resource, draft.after);
  } else {
    canonicalise(draft);
    resolveReferences(draft, viewer);
    RULES[draft.resource.name]?.write?.(draft);
    checkCustomFields(draft);
    checkTags(draft);
    checkUnique(draft);
  }
  draft.settle();
  checkRight(draft, viewer);
  if (isValid(draft.planned)) draft.accept();
  return draft.planned;
}

function checkRight({ planned, error }: OpenDraft, { mayWrite }: Viewer): void {
  if (!mayWrite || planned.errors.length > 0 || placesOf(planned).every(mayWrite)) return;
  error(
    '',
    'permission_denied',
    'permission inventory:write is missing where a record stands, or would',
  );
}

function canonicalise(draft: OpenDraft): void {
  for (const [name, { canonical }] of Object.entries(draft.resource.fields)) {
    const value = draft.after[name];
    if (!canonical || typeof value !== 'string' || !draft.given(name) || !draft.sound(name))
      continue;
    const form = canonical(value);
    if (typeof form === 'string') draft.after[name] = form;
    else draft.error(name, form.code, form.message);
  }
}

function resolveReferences(draft: OpenDraft, viewer: Viewer): void {
  const { after, before, resource } = draft;
  // Where it stands says which of several with one name is meant; and the site may say the tenant.
  const rank = (name: string): number =>
    name === 'siteId' || name === 'vrfId' || name === 'deviceId' ? 0 : name === 'tenantId' ? 2 : 1;
  const fields = Object.entries(resource.fields).sort(([a], [b]) => rank(a) - rank(b));
  for (const [name, { reference, derived }] of fields) {
    const value = after[name];
    if (
      reference === undefined ||
      derived ||
      value === null ||
      value === undefined ||
      !draft.sound(name)
    )
      continue;
    if (!draft.given(name) && before) continue;
    if (isRecord(value)) resolveNamed(draft, viewer, name, reference, value);
    else if (typeof value !== 'string') continue;
    else if (name === 'tenantId') checkTenant(draft, viewer, value);
    else {
      const row = draft.world.get(reference, value);
      // What was there before may stay, whether or not the caller sees it.
      if (!row || (!viewer.sees(RESOURCES[reference], row) && before?.[name] !== value))
        draft.error(name, 'not_found', `there is no ${RESOURCES[reference].kind} with id ${value}`);
    }
  }
}

/** A tenant is known by its record, or because the caller stands there: gateways know tenants of their own. */
function checkTenant(draft: OpenDraft, viewer: Viewer, id: string): void {
  if (id === draft.before?.tenantId) return;
  const standsThere = viewer.seesTenant(id);
  if (
    standsThere &&
    (id === PLATFORM ||
      id === viewer.tenantId ||
      viewer.knowsTenant(id) ||
      draft.world.get('tenants', id))
  )
    return;
  // Whoever may work at a site may give its tenant what stands there, and does so unless they say otherwise.
  const { siteId } = draft.after;
  const site =
    typeof siteId === 'string' && draft.resource.standing !== 'isSite'
      ? draft.world.get('sites', siteId)
      : undefined;
  if (
    site &&
    viewer.sees(RESOURCES.sites, site) &&
    (site.tenantId === id || !draft.given('tenantId'))
  ) {
    draft.after.tenantId = site.tenantId;
    return;
  }
  draft.error('tenantId', 'not_found', `there is no tenant with id ${id}`);
}

/** Of records with one name those that stand closest to the record: in its tenant, at its site, in its VRF, on its device. */
const closestOf = ({ after }: OpenDraft, alike: readonly Row[]): readonly Row[] =>
  ['tenantId', 'siteId', 'vrfId', 'deviceId'].reduce((left, field) => {
    const closer = left.filter(
      (row) => typeof after[field] === 'string' && row[field] === after[field],
    );
    return left.length > 1 && closer.length > 0 ? closer : left;
  }, alike);

/** A reference that names a record by one of its fields. */
function resolveNamed(
  draft: OpenDraft,
  viewer: Viewer,
  name: string,
  to: ResourceName,
  by: Record<string, unknown>,
): void {
  const target = RESOURCES[to];
  const [field = '', value] = Object.entries(by)[0] ?? [];
  if (!target.names.includes(field)) {
    draft.error(
      name,
      'reference',
      `a ${target.kind} can be named by ${['id', ...target.names].join(', ')}`,
    );
    return;
  }
  const text = typeof value === 'string' ? value : '';
  const canonical = target.fields[field]?.canonical?.(text) ?? text;
  const found =
    typeof canonical === 'string'
      ? closestOf(
          draft,
          draft.world
            .where(to, [lookedUpBy(field, canonical)], [canonical], MAX_ALIKE)
            .filter((row) => viewer.sees(target, row)),
        )
      : [];
  const [row] = found;
  if (row && found.length === 1) draft.after[name] = draft.world.get(to, row.id)?.id ?? row.id;
  else if (row)
    draft.error(
      name,
      'ambiguous',
      `${found.length} of ${to} have the ${field} ${text}: ${found
        .slice(0, 5)
        .map(({ id }) => id)
        .join(', ')}`,
    );
  else draft.error(name, 'not_found', `there is no ${target.kind} with the ${field} ${text}`);
}

function checkUnique(draft: OpenDraft): void {
  const { after, resource, world } = draft;
  for (const fields of resource.unique) {
    const values = fields.map((field) => after[field]);
    if (!draft.sound(...fields) || values.includes(null) || !draft.changes(...fields)) continue;
    const twin = world.where(resource.name, fields, values).find(({ id }) => id !== after.id);
    if (twin)
      draft.conflict(
        'duplicate',
        `there is a ${resource.kind} with this ${fields.join(' and ')}`,
        { resource: resource.name, row: twin },
        fields.at(-1),
      );
  }
}

/** What goes with a record, what is freed of it, and who stands against it. */
function takeAlong(draft: OpenDraft, resource: Resource, row: Row): void {
  const { world } = draft;
  gathering(resource.cascades, ({ resource: of, field }) => {
    gathering(
      world.where(of, [field], [row.id]).filter(({ id }) => !draft.isGoing(of, id)),
      (other) => {
        draft.alsoRemove(of, other, 'cascade');
        takeAlong(draft, RESOURCES[of], other);
      },
    );
  });
  gathering(resource.frees, ({ resource: of, field, following = [] }) => {
    for (const other of world.where(of, [field], [row.id])) {
      if (draft.isGoing(of, other.id)) continue;
      mustNotBePrimary(draft, of, other);
      draft.also(
        of,
        other,
        Object.fromEntries([field, ...following].map((name) => [name, null])),
        'freed',
      );
    }
  });
  gathering(REFERRERS[resource.name], ({ resource: of, field }) => {
    if (
      [...resource.cascades, ...resource.frees, ...resource.handsOn].some(
        (each) => each.resource === of && each.field === field,
      )
    )
      return;
    const users = world
      .users(of, field, row.id, MAX_NAMED + 1)
      .filter((user) => !draft.isGoing(of, user.id));
    for (const user of users.slice(0, MAX_NAMED)) {
      draft.conflict('in_use', `is used by ${RESOURCES[of].kind} ${labelOf(RESOURCES[of], user)}`, {
        resource: of,
        row: user,
      });
    }
    if (users.length > MAX_NAMED) draft.conflict('in_use', `is used by more of ${of}`);
  });
}

/** An address that is freed with its interface must not be what its device is reached by. */
function mustNotBePrimary(draft: OpenDraft, of: ResourceName, address: Row): void {
  if (
    of !== 'ip-addresses' ||
    typeof address.deviceId !== 'string' ||
    draft.isGoing('devices', address.deviceId)
  )
    return;
  const device = draft.world.get('devices', address.deviceId);
  if (device?.primaryIp4Id !== address.id && device?.primaryIp6Id !== address.id) return;
  draft.conflict(
    'in_use',
    `${String(address.address)} is the primary address of device ${String(device.name)}`,
    { resource: 'devices', row: device },
  );
}

/** A plan of several mutations, as far as it goes. */
export type Plan = {
  planned: Planned[];
  /** What must be looked up before the plan is whole. */
  missing: Need[];
  /** The first mutation that can only be planned when those before it are written; null when none. */
  unwrittenAt: number | null;
};

/**
 * Plans mutations in order. With `missing` or `unwrittenAt` the plan is a draft: look up or write, and plan again.
 */
export function planAll(
  world: World,
  space: Space,
  viewer: Viewer,
  mutations: readonly Mutation[],
): Plan {
  const plan: Plan = { planned: [], missing: [], unwrittenAt: null };
  world.reset();
  for (const [at, mutation] of mutations.entries()) {
    try {
      plan.planned.push(planOne(world, space, viewer, mutation));
    } catch (error) {
      if (error instanceof Unwritten) {
        plan.unwrittenAt = at;
        break;
      }
      if (!(error instanceof Missing)) throw error;
      plan.missing.push(...error.needs);
    }
  }
  return plan;
}
