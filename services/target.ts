import { findPlace } from '../db/access/access.ts';
import type { Knex } from '../db/core/knex.ts';
import { invalidField, type FieldPlace } from '../domain/shared/errors.ts';
import { covers, PLATFORM, type Level, type Place, type Scope } from '../domain/access/scope.ts';

/** Where a role is given or asked about: the narrowest of the three counts, none (or the tenant `platform`) is the platform. */
export type TargetRequest = { tenantId?: string; siteId?: string; deviceId?: string };

/**
 * Where the target stands. A site or device outside `visible` does not exist. Error: `invalid_request` in `from`,
 * also when the ids do not belong together.
 */
export async function resolveTarget(
  db: Knex,
  { tenantId, siteId, deviceId }: TargetRequest,
  visible: Scope,
  from: FieldPlace,
): Promise<{ level: Level; place: Place }> {
  if (deviceId === undefined && siteId === undefined) {
    const place = { tenantId: tenantId ?? PLATFORM };
    return { level: place.tenantId === PLATFORM ? 'platform' : 'tenant', place };
  }
  const level = deviceId === undefined ? 'site' : 'device';
  const place = await findPlace(db, {
    ...(siteId !== undefined && { siteId }),
    ...(deviceId !== undefined && { deviceId }),
  });
  if (!place || !covers(visible, place)) {
    throw invalidField(
      from,
      `/${level}Id`,
      'not_found',
      `there is no ${level} with id ${deviceId ?? siteId}`,
    );
  }
  const agrees = (given: string | undefined, real: string | null | undefined) =>
    given === undefined || given === real;
  if (!agrees(tenantId, place.tenantId))
    throw invalidField(from, '/tenantId', 'mismatch', `is not the tenant of the ${level}`);
  if (!agrees(siteId, place.siteId))
    throw invalidField(from, '/siteId', 'mismatch', 'is not the site of the device');
  return { level, place };
}
