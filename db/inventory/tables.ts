import {
  addressBits,
  formatHost,
  parseInterfaceAddress,
  parseHost,
} from '../../domain/inventory/cidr.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import {
  INHERITED,
  type InheritedScope,
  type Resource,
  type Row,
  type ScopeKind,
} from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { columnOf } from '../core/listConditions.ts';
import type { ScopeColumns } from '../core/scopeSql.ts';

export { columnOf };

/** The table of a resource. */
export const tableOf = ({ name }: Resource): string => name.replaceAll('-', '_');

/** All fields of a row, including the common ones. */
const fieldsOf = ({ fields }: Resource): string[] => [
  'id',
  ...Object.keys(fields),
  'createdAt',
  'updatedAt',
  'version',
];

/** The columns with the sites and devices that records belong to through other records. */
const INHERITED_COLUMNS: Readonly<
  Partial<Record<ResourceName, readonly { site: string; device: string | null }[]>>
> = {
  cables: [
    { site: 'a_site_id', device: 'a_device_id' },
    { site: 'b_site_id', device: 'b_device_id' },
  ],
  vlans: [{ site: 'scope_site_id', device: null }],
  prefixes: [{ site: 'scope_site_id', device: null }],
  'ip-ranges': [{ site: 'scope_site_id', device: null }],
  'ip-addresses': [
    { site: 'device_site_id', device: 'scope_device_id' },
    { site: 'scope_site_id', device: null },
  ],
};

/** The name of the inherited scopes in query results: site and device of each, in turn. */
const INHERITED_RESULT = 'inheritedScopes';

function selectList(resource: Resource): string {
  const inherited = INHERITED_COLUMNS[resource.name]?.flatMap(({ site, device }) => [
    site,
    device ?? 'NULL',
  ]);
  return [
    ...fieldsOf(resource).map((field) => `${columnOf(field)} AS "${field}"`),
    ...(inherited ? [`ARRAY[${inherited.join(', ')}] AS "${INHERITED_RESULT}"`] : []),
  ].join(', ');
}

const COLUMNS = new Map<ResourceName, string>(
  Object.values(RESOURCES).map((resource) => [resource.name, selectList(resource)]),
);

/** SQL: the columns of a resource under the names of its fields. */
export const columnsOf = ({ name }: Resource): string => COLUMNS.get(name) ?? '*';

/** The form in which responses and the audit log have times. */
const ISO_TIME = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`;

/** SQL: the columns of a resource as JSON of the audit log has them. Only IPv6 addresses may be written otherwise. */
export const auditedColumns = (resource: Resource): string =>
  fieldsOf(resource)
    .map((field) => {
      const column = columnOf(field);
      const isTime = field === 'createdAt' || field === 'updatedAt';
      return `${isTime ? `to_char(${column} AT TIME ZONE 'UTC', ${ISO_TIME})` : column} AS "${field}"`;
    })
    .join(', ');

/** The PostgreSQL type of a field. */
export function sqlTypeOf({ fields }: Resource, field: string): string {
  if (field === 'host') return 'inet';
  const type = fields[field]?.type;
  if (type === 'integer') return 'integer';
  if (type === 'boolean') return 'boolean';
  if (type === 'network') return 'cidr';
  return type === 'address' ? 'inet' : 'text';
}

/** SQL: an address or a network in a column is between the ends of a network, of which PostgreSQL knows how many there are. */
export const betweenEnds = (column: string, network: string) => ({
  sql: `${column} >= ?::cidr::inet AND ${column} <= set_masklen(broadcast(?::cidr), CASE family(?::cidr) WHEN 4 THEN 32 ELSE 128 END)`,
  bindings: Array<string>(3).fill(network),
});

/** SQL: an address or a network in a column is in a network. Bounds on the column allow an index scan. */
export function withinNetwork(column: string, network: string) {
  const { sql, bindings } = betweenEnds(column, network);
  return { sql: `${column} <<= ?::cidr AND ${sql}`, bindings: [network, ...bindings] };
}

const SCOPE_COLUMNS: Readonly<Record<ScopeKind, ScopeColumns | null>> = {
  tenant: { tenant: 'tenant_id' },
  site: { tenant: 'tenant_id', site: 'site_id' },
  isTenant: { tenant: 'id' },
  isSite: { tenant: 'tenant_id', site: 'id' },
  isDevice: { tenant: 'tenant_id', site: 'site_id', device: 'id' },
  onDevice: { tenant: 'tenant_id', site: 'site_id', device: 'device_id' },
  catalogue: null,
};

/** The columns with the resource scopes of a record; null for catalogues. */
export function scopeColumnsOf({ name, scopeKind }: Resource): ScopeColumns | null {
  const inherited = INHERITED_COLUMNS[name];
  if (!inherited) return SCOPE_COLUMNS[scopeKind];
  return {
    tenant: 'tenant_id',
    site: inherited.map(({ site }) => site),
    device: inherited.flatMap(({ device }) => device ?? []),
  };
}

/** The columns with the sites that a record belongs to. */
export const siteColumnsOf = (resource: Resource): readonly string[] =>
  [scopeColumnsOf(resource)?.site ?? []].flat();

/** The inherited scopes of a record from the elements of its query result. */
export function inheritedFrom(elements: readonly (string | null)[]): InheritedScope[] {
  const scopes: InheritedScope[] = [];
  for (let i = 0; i < elements.length; i += 2)
    scopes.push({ siteId: elements[i] ?? null, deviceId: elements[i + 1] ?? null });
  return scopes;
}

/** Converts a row of the database to the form that plans and responses use. */
export function rowOf(resource: Resource, stored: Record<string, unknown>): Row {
  const { [INHERITED_RESULT]: inherited, ...fields } = stored;
  const row = (inherited === undefined ? stored : fields) as Record<string, unknown> & {
    [INHERITED]?: readonly InheritedScope[];
  } & Row;
  if (inherited !== undefined) row[INHERITED] = inheritedFrom(inherited as (string | null)[]);
  for (const field of ['createdAt', 'updatedAt'])
    row[field] = new Date(row[field] as string).toISOString();
  return withCanonicalAddresses(resource, row);
}

/** Writes the IPv6 addresses of a row as responses do. Changes the row itself. */
export function withCanonicalAddresses<R extends Record<string, unknown>>(
  { fields }: Resource,
  row: R,
): R {
  for (const [name, { type }] of Object.entries(fields)) {
    if (type !== 'network' && type !== 'address') continue;
    const value = row[name];
    if (typeof value === 'string' && value.includes(':'))
      (row as Record<string, unknown>)[name] = canonicalIpv6(value);
  }
  return row;
}

/** The text of a field in responses, from that of the database. */
export function canonicalText({ fields }: Resource, field: string, text: string): string {
  const type = fields[field]?.type;
  const isAddress = type === 'network' || type === 'address';
  return isAddress && text.includes(':') ? canonicalIpv6(text) : text;
}

/** PostgreSQL formats some IPv6 addresses with an IPv4 suffix; RFC 5952 does not. */
function canonicalIpv6(text: string): string {
  const host = parseHost(text);
  if (host) return formatHost(host.family, host.value);
  const parsed = parseInterfaceAddress(text);
  if (!parsed) return text;
  return `${formatHost(parsed.family, parsed.value)}/${Math.min(parsed.length, addressBits(parsed.family))}`;
}

/** The fields of a row and their columns: rows are converted often. */
const STORED = new Map<ResourceName, readonly (readonly [field: string, column: string])[]>(
  Object.values(RESOURCES).map((resource) => [
    resource.name,
    fieldsOf(resource).map((field) => [field, columnOf(field)] as const),
  ]),
);
const storedOf = ({ name }: Resource) => assertDefined(STORED.get(name), 'columns of a resource');

/** Converts a row to an object of its columns, for `json_populate_recordset`. */
export function storedForm(resource: Resource, row: Row): Record<string, unknown> {
  const stored: Record<string, unknown> = {};
  for (const [field, column] of storedOf(resource)) stored[column] = row[field] ?? null;
  return stored;
}

export const storedColumns = (resource: Resource): string[] =>
  storedOf(resource).map(([, column]) => column);
