import type { Where } from '../../parts/where.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Resources whose records may belong to a site or a device through other records, such as their prefix. */
const INHERITING = ['prefixes', 'ip-ranges', 'ip-addresses', 'vlans', 'interfaces', 'cables'];

const idAt = (record: Fields, name: string): string | undefined => {
  const value = record[name];
  return typeof value === 'string' ? value : undefined;
};

/** Where a record is: permissions may hold in a tenant, at a site or for a device only. */
export function whereOf(resource: string, record: Fields): Where {
  if (resource === 'tenants') return { tenantId: idAt(record, 'id') };
  const siteId = idAt(record, resource === 'sites' ? 'id' : 'siteId');
  return {
    // What has no tenant belongs to the platform, as catalogues do.
    tenantId: idAt(record, 'tenantId') ?? 'platform',
    siteId,
    deviceId: idAt(record, resource === 'devices' ? 'id' : 'deviceId'),
    ...(siteId === undefined && INHERITING.includes(resource) && { complete: false }),
  };
}

/** Where a record is deleted: a tenant by the platform only. */
export const whereOfDeletion = (resource: string, record: Fields): Where =>
  resource === 'tenants' ? { tenantId: 'platform' } : whereOf(resource, record);

type Resource = { name: string; fields: readonly { name: string }[] };

/** Where a new record would be. Catalogues and tenants belong to the platform. */
export const whereOfNew = ({ name, fields }: Resource, values: Fields, tenantId: string): Where =>
  fields.some((field) => field.name === 'tenantId')
    ? whereOf(name, { ...values, id: undefined, tenantId })
    : { tenantId: 'platform' };
