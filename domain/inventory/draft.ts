import { excerpt } from '../shared/excerpt.ts';
import { describeResourceScope, UNREADABLE_SCOPE, type ResourceScope } from '../access/scope.ts';
import { differences, isSame } from './difference.ts';
import { externalReadersOf } from './externalReaders.ts';
import {
  labelOf,
  resourceScopesOf,
  subjectScopesOf,
  tenantOf,
  writeScopesOf,
} from './ownership.ts';
import {
  GRANTS_REMOVED,
  MAX_EFFECTS,
  type Draft,
  type Effect,
  type EffectReason,
  type Operation,
  type OtherRecord,
  type PlanContext,
  type Planned,
} from './planning.ts';
import { isResourceName, type ResourceName } from './names.ts';
import type { PlanSnapshot } from './planSnapshot.ts';
import type { Resource, Row } from './resource.ts';
import { RESOURCES } from './resources/index.ts';
import { counted } from '../shared/counted.ts';
import { nounOf } from '../shared/nouns.ts';

type CascadedChange = {
  resource: ResourceName;
  id: string;
  before: Row;
  after: Row | null;
  reason: EffectReason;
};

/** The number of changes that are applied before other work may get a turn. */
const CHANGES_PER_TURN = 250;

/** The number of errors, of conflicts and of warnings that a plan lists. */
const MAX_FINDINGS = 100;

/** The length of a message: it may name all choices of a custom field. */
const MAX_MESSAGE_LENGTH = 500;

/** A draft with its plan so far. */
export type OpenDraft = Draft & {
  planned: Planned;
  /** True when fields without an error may be invalid as well. */
  hasMoreErrors: boolean;
  /** Requires permission in further scopes, besides those of the records. */
  requireAlso(...scopes: readonly ResourceScope[]): void;
  /** Lists in the plan where the caller needs permission. */
  listScopes(): void;
  /** The records that the mutation deletes. */
  deleted(): { resource: ResourceName; id: string }[];
  /**
   * Applies all changes of the mutation to the snapshot and lists them as effects. The iteration
   * pauses between them.
   */
  applyToSnapshot(): Iterable<void>;
};

type DraftInput = PlanContext & {
  resource: Resource;
  operation: Operation;
  before: Row | null;
  after: Row;
  /** The fields of the request. */
  request: Readonly<Record<string, unknown>>;
  evicts?: boolean;
};

/** Starts the plan of one mutation. */
export function createDraft(input: DraftInput): OpenDraft {
  const { snapshot, prefixTree, spans, viewer, resource, operation, before, after, request } =
    input;
  const planned = emptyPlan(input);
  const cascades = createCascades(planned, snapshot);
  const acceptCallbacks: (() => void)[] = [];
  const furtherScopes: ResourceScope[] = [];
  const { evicts = false } = input;
  const owner = tenantOf(resource, before ?? after);
  const yields = (of: ResourceName, row: Row): boolean =>
    hasOwner(resource) &&
    tenantOf(RESOURCES[of], row) !== owner &&
    (evicts ||
      !writeScopesOf(snapshot, RESOURCES[of], row).every((scope) => viewer.canWrite(scope)));
  const certainScopes: ResourceScope[] = [];
  const findings = createFindings(planned, input);
  return {
    snapshot,
    prefixTree,
    spans,
    resource,
    operation,
    before,
    after,
    planned,
    hasMoreErrors: false,
    warns: viewer.warns,
    ...findings,
    isProvided: (field) => Object.hasOwn(request, field),
    hasChanged: (...fields) =>
      before === null || fields.some((field) => !isSame(before[field], after[field])),
    cascadeUpdate: cascades.add,
    cascadeDelete: (of, row, reason) => cascades.add(of, row, null, reason),
    deleted: () => [
      ...(operation === 'delete' ? [{ resource: resource.name, id: after.id }] : []),
      ...cascades.list().filter((each) => each.after === null),
    ],
    isDeleted: (of, id) =>
      (of === resource.name && id === after.id && operation === 'delete') ||
      cascades.deletes(of, id),
    onAccept: (callback) => void acceptCallbacks.push(callback),
    requirePermission(field, scope, why) {
      certainScopes.push(scope);
      if (viewer.canUseTenant(scope.tenantId)) return true;
      findings.error(field, 'permission_denied', `${why}: ${missingPermission(scope, true)}`);
      return false;
    },
    evicts,
    yields,
    revokeGrants(of, row) {
      if (snapshot.fact('grantsAt', `${of}/${row.id}`).length === 0) return;
      const [scope] = writeScopesOf(snapshot, RESOURCES[of], row);
      if (!scope) return;
      const isOwn = !yields(of, row);
      planned.revoked.push({ resource: of, id: row.id, scope, isOwn });
      const message = 'role assignments and provider mappings there are removed';
      if (isOwn) planned.warnings.push({ pointer: '/tenantId', code: GRANTS_REMOVED, message });
    },
    requireAlso: (...scopes) => void furtherScopes.push(...scopes),
    listScopes() {
      if (!planned.subject) return;
      const { present } = subjectScopesOf(snapshot, { ...planned.subject, after: null });
      planned.presentScopes = [...present, ...certainScopes];
      // The future scope of an invalid plan is not reliable; its errors are reported instead.
      if (planned.errors.length > 0) return;
      const { future } = subjectScopesOf(snapshot, planned.subject);
      // A child prefix needs no permission of its own when only its parent changes.
      const others = cascades.list().filter(({ reason }) => reason !== 'reparented');
      const own = others.filter((each) => !yields(each.resource, each.before));
      if (own.length < others.length) {
        const message = `${counted(others.length - own.length, 'record')} of other tenants would lose the reference to it or be deleted`;
        planned.warnings.push({ pointer: null, code: 'others_detached', message });
      }
      const cascaded = own.flatMap((each) =>
        writeScopesOf(snapshot, RESOURCES[each.resource], each.before),
      );
      planned.requiredScopes = [...planned.presentScopes, ...future, ...cascaded, ...furtherScopes];
    },
    *applyToSnapshot() {
      const cascaded = cascades.list();
      planned.unchanged = isUnchanged(input, cascaded);
      if (planned.unchanged) return;
      if (operation === 'delete') snapshot.remove(resource.name, after.id);
      else snapshot.put(resource.name, after);
      planned.effects = [requestedEffect(input)];
      for (const [i, each] of cascaded.entries()) {
        if (i % CHANGES_PER_TURN === 0) yield;
        if (each.after) snapshot.put(each.resource, each.after);
        else snapshot.remove(each.resource, each.id);
        if (viewer.isInside(RESOURCES[each.resource], each.before))
          planned.effects.push(effectOf(each.after ? 'update' : 'delete', each));
      }
      for (const callback of acceptCallbacks) callback();
    },
  };
}

/** Catalogues are for everybody, and a tenant is not what its records hang on. */
const hasOwner = ({ scopeKind }: Resource): boolean =>
  scopeKind !== 'catalogue' && scopeKind !== 'isTenant';

const emptyPlan = ({ resource, operation, before, after }: DraftInput): Planned => ({
  presentScopes: [],
  requiredScopes: [],
  revoked: [],
  denied: [],
  resource: resource.name,
  operation,
  candidateRecord: after,
  pointsInto: 'record',
  errors: [],
  conflicts: [],
  warnings: [],
  effects: [],
  unchanged: false,
  subject: {
    resource: resource.name,
    id: after.id,
    before,
    after: operation === 'delete' ? null : after,
  },
});

/** An update without differences makes no new version, no history and no event. */
const isUnchanged = (
  { before, after, operation }: DraftInput,
  cascaded: readonly CascadedChange[],
): boolean =>
  before !== null &&
  operation === 'update' &&
  cascaded.length === 0 &&
  differences(before, after).length === 0;

const requestedEffect = ({ resource, operation, before, after }: DraftInput): Effect =>
  effectOf(operation, {
    resource: resource.name,
    id: after.id,
    before,
    after: operation === 'delete' ? null : after,
    reason: 'requested',
  });

type EffectSource = {
  resource: ResourceName;
  id: string;
  before: Row | null;
  after: Row | null;
  reason: EffectReason;
};

const effectOf = (
  action: Operation,
  { resource, id, before, after, reason }: EffectSource,
): Effect => {
  const row = after ?? before;
  return {
    action,
    resource,
    id,
    reason,
    label: row ? labelOf(RESOURCES[resource], row) : id,
    changes: before && after ? differences(before, after) : [],
  };
};

/** The message for a scope in which the caller may not write. Only a known scope is named. */
export const missingPermission = (scope: ResourceScope, isKnown: boolean): string =>
  `permission inventory:write is missing at ${isKnown ? describeResourceScope(scope) : UNREADABLE_SCOPE}`;

/** The message for a scope in which the caller may not remove role assignments. */
export const missingRbac = (scope: ResourceScope): string =>
  `permission rbac:write is missing at ${describeResourceScope(scope)}`;

/** Adds errors, conflicts and warnings to a plan, without what the viewer may not read. */
function createFindings(
  planned: Planned,
  input: DraftInput,
): Pick<Draft, 'isValid' | 'error' | 'deny' | 'conflict' | 'warn'> {
  const { viewer, resource: own, before, after } = input;
  const invalidFields = new Set<string>();
  const pointerTo = (field: string | undefined) => (field === undefined ? null : `/${field}`);
  const isReadable = ({ resource, row }: OtherRecord): boolean =>
    isResourceName(resource)
      ? row === undefined || viewer.canRead(RESOURCES[resource], row)
      : resourceScopesOf(own, before ?? after).every((scope) =>
          viewer.holds(externalReadersOf(resource), scope),
        );
  function error(field: string, code: string, message: string): void {
    const [name = field] = field.split('/');
    invalidFields.add(name);
    if (planned.errors.length < MAX_FINDINGS)
      planned.errors.push({
        pointer: field === '' ? '' : `/${field}`,
        code,
        message: excerpt(message, MAX_MESSAGE_LENGTH),
      });
  }
  return {
    isValid: (...fields) => fields.every((field) => !invalidFields.has(field)),
    error,
    deny(field, scope) {
      planned.denied.push(scope);
      error(field, 'permission_denied', missingPermission(scope, true));
    },
    conflict(code, message, other = null, field) {
      if (planned.conflicts.length >= MAX_FINDINGS) return;
      const named = other !== null && isReadable(other) ? other : null;
      const namedId = named?.row?.id ?? named?.id ?? null;
      const isPlanned = named !== null && namedId !== null && isNew(input, named.resource, namedId);
      const readable = isPlanned ? `${message}, in the same request` : message;
      const text = other && !named ? 'conflicts with a record that you may not read' : readable;
      const holder = other?.row && evictableFrom(input, other.resource, other.row);
      planned.conflicts.push({
        pointer: pointerTo(field),
        code,
        message: excerpt(
          holder ? `${text}; evict on ${holder} removes it` : text,
          MAX_MESSAGE_LENGTH,
        ),
        resource: named?.resource ?? null,
        id: isPlanned && !viewer.writesValid ? null : namedId,
      });
    },
    warn(code, message, field, about) {
      if (!viewer.warns || planned.warnings.length >= MAX_FINDINGS) return;
      if (about && !isReadable(about)) return;
      planned.warnings.push({
        pointer: pointerTo(field),
        code,
        message: excerpt(message, MAX_MESSAGE_LENGTH),
      });
    },
  };
}

/** True when the plan creates this record. */
const isNew = ({ snapshot }: DraftInput, resource: string, id: string): boolean =>
  isResourceName(resource) && snapshot.isNew(resource, id);

/**
 * The record of the caller from which `evict` removes a record of another tenant that is in the way
 * of the draft: both refer to it. Undefined when there is none.
 */
function evictableFrom(
  { snapshot, viewer, after }: DraftInput,
  of: string,
  row: Row,
): string | undefined {
  if (!isResourceName(of)) return undefined;
  const other = RESOURCES[of];
  const mayWrite = (resource: Resource, each: Row) =>
    writeScopesOf(snapshot, resource, each).every((scope) => viewer.canWrite(scope));
  if (!hasOwner(other) || mayWrite(other, row)) return undefined;
  for (const [name, { reference, derived }] of Object.entries(other.fields)) {
    const id = row[name];
    if (reference === undefined || derived || typeof id !== 'string') continue;
    const target = RESOURCES[reference];
    if (!target.sharable || !Object.values(after).includes(id)) continue;
    const held = snapshot.peek(reference, id);
    const isForeign = held && tenantOf(target, held) !== tenantOf(other, row);
    if (isForeign && mayWrite(target, held))
      return `${nounOf(target.kind)} ${labelOf(target, held)}`;
  }
  return undefined;
}

/** Collects the changes of other records, one for each record. */
function createCascades(planned: Planned, snapshot: PlanSnapshot) {
  const changes = new Map<string, CascadedChange>();
  return {
    list: (): CascadedChange[] => [...changes.values()],
    deletes: (resource: ResourceName, id: string): boolean =>
      changes.get(`${resource}/${id}`)?.after === null,
    add(resource: ResourceName, row: Row, change: object | null, reason: EffectReason): void {
      snapshot.cascadeCount += 1;
      const key = `${resource}/${row.id}`;
      const known = changes.get(key);
      const current = known?.after ?? row;
      changes.set(key, {
        resource,
        id: row.id,
        before: known?.before ?? row,
        after: change && { ...current, ...change },
        reason: known?.reason ?? reason,
      });
      if (changes.size === MAX_EFFECTS + 1) {
        planned.conflicts.push({
          pointer: null,
          code: 'too_many_effects',
          message: `would change more than ${MAX_EFFECTS} other records`,
          resource: null,
          id: null,
        });
      }
    },
  };
}
