import type { Summary, Where } from './useSession.ts';

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

export function can(summary: Summary, permission: string, where?: Where): boolean {
  const { tenantId = summary.tenantId, siteId, deviceId } = where ?? {};
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

export function whyNot(summary: Summary, permission: string, where?: Where): string | undefined {
  if (can(summary, permission, where)) return undefined;
  if (!canAnywhere(summary, permission)) return `This needs the permission ${permission}.`;
  const tenant = where?.tenantId ?? summary.tenantId;
  return `This needs the permission ${permission} in the tenant ${tenant}; you have it elsewhere.`;
}

/** Tenants in which the user holds any permission; undefined: it may be any. */
export function tenantsOf({ permissions, tenantId }: Summary): string[] | undefined {
  const scopes = Object.values(permissions);
  if (scopes.some(({ everywhere, complete }) => everywhere || !complete)) return undefined;
  return [...new Set([tenantId, ...scopes.flatMap((scope) => scope.tenantIds)])].sort();
}
