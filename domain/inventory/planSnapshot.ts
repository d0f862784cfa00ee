import type { ResourceName } from './names.ts';
import type { Row } from './resource.ts';
import { RESOURCES } from './resources/index.ts';

/** The rows of a resource in which `fields` have `values`. */
export type Lookup = {
  resource: ResourceName;
  fields: readonly string[];
  values: readonly unknown[];
  /** The number of rows to load, when it is enough to know that there are several. */
  limit?: number;
};

/**
 * The records with a value in a field that the caller may use for records of a tenant: a reference by
 * name. Other tenants may have any number of records with that value, so the loader leaves out what the
 * caller may not use. With `near`, it loads only those that match best.
 */
export type NamedLookup = {
  resource: ResourceName;
  field: string;
  value: string;
  /** The tenant of the record that refers: what is shared with it can be used, too. */
  tenantId: string;
  near?: Near;
};

/** The fields that decide between records of one name: the first one most, where no rule requires another. */
export const NEAR_FIELDS = ['tenantId', 'siteId', 'vrfId', 'deviceId'] as const;
export type NearField = (typeof NEAR_FIELDS)[number];

/**
 * The values (`nearValueOf`) of a record that refers by name, as far as they are known, in the order in which
 * they decide.
 */
export type Near = Readonly<Partial<Record<NearField, string>>>;

/** What a record has in a field that decides between names. The global table counts as a VRF. */
export const nearValueOf = (row: Row, field: NearField): unknown =>
  field === 'vrfId' ? vrfKeyOf(row) : row[field];

/** The number of records of one name that are loaded, for each reason to use them. */
export const MAX_NAMED = 100;

/**
 * Data that a plan needs, in the address space of a tenant in a VRF. `neighbours`: the prefixes that
 * contain a network and the outermost prefixes inside it. `addresses`: the addresses with a host.
 * `ranges`: the IP ranges that overlap an interval. `sharedInside`: the prefixes of the platform that
 * start in an interval. `allAround`: the prefixes of all tenants that contain a network.
 * `assigned`: the children of a prefix, of any tenant, that overlap a network. The `limit` of a fact
 * is the number of records of each resource to load.
 */
export type DataNeed =
  | { kind: 'row'; resource: ResourceName; id: string }
  | ({ kind: 'rows' } & Lookup)
  | ({ kind: 'named' } & NamedLookup)
  | { kind: 'neighbours'; vrf: string; tenantId: string; cidr: string }
  | { kind: 'addresses'; vrf: string; tenantId: string; host: string }
  | { kind: 'ranges'; vrf: string; tenantId: string; first: string; last: string }
  | { kind: 'sharedInside'; vrf: string; first: string; last: string }
  | { kind: 'allAround'; vrf: string; cidr: string }
  | { kind: 'assigned'; prefixId: string; cidr: string }
  | { kind: 'fact'; name: FactName; id: string; limit?: number };

/**
 * What the database computes for a plan, without the planned changes.
 *
 * - `usage`: the number of addresses in a prefix that are in use, and of its network and broadcast
 *   address those that no child has; id of the prefix
 * - `contents`: addresses and ranges of a space in a network and in none of some networks inside it;
 *   `[vrf, tenant, network, gaps, borders]` as JSON: the intervals between those networks, and the
 *   pairs of addresses where two of them touch
 * - `inheritedAt`: a record of a tenant in a network that belongs to a site, or to no site, because of
 *   its prefix; `[vrf, network, tenant, site or null]` as JSON. Planned changes do not matter
 * - `sitesInside`: the sites of prefixes of a tenant that start in a span of addresses, perhaps without
 *   those that contain its first address, up to `MAX_NAMED_SITES`; `[vrf, first address, last address, tenant]` as JSON
 * - `tagReferrers`: records with a tag; id of the tag
 * - `customFieldReferrers`: records with a value; `[tenant, resource, field name, tenants whose records
 *   do not count]` as JSON
 * - `externalReferrers`: grants that belong to a tenant, site or device, and users, webhooks, schedules,
 *   secrets, backups, open approval requests and unfinished jobs of a tenant; `<resource>/<id>`
 * - `grantsAt`: role assignments and provider mappings of exactly a site or a device;
 *   `<resource>/<id>`
 * - `duplicates`: prefixes and addresses that a VRF has more than once, of equal prefixes all but
 *   one; key of the VRF
 * - `legalHolds`: the hold in force that keeps a record from being deleted; its label is its tenant;
 *   `<resource>/<id>`
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
  | 'grantsAt'
  | 'duplicates'
  | 'legalHolds'
  | 'regionAncestors'
  | 'locationAncestors';

/** The number of sites that the fact `sitesInside` lists. */
export const MAX_NAMED_SITES = 10;

/** A record that refers to another; `row` is absent for records outside the inventory. */
export type Referrer = { resource: string; id: string; label: string; row?: Row };
/** The type of each fact. */
export type Facts = {
  usage: { used: bigint; reserved: bigint };
  contents: Referrer[];
  inheritedAt: Referrer[];
  sitesInside: Referrer[];
  tagReferrers: Referrer[];
  customFieldReferrers: Referrer[];
  externalReferrers: Referrer[];
  grantsAt: Referrer[];
  duplicates: Referrer[];
  legalHolds: Referrer[];
  regionAncestors: true;
  locationAncestors: true;
};

/** Changes that are undone before `undoTo` yields. */
const UNDONE_PER_TURN = 20;

/** Facts that are lists of records. */
export type ReferrerFact = {
  [N in FactName]: Facts[N] extends Referrer[] ? N : never;
}[FactName];

/**
 * The snapshot lacks data. The plan is made again when the data is loaded. A large plan throws it for
 * every mutation, and nobody reads where: it has no stack trace, which would cost more than the attempt.
 */
export class MissingData extends Error {
  readonly needs: readonly DataNeed[];
  constructor(needs: readonly DataNeed[]) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super('the plan lacks data');
    Error.stackTraceLimit = stackTraceLimit;
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

/** The number of referrers that a plan names. */
export const MAX_REFERRERS = 10;

/** The factor by which more records are loaded when planned changes affect those that are. */
const GROWTH = 8;

/** Identifies a need. The most frequent ones have shorter keys, which no other need has. Ids have no spaces. */
export function needKey(need: DataNeed): string {
  if (need.kind === 'row') return `row ${need.resource} ${need.id}`;
  if (need.kind === 'neighbours') return `neighbours ${need.vrf} ${need.tenantId} ${need.cidr}`;
  return JSON.stringify(need);
}

export const recordKey = (resource: string, id: string): string => `${resource}/${id}`;

/** Rows by the values of fields. */
type Index = { fields: readonly string[]; ids: Map<string, Set<string>> };
type Table = {
  rows: Map<string, Row>;
  indexes: Map<string, Index>;
  /** The ids by which rows were loaded, whether they exist or not. */
  loadedIds: Set<string>;
};

/** Called for every row that is loaded, changed or removed, also when a change is undone. */
export type SnapshotListener = (change: PlannedChange) => void;

/**
 * The data that a plan is made from: loaded rows and facts, with the changes planned so far applied
 * to the rows. Reading data that is not loaded throws `MissingData`. Data can be loaded at any time;
 * the planned changes of a row count, not the loaded row.
 */
export class PlanSnapshot {
  private readonly loaded = new Set<string>();
  private readonly facts = new Map<string, unknown>();
  /** The lookups by name that have found as many rows as they load. */
  private readonly cut = new Set<string>();
  private readonly tables = new Map<ResourceName, Table>();
  private readonly netChanges = new Map<string, PlannedChange>();
  private readonly createdIds = new Set<string>();
  private readonly changedByGroup = new Map<string, Set<string>>();
  private readonly clearedReferences = new Map<string, number>();
  private steps: PlannedChange[] = [];
  private journal: (() => void)[] = [];
  private readonly listeners: SnapshotListener[] = [];
  private readonly lockedOnly: boolean;
  private outdated = false;
  /** How often a plan has changed another record than the one of its mutation, whether kept or not. */
  cascadeCount = 0;

  /** With `lockedOnly`, `get` requires that a row was loaded by its id, which locks it. */
  constructor({ lockedOnly = false }: { lockedOnly?: boolean } = {}) {
    this.lockedOnly = lockedOnly;
  }

  subscribe(listener: SnapshotListener): void {
    this.listeners.push(listener);
  }

  /**
   * Marks a need as loaded. `fact` is the value of a fact, and of a lookup by name the number of rows
   * found. Rows are added with `addLoadedRows`.
   */
  markLoaded(need: DataNeed, fact?: unknown): void {
    this.loaded.add(needKey(need));
    if (need.kind === 'row') this.tableOf(need.resource).loadedIds.add(need.id);
    if (need.kind === 'fact') this.facts.set(needKey(need), fact);
    if (need.kind === 'named' && Number(fact) >= MAX_NAMED) this.cut.add(needKey(need));
  }

  /**
   * Adds loaded rows. When another transaction has changed a row since it was first loaded, all
   * planned changes are undone, and `takeOutdated` is true once. Yields as `undoTo` does.
   */
  *addLoadedRows(rows: readonly { resource: ResourceName; row: Row }[]): Generator<void> {
    for (const { resource, row } of rows) {
      const change = this.netChanges.get(recordKey(resource, row.id));
      const known = change ? change.before : this.rowsOf(resource).get(row.id);
      // A statement can return a row twice: as it is when locked, and as it was before.
      if (known && known.version >= row.version) continue;
      if (known || change) {
        this.outdated = true;
        yield* this.undoTo(0);
      }
      this.setRow(resource, row.id, row);
    }
  }

  /** True once after newer rows were loaded: plans made so far are not valid any more. */
  takeOutdated(): boolean {
    const { outdated } = this;
    this.outdated = false;
    return outdated;
  }

  isLoaded = (need: DataNeed): boolean => this.loaded.has(needKey(need));

  /** A point in the plan to which `undoTo` returns. */
  mark(): number {
    return this.journal.length;
  }

  /**
   * Undoes everything that was planned after a mark. Loaded data is kept. Yields often, so that
   * the caller can pause.
   */
  *undoTo(mark: number): Generator<void> {
    for (let undone = 1; this.journal.length > mark; undone++) {
      this.journal.pop()?.();
      if (undone % UNDONE_PER_TURN === 0) yield;
    }
  }

  /** Registers how to undo something that belongs to the plan. */
  onUndo(undo: () => void): void {
    this.journal.push(undo);
  }

  /** Makes the planned changes final, which frees what `undoTo` needs. Returns them. */
  finalize(): PlannedChange[] {
    const { steps } = this;
    this.steps = [];
    this.journal = [];
    return steps;
  }

  /** Throws `MissingData` unless a need is loaded, or nothing stored can refer to a new record. */
  require(need: DataNeed): void {
    if (this.concernsNewRecord(need) || this.isLoaded(need)) return;
    throw new MissingData([need]);
  }

  private concernsNewRecord(need: DataNeed): boolean {
    if (this.createdIds.size === 0) return false;
    if ('vrf' in need) return this.createdIds.has(need.vrf);
    if (need.kind === 'assigned') return this.createdIds.has(need.prefixId);
    return (
      need.kind === 'rows' &&
      need.values.some((value) => typeof value === 'string' && this.createdIds.has(value))
    );
  }

  /** A row by its id; undefined when it does not exist. */
  get(resource: ResourceName, id: string): Row | undefined {
    const { rows, loadedIds } = this.tableOf(resource);
    const row = rows.get(id);
    if ((row !== undefined && !this.lockedOnly) || loadedIds.has(id)) return row;
    if (!this.netChanges.has(recordKey(resource, id))) this.require({ kind: 'row', resource, id });
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
    return this.loadedWith(resource, fields, values);
  }

  private loadedWith(
    resource: ResourceName,
    fields: readonly string[],
    values: readonly unknown[],
  ): Row[] {
    const ids = this.indexOf(resource, fields).ids.get(JSON.stringify(values)) ?? new Set();
    return [...ids].flatMap((id) => this.rowsOf(resource).get(id) ?? []);
  }

  /**
   * The rows with the value of a lookup that are loaded, planned changes included. They may include rows
   * that the caller may not use. `isCut` when there may be more than were loaded.
   */
  named(lookup: NamedLookup): { rows: Row[]; isCut: boolean } {
    const { resource, field, value } = lookup;
    const need: DataNeed = { kind: 'named', ...lookup };
    if (!this.isLoaded(need)) throw new MissingData([need]);
    return {
      rows: this.loadedWith(resource, [field], [value]),
      isCut: this.cut.has(needKey(need)),
    };
  }

  /** The addresses of a VRF with a host, as far as they are loaded. */
  addressesAt(vrf: string, host: string): Row[] {
    const { ids } = this.indexOf('ip-addresses', ['vrfKey', 'host']);
    return [...(ids.get(JSON.stringify([vrf, host])) ?? [])].flatMap(
      (id) => this.rowsOf('ip-addresses').get(id) ?? [],
    );
  }

  /** The value of a fact as stored, without the planned changes. */
  fact<N extends FactName>(name: N, id: string, limit?: number): Facts[N] {
    const need: DataNeed = { kind: 'fact', name, id, ...(limit !== undefined && { limit }) };
    this.require(need);
    return this.facts.get(needKey(need)) as Facts[N];
  }

  /**
   * The first records of a fact, with the planned changes: `planned` has the changed records that
   * belong to it. Stored ones count if they are unchanged and `isStill` holds. If too few are left of
   * those that were loaded, more are.
   */
  referrersOf(
    name: ReferrerFact,
    id: string,
    planned: readonly Referrer[],
    isStill: (referrer: Referrer) => boolean = () => true,
  ): Referrer[] {
    for (let limit = MAX_REFERRERS + 1; ; limit *= GROWTH) {
      const stored = this.fact(name, id, limit);
      const isUnchanged = (each: Referrer) =>
        !this.netChanges.has(recordKey(each.resource, each.id));
      const left: Referrer[] = [];
      collectMissing(stored.filter(isUnchanged), (each) => {
        if (left.length + planned.length <= MAX_REFERRERS && isStill(each)) left.push(each);
      });
      const found = [...left, ...planned];
      if (found.length >= MAX_REFERRERS || stored.length < limit)
        return found.slice(0, MAX_REFERRERS);
    }
  }

  /** Up to `limit` records that refer to a record by `field`, and perhaps more. */
  referrers(resource: ResourceName, field: string, id: string, limit: number): Row[] {
    const cleared = this.clearedReferences.get(`${resource}|${field}|${id}`) ?? 0;
    let count = limit;
    while (count < limit + cleared) count *= GROWTH;
    return this.where(resource, [field], [id], count);
  }

  /** Plans to create or update a row. */
  put(resource: ResourceName, row: Row): void {
    this.applyChange(resource, row.id, row);
  }

  /** Plans to delete a row. */
  remove(resource: ResourceName, id: string): void {
    this.applyChange(resource, id, null);
  }

  /** The number of planned changes. */
  get changeCount(): number {
    return this.steps.length;
  }

  /** True when a planned change that is not written yet creates this record. */
  isNew(resource: ResourceName, id: string): boolean {
    return this.netChanges.get(recordKey(resource, id))?.before === null;
  }

  /** True when a planned change creates the record with this generated id. */
  isNewRecord(id: string): boolean {
    return this.createdIds.has(id);
  }

  /** True when a record has planned changes. */
  isChanged(resource: ResourceName, id: string): boolean {
    return this.netChanges.has(recordKey(resource, id));
  }

  /** The changed records of a group (`groupsOf`), as they are after the changes. */
  changedIn(group: string): { resource: ResourceName; row: Row }[] {
    return [...(this.changedByGroup.get(group) ?? [])].flatMap((key) => {
      const change = this.netChanges.get(key);
      return change?.after ? [{ resource: change.resource, row: change.after }] : [];
    });
  }

  private applyChange(resource: ResourceName, id: string, after: Row | null): void {
    const key = recordKey(resource, id);
    const before = this.rowsOf(resource).get(id) ?? null;
    const previous = this.netChanges.get(key);
    this.netChanges.set(key, {
      resource,
      id,
      before: previous ? previous.before : before,
      after,
    });
    const isCreated = !previous && before === null && RESOURCES[resource].idPrefix !== null;
    if (isCreated) this.createdIds.add(id);
    this.steps.push({ resource, id, before, after });
    this.note(key, resource, before, after);
    this.setRow(resource, id, after);
    this.journal.push(() => {
      this.steps.pop();
      if (previous) this.netChanges.set(key, previous);
      else this.netChanges.delete(key);
      if (isCreated) this.createdIds.delete(id);
      this.setRow(resource, id, before);
    });
  }

  /** Notes what a change concerns. A change that is undone may stay noted: it is checked again. */
  private note(key: string, resource: ResourceName, before: Row | null, after: Row | null): void {
    for (const row of [before, after]) {
      for (const group of row ? groupsOf(resource, row) : [])
        addTo(this.changedByGroup, group, key);
    }
    if (!before) return;
    for (const [field, { reference }] of Object.entries(RESOURCES[resource].fields)) {
      const value = before[field];
      if (reference === undefined || typeof value !== 'string' || value === after?.[field])
        continue;
      const cleared = `${resource}|${field}|${value}`;
      this.clearedReferences.set(cleared, (this.clearedReferences.get(cleared) ?? 0) + 1);
    }
  }

  private setRow(resource: ResourceName, id: string, after: Row | null): void {
    const { rows, indexes } = this.tableOf(resource);
    const before = rows.get(id) ?? null;
    for (const { fields, ids } of indexes.values()) {
      if (before) ids.get(valuesKey(before, fields))?.delete(id);
      if (after) addTo(ids, valuesKey(after, fields), id);
    }
    if (after) rows.set(id, after);
    else rows.delete(id);
    for (const listener of this.listeners) listener({ resource, id, before, after });
  }

  private indexOf(resource: ResourceName, fields: readonly string[]): Index {
    const { rows, indexes } = this.tableOf(resource);
    const key = fields.join('|');
    const known = indexes.get(key);
    if (known) return known;
    const index: Index = { fields, ids: new Map() };
    for (const row of rows.values()) addTo(index.ids, valuesKey(row, fields), row.id);
    indexes.set(key, index);
    return index;
  }

  private tableOf(resource: ResourceName): Table {
    const known = this.tables.get(resource);
    if (known) return known;
    const table = { rows: new Map(), indexes: new Map(), loadedIds: new Set<string>() };
    this.tables.set(resource, table);
    return table;
  }

  private rowsOf(resource: ResourceName): Map<string, Row> {
    return this.tableOf(resource).rows;
  }
}

export const tagGroup = (tag: string): string => `tag:${tag}`;
export const customFieldGroup = (resource: string, name: string): string =>
  `field:${resource}/${name}`;
export const vrfGroup = (vrf: string): string => `vrf:${vrf}`;

/** The groups by which rules find changed records: tags, custom fields with a value, the VRF. */
function groupsOf(resource: ResourceName, row: Row): string[] {
  const { tags, customFields } = row;
  const hasSpace = resource === 'prefixes' || resource === 'ip-addresses';
  return [
    ...(Array.isArray(tags) ? tags.map((tag) => tagGroup(String(tag))) : []),
    ...Object.keys(customFields ?? {}).map((name) => customFieldGroup(resource, name)),
    ...(hasSpace ? [vrfGroup(vrfKeyOf(row))] : []),
  ];
}

const valuesKey = (row: Row, fields: readonly string[]): string =>
  JSON.stringify(fields.map((field) => COMPUTED_FIELDS[field]?.(row) ?? row[field] ?? null));

function addTo(index: Map<string, Set<string>>, key: string, id: string): void {
  const ids = index.get(key);
  if (ids) ids.add(id);
  else index.set(key, new Set([id]));
}
