import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import type { Scope } from '../../domain/access/scope.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { RESOURCE_NAMES, type ResourceName } from '../../domain/inventory/names.ts';
import { labelOf } from '../../domain/inventory/ownership.ts';
import type {
  DataNeed,
  FactName,
  PlanSnapshot,
  Referrer,
} from '../../domain/inventory/planSnapshot.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { factParts } from './factQueries.ts';
import {
  grouped,
  ofKind,
  select,
  type Group,
  type NeedOf,
  type QueryPart,
  type SharedQuery,
} from './queryParts.ts';
import { namedKey, namedParts } from './namedQueries.ts';
import { addressParts, neighbourParts, rangeParts, tenantParts } from './spaceQueries.ts';
import { writableCondition } from './writable.ts';
import { columnOf, columnsOf, rowOf, siteColumnsOf, sqlTypeOf, tableOf } from './tables.ts';

/** The number of rows that one round may load. */
const MAX_ROWS = 50_000;
/** Statements with more parts are rarely repeated, so they are not prepared. */
const MAX_PREPARED_PARTS = 12;
/** Rows that are added to a snapshot before other work gets a turn. */
const ROWS_PER_TURN = 500;

/**
 * `part` is a resource, `fact:usage` with the id of a prefix as `key`, or `fact` with the position of
 * the need. The `key` of a resource says how its row was found.
 */
type FoundRow = { part: string; key: string | null; row: Record<string, unknown> };

/**
 * Row locks for a plan that will be written. Of the rows that are loaded by id, those in the scope
 * of the writer are locked: FOR UPDATE where a mutation deletes them, FOR NO KEY UPDATE where it
 * updates them, FOR SHARE where it refers to them. Others are read without a lock, so that nobody
 * waits for a transaction that only names their records. Null for a plan that is not written.
 */
export type Locking = { targets: Targets; writable: Scope } | null;

/** What mutations do to the records that they name, by `<resource>/<id>`. */
export type Targets = ReadonlyMap<string, 'update' | 'delete'>;

/** A row that a plan has read without a lock. */
export type UnlockedRow = { resource: ResourceName; row: Row };

type LoadOptions = {
  locking: Locking;
  /** Where the caller may read or write: references by name find only what they may use. */
  visible: Scope;
  /** Lets other work run. */
  pause(): Promise<void>;
  /** Without it, networks come without the usage that a warning is about. */
  warns: boolean;
};

/**
 * Loads the needs of a plan into its snapshot, in one statement. Returns the number of rows, and those
 * that a plan to be written reads without a lock. Error: `limit_reached`.
 */
export async function loadNeeds(
  db: Knex,
  snapshot: PlanSnapshot,
  needs: readonly DataNeed[],
  { locking, visible, pause, warns }: LoadOptions,
): Promise<{ count: number; unlocked: UnlockedRow[] }> {
  const parts = [
    ...rowParts(ofKind(needs, 'row'), locking),
    ...lookupParts(ofKind(needs, 'rows')),
    ...namedParts(needs, visible),
    ...neighbourParts(ofKind(needs, 'neighbours'), warns),
    ...tenantParts(needs),
    ...addressParts(ofKind(needs, 'addresses')),
    ...rangeParts(ofKind(needs, 'ranges'), ofKind(needs, 'sharedInside')),
    ...factParts(needs),
  ];
  const found: FoundRow[] = [];
  if (parts.length > 0) {
    const { sql, bindings } = unionOf(parts);
    const { rows } = await (parts.length <= MAX_PREPARED_PARTS
      ? prepared(db, sql, bindings)
      : db.raw(sql, bindings));
    found.push(...rows);
  }
  if (found.length > MAX_ROWS)
    throw new AppError(
      'limit_reached',
      `The change affects more than ${MAX_ROWS} records. Split it into smaller changes.`,
    );
  await addToSnapshot(snapshot, needs, found, pause);
  return { count: found.length, unlocked: unlockedIn(found) };
}

function unionOf(parts: readonly QueryPart[]): SharedQuery {
  const before = parts.flatMap((part) => part.before ?? []);
  const shared =
    before.length === 0 ? '' : `WITH RECURSIVE ${before.map(({ sql }) => sql).join(', ')} `;
  const union = parts.map(({ sql }) => `(${sql})`).join(' UNION ALL ');
  return {
    sql: `${shared}${union} LIMIT ${MAX_ROWS + 1}`,
    bindings: [...before, ...parts].flatMap(({ bindings }) => bindings),
  };
}

/** The rows by id that no part has locked. */
function unlockedIn(found: readonly FoundRow[]): UnlockedRow[] {
  const idOf = ({ part, row }: FoundRow) => `${part}/${String(row.id)}`;
  const locked = new Set(found.filter(({ key }) => key === LOCKED).map(idOf));
  return found
    .filter((each) => each.key === UNLOCKED && !locked.has(idOf(each)))
    .map(({ part, row }) => {
      const resource = part as ResourceName;
      return { resource, row: rowOf(RESOURCES[resource], row) };
    });
}

async function addToSnapshot(
  snapshot: PlanSnapshot,
  needs: readonly DataNeed[],
  found: readonly FoundRow[],
  pause: () => Promise<void>,
): Promise<void> {
  const isFact = ({ part }: FoundRow) => part.startsWith('fact');
  const facts = Map.groupBy(found.filter(isFact), ({ part, key }) => `${part}|${key ?? ''}`);
  const keys = Map.groupBy(found, ({ key }) => key);
  for (const [i, need] of needs.entries()) {
    if (need.kind === 'named') snapshot.markLoaded(need, keys.get(namedKey(i))?.length);
    else if (need.kind === 'fact') {
      const key = need.name === 'usage' ? `fact:usage|${need.id}` : `fact|${i}`;
      snapshot.markLoaded(need, factOf(need.name, facts.get(key) ?? []));
    } else snapshot.markLoaded(need);
  }
  // The neighbours of a network come with the usage of its smallest container.
  for (const row of found.filter(({ part }) => part === 'fact:usage')) {
    const need = { kind: 'fact', name: 'usage', id: String(row.key) } as const;
    snapshot.markLoaded(need, factOf('usage', [row]));
  }
  const rows = found.filter((each) => !isFact(each));
  for (let start = 0; start < rows.length; start += ROWS_PER_TURN) {
    const added = snapshot.addLoadedRows(
      rows.slice(start, start + ROWS_PER_TURN).map(({ part, row }) => {
        const resource = part as ResourceName;
        return { resource, row: rowOf(RESOURCES[resource], row) };
      }),
    );
    for (const _ of added) await pause();
    await pause();
  }
}

/** Converts the rows of a fact to its value. A prefix without rows uses no addresses. */
function factOf(name: FactName, found: readonly FoundRow[]): unknown {
  if (name === 'usage')
    return BigInt((found[0]?.row.used as string | undefined)?.split('.')[0] ?? 0);
  if (name.endsWith('Ancestors')) return true;
  const referrers = found.map(({ row }): Referrer => {
    const { resource, record, id, label } = row as {
      resource: string;
      record?: Record<string, unknown>;
      id?: string;
      label?: string;
    };
    if (!record) return { resource, id: String(id), label: String(label ?? id) };
    const declared = RESOURCES[resource as ResourceName];
    const full = rowOf(declared, record);
    return { resource, id: full.id, label: labelOf(declared, full), row: full };
  });
  // In the order of creation: what the database finds first depends on the records of others.
  const byResource = Map.groupBy(referrers, ({ resource }) => resource);
  return [...byResource.values()].flatMap((of) => of.sort((a, b) => (a.id < b.id ? -1 : 1)));
}

/** The keys of rows that a plan to be written loads by id. */
const LOCKED = 'locked';
const UNLOCKED = 'unlocked';

/** Rows are locked in this order in every transaction, which prevents deadlocks. */
const LOCK_ORDER: readonly ResourceName[] = RESOURCE_NAMES;

/** Rows by id. A union cannot lock, so each kind of lock has its own part. */
function rowParts(needs: readonly NeedOf<'row'>[], locking: Locking): QueryPart[] {
  const groups = grouped(needs, ({ resource }) => resource).sort(
    ([a], [b]) => LOCK_ORDER.indexOf(a.resource) - LOCK_ORDER.indexOf(b.resource),
  );
  return groups.flatMap((group) => {
    const name = group[0].resource;
    const ids = group.map(({ id }) => id);
    const sites = sitesOfParts(name, ids);
    if (!locking)
      return [{ sql: select(name, 'WHERE id = ANY (?::text[])'), bindings: [ids] }, ...sites];
    return [...lockedParts(name, ids, locking), ...sites];
  });
}

/** Rows by id as `Locking` says. Those of others come without a lock, after the locked ones. */
function lockedParts(
  name: ResourceName,
  ids: readonly string[],
  { targets, writable }: NonNullable<Locking>,
): QueryPart[] {
  const { sql, bindings } = writableCondition(name, writable);
  const locked = [...Map.groupBy(ids, (id) => targets.get(`${name}/${id}`)).entries()]
    .sort(([a], [b]) => LOCKS.indexOf(a) - LOCKS.indexOf(b))
    .map(([use, some]): QueryPart => {
      const where = `WHERE id = ANY (?::text[]) AND ${sql} ORDER BY id FOR ${LOCK_OF[use ?? 'reference']}`;
      return { sql: select(name, where, LOCKED), bindings: [some, ...bindings] };
    });
  const all = { sql: select(name, 'WHERE id = ANY (?::text[])', UNLOCKED), bindings: [[...ids]] };
  return [...(sql === 'FALSE' ? [] : locked), ...(sql === 'TRUE' ? [] : [all])];
}

const LOCKS = [undefined, 'update', 'delete'] as const;
const LOCK_OF = { reference: 'SHARE', update: 'NO KEY UPDATE', delete: 'UPDATE' } as const;

/**
 * True when rows are as a plan has read them. They are locked FOR SHARE, just before the end of the
 * transaction, so that they stay so until it is committed.
 */
export async function areUnchanged(db: Knex, rows: readonly UnlockedRow[]): Promise<boolean> {
  const groups = grouped(rows, ({ resource }) => resource).sort(
    ([a], [b]) => LOCK_ORDER.indexOf(a.resource) - LOCK_ORDER.indexOf(b.resource),
  );
  for (const group of groups) {
    const ids = group.map(({ row }) => row.id);
    const found = await db(tableOf(RESOURCES[group[0].resource]))
      .whereIn('id', ids)
      .orderBy('id')
      .forShare()
      .select<{ id: string; version: number }[]>('id', 'version');
    const versions = new Map(found.map(({ id, version }) => [id, version]));
    if (group.some(({ row }) => versions.get(row.id) !== row.version)) return false;
  }
  return true;
}

/**
 * The sites that records belong to: whether a right at a site counts depends on its tenant. They are
 * not locked.
 */
function sitesOfParts(name: ResourceName, ids: readonly string[]): QueryPart[] {
  const columns = name === 'sites' ? [] : siteColumnsOf(RESOURCES[name]);
  if (columns.length === 0) return [];
  const where = `WHERE id IN (SELECT unnest(ARRAY[${columns.join(', ')}]) FROM ${tableOf(RESOURCES[name])} WHERE id = ANY (?::text[]))`;
  return [{ sql: select('sites', where), bindings: [[...ids]] }];
}

/** Rows by the values of fields. */
function lookupParts(needs: readonly NeedOf<'rows'>[]): QueryPart[] {
  const sameShape = ({ resource, fields, limit }: NeedOf<'rows'>) =>
    [resource, limit, ...fields].join('|');
  return grouped(needs, sameShape).map((group) => {
    const [{ resource: name, fields, limit }] = group;
    if (limit !== undefined) return limitedLookup(group, limit);
    const types = fields.map((field) => `?::${sqlTypeOf(RESOURCES[name], field)}[]`);
    const columns = fields.map(columnOf).join(', ');
    return {
      sql: select(name, `WHERE (${columns}) IN (SELECT * FROM unnest(${types.join(', ')}))`),
      bindings: fields.map((_, i) => group.map(({ values }) => values[i] as string)),
    };
  });
}

/** Up to `limit` rows for each value of one field. */
function limitedLookup(group: Group<NeedOf<'rows'>>, limit: number): QueryPart {
  const [{ resource: name, fields }] = group;
  const resource = RESOURCES[name];
  const field = assertDefined(fields[0], 'lookup.fields[0]');
  return {
    sql: `SELECT '${name}' AS part, NULL AS key, to_json(x) AS row
      FROM unnest(?::${sqlTypeOf(resource, field)}[]) AS asked (value)
      CROSS JOIN LATERAL (SELECT ${columnsOf(resource)} FROM ${tableOf(resource)}
        WHERE ${columnOf(field)} = asked.value LIMIT ${limit}) AS x`,
    bindings: [group.map(({ values }) => values[0] as string)],
  };
}
