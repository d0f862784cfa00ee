import { SECTIONS, type Section } from '../../domain/backups.ts';
import type { ArchivedTable } from '../../platform/archive/index.ts';
import type { Knex } from '../core/knex.ts';
import {
  columnsOf,
  quoted,
  references,
  tablesOf,
  type Ask,
  type Column,
  type Reference,
} from './catalog.ts';
import { extentOf, type Extent } from './snapshot.ts';
import type { BackedUpTable } from './tables.ts';

/** How a table takes part: to be as it was, to get back what is missing, or to get what others refer to. */
type Part = 'state' | 'history' | 'referred';

export type PlannedTable = { table: BackedUpTable; part: Part; columns: Column[] };

/** What of an archive is to be restored, and where to. `schema` is where it is loaded. */
export type RestorePlan = {
  schema: string;
  extent: Extent;
  tables: PlannedTable[];
  references: Reference[];
  sections: Section[];
};

export const askIn =
  (trx: Knex): Ask =>
  async <Row extends object>(sql: string, values: readonly unknown[] = []) => {
    // Knex reads question marks as its own; these statements have numbered values only.
    const { rows } = await trx.raw<{ rows: Row[] }>(
      sql.replaceAll('?', '\\?').replace(/\$\d+/g, '?'),
      values as Knex.RawBinding[],
    );
    return rows;
  };

export const live = ({ name }: BackedUpTable): string => `public.${quoted(name)}`;
export const loaded = (schema: string, { name }: BackedUpTable): string =>
  `${quoted(schema)}.${quoted(name)}`;
/** The differences of a table: keys, and what is to become of them. */
export const diffOf = ({ name }: BackedUpTable): string => `pg_temp.${quoted(`_d_${name}`)}`;

export const list = (names: readonly string[], alias?: string): string =>
  names.map((name) => (alias === undefined ? quoted(name) : `${alias}.${quoted(name)}`)).join(', ');
export const same = (names: readonly string[], one: string, other: string): string =>
  names.map((name) => `${one}.${quoted(name)} = ${other}.${quoted(name)}`).join(' AND ');

/** As it is compared: JSON by its text, since what was sent comes back as it was sent. */
const comparable = (alias: string, { name, type }: Column): string =>
  type.startsWith('json') || type.startsWith('double')
    ? `${alias}.${quoted(name)}::text`
    : `${alias}.${quoted(name)}`;

/** Where a tenant's are put back between those of others, what is worked out from others is worked out again. */
export const isWorkedOut = (
  { extent }: RestorePlan,
  { table }: PlannedTable,
  column: string,
): boolean => extent.tenantId !== null && table.workedOut.includes(column);

/** The columns in which rows are compared. */
const comparedOf = (plan: RestorePlan, planned: PlannedTable): Column[] =>
  planned.columns.filter(
    ({ name }) => !planned.table.own.includes(name) && !isWorkedOut(plan, planned, name),
  );

/**
 * Plans a restore of sections. What the archive holds of others takes part as far as it is referred to; so do records that
 * are nobody's own, where a tenant's are restored.
 */
export async function planRestore(
  ask: Ask,
  {
    schema,
    extent,
    sections,
    archived,
  }: {
    schema: string;
    extent: Extent;
    sections: readonly Section[];
    archived: readonly ArchivedTable[];
  },
): Promise<RestorePlan> {
  const tables: PlannedTable[] = [];
  for (const table of tablesOf([...new Set(archived.map(({ section }) => section))])) {
    // Of a table that is newer than the archive it says nothing.
    const whole =
      archived.some(({ name }) => name === table.name) &&
      sections.includes(table.section) &&
      (extent.tenantId === null || table.ofTenant !== null);
    tables.push({
      table,
      part: whole ? table.mode : 'referred',
      columns: await columnsOf(ask, 'public', table.name),
    });
  }
  return {
    schema,
    extent,
    tables,
    references: await references(ask),
    sections: SECTIONS.filter((section) => sections.includes(section)),
  };
}

/** What differs, of a table that is to be as it was. */
function stateSql(plan: RestorePlan, planned: PlannedTable): string {
  const { table } = planned;
  const [first = 'id'] = table.key;
  const row = (alias: string) =>
    `ROW(${comparedOf(plan, planned)
      .map((column) => comparable(alias, column))
      .join(', ')})`;
  const gone =
    table.tombstone === null
      ? 'true'
      : `NOT (s.${quoted(first)} IS NULL AND l.deleted_at IS NOT NULL)`;
  return `SELECT ${table.key.map((key) => `coalesce(s.${quoted(key)}, l.${quoted(key)}) AS ${quoted(key)}`).join(', ')},
      CASE WHEN l.${quoted(first)} IS NULL THEN 'created' WHEN s.${quoted(first)} IS NULL THEN 'deleted' ELSE 'changed' END AS change
    FROM ${loaded(plan.schema, table)} AS s
    FULL JOIN (SELECT * FROM ${live(table)} AS t WHERE ${extentOf(table, plan.extent)}) AS l ON ${same(table.key, 's', 'l')}
    WHERE ${gone} AND (l.${quoted(first)} IS NULL OR s.${quoted(first)} IS NULL OR ${row('s')} IS DISTINCT FROM ${row('l')})`;
}

const missingSql = ({ schema }: RestorePlan, { table }: PlannedTable): string =>
  `SELECT ${list(table.key, 's')}, 'created' AS change FROM ${loaded(schema, table)} AS s
   WHERE NOT EXISTS (SELECT FROM ${live(table)} AS l WHERE ${same(table.key, 's', 'l')})`;

/** Tags and definitions of custom fields that rows which come back use, and that are not there: they are named, not referred to. */
async function bringNamed(ask: Ask, plan: RestorePlan): Promise<void> {
  const [tags, fields] = ['tags', 'custom_fields'].map(
    (name) =>
      plan.tables.find(({ table, part }) => table.name === name && part === 'referred')?.table,
  );
  for (const { table, columns } of plan.tables) {
    const coming = `${loaded(plan.schema, table)} AS c JOIN ${diffOf(table)} AS d ON ${same(table.key, 'c', 'd')} AND d.change <> 'deleted'`;
    const uses = (name: string) =>
      table.section === 'inventory' && columns.some((column) => column.name === name);
    const add = async (to: BackedUpTable, used: string) =>
      ask(
        `INSERT INTO ${diffOf(to)} SELECT p.id, 'created' FROM ${loaded(plan.schema, to)} AS p WHERE EXISTS (SELECT FROM ${coming} WHERE ${used})
         AND NOT EXISTS (SELECT FROM ${live(to)} AS l WHERE l.id = p.id) AND NOT EXISTS (SELECT FROM ${diffOf(to)} AS x WHERE x.id = p.id)`,
      );
    if (tags && uses('tags')) await add(tags, 'p.id = ANY (c.tags)');
    if (fields && uses('custom_fields'))
      await add(
        fields,
        `p.resource = '${table.name.replaceAll('_', '-')}' AND jsonb_exists(c.custom_fields, p.name)`,
      );
  }
}

/** Adds what rows that come back refer to and what is not there, until there is nothing more. */
async function bringAlong(ask: Ask, plan: RestorePlan): Promise<void> {
  const byName = new Map(plan.tables.map((planned) => [planned.table.name, planned]));
  const links = plan.references.flatMap((reference) => {
    const [child, parent] = [byName.get(reference.child), byName.get(reference.parent)];
    return child && parent?.part === 'referred'
      ? [{ ...reference, from: child.table, to: parent.table }]
      : [];
  });
  for (let more = links.length > 0; more;) {
    more = false;
    for (const { from, to, childColumns, parentColumns } of links) {
      const pairs = childColumns
        .map((column, at) => `c.${quoted(column)} = p.${quoted(parentColumns[at] ?? '')}`)
        .join(' AND ');
      const added = await ask(
        `INSERT INTO ${diffOf(to)} SELECT DISTINCT ${list(to.key, 'p')}, 'created'
         FROM ${loaded(plan.schema, from)} AS c JOIN ${diffOf(from)} AS d ON ${same(from.key, 'c', 'd')} AND d.change IN ('created', 'changed')
           JOIN ${loaded(plan.schema, to)} AS p ON ${pairs}
         WHERE NOT EXISTS (SELECT FROM ${live(to)} AS l WHERE ${same(to.key, 'p', 'l')})
           AND NOT EXISTS (SELECT FROM ${diffOf(to)} AS x WHERE ${same(to.key, 'p', 'x')}) RETURNING 1`,
      );
      if (added.length > 0) more = true;
    }
  }
}

/** Works out what differs, into temporary tables of the transaction. */
export async function findDifferences(ask: Ask, plan: RestorePlan): Promise<void> {
  for (const planned of plan.tables) {
    const sql = {
      state: stateSql,
      history: missingSql,
      referred: (p: RestorePlan, t: PlannedTable) => `${missingSql(p, t)} AND false`,
    }[planned.part](plan, planned);
    await ask(`CREATE TEMP TABLE ${quoted(`_d_${planned.table.name}`)} ON COMMIT DROP AS ${sql}`);
  }
  await bringAlong(ask, plan);
  await bringNamed(ask, plan);
  for (const { table } of plan.tables) await ask(`ANALYZE ${diffOf(table)}`);
}

export type DiffCounts = {
  name: string;
  inArchive: number;
  created: number;
  changed: number;
  deleted: number;
};

/** How many records of each table are to change, and a hash of what changes into what. */
export async function countDifferences(
  ask: Ask,
  plan: RestorePlan,
): Promise<{ counts: DiffCounts[]; fingerprint: string }> {
  const counts: DiffCounts[] = [];
  const sums: string[] = [];
  const { schema, tables } = plan;
  for (const planned of tables) {
    const { table } = planned;
    const names = comparedOf(plan, planned).map(({ name }) => name);
    const text = `concat_ws('|', d.change, ROW(${list(table.key, 'd')})::text, CASE WHEN d.change <> 'deleted' THEN ROW(${list(names, 's')})::text END, CASE WHEN d.change <> 'created' THEN ROW(${list(names, 'l')})::text END)`;
    const [row] = await ask<{
      inArchive: number;
      created: number;
      changed: number;
      deleted: number;
      sums: string;
    }>(
      `SELECT (SELECT rows FROM ${quoted(schema)}._loaded WHERE name = $1) AS "inArchive",
         count(*) FILTER (WHERE d.change = 'created') AS created, count(*) FILTER (WHERE d.change = 'changed') AS changed, count(*) FILTER (WHERE d.change = 'deleted') AS deleted,
         concat(sum(hashtextextended(${text}, 0)::numeric), ':', sum(hashtextextended(${text}, 1)::numeric)) AS sums
       FROM ${diffOf(table)} AS d LEFT JOIN ${loaded(schema, table)} AS s ON ${same(table.key, 's', 'd')} LEFT JOIN ${live(table)} AS l ON ${same(table.key, 'l', 'd')}`,
      [table.name],
    );
    const { sums: sum = '', inArchive = 0, created = 0, changed = 0, deleted = 0 } = row ?? {};
    counts.push({ name: table.name, inArchive, created, changed, deleted });
    sums.push(`${table.name} ${created} ${changed} ${deleted} ${sum}`);
  }
  return { counts, fingerprint: sums.join('\n') };
}

export type Sample = {
  key: string;
  change: 'created' | 'changed' | 'deleted';
  then: Record<string, string | null>;
  now: Record<string, string | null>;
  hiddenDiffer: string[] | null;
};

const SHOWN_CHARS = 200;

/** The first differences of a table, by their keys. Values of columns that are hidden are not read. */
export async function sampleDifferences(
  ask: Ask,
  plan: RestorePlan,
  planned: PlannedTable,
  limit: number,
): Promise<Sample[]> {
  const [{ schema }, { table }, compared] = [plan, planned, comparedOf(plan, planned)];
  const shown = compared.filter(({ name }) => !table.hidden.includes(name));
  const hidden = compared.filter(({ name }) => table.hidden.includes(name));
  const values = (alias: string) =>
    `(SELECT row_to_json(r) FROM (SELECT ${shown.map(({ name }) => `left(${alias}.${quoted(name)}::text, ${SHOWN_CHARS}) AS ${quoted(name)}`).join(', ')}) AS r)`;
  const differing = hidden.map(
    (column) =>
      `CASE WHEN ${comparable('s', column)} IS DISTINCT FROM ${comparable('l', column)} THEN '${column.name}' END`,
  );
  return ask<Sample>(
    `SELECT concat_ws('/', ${list(table.key, 'd')}) AS key, d.change, ${values('s')} AS then, ${values('l')} AS now,
       array_remove(ARRAY[${differing.join(', ')}]::text[], NULL) AS "hiddenDiffer"
     FROM (SELECT * FROM ${diffOf(table)} ORDER BY ${list(table.key)} LIMIT ${limit}) AS d
       LEFT JOIN ${loaded(schema, table)} AS s ON ${same(table.key, 's', 'd')} LEFT JOIN ${live(table)} AS l ON ${same(table.key, 'l', 'd')}
     ORDER BY ${list(table.key, 'd')}`,
  );
}
