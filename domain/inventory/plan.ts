import { PLATFORM, type ResourceScope } from '../access/scope.ts';
import { applyCascades } from './cascades.ts';
import { evictOthers } from './detach.ts';
import type { Field } from './fields.ts';
import { checkHolds } from './holds.ts';
import { createDraft, missingPermission, missingRbac, type OpenDraft } from './draft.ts';
import { isSame } from './difference.ts';
import { inheritScopes } from './inheritance.ts';
import { checkSpace } from './spaceRights.ts';
import { isKnownScope, writeScopesOf } from './ownership.ts';
import { checkTies } from './ties.ts';
import { isPlainId } from './prefetch.ts';
import {
  isValid,
  OPERATIONS,
  type Mutation,
  type Operation,
  type PlanContext,
  type PlanError,
  type Planned,
  type SchemaFindings,
  type Viewer,
} from './planning.ts';
import { MissingData, type DataNeed } from './planSnapshot.ts';
import { isResourceName, RESOURCE_NAMES, type ResourceName } from './names.ts';
import { resolveReferences } from './references.ts';
import { writableFields, type Resource, type Row } from './resource.ts';
import { RESOURCES } from './resources/index.ts';
import { checkCustomFields, checkTags } from './rules/customFields.ts';
import { RULES } from './rules/index.ts';
import { isJsonObject } from '../shared/jsonObject.ts';
import { listed, nounOf, nounOfField, withArticle } from '../shared/nouns.ts';

/**
 * A mutation without the fields in which null only means that they are not given. Called once for
 * each mutation, since plans know a record by its identity.
 */
export function withGivenFields(mutation: Mutation): Mutation {
  const { record, operation } = mutation;
  if (!isJsonObject(record) || !Object.values(record).includes(null)) return mutation;
  const fields = isResourceName(mutation.resource) ? RESOURCES[mutation.resource].fields : {};
  const given = Object.entries(record).filter(([name, value]) => {
    if (value !== null) return true;
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (!field || field.derived) return name !== 'version';
    return isNullGiven(name, field, operation);
  });
  return { ...mutation, record: Object.fromEntries(given) };
}

/** Whether null in a field is a value of it, or an error. A record has a tenant: null is none. */
const isNullGiven = (name: string, field: Field, operation: string): boolean =>
  name !== 'tenantId' && (field.nullable || (operation === 'create' && field.required));

/** The plan of a mutation. Iterating over `apply` adds its changes to the snapshot if it is valid. */
type Applicable = { planned: Planned; apply: Iterable<void> };

/**
 * Plans one mutation on top of the planned changes in the snapshot. When the snapshot lacks data, the
 * result is what to load before the mutation is planned again.
 */
export function tryToPlan(
  context: PlanContext,
  mutation: Mutation,
): Applicable | { missing: readonly DataNeed[] } {
  try {
    return planMutation(context, mutation);
  } catch (error) {
    if (!(error instanceof MissingData)) throw error;
    return { missing: error.needs };
  }
}

const unapplied = (planned: Planned): Applicable => ({ planned, apply: [] });

function planMutation(context: PlanContext, requested: Mutation): Applicable {
  const invalid = shapeErrors(requested);
  const { record } = requested;
  if (invalid.length > 0 || !isJsonObject(record))
    return unapplied({ ...rejectedPlan(requested, invalid), pointsInto: 'mutation' });
  const resource = RESOURCES[requested.resource as ResourceName];
  const mutation = createsMissing(context, resource, requested, record.id)
    ? { ...requested, operation: 'create' }
    : requested;
  const operation = mutation.operation as Operation;
  if (operation === 'create') {
    if (resource.scopeKind === 'isTenant' && !seesPlatform(context))
      return unapplied(deniedPlan(mutation, [{ tenantId: PLATFORM }], true));
    const given = givenFields(resource, operation, record, null);
    const id = newIdOf(context.viewer, resource, record);
    return checkDraft(draftCreate(context, resource, id, given), context.viewer);
  }
  const { id } = record;
  const before = isPlainId(id) ? context.snapshot.get(resource.name, id) : undefined;
  if (!before || !context.viewer.canRead(resource, before))
    return unapplied(rejectedPlan(mutation, [idError(resource, id)]));
  const showsOthers = resource.scopeKind === 'catalogue' && !seesPlatform(context);
  if (showsOthers || !context.viewer.isInside(resource, before))
    return unapplied(
      deniedPlan(mutation, writeScopesOf(context.snapshot, resource, before), showsOthers),
    );
  const given = {
    ...givenFields(resource, operation, record, before),
    ...emptiedFields(before, mutation),
  };
  return checkDraft(draftChange(context, resource, operation, before, given), context.viewer);
}

/**
 * The fields of a record without those that say nothing: null where the field cannot be null, and
 * read-only fields with their present value, so that a record can be sent as it was read.
 */
function givenFields(
  { fields }: Resource,
  operation: Operation,
  record: Readonly<Record<string, unknown>>,
  before: Row | null,
): Record<string, unknown> {
  const isGiven = ([name, value]: [string, unknown]): boolean => {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const isReadOnly = field?.derived === true || name === 'createdAt' || name === 'updatedAt';
    if (before && isReadOnly) return !isSame(value, before[name]);
    if (value !== null) return true;
    if (!field) return name !== 'id' && name !== 'version';
    return isNullGiven(name, field, operation);
  };
  return Object.fromEntries(Object.entries(record).filter(isGiven));
}

/** True for an update of a record that does not exist, to be created instead. */
const createsMissing = (
  { snapshot }: PlanContext,
  { name }: Resource,
  mutation: Mutation,
  id: unknown,
): boolean =>
  mutation.createsMissing === true &&
  mutation.operation === 'update' &&
  !(isPlainId(id) && snapshot.get(name, id));

/** The merged fields that a mutation empties, with null for each of their present values. */
const emptiedFields = (before: Row, { emptied = [] }: Mutation): Record<string, unknown> =>
  Object.fromEntries(
    emptied.map((name) => {
      const present = Object.keys(before[name] ?? {});
      return [name, Object.fromEntries(present.map((key) => [key, null]))];
    }),
  );

/** Errors of a mutation outside its record. */
function shapeErrors({ resource, operation, record }: Mutation): PlanError[] {
  const oneOf = (pointer: string, allowed: readonly string[], value: string): PlanError[] =>
    allowed.includes(value)
      ? []
      : [{ pointer, code: 'enum', message: `must be one of ${allowed.join(', ')}` }];
  return [
    ...oneOf('/resource', RESOURCE_NAMES, resource),
    ...oneOf('/operation', OPERATIONS, operation),
    ...(isJsonObject(record)
      ? []
      : [{ pointer: '/record', code: 'type', message: 'must be an object' }]),
  ];
}

const idError = ({ kind }: Resource, id: unknown): PlanError =>
  id === undefined || id === null
    ? { pointer: '/id', code: 'required', message: 'is required' }
    : { pointer: '/id', code: 'not_found', message: `there is no ${nounOf(kind)} with this id` };

/** The plan of a mutation that is refused before its record is planned. */
const rejectedPlan = ({ resource, operation, record }: Mutation, errors: PlanError[]): Planned => ({
  resource,
  operation,
  candidateRecord: isJsonObject(record) ? record : {},
  presentScopes: [],
  requiredScopes: [],
  revoked: [],
  denied: [],
  conflicts: [],
  warnings: [],
  effects: [],
  unchanged: false,
  subject: null,
  pointsInto: 'record',
  errors,
});

/**
 * True when the caller may know all tenants, and what they have. For others, the plan of a catalogue
 * record would show how they use it, and that of a new tenant which ones there are.
 */
const seesPlatform = ({ viewer }: PlanContext): boolean => viewer.canSee({ tenantId: PLATFORM });

/** The plan for a record that the caller may only know of. It shows nothing of other records. */
function deniedPlan(mutation: Mutation, presentScopes: ResourceScope[], isKnown: boolean): Planned {
  const errors = presentScopes.slice(0, 1).map((scope) => ({
    pointer: '',
    code: 'permission_denied',
    message: missingPermission(scope, isKnown),
  }));
  return { ...rejectedPlan(mutation, errors), presentScopes, denied: presentScopes };
}

function draftCreate(
  context: PlanContext,
  resource: Resource,
  id: string,
  record: Record<string, unknown>,
): OpenDraft {
  const { viewer, snapshot } = context;
  const after = newRecord(viewer, resource, id, record);
  const draft = createDraft({
    ...context,
    resource,
    operation: 'create',
    before: null,
    after,
    request: record,
  });
  addSchemaErrors(draft, viewer.checkSchema(resource, 'create', record));
  const existing =
    resource.idPrefix === null && draft.isValid('id') && !draft.hasMoreErrors
      ? snapshot.get(resource.name, after.id)
      : undefined;
  if (existing) {
    const other = { resource: resource.name, row: existing };
    draft.conflict(
      'duplicate',
      `${withArticle(nounOf(resource.kind))} with this id exists`,
      other,
      'id',
    );
  }
  return draft;
}

/**
 * The id of a new record. A missing or invalid readable id is an error of the schema. Others are the
 * same each time that the same record is planned.
 */
function newIdOf(
  viewer: Viewer,
  resource: Resource,
  record: Readonly<Record<string, unknown>>,
): string {
  if (resource.idPrefix !== null) return viewer.newId(resource, record);
  return typeof record.id === 'string' ? record.id : '';
}

/** A new record with defaults. */
function newRecord(
  viewer: Viewer,
  resource: Resource,
  id: string,
  record: Record<string, unknown>,
): Record<string, unknown> & Row {
  const after: Record<string, unknown> & Row = { id, version: 1 };
  for (const [name, field] of Object.entries(resource.fields)) {
    const fallback = name === 'tenantId' && !field.derived ? viewer.tenantId : field.default;
    after[name] = record[name] ?? fallback;
  }
  return after;
}

/** Drafts an update or a delete of an existing record. */
function draftChange(
  context: PlanContext,
  resource: Resource,
  operation: Operation,
  before: Row,
  record: Record<string, unknown>,
): OpenDraft {
  const { id, version, evict, ...others } = record;
  const fields = resource.sharable || evict === undefined ? others : { ...others, evict };
  const isDelete = operation === 'delete';
  const draft = createDraft({
    ...context,
    resource,
    operation,
    before,
    after: isDelete ? { ...before } : updatedRecord(resource, before, fields),
    request: isDelete ? {} : fields,
    evicts: resource.sharable && evict === true,
  });
  if (resource.sharable && typeof (evict ?? false) !== 'boolean')
    draft.error('evict', 'type', 'must be true or false');
  if (!isDelete)
    addSchemaErrors(
      draft,
      context.viewer.checkSchema(resource, 'update', changedFields(resource, before, fields)),
    );
  checkVersion(draft, before, version);
  return draft;
}

/**
 * The fields of a request that differ from the record, and the keys of merged fields that do: what stays as it is was
 * accepted, perhaps under other limits or in several requests.
 */
function changedFields(
  resource: Resource,
  before: Row,
  fields: Record<string, unknown>,
): Record<string, unknown> {
  const types = new Map(writableFields(resource).map(([name, { type }]) => [name, type]));
  const changed = Object.entries(fields).flatMap(([name, value]): [string, unknown][] => {
    const [type, present] = [types.get(name), before[name]];
    if (type === undefined) return [[name, value]];
    if (isSame(value, present)) return [];
    const isMerged = type === 'object' && isJsonObject(value) && isJsonObject(present);
    return [[name, isMerged ? changedKeys(value, present) : value]];
  });
  return Object.fromEntries(changed);
}

const changedKeys = (value: object, present: object): object => {
  const known = new Map(Object.entries(present));
  return Object.fromEntries(
    Object.entries(value).filter(([key, each]) => !known.has(key) || !isSame(each, known.get(key))),
  );
};

/**
 * An existing record with the fields of a request. Null resets a field to its default; the keys of
 * an object are merged with the present ones.
 */
function updatedRecord(resource: Resource, before: Row, fields: Record<string, unknown>): Row {
  const known = Object.entries(fields).flatMap(([name, value]) => {
    const field = Object.hasOwn(resource.fields, name) ? resource.fields[name] : undefined;
    if (!field) return [];
    const present = before[name];
    return field.type === 'object' && isJsonObject(value) && isJsonObject(present)
      ? [[name, { ...present, ...value }]]
      : [[name, value ?? field.default]];
  });
  return { ...before, ...Object.fromEntries(known) } as Row;
}

/** Checks an update whose references are ids: a reference by name can be the present one. */
function checkImmutable(draft: OpenDraft): void {
  if (!draft.before) return;
  for (const [name, { immutable }] of writableFields(draft.resource)) {
    if (immutable && draft.isProvided(name) && draft.isValid(name) && draft.hasChanged(name))
      draft.error(name, 'immutable', 'cannot be changed');
  }
}

function addSchemaErrors(draft: OpenDraft, { errors, isCut }: SchemaFindings): void {
  for (const { pointer, code, message } of errors) draft.error(pointer.slice(1), code, message);
  draft.hasMoreErrors = isCut;
}

function checkVersion(draft: OpenDraft, before: Row, version: unknown): void {
  if (version === undefined) return;
  if (!Number.isInteger(version)) draft.error('version', 'type', 'must be an integer');
  else if (version !== before.version) {
    const other = { resource: draft.resource.name, row: before };
    draft.conflict('version_conflict', `the version is now ${before.version}`, other, 'version');
  }
}

/**
 * Runs all checks on a draft, so that the plan lists all findings. When not all invalid fields are known,
 * rules would read invalid values: it has the errors of the schema only.
 */
function checkDraft(draft: OpenDraft, viewer: Viewer): Applicable {
  if (draft.operation === 'delete') {
    RULES[draft.resource.name]?.remove?.(draft);
    applyCascades(draft, draft.resource, draft.after);
  } else if (!draft.hasMoreErrors) {
    canonicalize(draft);
    if (draft.evicts) evictOthers(draft);
    resolveReferences(draft, viewer);
    checkImmutable(draft);
    // Nothing is reported about a tenant where the caller has no permission.
    if (draft.planned.denied.length > 0) return unapplied(draft.planned);
    RULES[draft.resource.name]?.write?.(draft);
    checkCustomFields(draft);
    checkTags(draft);
    checkUnique(draft);
    inheritScopes(draft);
    checkSpace(draft, viewer);
    checkTies(draft, viewer);
  }
  checkHolds(draft, viewer);
  draft.listScopes();
  checkWritePermission(draft, viewer);
  const { planned } = draft;
  return { planned, apply: isValid(planned) ? draft.applyToSnapshot() : [] };
}

function checkWritePermission({ planned, error }: OpenDraft, viewer: Viewer): void {
  if (!viewer.reportsPermissions || planned.errors.length > 0) return;
  const missing = planned.requiredScopes.find((scope) => !viewer.canWrite(scope));
  const kept = planned.revoked.find(
    ({ isOwn, scope }) => isOwn && !viewer.holds(['rbac:write'], scope),
  );
  if (kept) error('', 'permission_denied', missingRbac(kept.scope));
  if (!missing) return;
  const isKnown = isKnownScope(planned, missing, viewer.canSee);
  error('', 'permission_denied', missingPermission(missing, isKnown));
}

function canonicalize(draft: OpenDraft): void {
  for (const [name, { canonical }] of Object.entries(draft.resource.fields)) {
    const value = draft.after[name];
    if (!canonical || typeof value !== 'string' || !draft.isProvided(name) || !draft.isValid(name))
      continue;
    const form = canonical(value);
    if (typeof form === 'string') draft.after[name] = form;
    else draft.error(name, form.code, form.message);
  }
}

function checkUnique(draft: OpenDraft): void {
  const { after, resource, snapshot } = draft;
  for (const fields of resource.uniqueKeys) {
    const values = fields.map((field) => after[field]);
    if (!draft.isValid(...fields) || values.includes(null) || !draft.hasChanged(...fields))
      continue;
    const duplicate = snapshot
      .where(resource.name, fields, values)
      .find(({ id }) => id !== after.id);
    if (duplicate)
      draft.conflict(
        'duplicate',
        `${withArticle(nounOf(resource.kind))} with this ${listed(fields.map(nounOfField))} exists`,
        { resource: resource.name, row: duplicate },
        fields.at(-1),
      );
  }
}
