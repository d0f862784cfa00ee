import { findResourceScope } from '../../db/access/access.ts';
import type { Knex } from '../../db/core/knex.ts';
import { invalidField, type FieldLocation } from '../../domain/shared/errors.ts';
import {
  covers,
  PLATFORM,
  type Level,
  type ResourceScope,
  type Scope,
} from '../../domain/access/scope.ts';

/**
 * A resource scope in a request. The narrowest id counts; wider ids may be omitted. Without any id,
 * or with the tenant `platform`, it is the platform.
 */
export type ResourceScopeRequest = { tenantId?: string; siteId?: string; deviceId?: string };

/**
 * Completes the ids of a requested resource scope from the records. A site or device outside
 * `visibleScope` is reported as not found. Error: `invalid_request` at a field of `location` if a
 * record is not found or the ids contradict each other.
 */
export async function resolveResourceScope(
  db: Knex,
  { tenantId, siteId, deviceId }: ResourceScopeRequest,
  visibleScope: Scope,
  location: FieldLocation,
): Promise<{ level: Level; resourceScope: ResourceScope }> {
  if (deviceId === undefined && siteId === undefined) {
    const resourceScope = { tenantId: tenantId ?? PLATFORM };
    return { level: resourceScope.tenantId === PLATFORM ? 'platform' : 'tenant', resourceScope };
  }
  const level = deviceId === undefined ? 'site' : 'device';
  const resourceScope = await findResourceScope(db, { siteId, deviceId });
  if (!resourceScope || !covers(visibleScope, resourceScope)) {
    throw invalidField(
      location,
      `/${level}Id`,
      'not_found',
      `there is no ${level} with id ${deviceId ?? siteId}`,
    );
  }
  const matches = (requested: string | undefined, actual: string | null | undefined) =>
    requested === undefined || requested === actual;
  if (!matches(tenantId, resourceScope.tenantId))
    throw invalidField(location, '/tenantId', 'mismatch', `is not the tenant of the ${level}`);
  if (!matches(siteId, resourceScope.siteId))
    throw invalidField(location, '/siteId', 'mismatch', 'is not the site of the device');
  return { level, resourceScope };
}
