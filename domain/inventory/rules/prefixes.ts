import { contains, formatBlock, sizeOfLength, type Block } from '../cidr.ts';
import type { Draft, Rules } from '../planning.ts';
import type { Row } from '../resource.ts';
import { blockOf, type Placed } from '../prefixTree.ts';
import { Unwritten, vrfKeyOf, type User } from '../planSnapshot.ts';

/** A prefix is called full from here on, in percent. */
const FULL_PERCENT = 80n;

export const isUniqueIn = ({ world }: Draft, row: Row): boolean =>
  typeof row.vrfId !== 'string' || world.get('vrfs', row.vrfId)?.enforceUnique !== false;

/** Warns when `more` addresses make a prefix fuller than `FULL_PERCENT`. */
export function warnWhenFull(draft: Draft, { row, block }: Placed, more: bigint): void {
  const size = sizeOfLength(block.family, block.length);
  const used = draft.space.used(row) + more;
  if (used * 100n > size * FULL_PERCENT) {
    draft.warn(
      'parent_full',
      `${formatBlock(block)} will be ${(used * 100n) / size} % full`,
      undefined,
      { resource: 'prefixes', row },
    );
  }
}

/** Addresses and ranges of `block` that no network inside it has, leaving out those in `but`. */
function lyingIn(draft: Draft, vrf: string, block: Block, but: Block | null): User[] {
  return draft.world.factNow(
    'direct',
    JSON.stringify([vrf, formatBlock(block), but && formatBlock(but)]),
  );
}

/** What is around a prefix when it is gone. */
const stepParent = ({ space, before }: Draft): Placed | undefined =>
  before
    ? space.closest(vrfKeyOf(before), blockOf(before), { orEqual: true, but: before.id })[0]
    : undefined;

function write(draft: Draft): void {
  const { before, after, space } = draft;
  if (!draft.sound('cidr', 'vrfId')) return;
  const [vrf, block] = [vrfKeyOf(after), blockOf(after)];
  const moved = draft.changes('cidr', 'vrfId');
  const around = space.closest(vrf, block, { but: after.id });
  if (moved) checkUnique(draft, vrf, block);
  const parent = checkParent(draft, around, block);
  if (draft.sound('parentPrefixId')) after.parentPrefixId = parent?.row.id ?? null;
  const absorbed = moved ? [...adopt(draft, vrf, block, around), ...leave(draft, vrf, block)] : [];
  if (moved && before) checkOrphans(draft, vrfKeyOf(before) === vrf ? block : null);
  warnOfContents(draft, vrf, block, absorbed);
  if (moved) countSpace(draft, block, parent, absorbed);
}

function checkUnique(draft: Draft, vrf: string, block: Block): void {
  const twin = draft.space.equal(vrf, block).find(({ row }) => row.id !== draft.after.id);
  if (twin && isUniqueIn(draft, draft.after)) {
    draft.conflict(
      'duplicate',
      `${formatBlock(block)} is there already`,
      { resource: 'prefixes', row: twin.row },
      'cidr',
    );
  }
}

/** The closest network around; an error or a conflict when another parent was asked for. */
function checkParent(draft: Draft, around: readonly Placed[], block: Block): Placed | undefined {
  const { before, after, world } = draft;
  const kept = around.find(({ row }) => row.id === before?.parentPrefixId) ?? around[0];
  const asked =
    draft.given('parentPrefixId') && draft.sound('parentPrefixId')
      ? (after.parentPrefixId as string | null)
      : null;
  if (asked === null) return kept;
  if (asked === after.id) {
    draft.error('parentPrefixId', 'parent_self', 'must not be the prefix itself');
    return kept;
  }
  const row = world.get('prefixes', asked);
  if (!row) return kept;
  const wanted = { row, block: blockOf(row) };
  if (wanted.block.family !== block.family)
    draft.error('parentPrefixId', 'parent_family', 'is a prefix of the other address family');
  else if (vrfKeyOf(row) !== vrfKeyOf(after))
    draft.error('parentPrefixId', 'parent_vrf', 'is a prefix of another VRF');
  else if (!contains(wanted.block, block) || wanted.block.length === block.length) {
    if (before && contains(blockOf(before), wanted.block))
      draft.error('parentPrefixId', 'cycle', 'is inside the prefix itself');
    else
      draft.error(
        'parentPrefixId',
        'not_inside_parent',
        `${formatBlock(block)} is not strictly inside ${formatBlock(wanted.block)}`,
      );
  } else if (kept && kept.block.length > wanted.block.length) {
    draft.conflict(
      'closer_parent',
      `${formatBlock(kept.block)} is closer around ${formatBlock(block)}`,
      { resource: 'prefixes', row: kept.row },
      'parentPrefixId',
    );
  } else return around.find((placed) => placed.row.id === asked) ?? kept;
  return kept;
}

/** The networks that come to lie inside: they get this one as their parent. */
function adopt(draft: Draft, vrf: string, block: Block, around: readonly Placed[]): Placed[] {
  const { after, space } = draft;
  const twins = space.equal(vrf, block).some(({ row }) => row.id !== after.id);
  // Where the network is there already, it keeps what is inside it.
  const inside = twins
    ? []
    : space.within(vrf, block, around).filter(({ row }) => row.id !== after.id);
  for (const { row } of inside)
    draft.also('prefixes', row, { parentPrefixId: after.id }, 'reparented');
  if (inside.length > 0)
    draft.warn(
      'contains_siblings',
      `${inside.length} prefixes inside it get it as their parent`,
      'cidr',
    );
  return inside;
}

/** The networks that a prefix leaves behind, or takes along where they are still inside. */
function leave(draft: Draft, vrf: string, block: Block): Placed[] {
  const { before, after } = draft;
  if (!before) return [];
  const step = stepParent(draft);
  const sameVrf = vrfKeyOf(before) === vrf;
  const kept: Placed[] = [];
  for (const child of draft.space.children(before)) {
    const inside = sameVrf && child.block.length > block.length && contains(block, child.block);
    if (inside && (step?.block.length ?? 0) <= block.length) kept.push(child);
    else draft.also('prefixes', child.row, { parentPrefixId: step?.row.id ?? null }, 'reparented');
  }
  // A child that became the parent is in the chain above, no longer below.
  return kept.filter(({ row }) => row.id !== after.parentPrefixId);
}

function checkOrphans(draft: Draft, stillIn: Block | null): void {
  const { before } = draft;
  if (!before || stepParent(draft)) return;
  const block = blockOf(before);
  if (stillIn && contains(stillIn, block)) return;
  if (draft.space.children(before).some(({ row }) => draft.world.isNew('prefixes', row.id)))
    throw new Unwritten();
  for (const { resource, id, label, row } of lyingIn(draft, vrfKeyOf(before), block, stillIn)) {
    draft.conflict('orphan', `${label} would be in no prefix any more`, {
      resource,
      row: row ?? { id, version: 0 },
    });
  }
}

function warnOfContents(
  draft: Draft,
  vrf: string,
  block: Block,
  absorbed: readonly Placed[],
): void {
  const { after, world } = draft;
  if (!draft.changes('cidr', 'vrfId', 'status', 'allocationMode')) return;
  if (after.status !== 'container' && after.allocationMode !== 'dynamic') return;
  if (absorbed.some(({ row }) => world.isNew('prefixes', row.id))) throw new Unwritten();
  if (lyingIn(draft, vrf, block, null).length === 0) return;
  if (after.status === 'container')
    draft.warn('container_with_addresses', 'a container has addresses of its own', 'status');
  if (after.allocationMode === 'dynamic')
    draft.warn(
      'dynamic_with_addresses',
      'addresses that were given by hand are in a dynamic prefix',
      'allocationMode',
    );
}

function countSpace(
  draft: Draft,
  block: Block,
  parent: Placed | undefined,
  absorbed: readonly Placed[],
): void {
  const { before, after, space } = draft;
  const size = sizeOfLength(block.family, block.length);
  const inner = absorbed.reduce(
    (sum, { block: { family, length } }) => sum + sizeOfLength(family, length),
    0n,
  );
  const siblings = absorbed
    .filter(({ row }) => row.parentPrefixId === parent?.row.id)
    .reduce((sum, { block: { family, length } }) => sum + sizeOfLength(family, length), 0n);
  if (parent) warnWhenFull(draft, parent, size - siblings);
  draft.accepted(() => {
    if (parent) space.take(parent.row.id, size - siblings);
    if (!before) space.take(after.id, inner);
  });
}

function remove(draft: Draft): void {
  const { before, space } = draft;
  if (!before) return;
  const step = stepParent(draft);
  for (const { row } of space.children(before))
    draft.also('prefixes', row, { parentPrefixId: step?.row.id ?? null }, 'reparented');
  checkOrphans(draft, null);
}

/** Prefixes form one tree in each VRF: each lies in the smallest that contains it. */
export const prefixRules: Rules = { write, remove };
