import { addressBits, blockAt, enclosingBlock, overlaps, type Block, type Span } from './cidr.ts';
import { SortedEntries } from './sortedEntries.ts';
import { vrfKeyOf, type PlannedChange, type PlanSnapshot } from './planSnapshot.ts';
import { blockOf, spanOf } from './prefixTree.ts';
import type { ResourceName } from './names.ts';
import type { Row } from './resource.ts';

/** An address, a range or a prefix, and the addresses that it has. */
export type SpanEntry = { resource: ResourceName; row: Row; span: Span };

/** Compares entries by first address, last address and id. */
function byAddress(a: SpanEntry, b: SpanEntry): number {
  if (a.span.first !== b.span.first) return a.span.first < b.span.first ? -1 : 1;
  if (a.span.last !== b.span.last) return a.span.last < b.span.last ? -1 : 1;
  return a.row.id < b.row.id ? -1 : 1;
}

const SPACE_RESOURCES: ReadonlySet<string> = new Set(['prefixes', 'ip-addresses', 'ip-ranges']);

const spaceKey = (vrf: string, { family }: Span): string => `${vrf}|${family}`;

const blockKey = (vrf: string, { family, first, length }: Block): string =>
  `${vrf}|${family}|${first.toString(36)}|${length}`;

/** The changed records of each VRF by their addresses, and its ranges as far as loaded. */
export class Spans {
  private readonly known = new Map<string, SpanEntry>();
  /** The changed addresses and ranges. */
  private readonly changed = new Map<string, SortedEntries<SpanEntry>>();
  private readonly changedPrefixes = new Map<string, SortedEntries<SpanEntry>>();
  private readonly ranges = new Map<string, SortedEntries<SpanEntry>>();
  /** Ranges by the smallest network that contains them. */
  private readonly rangesByNetwork = new Map<string, Map<string, SpanEntry>>();
  private readonly snapshot: PlanSnapshot;

  constructor(snapshot: PlanSnapshot) {
    this.snapshot = snapshot;
    snapshot.subscribe((change) => this.applyChange(change));
  }

  /** The changed addresses and ranges that start in a span, as they are after the changes. */
  changedIn(vrf: string, span: Span): SpanEntry[] {
    return this.changed.get(spaceKey(vrf, span))?.startingIn(span) ?? [];
  }

  /** The changed prefixes that start in a span, as they are after the changes. */
  changedPrefixesIn(vrf: string, span: Span): SpanEntry[] {
    return this.changedPrefixes.get(spaceKey(vrf, span))?.startingIn(span) ?? [];
  }

  /** The ranges that overlap a span, in the order of their addresses: what is loaded first depends on the database. */
  overlappingRanges(vrf: string, span: Span): SpanEntry[] {
    const found = new Map<string, SpanEntry>();
    for (let length = addressBits(span.family); length >= 0; length--) {
      const network = blockAt(span.family, span.first, length);
      for (const entry of this.rangesByNetwork.get(blockKey(vrf, network))?.values() ?? [])
        if (overlaps(entry.span, span)) found.set(entry.row.id, entry);
    }
    for (const entry of this.ranges.get(spaceKey(vrf, span))?.startingIn(span) ?? [])
      found.set(entry.row.id, entry);
    return [...found.values()].sort(byAddress);
  }

  private applyChange({ resource, id, after }: PlannedChange): void {
    if (!SPACE_RESOURCES.has(resource)) return;
    const previous = this.known.get(id);
    if (previous) this.remove(previous);
    if (!after) return;
    const isChanged = this.snapshot.isChanged(resource, id);
    // Stored addresses are found by their values, stored prefixes in the tree.
    if (!isChanged && resource !== 'ip-ranges') return;
    const span = resource === 'prefixes' ? blockOf(after) : spanOf(after);
    this.insert({ resource, row: after, span }, isChanged);
  }

  /** Where changed records of a resource are. */
  private changedOf(resource: ResourceName): Map<string, SortedEntries<SpanEntry>> {
    return resource === 'prefixes' ? this.changedPrefixes : this.changed;
  }

  private insert(entry: SpanEntry, isChanged: boolean): void {
    const { resource, row, span } = entry;
    const vrf = vrfKeyOf(row);
    this.known.set(row.id, entry);
    if (isChanged) sortedIn(this.changedOf(resource), spaceKey(vrf, span)).insert(entry);
    if (resource !== 'ip-ranges') return;
    sortedIn(this.ranges, spaceKey(vrf, span)).insert(entry);
    const network = blockKey(vrf, enclosingBlock(span));
    const inNetwork = this.rangesByNetwork.get(network) ?? new Map<string, SpanEntry>();
    this.rangesByNetwork.set(network, inNetwork.set(row.id, entry));
  }

  private remove(entry: SpanEntry): void {
    const { row, span } = entry;
    const vrf = vrfKeyOf(row);
    this.known.delete(row.id);
    this.changedOf(entry.resource).get(spaceKey(vrf, span))?.remove(entry);
    if (entry.resource !== 'ip-ranges') return;
    this.ranges.get(spaceKey(vrf, span))?.remove(entry);
    this.rangesByNetwork.get(blockKey(vrf, enclosingBlock(span)))?.delete(row.id);
  }
}

function sortedIn(
  index: Map<string, SortedEntries<SpanEntry>>,
  key: string,
): SortedEntries<SpanEntry> {
  const known = index.get(key) ?? new SortedEntries<SpanEntry>(({ span }) => span);
  index.set(key, known);
  return known;
}
