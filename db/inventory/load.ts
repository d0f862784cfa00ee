import type { Knex } from '../core/knex.ts';
import { inPieces } from '../core/prepared.ts';
import type { Scope } from '../../domain/access/scope.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { RESOURCE_NAMES, type ResourceName } from '../../domain/inventory/names.ts';
import { labelOf } from '../../domain/inventory/ownership.ts';
import type {
  DataNeed,
  FactName,
  PlannedChange,
  PlanSnapshot,
  Referrer,
} from '../../domain/inventory/planSnapshot.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { unstorable } from '../../platform/strictJson.ts';
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
import { counted } from '../../domain/shared/counted.ts';

/** The number of rows that one round may load. */
const MAX_ROWS = 50_000;
/** Statements with more parts are rarely repeated, so they are not prepared. */
const MAX_PREPARED_PARTS = 12;
/** Rows that are added to a snapshot before other work gets a turn. */
const ROWS_PER_TURN = 500;
/** Rows that the server returns before their size is checked. A row has up to 100 KiB. */
const ROWS_PER_PIECE = 250;

/** What each row costs besides its values. */
const BYTES_PER_ROW = 100;

/** What a plan keeps of the database: the number of rows, and their size. */
export type Loaded = { rows: number; bytes: number };

/** The most that a plan may load. */
export const MAX_LOADED: Readonly<Loaded> = { rows: 300_000, bytes: 64 * 1_048_576 };

/**
 * `part` is a resource, `fact:usage` with the id of a prefix as `key`, or `fact` with the position of
 * the need. The `key` of a resource says how its row was found.
 */
type FoundRow = { part: string; key: string | null; row: Record<string, unknown> };

/** `size` is 0 for a row that the statement has returned before. */
type SizedRow = FoundRow & { size: number };

/**
 * Row locks for a plan that will be written. The rows that are loaded by id and are in the scope
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
  /** What the plan has loaded already. */
  loaded: Readonly<Loaded>;
  /** Called with the size of what was read, before more is. It may throw. */
  keep(bytes: number): void;
};

/** True unless a text in a need cannot be stored: PostgreSQL refuses the whole statement for it. */
const canExist = (value: unknown): boolean =>
  typeof value === 'string'
    ? unstorable(value) === undefined
    : typeof value !== 'object' || value === null || Object.values(value).every(canExist);

/**
 * Loads the needs of a plan into its snapshot, in one statement, without those that no record can meet. Returns
 * what it has loaded, and the rows that a plan to be written reads without a lock. Error: `limit_reached`, with nothing loaded.
 */
export async function loadNeeds(
  db: Knex,
  snapshot: PlanSnapshot,
  allNeeds: readonly DataNeed[],
  { locking, visible, pause, warns, loaded, keep }: LoadOptions,
): Promise<Loaded & { unlocked: UnlockedRow[] }> {
  const possible = Map.groupBy(allNeeds, canExist);
  const [needs = [], impossible = []] = [possible.get(true), possible.get(false)];
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
  const found = parts.length > 0 ? await readParts(db, snapshot, parts, { loaded, keep }) : [];
  // Rows have the positions of the needs that were asked for.
  const bytes = await addToSnapshot(snapshot, [...needs, ...impossible], found, pause);
  return { rows: found.length, bytes, unlocked: unlockedIn(found) };
}

/**
 * The rows of a union. It ends as soon as they are more than the plan may load: records can be large, and
 * what a change reads depends on records that its request does not name.
 */
async function readParts(
  db: Knex,
  snapshot: PlanSnapshot,
  parts: readonly QueryPart[],
  { loaded, keep }: Pick<LoadOptions, 'loaded' | 'keep'>,
): Promise<SizedRow[]> {
  const { sql, bindings } = unionOf(parts);
  const found: SizedRow[] = [];
  const distinct = new Map<string, FoundRow>();
  let { bytes } = loaded;
  const pieces = inPieces<FoundRow>(db, sql, bindings, {
    maxRows: ROWS_PER_PIECE,
    isPrepared: parts.length <= MAX_PREPARED_PARTS,
  });
  for await (const piece of pieces) {
    const before = bytes;
    for (const each of piece) {
      const sized = withSize(each, distinct);
      found.push(sized);
      if (!isKept(snapshot, each)) bytes += sized.size;
    }
    assertWithinLimits({ rows: loaded.rows + found.length, bytes }, found.length);
    keep(bytes - before);
  }
  return found;
}

/** The size of the records that changes replace or delete. They are kept until the commit. */
export const sizeOfReplaced = (changes: readonly PlannedChange[]): number =>
  changes.reduce((sum, { before }) => sum + (before ? sizeOf(before) : 0), 0);

/** `limit_reached`: what a plan keeps altogether is more than it may load. */
export class PlanFull extends AppError {}

/** Error: `limit_reached`, of which `PlanFull` is not about the rows of the round alone. */
export function assertWithinLimits({ rows, bytes }: Loaded, inRound = rows): void {
  const maxRows = inRound > MAX_ROWS ? MAX_ROWS : MAX_LOADED.rows;
  const exceeded = [
    ...(inRound > MAX_ROWS || rows > maxRows
      ? [`affects more than ${counted(maxRows, 'record')}`]
      : []),
    ...(bytes > MAX_LOADED.bytes
      ? [`depends on records of more than ${MAX_LOADED.bytes / 1_048_576} MiB`]
      : []),
  ];
  if (exceeded[0] === undefined) return;
  const isFull = rows > MAX_LOADED.rows || bytes > MAX_LOADED.bytes;
  throw new (isFull ? PlanFull : AppError)(
    'limit_reached',
    `The change ${exceeded[0]}. Split it into smaller changes.`,
  );
}

const isFact = ({ part }: Pick<FoundRow, 'part'>): boolean => part.startsWith('fact');

/** True for a row that the snapshot has already: it is not kept twice. */
const isKept = (snapshot: PlanSnapshot, { part, row }: FoundRow): boolean =>
  !isFact({ part }) && snapshot.peek(part as ResourceName, String(row.id))?.version === row.version;

/** A row with its size. One that the statement has returned before shares the memory of the first. */
function withSize(found: FoundRow, distinct: Map<string, FoundRow>): SizedRow {
  const { part, key, row } = found;
  if (isFact(found)) return { part, key, row, size: sizeOf(row) };
  const id = `${part}/${String(row.id)}`;
  const known = distinct.get(id);
  if (known && known.row.version === row.version) return { part, key, row: known.row, size: 0 };
  distinct.set(id, found);
  return { part, key, row, size: sizeOf(row) };
}

/** The size of the values of a row, about as JSON. */
function sizeOf(row: Readonly<Record<string, unknown>>): number {
  let size = 0;
  for (const value of Object.values(row)) {
    if (typeof value === 'string') size += value.length;
    else if (typeof value === 'object' && value !== null) size += JSON.stringify(value).length;
  }
  return size + BYTES_PER_ROW;
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

/** Returns the size of what it has added. */
async function addToSnapshot(
  snapshot: PlanSnapshot,
  needs: readonly DataNeed[],
  found: readonly SizedRow[],
  pause: () => Promise<void>,
): Promise<number> {
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
  let bytes = found.filter(isFact).reduce((sum, { size }) => sum + size, 0);
  for (let start = 0; start < rows.length; start += ROWS_PER_TURN) {
    const some = rows.slice(start, start + ROWS_PER_TURN).map(({ part, row, size }) => {
      const resource = part as ResourceName;
      return { resource, row: rowOf(RESOURCES[resource], row), size };
    });
    for (const _ of snapshot.addLoadedRows(some)) await pause();
    for (const { resource, row, size } of some)
      if (snapshot.peek(resource, row.id) === row) bytes += size;
    await pause();
  }
  return bytes;
}

/** Converts the rows of a fact to its value. A prefix without rows uses no addresses. */
function factOf(name: FactName, found: readonly FoundRow[]): unknown {
  if (name === 'usage') {
    const { used, reserved } = (found[0]?.row ?? {}) as { used?: string; reserved?: number };
    return { used: BigInt(used?.split('.')[0] ?? 0), reserved: BigInt(reserved ?? 0) };
  }
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
