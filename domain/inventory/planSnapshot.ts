import type { ResourceName } from './names.ts';
import type { Row } from './resource.ts';

/** The rows of a resource in which `fields` have `values`. */
export type Lookup = {
  resource: ResourceName;
  fields: readonly string[];
  values: readonly unknown[];
  /** The number of rows to load, when it is enough to know that there are several. */
  limit?: number;
};

/**
 * Data that a plan needs. `neighbours`: the prefixes that contain a network and the outermost
 * prefixes inside it. `ranges`: the IP ranges that overlap an interval.
 */
export type DataNeed =
  | { kind: 'row'; resource: ResourceName; id: string }
  | ({ kind: 'rows' } & Lookup)
  | { kind: 'neighbours'; vrf: string; cidr: string }
  | { kind: 'ranges'; vrf: string; first: string; last: string }
  | { kind: 'fact'; name: FactName; id: string };

/**
 * What the database computes for a plan.
 *
 * - `usage`: the number of addresses in a prefix that are in use; id of the prefix
 * - `contents`: addresses and ranges in a prefix and in none of its children; `[vrf, network,
 *   excluded network or null]` as JSON
 * - `inheritedAt`: a record of a tenant in a network that belongs to a site, or to no site, because of
 *   its prefix; `[vrf, network, tenant, site or null]` as JSON. Planned changes do not matter
 * - `sitesInside`: the sites of prefixes of a tenant that start in a span of addresses, up to
 *   `MAX_NAMED_SITES`; `[vrf, first address, last address, tenant]` as JSON
 * - `tagReferrers`: records with a tag; id of the tag
 * - `customFieldReferrers`: records with a value; `[tenant, resource, field name]` as JSON
 * - `externalReferrers`: grants, users, webhooks and schedules that belong to a tenant, site or
 *   device; `<resource>/<id>`
 * - `duplicates`: prefixes and addresses that a VRF has more than once; key of the VRF
 * - `regionAncestors`, `locationAncestors`: no value, but the rows above a record are loaded; id
 */
export type FactName =
  | 'usage'
  | 'contents'
  | 'inheritedAt'
  | 'sitesInside'
  | 'tagReferrers'
  | 'customFieldReferrers'
  | 'externalReferrers'
  | 'duplicates'
  | 'regionAncestors'
  | 'locationAncestors';

/** The number of sites that the fact `sitesInside` lists. */
export const MAX_NAMED_SITES = 10;

/** A record that refers to another; `row` is absent for records outside the inventory. */
export type Referrer = { resource: string; id: string; label: string; row?: Row };
/** The type of each fact. */
export type Facts = {
  usage: bigint;
  contents: Referrer[];
  inheritedAt: Referrer[];
  sitesInside: Referrer[];
  tagReferrers: Referrer[];
  customFieldReferrers: Referrer[];
  externalReferrers: Referrer[];
  duplicates: Referrer[];
  regionAncestors: true;
  locationAncestors: true;
};

/** The snapshot lacks data. The plan is made again when the data is loaded. */
export class MissingData extends Error {
  readonly needs: readonly DataNeed[];
  constructor(needs: readonly DataNeed[]) {
    super(JSON.stringify(needs[0]));
    this.needs = needs;
  }
}

/**
 * Calls `each` for every item and then throws one `MissingData` with the needs of all items, so
 * that they are loaded in one round trip.
 */
export function collectMissing<T>(items: Iterable<T>, each: (item: T) => void): void {
  const needs: DataNeed[] = [];
  for (const item of items) {
    try {
      each(item);
    } catch (error) {
      if (!(error instanceof MissingData)) throw error;
      needs.push(...error.needs);
    }
  }
  if (needs.length > 0) throw new MissingData(needs);
}

/** Data depends on earlier changes of the plan, which must be written before it can be loaded. */
export class UnwrittenDependency extends Error {}

/** A record before and after a change; null where it does not exist. */
export type PlannedChange = {
  resource: ResourceName;
  id: string;
  before: Row | null;
  after: Row | null;
};

/** Fields for lookups that are computed from a row. They equal generated columns of its table. */
const COMPUTED_FIELDS: Readonly<Record<string, (row: Row) => unknown>> = {
  vrfKey: (row) => vrfKeyOf(row),
  host: (row) => String(row.address).split('/')[0],
};

/** The key of the global table, which has no VRF record. */
export const GLOBAL_VRF = 'global';

/** The VRF of a prefix, range or address as the column `vrf_key` has it. */
export const vrfKeyOf = (row: Row): string => (row.vrfId as string | null) ?? GLOBAL_VRF;

/** True for changes that can change the contents of a prefix. */
const changesAddressSpace = ({ resource, before, after }: PlannedChange): boolean =>
  resource === 'ip-addresses' ||
  resource === 'ip-ranges' ||
  (resource === 'prefixes' &&
    before !== null &&
    (before.cidr !== after?.cidr || before.vrfId !== after?.vrfId));

const beforeOrAfter = ({ before, after }: PlannedChange, matches: (row: Row) => boolean): boolean =>
  (before !== null && matches(before)) || (after !== null && matches(after));

/**
 * Which planned changes make a stored fact about `id` out of date. Facts that are absent here do
 * not depend on inventory records.
 */
const FACT_DEPENDENCIES: Readonly<
  Partial<Record<FactName, (id: string, step: PlannedChange) => boolean>>
> = {
  contents: (_, step) => changesAddressSpace(step),
  sitesInside: (_, { resource, before, after }) =>
    resource === 'prefixes' && before?.siteId !== (after?.siteId ?? null),
  tagReferrers: (id, step) =>
    beforeOrAfter(step, ({ tags }) => Array.isArray(tags) && tags.includes(id)),
  customFieldReferrers(id, step) {
    const [, resource, name] = JSON.parse(id) as [string, string, string];
    return (
      step.resource === resource &&
      beforeOrAfter(
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
    beforeOrAfter(step, (row) => vrfKeyOf(row) === id),
};

const needKey = (need: DataNeed): string => JSON.stringify(need);

/**
 * The data that a plan is made from: loaded rows and facts, with the changes planned so far applied
 * to the rows. Reading data that is not loaded throws `MissingData`.
 */
export class PlanSnapshot {
  private readonly loaded = new Set<string>();
  private readonly loadedRows = new Map<ResourceName, Map<string, Row>>();
  private readonly facts = new Map<string, unknown>();
  private rows = new Map<ResourceName, Map<string, Row>>();
  private indexes = new Map<string, Map<string, Set<string>>>();
  private netChanges = new Map<string, PlannedChange>();
  private steps: PlannedChange[] = [];
  private readonly lockedOnly: boolean;

  /** With `lockedOnly`, `get` requires that a row was loaded by its id, which locks it. */
  constructor({ lockedOnly = false }: { lockedOnly?: boolean } = {}) {
    this.lockedOnly = lockedOnly;
  }

  private readonly listeners: { reset(): void; changed(change: PlannedChange): void }[] = [];

  /** Registers a listener for every row that is added, changed or removed, and for `reset`. */
  subscribe(listener: { reset(): void; changed(change: PlannedChange): void }): void {
    this.listeners.push(listener);
  }

  /** Marks a need as loaded; `fact` is its value. Rows are added with `addLoadedRows`. */
  markLoaded(need: DataNeed, fact?: unknown): void {
    this.loaded.add(needKey(need));
    if (need.kind === 'fact') this.facts.set(needKey(need), fact);
  }

  /** Adds loaded rows. They become visible with the next `reset`. */
  addLoadedRows(rows: readonly { resource: ResourceName; row: Row }[]): void {
    for (const { resource, row } of rows) this.loadedRowsOf(resource).set(row.id, row);
  }

  isLoaded = (need: DataNeed): boolean => this.loaded.has(needKey(need));

  /** Drops the planned changes. */
  reset(): void {
    this.rows = new Map([...this.loadedRows].map(([resource, rows]) => [resource, new Map(rows)]));
    this.indexes = new Map();
    this.netChanges = new Map();
    this.steps = [];
    for (const listener of this.listeners) listener.reset();
    for (const [resource, rows] of this.rows) {
      for (const row of rows.values())
        for (const listener of this.listeners)
          listener.changed({ resource, id: row.id, before: null, after: row });
    }
  }

  /** Throws `MissingData` unless a need is loaded. */
  require(need: DataNeed): void {
    if (!this.isLoaded(need)) throw new MissingData([need]);
  }

  /** A row by its id; undefined when it does not exist. */
  get(resource: ResourceName, id: string): Row | undefined {
    const row = this.rowsOf(resource).get(id);
    if ((row === undefined || this.lockedOnly) && !this.netChanges.has(`${resource}/${id}`))
      this.require({ kind: 'row', resource, id });
    return row;
  }

  /**
   * A row that was loaded together with others, and is not locked. A rule that relies on it needs
   * a constraint in the database as well.
   */
  peek(resource: ResourceName, id: string): Row | undefined {
    return this.rowsOf(resource).get(id);
  }

  /** The rows of a resource in which `fields` have `values`, planned changes included. */
  where(
    resource: ResourceName,
    fields: readonly string[],
    values: readonly unknown[],
    limit?: number,
  ): Row[] {
    this.require({ kind: 'rows', resource, fields, values, ...(limit !== undefined && { limit }) });
    const ids = this.indexOf(resource, fields).get(JSON.stringify(values)) ?? new Set();
    return [...ids].flatMap((id) => this.rowsOf(resource).get(id) ?? []);
  }

  /** Every loaded or planned row of a resource. `require` ensures that the relevant ones are. */
  all(resource: ResourceName): Iterable<Row> {
    return this.rowsOf(resource).values();
  }

  /** The value of a fact as stored, without the planned changes. */
  fact<N extends FactName>(name: N, id: string): Facts[N] {
    const need: DataNeed = { kind: 'fact', name, id };
    this.require(need);
    return this.facts.get(needKey(need)) as Facts[N];
  }

  /**
   * The value of a fact. Throws `UnwrittenDependency` when planned changes affect it, because the
   * stored value is out of date then.
   */
  factIfUnaffected<N extends FactName>(name: N, id: string): Facts[N] {
    if (this.steps.some((step) => FACT_DEPENDENCIES[name]?.(id, step)))
      throw new UnwrittenDependency();
    return this.fact(name, id);
  }

  /** Up to `limit` records that refer to a record by `field`. */
  referrers(resource: ResourceName, field: string, id: string, limit: number): Row[] {
    if (this.steps.some((step) => step.resource === resource && step.before?.[field] === id))
      throw new UnwrittenDependency();
    return this.where(resource, [field], [id], limit);
  }

  /** Plans to create or update a row. */
  put(resource: ResourceName, row: Row): void {
    this.applyChange(resource, row.id, row);
  }

  /** Plans to delete a row. */
  remove(resource: ResourceName, id: string): void {
    this.applyChange(resource, id, null);
  }

  /** The planned changes in order. */
  plannedSteps(): readonly PlannedChange[] {
    return this.steps;
  }

  /** True when a planned change that is not written yet creates this record. */
  isNew(resource: ResourceName, id: string): boolean {
    const change = this.netChanges.get(`${resource}/${id}`);
    return change?.before === null;
  }

  private applyChange(resource: ResourceName, id: string, after: Row | null): void {
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
    const previous = this.netChanges.get(`${resource}/${id}`);
    this.netChanges.set(`${resource}/${id}`, {
      resource,
      id,
      before: previous ? previous.before : before,
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

  private loadedRowsOf(resource: ResourceName): Map<string, Row> {
    const rows = this.loadedRows.get(resource) ?? new Map<string, Row>();
    this.loadedRows.set(resource, rows);
    return rows;
  }

  private rowsOf(resource: ResourceName): Map<string, Row> {
    const rows = this.rows.get(resource) ?? new Map<string, Row>();
    this.rows.set(resource, rows);
    return rows;
  }
}

const valuesKey = (row: Row, fields: readonly string[]): string =>
  JSON.stringify(fields.map((field) => COMPUTED_FIELDS[field]?.(row) ?? row[field] ?? null));

function addTo(index: Map<string, Set<string>>, key: string, id: string): void {
  const ids = index.get(key);
  if (ids) ids.add(id);
  else index.set(key, new Set([id]));
}
