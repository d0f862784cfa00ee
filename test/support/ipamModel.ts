/**
 * A simple model of the address space: lists that are searched completely. Blocks have at most 256
 * addresses, so that they can be counted one by one.
 */
export type Span = { family: 4 | 6; first: bigint; last: bigint };
export type ModelPrefix = Span & { id: string; vrf: string; length: number; mode: string };
export type ModelRange = Span & { id: string; vrf: string };
export type ModelAddress = Span & { id: string; vrf: string; shared: boolean };

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
  private readonly allowsDuplicates: (vrf: string) => boolean;

  constructor(allowsDuplicates: (vrf: string) => boolean) {
    this.allowsDuplicates = allowsDuplicates;
  }

  /** The smallest prefix that contains a network strictly, or a span without a length. */
  smallestContaining(
    vrf: string,
    span: Span & { length?: number },
    exclude?: string,
  ): ModelPrefix | undefined {
    const around = this.prefixes.filter(
      (p) =>
        p.vrf === vrf &&
        p.id !== exclude &&
        (span.length === undefined
          ? contains(p, span)
          : containsStrictly(p, { ...span, length: span.length })),
    );
    return around.sort((a, b) => b.length - a.length)[0];
  }

  prefix(wanted: ModelPrefix, asked: string | null): ExpectedFindings {
    const before = this.prefixes.find(({ id }) => id === wanted.id);
    const [errors, conflicts]: [string[], string[]] = [[], []];
    const moved = before?.vrf !== wanted.vrf || !equal(before, wanted);
    if (
      moved &&
      !this.allowsDuplicates(wanted.vrf) &&
      this.prefixes.some((p) => p.id !== wanted.id && p.vrf === wanted.vrf && equal(p, wanted))
    )
      conflicts.push('duplicate');
    const closest = this.smallestContaining(wanted.vrf, wanted, wanted.id);
    const parent = this.prefixes.find(({ id }) => id === asked);
    if (asked !== null && asked === wanted.id) errors.push('parent_self');
    else if (parent) {
      if (parent.family !== wanted.family) errors.push('parent_family');
      else if (parent.vrf !== wanted.vrf) errors.push('parent_vrf');
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
        x.vrf === before.vrf &&
        contains(before, x) &&
        !left.some((p) => p.vrf === x.vrf && contains(p, x)),
    );
  }

  range(wanted: ModelRange): ExpectedFindings {
    if (wanted.last < wanted.first) return { errors: ['range_reversed'], conflicts: [] };
    const others = this.ranges.filter(
      (r) => r.id !== wanted.id && r.vrf === wanted.vrf && overlap(r, wanted),
    );
    const conflicts = others.flatMap((r) =>
      equal(r, wanted)
        ? ['duplicate']
        : contains(r, wanted) || contains(wanted, r)
          ? []
          : ['range_overlap'],
    );
    return { errors: [], conflicts };
  }

  address(wanted: ModelAddress): ExpectedFindings {
    const before = this.addresses.find(({ id }) => id === wanted.id);
    const moved =
      before?.vrf !== wanted.vrf ||
      before.first !== wanted.first ||
      before.family !== wanted.family;
    const [errors, conflicts]: [string[], string[]] = [[], []];
    const duplicates = this.addresses.filter(
      (a) => a.id !== wanted.id && a.vrf === wanted.vrf && equal(a, wanted),
    );
    if (
      (moved || before.shared !== wanted.shared) &&
      !this.allowsDuplicates(wanted.vrf) &&
      duplicates.some((a) => !a.shared || !wanted.shared)
    )
      conflicts.push('duplicate');
    if (!moved) return { errors, conflicts };
    const around = this.smallestContaining(wanted.vrf, {
      family: wanted.family,
      first: wanted.first,
      last: wanted.last,
    });
    if (
      around?.family === 4 &&
      around.length < 31 &&
      (wanted.first === around.first || wanted.first === around.last)
    )
      errors.push('reserved_address');
    if (around?.mode === 'dynamic') conflicts.push('dynamic_prefix');
    return { errors, conflicts };
  }

  /** Counts the addresses of a prefix that are in a smaller prefix, in a range or a record. */
  used(prefix: ModelPrefix): bigint {
    const inside = [
      ...this.prefixes.filter((p) => containsStrictly(prefix, p)),
      ...this.ranges,
      ...this.addresses,
    ].filter((x) => x.vrf === prefix.vrf && overlap(prefix, x));
    let used = 0n;
    for (let at = prefix.first; at <= prefix.last; at++)
      if (inside.some((x) => x.first <= at && at <= x.last)) used++;
    return used;
  }

  hasDuplicate = (prefix: ModelPrefix): boolean =>
    this.prefixes.some((p) => p.id !== prefix.id && p.vrf === prefix.vrf && equal(p, prefix));
}
