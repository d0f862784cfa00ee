import { visibleReasons, type ApprovalReader } from '../approvals/approvals.ts';
import { namedIn } from '../core/names.ts';
import { scopeReasons } from '../core/scopeSql.ts';
import { allOf, type Sql } from '../core/sql.ts';
import { labelSql } from '../inventory/labels.ts';
import { readableReasons } from '../inventory/readable.ts';
import { columnOf, tableOf } from '../inventory/tables.ts';
import { USER_TEXT } from '../models/User.ts';
import { isEmpty, type Scope } from '../../domain/access/scope.ts';
import { NO_PROVIDER } from '../../domain/auth/providers.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { SearchKind } from '../../domain/search/query.ts';

/** Where the caller may read what a search can find. */
export type SearchReader = {
  inventory: Scope;
  jobs: Scope;
  schedules: Scope;
  workflows: ApprovalReader;
  users: Scope;
  webhooks: Scope;
  backups: Scope;
};

/** Rows that the caller may read for one reason. */
export type Readable = { from: string; where: Sql };

/** A table as a search sees it: SQL of what matches show, and of what is compared. */
export type Source = {
  kind: SearchKind;
  label: string;
  description: string;
  tenant: string;
  vrf: string;
  /** Columns that a text can equal, each with an index. */
  exact: readonly string[];
  /** A column that a number can equal. */
  number?: string;
  /** The text with a trigram index, in lower case; it begins with the label. Null: found by id only. */
  text: string | null;
  /** Other texts whose beginnings are searched, each with an index on the first characters. */
  beginnings: readonly string[];
  readable: readonly Readable[];
};

/** The fields whose values name a record, besides its id if callers choose it. */
const EXACT_FIELDS: Readonly<Partial<Record<ResourceName, readonly string[]>>> = {
  devices: ['name', 'serial', 'assetTag'],
  racks: ['name', 'serial'],
  interfaces: ['name', 'macAddress'],
  'device-types': ['model'],
  cables: ['label'],
  vrfs: ['name', 'rd'],
  'ip-addresses': ['dnsName'],
  prefixes: [],
  'ip-ranges': [],
};

function resourceSource(resource: Resource, scope: Scope): Source {
  const { name, fields, idPrefix, scopeKind } = resource;
  const exact = EXACT_FIELDS[name] ?? ['name'];
  return {
    kind: name,
    label: labelSql(resource),
    description: name === 'ip-addresses' ? `coalesce(dns_name, description)` : 'description',
    tenant: scopeKind === 'isTenant' ? 'id' : scopeKind === 'catalogue' ? 'NULL' : 'tenant_id',
    vrf: 'vrfId' in fields && name !== 'interfaces' ? 'vrf_id' : 'NULL',
    exact: [...exact.map(columnOf), ...(idPrefix === null ? ['id'] : [])],
    ...(name === 'vlans' && { number: 'vid' }),
    text: 'search',
    // The text begins with the id that callers choose.
    beginnings: idPrefix === null ? ['lower(name)'] : [],
    readable: readableReasons(resource, scope).map((where) => ({ from: tableOf(resource), where })),
  };
}

const OTHER = { tenant: 'tenant_id', vrf: 'NULL', exact: [], beginnings: [] } as const;

/** A kind of records outside the inventory, which belong to tenants. */
function otherSource(
  kind: 'jobs' | 'schedules' | 'webhooks' | 'backups',
  scope: Scope,
  { description, text = null }: { description: string; text?: string | null },
): Source {
  const { table, label, where, bindings } = namedIn(kind, scope);
  const readable = isEmpty(scope) ? [] : [{ from: table, where: { sql: where, bindings } }];
  return { kind, label, description, text, readable, ...OTHER };
}

const workflows = (reader: ApprovalReader): Source => ({
  kind: 'workflows',
  label: namedIn('workflows', reader.read).label,
  description: 'a.type',
  ...OTHER,
  text: 'lower(a.title)',
  readable: visibleReasons(reader),
});

/** Service accounts are no users that a client can read at /api/users. */
const IS_USER: Sql = { sql: 'provider_id <> ?', bindings: [NO_PROVIDER] };

const users = (scope: Scope): Source => ({
  kind: 'users',
  label: 'username',
  description: 'display_name',
  ...OTHER,
  text: USER_TEXT,
  readable: scopeReasons(scope).map((where) => ({ from: 'users', where: allOf([IS_USER, where]) })),
});

/** What a caller can find of some kinds. */
export function sourcesOf(reader: SearchReader, kinds: ReadonlySet<SearchKind>): Source[] {
  const { inventory } = reader;
  return [
    ...(isEmpty(inventory)
      ? []
      : Object.values(RESOURCES).map((resource) => resourceSource(resource, inventory))),
    otherSource('jobs', reader.jobs, { description: 'status' }),
    otherSource('schedules', reader.schedules, { description: 'description', text: 'lower(name)' }),
    workflows(reader.workflows),
    users(reader.users),
    otherSource('webhooks', reader.webhooks, { description: 'description' }),
    otherSource('backups', reader.backups, { description: 'status' }),
  ].filter(({ kind, readable }) => kinds.has(kind) && readable.length > 0);
}
