import type { Span } from './cidr.ts';
import type { Row } from './resource.ts';

/** New entries are sorted together from this number on; fewer are put in their positions. */
const MANY = 16;

/** Entries of records in the order of their first addresses. */
export class SortedEntries<E extends { row: Row }> {
  private entries: E[] = [];
  /** Entries that are not in their positions yet: many records may be added between two searches. */
  private added: E[] = [];
  private readonly firstOf: (entry: E) => bigint;

  constructor(spanOf: (entry: E) => Span) {
    this.firstOf = (entry) => spanOf(entry).first;
  }

  insert(entry: E): void {
    this.added.push(entry);
  }

  remove(removed: E): void {
    this.sortAdded();
    const first = this.firstOf(removed);
    for (let at = this.positionOf(first); at < this.entries.length; at++) {
      const entry = this.entries[at];
      if (!entry || this.firstOf(entry) > first) return;
      if (entry.row.id !== removed.row.id) continue;
      this.entries.splice(at, 1);
      return;
    }
  }

  /** The entries that start in a span. Among entries with the same first address, the last added comes first. */
  startingIn({ first, last }: Span): E[] {
    this.sortAdded();
    const found: E[] = [];
    for (let at = this.positionOf(first); at < this.entries.length; at++) {
      const entry = this.entries[at];
      if (!entry || this.firstOf(entry) > last) break;
      found.push(entry);
    }
    return found;
  }

  private sortAdded(): void {
    const { added } = this;
    if (added.length === 0) return;
    this.added = [];
    if (added.length < MANY) {
      for (const entry of added)
        this.entries.splice(this.positionOf(this.firstOf(entry)), 0, entry);
      return;
    }
    const byFirst = (a: E, b: E) => {
      const [one, other] = [this.firstOf(a), this.firstOf(b)];
      return one < other ? -1 : one > other ? 1 : 0;
    };
    this.entries = added.reverse().concat(this.entries).sort(byFirst);
  }

  /** The position of the first entry that starts at or after an address. */
  private positionOf(first: bigint): number {
    let [low, high] = [0, this.entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const entry = this.entries[middle];
      if (entry && this.firstOf(entry) < first) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
