import { contains, formatBlock, formatHost, gapsIn, type Block, type Span } from '../cidr.ts';
import { asReferrer } from '../ownership.ts';
import type { Draft } from '../planning.ts';
import type { Referrer } from '../planSnapshot.ts';
import { isIn, type Space } from '../spaces.ts';

const byFirst = (one: Block, other: Block): number =>
  one.first < other.first ? -1 : one.first > other.first ? 1 : one.length - other.length;

/** The networks that are in no other one of the list, in order. */
function outermost(blocks: readonly Block[]): Block[] {
  const found: Block[] = [];
  for (const block of [...blocks].sort(byFirst)) {
    const previous = found.at(-1);
    if (!previous || !contains(previous, block)) found.push(block);
  }
  return found;
}

/** True when one of these networks, which are in order and do not overlap, contains a span. */
function isCovered(span: Span, covers: readonly Block[]): boolean {
  let [low, high] = [0, covers.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((covers[middle]?.first ?? 0n) <= span.first) low = middle + 1;
    else high = middle;
  }
  const cover = covers[low - 1];
  return cover !== undefined && contains(cover, span);
}

/** The id of the fact `contents`. A range in no cover is in a gap or crosses a border. */
function factId({ vrf, tenantId }: Space, block: Block, covers: readonly Block[]): string {
  const text = (first: bigint, last: bigint) => [
    formatHost(block.family, first),
    formatHost(block.family, last),
  ];
  const gaps = gapsIn(block, covers).map(({ first, last }) => text(first, last));
  const borders = covers.flatMap(({ last }, i) =>
    covers[i + 1]?.first === last + 1n ? [text(last, last + 1n)] : [],
  );
  return JSON.stringify([vrf, tenantId, formatBlock(block), gaps, borders]);
}

/**
 * The first addresses and ranges of a space in a network and in none of `inner`, with the planned
 * changes.
 * `inner` has the prefixes inside the network, as planned.
 */
export function contentsOf(
  { snapshot, spans }: Draft,
  space: Space,
  block: Block,
  inner: readonly Block[],
): Referrer[] {
  const covers = outermost(inner);
  const planned = spans
    .changedIn(space.vrf, block)
    .filter(
      ({ row, span }) => isIn(space, row) && contains(block, span) && !isCovered(span, covers),
    )
    .map(asReferrer);
  if (snapshot.isNewRecord(space.vrf)) return planned;
  return snapshot.referrersOf('contents', factId(space, block, covers), planned);
}
