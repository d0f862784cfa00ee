import { TABLES } from '../../../db/backups/tables.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';

/** Tables that requests of anybody change: counters, and the tasks of the dispatcher. */
const COUNTERS = new Set(['rate_limits', 'event_head', 'access_state', 'outbox']);

/** The tables, and whether they have a column with the tenant of a row. */
async function findTables(db: Knex): Promise<{ name: string; hasTenant: boolean }[]> {
  const { rows } = await db.raw<{ rows: { name: string; hasTenant: boolean }[] }>(
    `SELECT t.table_name AS name, EXISTS (SELECT FROM information_schema.columns c
       WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name
         AND c.column_name = 'tenant_id') AS "hasTenant"
     FROM information_schema.tables t
     WHERE t.table_schema = 'public' AND t.table_type = 'BASE TABLE'
       AND NOT (SELECT relispartition FROM pg_class WHERE oid = t.table_name::regclass)`,
  );
  return rows;
}

/** The SQL condition for the rows of `:tenant`; none for tables that tenants share. */
const conditionOf = (name: string, hasTenant: boolean): string | undefined =>
  hasTenant
    ? 't.tenant_id = :tenant'
    : (TABLES.find((table) => table.name === name)?.tenantFilter ?? undefined);

/** Every row of every table that does not belong to `tenant`, as text. */
export async function dumpOutside(db: Knex, tenant: string): Promise<Record<string, string[]>> {
  const dump: Record<string, string[]> = {};
  for (const { name, hasTenant } of await findTables(db)) {
    if (COUNTERS.has(name)) continue;
    const { rows } = await db.raw<{ rows: { line: string }[] }>(
      `SELECT t::text AS line FROM :name: AS t
       WHERE (${conditionOf(name, hasTenant) ?? ':tenant::text IS NULL'}) IS NOT TRUE ORDER BY 1`,
      { name, tenant },
    );
    dump[name] = rows.map(({ line }) => line);
  }
  return dump;
}

/** Tables in which a refused attempt leaves a trace. */
const TRACES = new Set(['audit_entries', 'audit_heads', 'idempotency_keys', 'sessions']);

/** Every row of a tenant, except for traces of what it attempted. */
export async function dumpOwn(db: Knex, tenant: string): Promise<Record<string, string[]>> {
  const dump: Record<string, string[]> = {};
  for (const { name, hasTenant } of await findTables(db)) {
    const condition = conditionOf(name, hasTenant);
    if (!condition || COUNTERS.has(name) || TRACES.has(name)) continue;
    const { rows } = await db.raw<{ rows: { line: string }[] }>(
      `SELECT t::text AS line FROM :name: AS t WHERE ${condition} ORDER BY 1`,
      { name, tenant },
    );
    dump[name] = rows.map(({ line }) => line);
  }
  return dump;
}

/** The ids of all rows that belong to `tenant`. */
export async function idsOf(db: Knex, tenant: string): Promise<ReadonlySet<string>> {
  const ids = new Set<string>([tenant]);
  for (const { name, hasTenant } of await findTables(db)) {
    if (!hasTenant) continue;
    const { rows } = await db.raw<{ rows: { id: string | null }[] }>(
      `SELECT to_jsonb(t) ->> 'id' AS id FROM ?? AS t WHERE t.tenant_id = ?`,
      [name, tenant],
    );
    for (const { id } of rows) if (id !== null) ids.add(id);
  }
  return ids;
}

/** Does `work` for each item, `width` at a time. */
export async function inParallel<T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
  width = 8,
): Promise<void> {
  const queue = items.values();
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const item of queue) await work(item);
    }),
  );
}

/** Every row of the inventory as text, by its resource and id. */
export async function inventoryRows(db: Knex): Promise<Record<string, string>> {
  const names = Object.keys(RESOURCES);
  const { rows } = await db.raw<{ rows: { key: string; line: string }[] }>(
    names.map(() => `SELECT ? || t.id AS key, t::text AS line FROM ?? AS t`).join(' UNION ALL '),
    names.flatMap((name) => [`${name}/`, name.replaceAll('-', '_')]),
  );
  return Object.fromEntries(rows.map(({ key, line }) => [key, line]));
}
