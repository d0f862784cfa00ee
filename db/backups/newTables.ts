import { assertDefined } from '../../domain/shared/assert.ts';
import type { Knex } from '../core/knex.ts';
import type { BackupConnection } from './backupConnection.ts';
import { quoteIdentifier, type RunQuery } from './catalog.ts';
import { queryIn, queryOn } from './sql.ts';

/**
 * Tables that take the position of live ones when an archive is restored into an empty database. They
 * are made in another schema, so that several connections can load and index them: the live
 * tables change in one short transaction, and not at all if anything fails before.
 */

/**
 * Memory for the index that each connection creates, which sorts its rows. The terms of a GIN index are
 * collected in memory instead: in more than the caches of a processor hold, that takes a fifth longer.
 */
const INDEX_MEMORY = '256MB';
const GIN_MEMORY = '32MB';

/** Reads definitions with complete names, as PostgreSQL writes them when it searches no schema. */
async function withCompleteNames<T>(query: RunQuery, read: () => Promise<T>): Promise<T> {
  await query(`SET search_path = ''`);
  const found = await read();
  await query('RESET search_path');
  return found;
}

/**
 * Creates a table with the columns, defaults and checks of a live one, in the position of its staging
 * table, and with its exclusion constraints: these cannot be added later while other connections
 * create indexes. Returns false if the live table is not an ordinary one.
 */
export async function createNewTable(
  connection: BackupConnection,
  schema: string,
  name: string,
): Promise<boolean> {
  const query = queryOn(connection);
  const table = `${quoteIdentifier(schema)}.${quoteIdentifier(name)}`;
  const live = `public.${quoteIdentifier(name)}`;
  const [found] = await query<{ options: string | null }>(
    `SELECT array_to_string(reloptions, ', ') AS options FROM pg_class
     WHERE oid = $1::regclass AND relkind = 'r' AND NOT relispartition`,
    [live],
  );
  if (!found) return false;
  const storage = found.options === null ? '' : `WITH (${found.options})`;
  await query(`DROP TABLE ${table}`);
  await query(
    `CREATE TABLE ${table} (LIKE ${live} INCLUDING ALL EXCLUDING INDEXES EXCLUDING STATISTICS)
     ${storage}`,
  );
  const exclusions = await withCompleteNames(query, () => exclusionStatements(query, table, live));
  for (const { sql } of exclusions) await query(sql);
  return true;
}

type Statement = { sql: string };
type IndexStatement = Statement & { isGin: boolean };

const exclusionStatements = (query: RunQuery, table: string, live: string): Promise<Statement[]> =>
  query<Statement>(
    `SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s', $1::text, conname,
       pg_get_constraintdef(oid)) AS sql
     FROM pg_constraint WHERE conrelid = $2::regclass AND contype = 'x'`,
    [table, live],
  );

/** The statements that create the indexes of a new table, those that take longest first. */
const indexStatements = (
  query: RunQuery,
  schema: string,
  names: readonly string[],
): Promise<IndexStatement[]> =>
  query<IndexStatement>(
    `SELECT replace(pg_get_indexdef(i.indexrelid), format(' ON %s ', i.indrelid::regclass),
       format(' ON %I.%I ', $1::text, t.relname)) AS sql, m.amname = 'gin' AS "isGin"
     FROM pg_index AS i JOIN pg_class AS t ON t.oid = i.indrelid
       JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS m ON m.oid = c.relam
     WHERE t.relnamespace = 'public'::regnamespace AND t.relname::text = ANY ($2)
       AND NOT EXISTS (
         SELECT FROM pg_constraint AS r WHERE r.conindid = i.indexrelid AND r.contype = 'x')
     ORDER BY m.amname = 'gin' DESC, m.amname = 'gist' DESC,
       pg_relation_size(format('%I.%I', $1::text, t.relname)::regclass) DESC, c.relname`,
    [schema, names],
  );

/** The statements that turn unique indexes of new tables into constraints. */
const uniqueStatements = (
  query: RunQuery,
  schema: string,
  names: readonly string[],
): Promise<Statement[]> =>
  query<Statement>(
    `SELECT format('ALTER TABLE %I.%I ADD CONSTRAINT %I %s USING INDEX %I %s %s', $1::text, t.relname,
       r.conname, CASE r.contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END, c.relname,
       CASE WHEN r.condeferrable THEN 'DEFERRABLE' END,
       CASE WHEN r.condeferred THEN 'INITIALLY DEFERRED' END) AS sql
     FROM pg_constraint AS r JOIN pg_class AS t ON t.oid = r.conrelid
       JOIN pg_class AS c ON c.oid = r.conindid
     WHERE t.relnamespace = 'public'::regnamespace AND t.relname::text = ANY ($2)
       AND r.contype IN ('p', 'u')`,
    [schema, names],
  );

/**
 * Creates the indexes of new tables, one on each connection concurrently. Parallel workers of PostgreSQL
 * would sort with half as much processor time again, and take it from the other connection.
 */
export async function createIndexes(
  connections: readonly [BackupConnection, ...BackupConnection[]],
  schema: string,
  newTables: Iterable<string>,
): Promise<void> {
  const query = queryOn(connections[0]);
  const names = [...newTables];
  const waiting = await withCompleteNames(query, () => indexStatements(query, schema, names));
  await Promise.all(
    connections.map(async (connection) => {
      await connection.query('SET max_parallel_maintenance_workers = 0');
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const memory = next.isGin ? GIN_MEMORY : INDEX_MEMORY;
        await connection.query(`SET maintenance_work_mem = '${memory}'; ${next.sql}`);
      }
    }),
  );
  for (const { sql } of await uniqueStatements(query, schema, names)) await query(sql);
}

export type Definition = { drop: string; create: string };

/** `tables`: the names of the two tables of the foreign key. */
type ForeignKey = Definition & { tables: string[] };

/** The foreign keys of and to tables. Those of partitions belong to the partitioned table. */
export const foreignKeysOf = (query: RunQuery, ...live: string[]): Promise<ForeignKey[]> =>
  query<ForeignKey>(
    `SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS drop,
       format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname,
         pg_get_constraintdef(oid)) AS create,
       ARRAY(SELECT relname::text FROM pg_class AS t WHERE t.oid IN (conrelid, confrelid)) AS tables
     FROM pg_constraint
     WHERE contype = 'f' AND conparentid = 0
       AND ARRAY[conrelid, confrelid] && ARRAY[${live.map((name) => `'${name}'::regclass`).join(', ')}]::oid[]`,
  );

/**
 * Keeps all others from the live tables that new ones replace, until the transaction ends. Error:
 * SQLSTATE 57014 when waiting takes longer than `timeoutMs`.
 */
export async function lockLiveTables(
  trx: Knex,
  names: ReadonlySet<string>,
  timeoutMs: number,
): Promise<void> {
  if (names.size === 0) return;
  await trx.raw(`SET LOCAL statement_timeout = ${Math.trunc(timeoutMs)}`);
  const tables = [...names].map((name) => `public.${quoteIdentifier(name)}`);
  await trx.raw(`LOCK TABLE ${tables.join(', ')} IN ACCESS EXCLUSIVE MODE`);
  await trx.raw('SET LOCAL statement_timeout = 0');
}

/**
 * Replaces live tables by the new ones, in a transaction that has locked them. A table that cannot be
 * replaced, for example because a view depends on it, is not among `replaced`. `finish` creates
 * foreign keys and triggers again.
 */
export async function replaceTables(
  trx: Knex.Transaction,
  schema: string,
  names: Iterable<string>,
): Promise<{ replaced: ReadonlySet<string>; finish(): Promise<void> }> {
  const query = queryIn(trx);
  const replaced = new Set<string>();
  const statements: string[] = [];
  await query(`SET LOCAL maintenance_work_mem = '${INDEX_MEMORY}'`);
  for (const name of names) {
    // A savepoint: the rows of a table that stays are inserted as those of small tables.
    const created = await trx
      .transaction((savepoint) => replaceTable(queryIn(savepoint), schema, name))
      .catch((error: unknown) => {
        if (error instanceof TableDiffers || hasDependents(error)) return undefined;
        throw error;
      });
    if (!created) continue;
    replaced.add(name);
    statements.push(...created);
  }
  return {
    replaced,
    async finish() {
      for (const statement of statements) await query(statement);
    },
  };
}

/** SQLSTATE dependent_objects_still_exist. */
const hasDependents = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === '2BP01';

/**
 * Replaces a live table by the new one of its name, in a transaction. A view takes the position of
 * the new one. Returns the statements that create the foreign keys and the triggers again. Errors:
 * `TableDiffers`, and those of the database when something else depends on the live table.
 */
async function replaceTable(query: RunQuery, schema: string, name: string): Promise<string[]> {
  const live = `public.${quoteIdentifier(name)}`;
  const table = `${quoteIdentifier(schema)}.${quoteIdentifier(name)}`;
  const foreignKeys = await foreignKeysOf(query, live);
  const triggers = await query<{ create: string; enabled: boolean }>(
    `SELECT pg_get_triggerdef(oid) AS create, tgenabled = 'O' AS enabled FROM pg_trigger
     WHERE tgrelid = '${live}'::regclass AND NOT tgisinternal`,
  );
  if (!triggers.every(({ enabled }) => enabled))
    throw new TableDiffers(`A trigger of ${name} is disabled`);
  for (const { drop } of foreignKeys) await query(drop);
  const before = await describe(query, live);
  await query(`DROP TABLE ${live}`);
  await query(`ALTER TABLE ${table} SET SCHEMA public`);
  await query(`CREATE VIEW ${table} AS SELECT * FROM ${live}`);
  const after = await describe(query, live);
  if (after !== before) throw new TableDiffers(`The new table ${name} differs from the old one`);
  return [...foreignKeys, ...triggers].map(({ create }) => create);
}

/** A new table does not have all properties of the one that it would replace. */
export class TableDiffers extends Error {}

/** What a table consists of, without its foreign keys and triggers, as text. */
async function describe(query: RunQuery, live: string): Promise<string> {
  const [row] = await query<{ text: string }>(
    `SELECT json_build_array(
       (SELECT json_build_array(relowner, relkind, relpersistence, relacl::text, reloptions::text,
          relrowsecurity, relreplident, reltablespace, obj_description(oid, 'pg_class'))
        FROM pg_class WHERE oid = '${live}'::regclass),
       (SELECT json_agg(json_build_array(a.attname, a.atttypid, a.atttypmod, a.attcollation,
          a.attnotnull, a.attidentity, a.attgenerated, a.attstorage, a.attcompression,
          a.attstattarget, a.attacl::text, pg_get_expr(d.adbin, d.adrelid)) ORDER BY a.attnum)
        FROM pg_attribute AS a
          LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = '${live}'::regclass AND a.attnum > 0 AND NOT a.attisdropped),
       (SELECT json_agg(json_build_array(conname, pg_get_constraintdef(oid)) ORDER BY conname)
        FROM pg_constraint WHERE conrelid = '${live}'::regclass AND contype NOT IN ('f', 't')),
       (SELECT json_agg(json_build_array(pg_get_indexdef(indexrelid), indisvalid, indisreplident)
          ORDER BY indexrelid::regclass::text)
        FROM pg_index WHERE indrelid = '${live}'::regclass),
       (SELECT json_agg(pg_get_statisticsobjdef(oid) ORDER BY stxname)
        FROM pg_statistic_ext WHERE stxrelid = '${live}'::regclass))::text AS text`,
  );
  // PostgreSQL may write a condition that it has read again with fewer parentheses.
  return assertDefined(row, 'description').text.replaceAll(/[()]/g, '');
}
