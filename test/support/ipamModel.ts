/**
 * A simple model of the address space: lists that are searched completely. Blocks have at most 256
 * addresses, so that they can be counted one by one.
 */
export type Span = { family: 4 | 6; first: bigint; last: bigint };
/** Where a record is: the tenant matters in VRFs that are shared. */
type Position = { vrf: string; tenant: string };
export type ModelPrefix = Span & Position & { id: string; length: number; mode: string };
export type ModelRange = Span & Position & { id: string };
export type ModelAddress = Span & Position & { id: string; shared: boolean };

export type ModelVrf = { allowsDuplicates: boolean; isShared: boolean };
const PLATFORM = 'platform';

const contains = (outer: Span, inner: Span) =>
  outer.family === inner.family && outer.first <= inner.first && inner.last <= outer.last;
const containsStrictly = (outer: ModelPrefix, inner: Span & { length: number }) =>
  contains(outer, inner) && outer.length < inner.length;
const overlap = (a: Span, b: Span) =>
  a.family === b.family && a.first <= b.last && b.first <= a.last;
const equal = (a: Span, b: Span) =>
  a.family === b.family && a.first === b.first && a.last === b.last;

/** Codes of errors when there are any, else those of conflicts. */
export type ExpectedFindings = { errors: string[]; conflicts: string[] };

export class IpamModel {
  prefixes: ModelPrefix[] = [];
  ranges: ModelRange[] = [];
  addresses: ModelAddress[] = [];
  private readonly vrf: (vrf: string) => ModelVrf;

  constructor(vrf: (vrf: string) => ModelVrf) {
    this.vrf = vrf;
  }

  /** True when two records are in the same address space. */
  private isIn = (one: Position, other: Position): boolean =>
    one.vrf === other.vrf && (!this.vrf(one.vrf).isShared || one.tenant === other.tenant);

  /** True when a prefix can be the parent of a record. */
  private isParentOf = (prefix: Position, record: Position): boolean =>
    this.isIn(prefix, record) || (prefix.vrf === record.vrf && prefix.tenant === PLATFORM);

  /** True for a record of a tenant where the platform assigns space. */
  private isTenants = ({ vrf, tenant }: Position): boolean =>
    this.vrf(vrf).isShared && tenant !== PLATFORM;

  /** The prefixes that contain a span as its tenant sees them, the smallest and the own ones first. */
  private around(of: Position, span: Span, exclude?: string): ModelPrefix[] {
    return this.prefixes
      .filter((p) => p.id !== exclude && this.isParentOf(p, of) && contains(p, span))
      .sort((a, b) => b.length - a.length || Number(this.isIn(b, of)) - Number(this.isIn(a, of)));
  }

  /** The smallest prefix that contains a network strictly, or a span without a length. */
  smallestContaining(
    of: Position,
    span: Span & { length?: number },
    exclude?: string,
  ): ModelPrefix | undefined {
    const { length = Infinity } = span;
    return this.around(of, span, exclude).find((p) => p.length < length);
  }

  /** The prefix of the platform that assigns the space of a record, when it takes any. */
  private assignedFrom(
    wanted: Span & Position & { id: string },
    before: (Span & Position) | undefined,
    isRange: boolean,
  ): ModelPrefix | undefined {
    if (!this.isTenants(wanted)) return undefined;
    const ofPlatform = ({ tenant }: Position) => tenant === PLATFORM;
    const [closest] = this.around(wanted, wanted, wanted.id);
    const start = { ...wanted, last: wanted.first };
    const reached = [
      ...this.around(wanted, start, wanted.id),
      ...this.prefixes
        .filter((p) => p.vrf === wanted.vrf && overlap(p, { ...wanted, first: wanted.first }))
        .filter((p) => wanted.first <= p.first)
        .sort((a, b) => Number(a.first - b.first) || a.length - b.length),
    ].find((p) => ofPlatform(p) && !contains(p, wanted));
    const from = closest && ofPlatform(closest) ? closest : isRange ? reached : undefined;
    if (!from || !before || !this.isIn(before, wanted) || !contains(before, wanted)) return from;
    const present = this.around(before, before, wanted.id).find(ofPlatform);
    return present?.id === from.id ? undefined : from;
  }

  /** Whether another tenant already has a part of the space that a record takes. */
  private assigned(wanted: Span & Position, from: ModelPrefix | undefined): string[] {
    const others = this.prefixes.filter(
      (p) =>
        from !== undefined &&
        this.isTenants(p) &&
        p.tenant !== wanted.tenant &&
        this.smallestContaining(p, p, p.id)?.id === from.id,
    );
    return others.some((p) => overlap(p, wanted)) ? ['already_assigned'] : [];
  }

  prefix(wanted: ModelPrefix, asked: string | null): ExpectedFindings {
    const before = this.prefixes.find(({ id }) => id === wanted.id);
    const [errors, conflicts]: [string[], string[]] = [[], []];
    const moved = !before || !this.isIn(before, wanted) || !equal(before, wanted);
    const isDuplicate = (p: ModelPrefix) =>
      p.id !== wanted.id &&
      equal(p, wanted) &&
      this.isParentOf(p, wanted) &&
      (!this.isIn(p, wanted) || !this.vrf(wanted.vrf).allowsDuplicates);
    if (moved && this.prefixes.some(isDuplicate)) conflicts.push('duplicate');
    if (moved) conflicts.push(...this.assigned(wanted, this.assignedFrom(wanted, before, false)));
    const closest = this.smallestContaining(wanted, wanted, wanted.id);
    const parent = this.prefixes.find(({ id }) => id === asked);
    if (asked !== null && asked === wanted.id) errors.push('parent_self');
    else if (parent) {
      if (parent.family !== wanted.family) errors.push('parent_family');
      else if (parent.vrf !== wanted.vrf) errors.push('parent_vrf');
      else if (!this.isParentOf(parent, wanted)) errors.push('parent_tenant');
      else if (!containsStrictly(parent, wanted))
        errors.push(before && contains(before, parent) ? 'cycle' : 'not_inside_parent');
      else if (closest && closest.length > parent.length) conflicts.push('more_specific_parent');
    }
    if (moved && before && this.leavesOrphans(before, wanted))
      conflicts.push('would_orphan_addresses');
    return { errors, conflicts };
  }

  /** True when replacing `before` by `after` leaves an address or a range without a prefix. */
  leavesOrphans(before: ModelPrefix, after: ModelPrefix | null): boolean {
    const left = [...this.prefixes.filter(({ id }) => id !== before.id), ...(after ? [after] : [])];
    return [...this.addresses, ...this.ranges].some(
      (x) =>
        this.isIn(before, x) &&
        contains(before, x) &&
        !left.some((p) => this.isParentOf(p, x) && contains(p, x)),
    );
  }

  range(wanted: ModelRange): ExpectedFindings {
    if (wanted.last < wanted.first) return { errors: ['range_reversed'], conflicts: [] };
    const before = this.ranges.find(({ id }) => id === wanted.id);
    const others = this.ranges.filter(
      (r) => r.id !== wanted.id && this.isIn(r, wanted) && overlap(r, wanted),
    );
    const conflicts = others.flatMap((r) =>
      equal(r, wanted)
        ? ['duplicate']
        : contains(r, wanted) || contains(wanted, r)
          ? []
          : ['range_overlap'],
    );
    const from = this.assignedFrom(wanted, before, true);
    return { errors: [], conflicts: [...conflicts, ...this.assigned(wanted, from)] };
  }

  address(wanted: ModelAddress): ExpectedFindings {
    const before = this.addresses.find(({ id }) => id === wanted.id);
    const moved =
      !before ||
      !this.isIn(before, wanted) ||
      before.first !== wanted.first ||
      before.family !== wanted.family;
    const [errors, conflicts]: [string[], string[]] = [[], []];
    const [parent] = this.around(wanted, wanted);
    const isAssigned = this.isTenants(wanted) && parent?.tenant === PLATFORM;
    const duplicates = this.addresses.filter(
      (a) =>
        a.id !== wanted.id &&
        a.vrf === wanted.vrf &&
        (isAssigned || this.isIn(a, wanted)) &&
        equal(a, wanted),
    );
    if (
      (moved || before.shared !== wanted.shared) &&
      !this.vrf(wanted.vrf).allowsDuplicates &&
      duplicates.some((a) => !a.shared || !wanted.shared)
    )
      conflicts.push('duplicate');
    if (!moved) return { errors, conflicts };
    conflicts.push(...this.assigned(wanted, this.assignedFrom(wanted, before, false)));
    const around = parent;
    if (
      around?.family === 4 &&
      around.length < 31 &&
      (wanted.first === around.first || wanted.first === around.last)
    )
      errors.push('reserved_address');
    if (around?.mode === 'dynamic') conflicts.push('dynamic_prefix');
    return { errors, conflicts };
  }

  /** Counts the addresses of a prefix that are not free. */
  used = (prefix: ModelPrefix): bigint =>
    prefix.last - prefix.first + 1n - BigInt(this.free(prefix).length);

  /**
   * The addresses of a prefix that are in no smaller prefix, no range and no record. What all
   * tenants have counts in a prefix of the platform, what the platform assigns in that of a tenant.
   */
  free(prefix: ModelPrefix): bigint[] {
    const counts = (x: Position) =>
      this.isTenants(prefix) ? this.isIn(x, prefix) : x.vrf === prefix.vrf;
    const inside = [
      ...this.prefixes.filter(
        (p) => containsStrictly(prefix, p) && (counts(p) || this.isParentOf(p, prefix)),
      ),
      ...this.ranges.filter(counts),
      ...this.addresses.filter(counts),
    ].filter((x) => overlap(prefix, x));
    const found: bigint[] = [];
    for (let at = prefix.first; at <= prefix.last; at++)
      if (!inside.some((x) => x.first <= at && at <= x.last)) found.push(at);
    return found;
  }

  hasDuplicate = (prefix: ModelPrefix): boolean =>
    this.prefixes.some((p) => p.id !== prefix.id && p.vrf === prefix.vrf && equal(p, prefix));
}
