import { covers, PLATFORM, type ResourceScope, type Scope } from '../access/scope.ts';
import type { Planned } from './planning.ts';
import { INHERITED, type InheritedScope, type Resource, type Row } from './resource.ts';
import { RESOURCES } from './resources/index.ts';

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** The tenant, site and device that a record itself names. */
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
 * Everything that a record belongs to, for permissions: what it names itself or, without a site or
 * a device of its own, what it belongs to through other records. Reading it needs permission at one
 * of them, writing it at each.
 */
export function resourceScopesOf(resource: Resource, row: Row): ResourceScope[] {
  const own = resourceScopeOf(resource, row);
  if (typeof own.siteId === 'string' || typeof own.deviceId === 'string') return [own];
  const scopes = inheritedScopesOf(resource, row);
  return scopes.length === 0 ? [own] : scopes.map((scope) => ({ ...own, ...scope }));
}

/**
 * The inherited scopes that count. The devices of cables and addresses always do: one of another
 * tenant has neither site nor device here, so that writing the record needs permission at its own
 * tenant. The site of the prefix counts unless the device of the address is at that site.
 */
function inheritedScopesOf({ name }: Resource, row: Row): readonly InheritedScope[] {
  const inherited = row[INHERITED] ?? [];
  if (name === 'cables') return inherited;
  const [first, second] = inherited;
  const onDevice = name === 'ip-addresses' && row.deviceId !== null && first ? [first] : [];
  const space = name === 'ip-addresses' ? second : first;
  const siteId = space?.siteId ?? null;
  const isKnown = siteId === null || onDevice.some((device) => device.siteId === siteId);
  return isKnown || !space ? onDevice : [...onDevice, space];
}

/**
 * The scopes for which a plan needs `inventory:write`: the present and the future scope of its
 * record, and those of cascaded records. Permission at a device or a site alone does not allow
 * moving it elsewhere. Creating and deleting tenants needs permission at the platform.
 */
export function requiredScopesOf({
  subject,
  cascaded,
  furtherScopes,
}: Pick<Planned, 'subject' | 'cascaded' | 'furtherScopes'>): ResourceScope[] {
  if (!subject) return [];
  const { before, after } = subject;
  const resource = RESOURCES[subject.resource];
  const ownScopes = [
    ...presentScopesOf({ subject }),
    ...(after ? destinationScopes(resource, before, after) : []),
  ];
  const isTenantLifecycle = resource.scopeKind === 'isTenant' && (!before || !after);
  return [
    ...(isTenantLifecycle ? [{ tenantId: PLATFORM }] : ownScopes),
    ...cascaded.flatMap((each) => resourceScopesOf(RESOURCES[each.resource], each.row)),
    ...furtherScopes,
  ];
}

/** The present scopes of the record that a plan changes: what it says even if it is invalid. */
export const presentScopesOf = ({ subject }: Pick<Planned, 'subject'>): ResourceScope[] =>
  subject?.before ? resourceScopesOf(RESOURCES[subject.resource], subject.before) : [];

/** The scopes that a record is created in or moves to. */
function destinationScopes(resource: Resource, before: Row | null, after: Row): ResourceScope[] {
  const scopes = resourceScopesOf(resource, after);
  const moved = before?.tenantId !== after.tenantId || before?.siteId !== after.siteId;
  if (!moved || (resource.scopeKind !== 'isSite' && resource.scopeKind !== 'isDevice'))
    return scopes;
  return scopes.map(({ tenantId, siteId }) => ({
    tenantId,
    siteId: resource.scopeKind === 'isSite' ? null : (siteId ?? null),
  }));
}

/** True when a record is inside a scope. Catalogues are readable in every scope. */
export const isReadable = (scope: Scope, resource: Resource, row: Row): boolean =>
  resource.scopeKind === 'catalogue' ||
  resourceScopesOf(resource, row).some((each) => covers(scope, each));

/** The display name of a record. */
export const labelOf = ({ labelField }: Resource, row: Row): string =>
  textOf(row[labelField]) ?? row.id;
