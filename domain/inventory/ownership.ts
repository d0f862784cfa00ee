import { covers, PLATFORM, type ResourceScope, type Scope } from '../access/scope.ts';
import type { ResourceName } from './names.ts';
import type { Planned } from './planning.ts';
import type { PlanSnapshot, Referrer } from './planSnapshot.ts';
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

/** The tenant of a record; catalogues belong to the platform. */
export const tenantOf = (resource: Resource, row: Row): string =>
  resourceScopeOf(resource, row).tenantId;

/**
 * The scopes in which writing a record needs permission: everything that it belongs to. Permission
 * at a site reaches records of the site's tenant only: for a record of another tenant there,
 * permission is needed at that tenant.
 */
export const writeScopesOf = (
  snapshot: PlanSnapshot,
  resource: Resource,
  row: Row,
): ResourceScope[] =>
  resourceScopesOf(resource, row).map((scope) =>
    resource.scopeKind === 'isSite' ? scope : withOwnSite(snapshot, scope),
  );

/** A scope without its site when that is of another tenant. */
export function withOwnSite(snapshot: PlanSnapshot, scope: ResourceScope): ResourceScope {
  const { siteId } = scope;
  if (typeof siteId !== 'string') return scope;
  const site = snapshot.peek('sites', siteId) ?? snapshot.get('sites', siteId);
  return withSiteOf(site?.tenantId, scope);
}

/** A scope without its site when the tenant of the site is another one. */
export const withSiteOf = (tenantOfSite: unknown, scope: ResourceScope): ResourceScope =>
  tenantOfSite === scope.tenantId ? scope : { ...scope, siteId: null };

/**
 * The present and the future scopes of the record of a plan. Permission at a device or a site alone
 * does not allow moving it elsewhere. Creating and deleting tenants needs permission at the
 * platform.
 */
export function subjectScopesOf(
  snapshot: PlanSnapshot,
  { resource: name, before, after }: NonNullable<Planned['subject']>,
): { present: ResourceScope[]; future: ResourceScope[] } {
  const resource = RESOURCES[name];
  if (resource.scopeKind === 'isTenant' && (!before || !after))
    return { present: [{ tenantId: PLATFORM }], future: [] };
  return {
    present: before ? writeScopesOf(snapshot, resource, before) : [],
    future: after ? destinationScopes(snapshot, resource, before, after) : [],
  };
}

/** The scopes that a record is created in or moves to. */
function destinationScopes(
  snapshot: PlanSnapshot,
  resource: Resource,
  before: Row | null,
  after: Row,
): ResourceScope[] {
  const scopes = writeScopesOf(snapshot, resource, after);
  const moved = before?.tenantId !== after.tenantId || before?.siteId !== after.siteId;
  if (!moved || (resource.scopeKind !== 'isSite' && resource.scopeKind !== 'isDevice'))
    return scopes;
  return scopes.map(({ tenantId, siteId }) => ({
    tenantId,
    siteId: resource.scopeKind === 'isSite' ? null : (siteId ?? null),
  }));
}

/**
 * True when the caller knows a resource scope: they hold a permission there, or the request or the record
 * names it. A message about a missing permission names no other.
 */
export function isKnownScope(
  { subject, candidateRecord }: Pick<Planned, 'subject' | 'candidateRecord'>,
  scope: ResourceScope,
  visible: (scope: ResourceScope) => boolean,
): boolean {
  const { tenantId, siteId, deviceId } = scope;
  const id = deviceId ?? siteId ?? tenantId;
  if (id === PLATFORM || visible(scope)) return true;
  const fields = subject ? RESOURCES[subject.resource].fields : {};
  const isOwnField = (name: string) => name === 'tenantId' || fields[name]?.derived !== true;
  const named = Object.entries<unknown>({ ...candidateRecord }).filter(([name]) =>
    isOwnField(name),
  );
  const known = [...named.map(([, value]) => value), ...Object.values(subject?.before ?? {})];
  return known.includes(id);
}

/** True when a record is inside a scope. Catalogues are readable in every scope. */
export const isReadable = (scope: Scope, resource: Resource, row: Row): boolean =>
  resource.scopeKind === 'catalogue' ||
  resourceScopesOf(resource, row).some((each) => covers(scope, each));

/** A record as one that refers to another. */
export const asReferrer = ({ resource, row }: { resource: ResourceName; row: Row }): Referrer => ({
  resource,
  id: row.id,
  label: labelOf(RESOURCES[resource], row),
  row,
});

/** The display name of a record. */
export const labelOf = ({ labelField }: Resource, row: Row): string =>
  textOf(row[labelField]) ?? row.id;
