import { PLATFORM, type Place } from '../scope.ts';
import type { Resource, Row } from './resource.ts';

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

/** Where `inventory:write` is needed: tenants are made and deleted at the platform. */
export const writePlaceOf = (resource: Resource, row: Row, comesOrGoes: boolean): Place =>
  resource.standing === 'isTenant' && comesOrGoes ? { tenantId: PLATFORM } : placeOf(resource, row);

/** What people call a record. */
export const labelOf = ({ label }: Resource, row: Row): string => textOf(row[label]) ?? row.id;
