import type { ResourceName } from './names.ts';
import type { Row } from './resource.ts';

/** Rows of a resource whose fields have these values. */
export type Lookup = {
  resource: ResourceName;
  fields: readonly string[];
  values: readonly unknown[];
  /** How many are looked up at most, where it is enough to know that there are several. */
  most?: number;
};

/** What a plan has to know. `around`: the networks that contain one, and the outermost ones inside it. */
export type Need =
  | { kind: 'row'; resource: ResourceName; id: string }
  | ({ kind: 'rows' } & Lookup)
  | { kind: 'around'; vrf: string; cidr: string }
  | { kind: 'ranges'; vrf: string; first: string; last: string }
  | { kind: 'fact'; name: FactName; id: string };

/**
 * Answers of the database that are no rows. `usage`: addresses of a prefix that are taken. `direct`: what lies in a
 * prefix and in none of its children. `tagUsers`, `fieldUsers`, `outsiders`: who uses a record in ways that are no
 * reference. `duplicates`: what a VRF has twice. `ancestors`: loads the rows above, and says nothing.
 */
export type FactName =
  | 'usage'
  | 'direct'
  | 'tagUsers'
  | 'fieldUsers'
  | 'outsiders'
  | 'duplicates'
  | 'regionsAbove'
  | 'locationsAbove';

export type User = { resource: string; id: string; label: string; row?: Row };
export type Facts = {
  usage: bigint;
  direct: User[];
  tagUsers: User[];
  fieldUsers: User[];
  outsiders: User[];
  duplicates: User[];
  regionsAbove: true;
  locationsAbove: true;
};

/** The plan needs to know more; it is made again when that was looked up. */
export class Missing extends Error {
  readonly needs: readonly Need[];
  constructor(needs: readonly Need[]) {
    super(JSON.stringify(needs[0]));
    this.needs = needs;
  }
}

/** Does the same for each item; what they miss is said of all of them at once. */
export function gathering<T>(items: Iterable<T>, each: (item: T) => void): void {
  const needs: Need[] = [];
  for (const item of items) {
    try {
      each(item);
    } catch (error) {
      if (!(error instanceof Missing)) throw error;
      needs.push(...error.needs);
    }
  }
  if (needs.length > 0) throw new Missing(needs);
}

/** The answer depends on changes planned before this one: they must be written before it can be looked up. */
export class Unwritten extends Error {}

/** What a record was and will be; null where there is none. */
export type Change = { resource: ResourceName; id: string; before: Row | null; after: Row | null };

/** Fields that are worked out from a row, to look it up by. */
const COMPUTED: Readonly<Record<string, (row: Row) => unknown>> = {
  vrfKey: (row) => vrfKeyOf(row),
  host: (row) => String(row.address).split('/')[0],
};

export const GLOBAL_VRF = 'global';
export const vrfKeyOf = (row: Row): string => (row.vrfId as string | null) ?? GLOBAL_VRF;

/** Addresses and ranges that come, change or go, and prefixes that move or go, change what lies where. */
const movesSpace = ({ resource, before, after }: Change): boolean =>
  resource === 'ip-addresses' ||
  resource === 'ip-ranges' ||
  (resource === 'prefixes' &&
    before !== null &&
    (before.cidr !== after?.cidr || before.vrfId !== after?.vrfId));

const either = ({ before, after }: Change, holds: (row: Row) => boolean): boolean =>
  (before !== null && holds(before)) || (after !== null && holds(after));

/** Which planned changes a fact about `id` does not know of. Rights and accounts are none of the inventory's. */
const DEPENDS: Readonly<Partial<Record<FactName, (id: string, step: Change) => boolean>>> = {
  direct: (_, step) => movesSpace(step),
  tagUsers: (id, step) => either(step, ({ tags }) => Array.isArray(tags) && tags.includes(id)),
  fieldUsers(id, step) {
    const [, resource, name] = JSON.parse(id) as [string, string, string];
    return (
      step.resource === resource &&
      either(
        step,
        ({ customFields }) =>
          typeof customFields === 'object' &&
          customFields !== null &&
          Object.hasOwn(customFields, name),
      )
    );
  },
  duplicates: (id, step) =>
    (step.resource === 'prefixes' || step.resource === 'ip-addresses') &&
    either(step, (row) => vrfKeyOf(row) === id),
};

const needKey = (need: Need): string => JSON.stringify(need);

/**
 * What a plan sees: rows and facts that were loaded, with the changes planned so far on top. It knows what it does
 * not know, and says so with `Missing`.
 */
export class World {
  private readonly known = new Set<string>();
  private readonly stored = new Map<ResourceName, Map<string, Row>>();
  private readonly facts = new Map<string, unknown>();
  private rows = new Map<ResourceName, Map<string, Row>>();
  private indexes = new Map<string, Map<string, Set<string>>>();
  private changed = new Map<string, Change>();
  private steps: Change[] = [];
  private readonly lockedOnly: boolean;

  /** `lockedOnly`: a row that is asked for by its id must have been looked up by it, which locks it. */
  constructor({ lockedOnly = false }: { lockedOnly?: boolean } = {}) {
    this.lockedOnly = lockedOnly;
  }

  private readonly listeners: { reset(): void; changed(change: Change): void }[] = [];

  /** Told of every row that comes, changes or goes, and when the planned changes are forgotten. */
  listen(listener: { reset(): void; changed(change: Change): void }): void {
    this.listeners.push(listener);
  }

  /** A need was looked up; a fact is what was found, rows are told with `learnRows`. */
  learn(need: Need, fact?: unknown): void {
    this.known.add(needKey(need));
    if (need.kind === 'fact') this.facts.set(needKey(need), fact);
  }

  learnRows(rows: readonly { resource: ResourceName; row: Row }[]): void {
    for (const { resource, row } of rows) this.storedOf(resource).set(row.id, row);
  }

  knows = (need: Need): boolean => this.known.has(needKey(need));

  /** Forgets the planned changes. */
  reset(): void {
    this.rows = new Map([...this.stored].map(([resource, rows]) => [resource, new Map(rows)]));
    this.indexes = new Map();
    this.changed = new Map();
    this.steps = [];
    for (const listener of this.listeners) listener.reset();
    for (const [resource, rows] of this.rows) {
      for (const row of rows.values())
        for (const listener of this.listeners)
          listener.changed({ resource, id: row.id, before: null, after: row });
    }
  }

  require(need: Need): void {
    if (!this.knows(need)) throw new Missing([need]);
  }

  get(resource: ResourceName, id: string): Row | undefined {
    const row = this.rowsOf(resource).get(id);
    if ((row === undefined || this.lockedOnly) && !this.changed.has(`${resource}/${id}`))
      this.require({ kind: 'row', resource, id });
    return row;
  }

  /** A row that was looked up with others: it is not locked, a constraint must stand behind what is made of it. */
  peek(resource: ResourceName, id: string): Row | undefined {
    return this.rowsOf(resource).get(id);
  }

  /** Rows of a resource with these values, planned changes included. */
  where(
    resource: ResourceName,
    fields: readonly string[],
    values: readonly unknown[],
    most?: number,
  ): Row[] {
    this.require({ kind: 'rows', resource, fields, values, ...(most !== undefined && { most }) });
    const ids = this.indexOf(resource, fields).get(JSON.stringify(values)) ?? new Set();
    return [...ids].flatMap((id) => this.rowsOf(resource).get(id) ?? []);
  }

  /** Every row of a resource that is loaded or planned; say with `require` what must be. */
  all(resource: ResourceName): Iterable<Row> {
    return this.rowsOf(resource).values();
  }

  fact<N extends FactName>(name: N, id: string): Facts[N] {
    const need: Need = { kind: 'fact', name, id };
    this.require(need);
    return this.facts.get(needKey(need)) as Facts[N];
  }

  /** The same for a fact that says nothing of planned changes: with changes that it depends on it cannot be known. */
  factNow<N extends FactName>(name: N, id: string): Facts[N] {
    if (this.steps.some((step) => DEPENDS[name]?.(id, step))) throw new Unwritten();
    return this.fact(name, id);
  }

  /** Up to `most` records that refer to one by a field. */
  users(resource: ResourceName, field: string, id: string, most: number): Row[] {
    if (this.steps.some((step) => step.resource === resource && step.before?.[field] === id))
      throw new Unwritten();
    return this.where(resource, [field], [id], most);
  }

  put(resource: ResourceName, row: Row): void {
    this.change(resource, row.id, row);
  }

  remove(resource: ResourceName, id: string): void {
    this.change(resource, id, null);
  }

  /** What has been planned, step by step. */
  inOrder(): readonly Change[] {
    return this.steps;
  }

  /** True when this record was made by a change that is planned and not written. */
  isNew(resource: ResourceName, id: string): boolean {
    const change = this.changed.get(`${resource}/${id}`);
    return change?.before === null;
  }

  private change(resource: ResourceName, id: string, after: Row | null): void {
    const rows = this.rowsOf(resource);
    const before = rows.get(id) ?? null;
    for (const [key, index] of this.indexes) {
      const [of, ...fields] = key.split('|');
      if (of !== resource) continue;
      if (before) index.get(valuesKey(before, fields))?.delete(id);
      if (after) addTo(index, valuesKey(after, fields), id);
    }
    if (after) rows.set(id, after);
    else rows.delete(id);
    this.steps.push({ resource, id, before, after });
    const earlier = this.changed.get(`${resource}/${id}`);
    this.changed.set(`${resource}/${id}`, {
      resource,
      id,
      before: earlier ? earlier.before : before,
      after,
    });
    for (const listener of this.listeners) listener.changed({ resource, id, before, after });
  }

  private indexOf(resource: ResourceName, fields: readonly string[]): Map<string, Set<string>> {
    const key = [resource, ...fields].join('|');
    const known = this.indexes.get(key);
    if (known) return known;
    const index = new Map<string, Set<string>>();
    for (const row of this.rowsOf(resource).values()) addTo(index, valuesKey(row, fields), row.id);
    this.indexes.set(key, index);
    return index;
  }

  private storedOf(resource: ResourceName): Map<string, Row> {
    const rows = this.stored.get(resource) ?? new Map<string, Row>();
    this.stored.set(resource, rows);
    return rows;
  }

  private rowsOf(resource: ResourceName): Map<string, Row> {
    const rows = this.rows.get(resource) ?? new Map<string, Row>();
    this.rows.set(resource, rows);
    return rows;
  }
}

const valuesKey = (row: Row, fields: readonly string[]): string =>
  JSON.stringify(fields.map((field) => COMPUTED[field]?.(row) ?? row[field] ?? null));

function addTo(index: Map<string, Set<string>>, key: string, id: string): void {
  const ids = index.get(key);
  if (ids) ids.add(id);
  else index.set(key, new Set([id]));
}
