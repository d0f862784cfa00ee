import { sectionsAt, type Section } from '../../domain/backups.ts';
import { TABLES, type BackedUpTable } from './tables.ts';

export type Column = { name: string; type: string; notNull: boolean };

/** A reference between tables, as PostgreSQL keeps it. */
export type Reference = {
  child: string;
  childColumns: string[];
  parent: string;
  parentColumns: string[];
};

/** Whatever can be asked: a session, or a transaction of the pool. */
export type Ask = <Row extends object>(sql: string, values?: readonly unknown[]) => Promise<Row[]>;

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** The columns of a table in their order, without those that PostgreSQL works out. */
export async function columnsOf(ask: Ask, schema: string, table: string): Promise<Column[]> {
  return ask<Column>(
    `SELECT a.attname::text AS name, format_type(a.atttypid, NULL) AS type, a.attnotnull AS "notNull"
     FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum`,
    [schema, table],
  );
}

/** All references between the tables of the product. */
export async function references(ask: Ask): Promise<Reference[]> {
  const names = (columns: string, table: string) =>
    `ARRAY(SELECT a.attname::text FROM unnest(${columns}) WITH ORDINALITY AS k (num, at) JOIN pg_attribute AS a ON a.attrelid = ${table} AND a.attnum = k.num ORDER BY k.at)`;
  return ask<Reference>(
    `SELECT c.relname::text AS child, ${names('r.conkey', 'r.conrelid')} AS "childColumns",
       p.relname::text AS parent, ${names('r.confkey', 'r.confrelid')} AS "parentColumns"
     FROM pg_constraint AS r JOIN pg_class AS c ON c.oid = r.conrelid JOIN pg_class AS p ON p.oid = r.confrelid
     WHERE r.contype = 'f' AND r.connamespace = 'public'::regnamespace ORDER BY c.relname, r.conname`,
  );
}

/** Sections that hold together without a reference: records name tags and custom fields. */
const ALSO: Readonly<Partial<Record<Section, readonly Section[]>>> = { inventory: ['settings'] };

/**
 * The sections to which others refer, directly or through more of them; without those themselves. Of the installation's own
 * sections nothing comes along with a tenant's.
 */
export async function referredSections(
  ask: Ask,
  tenantId: string,
  asked: readonly Section[],
): Promise<Section[]> {
  const all = await references(ask);
  const sectionOf = new Map(TABLES.map(({ name, section }) => [name, section]));
  const found = new Set(asked);
  // A set hands out what is added while it is walked through.
  for (const section of found) {
    for (const { child, parent } of all)
      if (sectionOf.get(child) === section) found.add(sectionOf.get(parent) ?? section);
    for (const other of ALSO[section] ?? []) found.add(other);
  }
  return [...found].filter(
    (section) => !asked.includes(section) && sectionsAt(tenantId).includes(section),
  );
}

/** The tables of sections, in the order in which rows can be inserted. */
export const tablesOf = (sections: readonly string[]): BackedUpTable[] =>
  TABLES.filter(({ section }) => sections.includes(section));
