import { byNetwork, networkOf } from './networks.ts';
import type { SpacePrefix, TreePage } from './spaceQueries.ts';

/** A row of the tree of an address space. */
export type SpaceRow =
  | { kind: 'prefix'; key: string; prefix: SpacePrefix; children: SpaceRow[] | undefined }
  | { kind: 'free'; key: string; cidr: string }
  /** Asks for more of what is in the prefix `of`; `cursor` is where that starts. */
  | { kind: 'more'; key: string; of: string; cursor: string };

/** What is known of what is directly in a prefix: the pages that were read, in their order. */
export type Known = {
  pages: readonly { cursor: string | null; page: TreePage | undefined }[];
  /** Prefixes that are shown whether their page was read or not. */
  pinned: readonly SpacePrefix[];
};

/** The key of a prefix in a tree; others than the user's may have the same network. */
export const prefixKey = ({ id, cidr }: Pick<SpacePrefix, 'id' | 'cidr'>): string =>
  id ?? `other ${cidr}`;

type Sorted = { row: SpaceRow; network: string };

function sortRows(rows: readonly Sorted[]): SpaceRow[] {
  const parsed = rows.map(({ row, network }) => ({ row, block: networkOf(network) }));
  return parsed
    .sort((one, other) => (one.block && other.block ? byNetwork(one.block, other.block) : 0))
    .map(({ row }) => row);
}

/** The pages that follow each other: a change may have moved the start of those after it. */
function chained({ pages }: Known): { read: TreePage[]; next: string | null } {
  const read: TreePage[] = [];
  let next: string | null = null;
  for (const { cursor, page } of pages) {
    if (!page || cursor !== next) break;
    read.push(page);
    next = page.nextCursor;
    if (next === null) break;
  }
  return { read, next };
}

/**
 * The rows of what is directly in a prefix: its children and the free networks between them, and then
 * what is pinned beyond the pages that were read. Undefined until the first page is read.
 */
export function rowsIn(
  id: string,
  known: Known,
  rowOf: (prefix: SpacePrefix) => SpaceRow,
): SpaceRow[] | undefined {
  const { read, next } = chained(known);
  if (read.length === 0) return undefined;
  const children = read.flatMap((page) => page.children);
  const listed = new Set(children.map((child) => child.id));
  const rows = sortRows([
    ...children.map((child) => ({ row: rowOf(child), network: child.cidr })),
    ...read.flatMap(({ free }) =>
      free.map((cidr): Sorted => ({
        row: { kind: 'free', key: `free ${id} ${cidr}`, cidr },
        network: cidr,
      })),
    ),
  ]);
  if (next === null) return rows;
  const pinned = known.pinned.filter((prefix) => !listed.has(prefix.id));
  return [...rows, { kind: 'more', key: `more ${id}`, of: id, cursor: next }, ...pinned.map(rowOf)];
}
