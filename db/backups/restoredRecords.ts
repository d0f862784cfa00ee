import { assertDefined } from '../../domain/shared/assert.ts';
import { viaOf, type Caller } from '../../domain/shared/caller.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { timeOfId } from '../../platform/ids.ts';
import { SHOWN_CLOCK, SHOWN_NOW } from '../core/databaseTime.ts';
import { auditedColumns, tableOf } from '../inventory/tables.ts';
import { quoteIdentifier, type RunQuery } from './catalog.ts';
import type { PlannedTable, RestorePlan } from './restorePlan.ts';
import { columnList, diffTable, liveTable } from './sql.ts';
import type { BackedUpTable } from './tables.ts';

/** Who restores, for the audit entries of records. `entryIdAt` creates ids of audit entries. */
export type RestoreAuthor = { caller: Caller; entryIdAt(time: Date): string };

/** A table with the number of its rows that a restore changes. */
type Changed = { planned: PlannedTable; rows: number };

const RESOURCE_OF: ReadonlyMap<string, Resource> = new Map(
  Object.values(RESOURCES).map((resource) => [tableOf(resource), resource]),
);

/** SQL: what the audit log calls the records of other tables, from the state `c.state` of one. */
const SUBJECT_TYPES: Readonly<Record<string, string>> = {
  providers: `'provider'`,
  roles: `'role'`,
  users: `'user'`,
  grants: `c.state ->> 'kind'`,
  tokens: `'token'`,
  pools: `'pool'`,
  job_types: `'job-type'`,
  views: `'view'`,
  tenant_quotas: `'quota'`,
  retention_settings: `'retention'`,
  webhooks: `'webhook'`,
  secrets: `'secret'`,
  schedules: `'schedule'`,
};

/** SQL: the audit log has only the origin of the URL of a webhook, since path and query may contain secrets. */
const ENDPOINT_ORIGIN = String.raw`regexp_replace(endpoint_url, '^([a-z]+://)([^/?#]*@)?([^/?#]*).*$', '\1\3') AS "endpointOrigin"`;

/** SQL: a column under the name of its field. */
const auditedColumn = (name: string): string =>
  name === 'endpoint_url' ? ENDPOINT_ORIGIN : `${quoteIdentifier(name)} AS "${camelCase(name)}"`;

/** How the audit log has the records of a table. The parts are SQL. */
type Audited = {
  subjectType: string;
  /** Begins the action, before the type of the subject. */
  prefix: string;
  columns: string;
  key: string;
  /** The tenant of a record with this state. */
  tenantOf(state: string): string;
};

/** How the records of a table are audited, which a restore changes; undefined for history, and for parts of records. */
function auditedOf({ table, columns }: PlannedTable): Audited | undefined {
  const key = quoteIdentifier(table.key[0]);
  const resource = RESOURCE_OF.get(table.name);
  if (resource)
    return {
      subjectType: `'${resource.kind}'`,
      prefix: 'inventory.',
      columns: auditedColumns(resource),
      key,
      tenantOf: (state) => tenantSql(resource, state),
    };
  const subjectType = SUBJECT_TYPES[table.name];
  if (subjectType === undefined) return undefined;
  return {
    subjectType,
    prefix: '',
    // What no preview shows, no entry has.
    columns: columns
      .filter(({ name }) => !table.hidden.includes(name))
      .map(({ name }) => auditedColumn(name))
      .join(', '),
    key,
    tenantOf: (state) => ownTenantSql(state),
  };
}

const camelCase = (name: string): string =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

const replacedTable = ({ name }: BackedUpTable): string =>
  `pg_temp.${quoteIdentifier(`_replaced_${name}`)}`;

/** SQL: the records that differ, but for those with the difference `except`, as the audit log has them. */
const statesSql = ({ columns, key }: Audited, table: BackedUpTable, except: string): string =>
  `SELECT t.${key} AS id, to_json(r) AS state
   FROM ${liveTable(table)} AS t CROSS JOIN LATERAL (SELECT ${columns}) AS r
   WHERE t.${key} IN (SELECT ${key} FROM ${diffTable(table)} WHERE change <> '${except}')`;

/** When the entries of a restore are, and an id with which theirs begin. */
type EntryTime = { at: Date; entryId: string };

/**
 * Keeps the records that a restore will change or delete, for `auditRestoredRecords`. Call it after
 * `lockForRestore`: writers that the restore waited for come before it in the history of a record.
 */
export async function keepReplacedRecords(
  query: RunQuery,
  changed: readonly Changed[],
  author: RestoreAuthor,
): Promise<EntryTime> {
  const times: (Date | null)[] = [];
  for (const { planned } of changed) {
    const audited = auditedOf(planned);
    if (!audited) continue;
    await query(
      `CREATE TEMP TABLE ${quoteIdentifier(`_replaced_${planned.table.name}`)} ON COMMIT DROP AS
       ${statesSql(audited, planned.table, 'created')}`,
    );
    if (planned.columns.every(({ name }) => name !== 'updated_at')) continue;
    const [updated] = await query<{ last: Date | null }>(
      `SELECT max(updated_at) AS last FROM ${liveTable(planned.table)}
       WHERE ${audited.key} IN (
         SELECT ${audited.key} FROM ${diffTable(planned.table)} WHERE change <> 'created')`,
    );
    times.push(updated?.last ?? null);
  }
  return entryTimeAfter(query, times, author);
}

/**
 * A time after these, by which records were changed, and an id after those of all entries. Both are by the clock of the
 * database, unless processes whose clocks are ahead have written: the history of a record has its entries in
 * the order of both.
 */
async function entryTimeAfter(
  query: RunQuery,
  times: readonly (Date | null)[],
  { entryIdAt }: RestoreAuthor,
): Promise<EntryTime> {
  const [found] = await query<{ at: Date; lastId: string | null }>(
    `SELECT greatest(${SHOWN_CLOCK}, max(t.at) + interval '1 ms') AS at,
       (SELECT max(id) FROM public.audit_entries) AS "lastId"
     FROM unnest($1::timestamptz[]) AS t (at)`,
    [times],
  );
  const { at, lastId } = assertDefined(found, 'time of the restore');
  const afterLast = lastId === null ? 0 : timeOfId(lastId).getTime() + 1;
  return { at, entryId: entryIdAt(new Date(Math.max(at.getTime(), afterLast))) };
}

/** The digits of ids, which sort like their values. */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';
/** The digits at the end of an id that number the entries of a restore: up to a billion. */
const NUMBERED = 6;

const numberSql = (number: string): string =>
  Array.from({ length: NUMBERED }, (_, i) => 5 * (NUMBERED - 1 - i))
    .map((shift) => `substr('${DIGITS}', ((${number} >> ${shift}) & 31)::integer + 1, 1)`)
    .join(' || ');

/** SQL: the tenant of a record with a state, but for those of the inventory. */
const ownTenantSql = (state: string): string =>
  `CASE WHEN ${state} IS NOT NULL THEN coalesce(${state} ->> 'tenantId', '${PLATFORM}') END`;

/** SQL: the tenant of a record of the inventory with a state; null without one. */
const tenantSql = ({ scopeKind }: Resource, state: string): string => {
  const tenants: Partial<Record<Resource['scopeKind'], string>> = {
    catalogue: `'${PLATFORM}'`,
    isTenant: 'd.id',
  };
  const tenant = tenants[scopeKind] ?? `coalesce(${state} ->> 'tenantId', '${PLATFORM}')`;
  return `CASE WHEN ${state} IS NOT NULL THEN ${tenant} END`;
};

/** SQL: what each tenant has of a change `c`. A record that moves is deleted in one and created in the other. */
const PARTS = `(
  SELECT 0, c.before, c.after, coalesce(c.present, c.former)
    WHERE coalesce(c.former = c.present, true)
  UNION ALL SELECT 0, c.before, NULL, c.former WHERE c.former <> c.present
  UNION ALL SELECT 1, NULL, c.after, c.present WHERE c.former <> c.present)`;

/**
 * Columns that a restore of one tenant computes again after it has changed records of another table, which may
 * change those of other tenants.
 */
const FOLLOWING: Readonly<Record<string, { changed: string; columns: readonly string[] }>> = {
  prefixes: { changed: 'prefixes', columns: ['parent_prefix_id'] },
  interfaces: { changed: 'devices', columns: ['tenant_id', 'site_id'] },
};

/** Tables whose records may follow others, which `keepFollowed` has kept. */
export type Following = readonly PlannedTable[];

const followedTable = ({ name }: BackedUpTable): string =>
  `pg_temp.${quoteIdentifier(`_followed_${name}`)}`;

/** Keeps the columns of records that a restore may change because they follow others, for `includeFollowers`. */
export async function keepFollowed(
  query: RunQuery,
  { scope, tables }: RestorePlan,
  changed: ReadonlySet<string>,
): Promise<Following> {
  const following = tables.filter(
    ({ table: { name } }) => scope.tenantId !== null && changed.has(FOLLOWING[name]?.changed ?? ''),
  );
  for (const { table } of following) {
    const columns = FOLLOWING[table.name]?.columns ?? [];
    await query(
      `CREATE TEMP TABLE ${quoteIdentifier(`_followed_${table.name}`)} ON COMMIT DROP AS
       SELECT id, ${columns.map((name) => `${quoteIdentifier(name)} AS "_${name}"`).join(', ')}
       FROM ${liveTable(table)}`,
    );
  }
  return following;
}

/**
 * Adds the records that have followed others to the differences, and advances their versions. Returns how many they
 * are, by tenant. Requires `keepReplacedRecords`.
 */
export async function includeFollowers(
  query: RunQuery,
  following: Following,
): Promise<ReadonlyMap<string, number>> {
  const byTenant = new Map<string, number>();
  for (const planned of following) {
    const { table } = planned;
    const columns = FOLLOWING[table.name]?.columns ?? [];
    const former = columns.map((name) => `'${camelCase(name)}', o."_${name}"`).join(', ');
    const followers = `FROM ${liveTable(table)} AS t JOIN ${followedTable(table)} AS o ON o.id = t.id
      WHERE (${columnList(columns, 't')}) IS DISTINCT FROM (${columns.map((name) => `o."_${name}"`).join(', ')})
        AND t.id NOT IN (SELECT id FROM ${diffTable(table)})`;
    await query(
      `CREATE TEMP TABLE IF NOT EXISTS ${quoteIdentifier(`_replaced_${table.name}`)}
         (id text COLLATE "C", state json) ON COMMIT DROP`,
    );
    await query(
      `INSERT INTO ${replacedTable(table)}
       SELECT f.id, (to_jsonb(r) || f.former)::json
       FROM (SELECT t.*, jsonb_build_object(${former}) AS former ${followers}) AS f
         CROSS JOIN LATERAL (SELECT ${auditedOf(planned)?.columns}) AS r`,
    );
    const counts = await query<{ tenant: string; records: number }>(
      `WITH added AS (
         INSERT INTO ${diffTable(table)} (id, change) SELECT t.id, 'changed' ${followers} RETURNING id
       ), updated AS (
         UPDATE ${liveTable(table)} AS t SET version = t.version + 1, updated_at = ${SHOWN_NOW}
         FROM added WHERE added.id = t.id RETURNING t.tenant_id
       )
       SELECT tenant_id AS tenant, count(*) AS records FROM updated GROUP BY 1`,
    );
    for (const { tenant, records } of counts)
      byTenant.set(tenant, (byTenant.get(tenant) ?? 0) + records);
  }
  return byTenant;
}

/**
 * Writes the audit entries of every record that a restore has changed: what it is and may do, and the history of a
 * record of the inventory, is known from its entries. Requires `keepReplacedRecords`.
 */
export async function auditRestoredRecords(
  query: RunQuery,
  changed: readonly Changed[],
  { caller }: RestoreAuthor,
  { entryId, at }: EntryTime,
): Promise<void> {
  let written = 0;
  for (const { planned, rows } of changed) {
    const { table } = planned;
    const audited = auditedOf(planned);
    if (!audited) continue;
    const { subjectType, prefix, key, tenantOf } = audited;
    // Each value is used once, in this order.
    await query(
      `INSERT INTO public.audit_entries (id, tenant_id, actor_id, via, action, outcome, subject_type,
         subject_id, before, after, request_id, address, at)
       SELECT $1::text || ${numberSql(`(${written} + 2 * c.number + p.part)`)}, p.tenant_id, $2::text,
         CASE p.tenant_id WHEN $3::text THEN $4::text ELSE $5::text END,
         '${prefix}' || c.type || '.restore', 'done', c.type, c.id, p.before, p.after,
         $6::text, $7::text, $8::timestamptz
       FROM (
         SELECT d.${key} AS id, b.state AS before, a.state AS after, ${tenantOf('b.state')} AS former,
           ${tenantOf('a.state')} AS present, row_number() OVER () AS number,
           (SELECT ${subjectType} FROM (SELECT coalesce(a.state, b.state)) AS c (state)) AS type
         FROM ${diffTable(table)} AS d LEFT JOIN ${replacedTable(table)} AS b ON b.id = d.${key}
           LEFT JOIN (${statesSql(audited, table, 'deleted')}) AS a ON a.id = d.${key}
         WHERE b.state::text IS DISTINCT FROM a.state::text) AS c
         CROSS JOIN LATERAL ${PARTS} AS p (part, before, after, tenant_id)`,
      [
        entryId.slice(0, -NUMBERED),
        caller.actorId,
        caller.tenantId,
        viaOf(caller, caller.tenantId),
        viaOf(caller, ''),
        caller.requestId,
        caller.address,
        at,
      ],
    );
    written += 2 * rows;
  }
}
