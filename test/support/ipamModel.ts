/**
 * Address space as simply as it can be said: lists, and a look at everything each time. Blocks are at most 256
 * addresses here, so that it can count them one by one.
 */
export type Span = { family: 4 | 6; first: bigint; last: bigint };
export type ModelPrefix = Span & { id: string; vrf: string; length: number; mode: string };
export type ModelRange = Span & { id: string; vrf: string };
export type ModelAddress = Span & { id: string; vrf: string; shared: boolean };

const within = (outer: Span, inner: Span) =>
  outer.family === inner.family && outer.first <= inner.first && inner.last <= outer.last;
const strictly = (outer: ModelPrefix, inner: Span & { length: number }) =>
  within(outer, inner) && outer.length < inner.length;
const meet = (a: Span, b: Span) => a.family === b.family && a.first <= b.last && b.first <= a.last;
const equal = (a: Span, b: Span) =>
  a.family === b.family && a.first === b.first && a.last === b.last;

/** Codes of errors when there are any, else those of conflicts. */
export type Verdict = { errors: string[]; conflicts: string[] };

export class IpamModel {
  prefixes: ModelPrefix[] = [];
  ranges: ModelRange[] = [];
  addresses: ModelAddress[] = [];
  private readonly lax: (vrf: string) => boolean;

  constructor(lax: (vrf: string) => boolean) {
    this.lax = lax;
  }

  /** The smallest prefix that contains a span strictly; of a span without a length, the smallest that contains it. */
  closest(vrf: string, span: Span & { length?: number }, but?: string): ModelPrefix | undefined {
    const around = this.prefixes.filter(
      (p) =>
        p.vrf === vrf &&
        p.id !== but &&
        (span.length === undefined
          ? within(p, span)
          : strictly(p, { ...span, length: span.length })),
    );
    return around.sort((a, b) => b.length - a.length)[0];
  }

  prefix(wanted: ModelPrefix, asked: string | null): Verdict {
    const before = this.prefixes.find(({ id }) => id === wanted.id);
    const [errors, conflicts]: [string[], string[]] = [[], []];
    const moved = before?.vrf !== wanted.vrf || !equal(before, wanted);
    if (
      moved &&
      !this.lax(wanted.vrf) &&
      this.prefixes.some((p) => p.id !== wanted.id && p.vrf === wanted.vrf && equal(p, wanted))
    )
      conflicts.push('duplicate');
    const closest = this.closest(wanted.vrf, wanted, wanted.id);
    const parent = this.prefixes.find(({ id }) => id === asked);
    if (asked !== null && asked === wanted.id) errors.push('parent_self');
    else if (parent) {
      if (parent.family !== wanted.family) errors.push('parent_family');
      else if (parent.vrf !== wanted.vrf) errors.push('parent_vrf');
      else if (!strictly(parent, wanted))
        errors.push(before && within(before, parent) ? 'cycle' : 'not_inside_parent');
      else if (closest && closest.length > parent.length) conflicts.push('closer_parent');
    }
    if (moved && before && this.orphans(before, wanted)) conflicts.push('orphan');
    return { errors, conflicts };
  }

  /** True when something in `before` would be in no prefix when it is gone, or is `after`. */
  orphans(before: ModelPrefix, after: ModelPrefix | null): boolean {
    const left = [...this.prefixes.filter(({ id }) => id !== before.id), ...(after ? [after] : [])];
    return [...this.addresses, ...this.ranges].some(
      (x) =>
        x.vrf === before.vrf &&
        within(before, x) &&
        !left.some((p) => p.vrf === x.vrf && within(p, x)),
    );
  }

  range(wanted: ModelRange): Verdict {
    if (wanted.last < wanted.first) return { errors: ['range_reversed'], conflicts: [] };
    const others = this.ranges.filter(
      (r) => r.id !== wanted.id && r.vrf === wanted.vrf && meet(r, wanted),
    );
    const conflicts = others.flatMap((r) =>
      equal(r, wanted)
        ? ['duplicate']
        : within(r, wanted) || within(wanted, r)
          ? []
          : ['range_overlap'],
    );
    return { errors: [], conflicts };
  }

  address(wanted: ModelAddress): Verdict {
    const before = this.addresses.find(({ id }) => id === wanted.id);
    const moved =
      before?.vrf !== wanted.vrf ||
      before.first !== wanted.first ||
      before.family !== wanted.family;
    const [errors, conflicts]: [string[], string[]] = [[], []];
    const twins = this.addresses.filter(
      (a) => a.id !== wanted.id && a.vrf === wanted.vrf && equal(a, wanted),
    );
    if (
      (moved || before.shared !== wanted.shared) &&
      !this.lax(wanted.vrf) &&
      twins.some((a) => !a.shared || !wanted.shared)
    )
      conflicts.push('duplicate');
    if (!moved) return { errors, conflicts };
    const around = this.closest(wanted.vrf, {
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

  /** How many addresses of a prefix are in a smaller prefix, in a range or taken, counted one by one. */
  used(prefix: ModelPrefix): bigint {
    const inside = [
      ...this.prefixes.filter((p) => strictly(prefix, p)),
      ...this.ranges,
      ...this.addresses,
    ].filter((x) => x.vrf === prefix.vrf && meet(prefix, x));
    let used = 0n;
    for (let at = prefix.first; at <= prefix.last; at++)
      if (inside.some((x) => x.first <= at && at <= x.last)) used++;
    return used;
  }

  hasTwin = (prefix: ModelPrefix): boolean =>
    this.prefixes.some((p) => p.id !== prefix.id && p.vrf === prefix.vrf && equal(p, prefix));
}
