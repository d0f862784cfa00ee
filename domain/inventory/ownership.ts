import { covers, PLATFORM, type ResourceScope, type Scope } from '../access/scope.ts';
import type { Planned } from './planning.ts';
import type { Resource, Row } from './resource.ts';
import { RESOURCES } from './resources/index.ts';

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** The tenant, site and device that a record belongs to, for permissions. */
export function resourceScopeOf({ scopeKind }: Resource, row: Row): ResourceScope {
  if (scopeKind === 'catalogue') return { tenantId: PLATFORM };
  if (scopeKind === 'isTenant') return { tenantId: row.id };
  const tenantId = textOf(row.tenantId) ?? PLATFORM;
  if (scopeKind === 'tenant') return { tenantId };
  const siteId = scopeKind === 'isSite' ? row.id : textOf(row.siteId);
  if (scopeKind === 'site' || scopeKind === 'isSite') return { tenantId, siteId };
  return { tenantId, siteId, deviceId: scopeKind === 'isDevice' ? row.id : textOf(row.deviceId) };
}

/**
 * The scopes for which a plan needs `inventory:write`: the present and the future scope of its
 * record, and those of cascaded records. Permission at a device or a site alone does not allow
 * moving it elsewhere. Creating and deleting tenants needs permission at the platform.
 */
export function requiredScopesOf({
  subject,
  cascaded,
}: Pick<Planned, 'subject' | 'cascaded'>): ResourceScope[] {
  if (!subject) return [];
  const { before, after } = subject;
  const resource = RESOURCES[subject.resource];
  const ownScopes = [
    ...presentScopesOf({ subject }),
    ...(after ? [destinationScope(resource, before, after)] : []),
  ];
  const isTenantLifecycle = resource.scopeKind === 'isTenant' && (!before || !after);
  return [
    ...(isTenantLifecycle ? [{ tenantId: PLATFORM }] : ownScopes),
    ...cascaded.map((each) => resourceScopeOf(RESOURCES[each.resource], each.row)),
  ];
}

/** The present scope of the record that a plan changes: what it says even if it is invalid. */
export const presentScopesOf = ({ subject }: Pick<Planned, 'subject'>): ResourceScope[] =>
  subject?.before ? [resourceScopeOf(RESOURCES[subject.resource], subject.before)] : [];

/** The scope that a record is created in or moves to. */
function destinationScope(resource: Resource, before: Row | null, after: Row): ResourceScope {
  const scope = resourceScopeOf(resource, after);
  const moved = before?.tenantId !== after.tenantId || before?.siteId !== after.siteId;
  if (!moved || resource.scopeKind === 'onDevice') return scope;
  return {
    tenantId: scope.tenantId,
    siteId: resource.scopeKind === 'isSite' ? null : (scope.siteId ?? null),
  };
}

/** True when a record is inside a scope. Catalogues are readable in every scope. */
export const isReadable = (scope: Scope, resource: Resource, row: Row): boolean =>
  resource.scopeKind === 'catalogue' || covers(scope, resourceScopeOf(resource, row));

/** The display name of a record. */
export const labelOf = ({ labelField }: Resource, row: Row): string =>
  textOf(row[labelField]) ?? row.id;
