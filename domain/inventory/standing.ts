import { covers, PLATFORM, type Place, type Scope } from '../access/scope.ts';
import type { Planned } from './planning.ts';
import type { Resource, Row } from './resource.ts';
import { RESOURCES } from './resources/index.ts';

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** Where a record stands, for rights. */
export function placeOf({ standing }: Resource, row: Row): Place {
  if (standing === 'catalogue') return { tenantId: PLATFORM };
  if (standing === 'isTenant') return { tenantId: row.id };
  const tenantId = textOf(row.tenantId) ?? PLATFORM;
  if (standing === 'tenant') return { tenantId };
  const siteId = standing === 'isSite' ? row.id : textOf(row.siteId);
  if (standing === 'site' || standing === 'isSite') return { tenantId, siteId };
  return { tenantId, siteId, deviceId: standing === 'isDevice' ? row.id : textOf(row.deviceId) };
}

/**
 * Where `inventory:write` is needed for a change. What comes to stand somewhere needs it there, by itself: a right at a
 * device or a site is none to take it elsewhere. Tenants are made and deleted at the platform.
 */
export function placesOf({
  subject,
  companions,
}: Pick<Planned, 'subject' | 'companions'>): Place[] {
  if (!subject) return [];
  const { before, after } = subject;
  const resource = RESOURCES[subject.resource];
  const own = [
    ...(before ? [placeOf(resource, before)] : []),
    ...(after ? [destination(resource, before, after)] : []),
  ];
  const ends =
    resource.standing === 'isTenant' && (!before || !after) ? [{ tenantId: PLATFORM }] : own;
  return [...ends, ...companions.map((each) => placeOf(RESOURCES[each.resource], each.row))];
}

function destination(resource: Resource, before: Row | null, after: Row): Place {
  const place = placeOf(resource, after);
  const moved = before?.tenantId !== after.tenantId || before?.siteId !== after.siteId;
  if (!moved || resource.standing === 'onDevice') return place;
  return {
    tenantId: place.tenantId,
    siteId: resource.standing === 'isSite' ? null : (place.siteId ?? null),
  };
}

/** True when a record is inside a scope; catalogues are for all who may read inventory somewhere. */
export const isSeen = (scope: Scope, resource: Resource, row: Row): boolean =>
  resource.standing === 'catalogue' || covers(scope, placeOf(resource, row));

/** What people call a record. */
export const labelOf = ({ label }: Resource, row: Row): string => textOf(row[label]) ?? row.id;
