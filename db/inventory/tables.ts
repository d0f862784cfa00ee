import {
  bitsOf,
  formatHost,
  parseInterfaceAddress,
  parseHost,
} from '../../domain/inventory/cidr.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Resource, Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { Standing } from '../../domain/inventory/resource.ts';
import type { PlaceColumns } from '../core/scopeSql.ts';

export const columnOf = (field: string): string =>
  field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export const tableOf = ({ name }: Resource): string => name.replaceAll('-', '_');

/** Every field of a row with its column, the common ones included. */
const fieldsOf = ({ fields }: Resource): string[] => [
  'id',
  ...Object.keys(fields),
  'createdAt',
  'updatedAt',
  'version',
];

const listed = (resource: Resource): string =>
  fieldsOf(resource)
    .map((field) => `${columnOf(field)} AS "${field}"`)
    .join(', ');

const COLUMNS = new Map<ResourceName, string>(
  Object.values(RESOURCES).map((resource) => [resource.name, listed(resource)]),
);

/** The columns of a resource, under the names of its fields. */
export const columnsOf = ({ name }: Resource): string => COLUMNS.get(name) ?? '*';

/** What a value of a field is to PostgreSQL. */
export function sqlTypeOf({ fields }: Resource, field: string): string {
  if (field === 'host') return 'inet';
  const type = fields[field]?.type;
  if (type === 'integer') return 'integer';
  if (type === 'boolean') return 'boolean';
  if (type === 'network') return 'cidr';
  return type === 'address' ? 'inet' : 'text';
}

const PLACES: Readonly<Record<Standing, PlaceColumns | null>> = {
  tenant: { tenant: 'tenant_id' },
  site: { tenant: 'tenant_id', site: 'site_id' },
  isTenant: { tenant: 'id' },
  isSite: { tenant: 'tenant_id', site: 'id' },
  isDevice: { tenant: 'tenant_id', site: 'site_id', device: 'id' },
  onDevice: { tenant: 'tenant_id', site: 'site_id', device: 'device_id' },
  catalogue: null,
};

/** The columns that say where a row stands; null where all who may read inventory may read it. */
export const placeColumnsOf = ({ standing }: Resource): PlaceColumns | null => PLACES[standing];

/** A row as JSON of the database, brought into the form that planning and answers share. */
export function rowOf(resource: Resource, stored: Record<string, unknown>): Row {
  const row = stored as Record<string, unknown> & Row;
  for (const field of ['createdAt', 'updatedAt'])
    row[field] = new Date(row[field] as string).toISOString();
  for (const [name, { type }] of Object.entries(resource.fields)) {
    if (type !== 'network' && type !== 'address') continue;
    const value = row[name];
    if (typeof value === 'string' && value.includes(':')) row[name] = canonical6(value);
  }
  return row;
}

/** PostgreSQL writes some IPv6 addresses with an IPv4 tail. */
function canonical6(text: string): string {
  const host = parseHost(text);
  if (host) return formatHost(host.family, host.value);
  const parsed = parseInterfaceAddress(text);
  if (!parsed) return text;
  return `${formatHost(parsed.family, parsed.value)}/${Math.min(parsed.length, bitsOf(parsed.family))}`;
}

/** A row as a JSON object of its columns, for `json_populate_recordset`. */
export const storedForm = (resource: Resource, row: Row): Record<string, unknown> =>
  Object.fromEntries(fieldsOf(resource).map((field) => [columnOf(field), row[field] ?? null]));

export const storedColumns = (resource: Resource): string[] => fieldsOf(resource).map(columnOf);
