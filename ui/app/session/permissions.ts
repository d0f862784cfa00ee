import type { Where } from '../../parts/where.ts';

/** The scopes in which a permission is held. */
type Held = {
  everywhere: boolean;
  complete: boolean;
  tenantIds: readonly string[];
  siteIds: readonly string[];
  deviceIds: readonly string[];
};

/** The permission summary of the service, as far as it is used here. */
type Summary = { tenantId: string; permissions: Readonly<Record<string, Held | undefined>> };

/**
 * What the permission summary says about one permission. It has the grants with their scopes: nothing
 * of the rules is repeated here, and where the summary is incomplete, the service decides.
 */
const scopeOf = ({ permissions }: Summary, permission: string) => permissions[permission];

export function canAnywhere(summary: Summary, permission: string): boolean {
  const scope = scopeOf(summary, permission);
  if (scope === undefined) return false;
  const { everywhere, tenantIds, siteIds, deviceIds } = scope;
  return everywhere || tenantIds.length + siteIds.length + deviceIds.length > 0;
}

/** Whether nothing that the permission is about is left out of what the user may see. */
export const canEverywhere = (summary: Summary, permission: string): boolean =>
  scopeOf(summary, permission)?.everywhere === true;

/**
 * Whether the stream of events, which is by tenants, has those of all records of tenants that the user may see: nothing is held
 * in a tenant, at a site or at a device whose events the user may not read.
 */
export function hasAllEvents(summary: Summary): boolean {
  const events = scopeOf(summary, 'event:read');
  if (events === undefined) return false;
  return Object.values(summary.permissions).every(
    (held) =>
      events.everywhere ||
      held === undefined ||
      (!held.everywhere &&
        held.complete &&
        held.siteIds.length + held.deviceIds.length === 0 &&
        held.tenantIds.every((id) => events.tenantIds.includes(id))),
  );
}

/** Whether the user holds no permission at all: nobody has assigned a role. */
export const hasNoRole = (summary: Summary): boolean =>
  Object.entries(summary.permissions).every(
    ([permission, held]) => held?.complete === true && !canAnywhere(summary, permission),
  );

export function can(summary: Summary, permission: string, where?: Where): boolean {
  const { tenantId = summary.tenantId, siteId, deviceId, complete = true } = where ?? {};
  if (!complete) return canAnywhere(summary, permission);
  const scope = scopeOf(summary, permission);
  if (scope === undefined) return false;
  return (
    scope.everywhere ||
    !scope.complete ||
    scope.tenantIds.includes(tenantId) ||
    (siteId != null && scope.siteIds.includes(siteId)) ||
    (deviceId != null && scope.deviceIds.includes(deviceId))
  );
}

/** The sites and devices where the permission is held by itself. */
export function heldAt(summary: Summary, permission: string): Where[] {
  const { siteIds = [], deviceIds = [] } = scopeOf(summary, permission) ?? {};
  return [...siteIds.map((siteId) => ({ siteId })), ...deviceIds.map((deviceId) => ({ deviceId }))];
}

export function whyNot(summary: Summary, permission: string, where?: Where): string | undefined {
  if (can(summary, permission, where)) return undefined;
  if (!canAnywhere(summary, permission)) return `This needs the permission ${permission}.`;
  const tenant = where?.tenantId ?? summary.tenantId;
  return `This needs the permission ${permission} in the tenant ${tenant}; you have it elsewhere.`;
}

/** Tenants in which the user holds any permission; undefined: it may be any. */
export function tenantsOf({ permissions, tenantId }: Summary): string[] | undefined {
  const scopes = Object.values(permissions).filter((held) => held !== undefined);
  if (scopes.some(({ everywhere, complete }) => everywhere || !complete)) return undefined;
  return [...new Set([tenantId, ...scopes.flatMap((scope) => scope.tenantIds)])].sort();
}
