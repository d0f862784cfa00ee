import { contains, formatBlock, sizeOfLength, type Block } from '../cidr.ts';
import type { Draft, Rules } from '../planning.ts';
import type { Row } from '../resource.ts';
import { blockOf, type PrefixNode } from '../prefixTree.ts';
import { vrfKeyOf } from '../planSnapshot.ts';
import { contentsOf } from './contents.ts';

/** The usage above which a prefix counts as full, in percent. */
const FULL_PERCENT = 80n;

/** The number of children between which a prefix is searched for addresses, for a warning. */
const MAX_SEARCHED_CHILDREN = 10_000;

/** True when the VRF of a record allows each network and address once; so does the global table. */
export const enforcesUniqueness = ({ snapshot }: Draft, row: Row): boolean =>
  typeof row.vrfId !== 'string' || snapshot.get('vrfs', row.vrfId)?.enforceUnique !== false;

/** Warns when `added` addresses raise the usage of a prefix above `FULL_PERCENT`. */
export function warnWhenFull(draft: Draft, { row, block }: PrefixNode, added: bigint): void {
  const size = sizeOfLength(block.family, block.length);
  const used = draft.prefixTree.used(row) + added;
  if (used * 100n > size * FULL_PERCENT) {
    draft.warn(
      'parent_full',
      `${formatBlock(block)} will be ${(used * 100n) / size} % full`,
      undefined,
      { resource: 'prefixes', row },
    );
  }
}

/** The smallest prefix that contains the present network of a prefix, other than itself. */
const interimParent = ({ prefixTree, before }: Draft): PrefixNode | undefined =>
  before
    ? prefixTree.smallestContaining(vrfKeyOf(before), blockOf(before), {
        orEqual: true,
        exclude: before.id,
      })[0]
    : undefined;

function write(draft: Draft): void {
  const { before, after, prefixTree } = draft;
  if (!draft.isValid('cidr', 'vrfId')) return;
  const vrf = vrfKeyOf(after);
  const block = blockOf(after);
  const moved = draft.hasChanged('cidr', 'vrfId');
  const parents = prefixTree.smallestContaining(vrf, block, { exclude: after.id });
  if (moved) checkUnique(draft, vrf, block);
  const parent = checkParent(draft, parents, block);
  if (draft.isValid('parentPrefixId')) after.parentPrefixId = parent?.row.id ?? null;
  const absorbed = moved
    ? [...adoptChildren(draft, vrf, block, parents), ...releaseChildren(draft, vrf, block)]
    : [];
  if (moved && before) checkOrphans(draft, vrfKeyOf(before) === vrf ? block : null);
  warnOfContents(draft, vrf, block, moved ? absorbed : null);
  if (moved) updateUsage(draft, block, parent, absorbed);
}

function checkUnique(draft: Draft, vrf: string, block: Block): void {
  const duplicate = draft.prefixTree
    .equalTo(vrf, block)
    .find(({ row }) => row.id !== draft.after.id);
  if (duplicate && enforcesUniqueness(draft, draft.after)) {
    draft.conflict(
      'duplicate',
      `${formatBlock(block)} exists`,
      { resource: 'prefixes', row: duplicate.row },
      'cidr',
    );
  }
}

/**
 * The parent of a network: the smallest of `parents`, or an equal one that the request names. Adds
 * an error or a conflict when the request names any other prefix.
 */
function checkParent(
  draft: Draft,
  parents: readonly PrefixNode[],
  block: Block,
): PrefixNode | undefined {
  const { before, after, snapshot } = draft;
  const current = parents.find(({ row }) => row.id === before?.parentPrefixId) ?? parents[0];
  if (!draft.isProvided('parentPrefixId') || !draft.isValid('parentPrefixId')) return current;
  const requestedId = after.parentPrefixId as string | null;
  if (requestedId === null) return current;
  if (requestedId === after.id) {
    draft.error('parentPrefixId', 'parent_self', 'must not be the prefix itself');
    return current;
  }
  const row = snapshot.get('prefixes', requestedId);
  if (!row) return current;
  const requested = { row, block: blockOf(row) };
  const error = parentError(draft, requested, block);
  if (error) {
    draft.error('parentPrefixId', ...error);
    return current;
  }
  if (current && current.block.length > requested.block.length) {
    const message = `${formatBlock(current.block)} is a more specific parent`;
    const other = { resource: 'prefixes', row: current.row };
    draft.conflict('more_specific_parent', message, other, 'parentPrefixId');
    return current;
  }
  return parents.find((node) => node.row.id === requestedId) ?? current;
}

/** Why a requested prefix cannot contain a network, as code and message. */
function parentError(
  { before, after }: Draft,
  requested: PrefixNode,
  block: Block,
): [code: string, message: string] | undefined {
  if (requested.block.family !== block.family)
    return ['parent_family', 'is a prefix of the other address family'];
  if (vrfKeyOf(requested.row) !== vrfKeyOf(after))
    return ['parent_vrf', 'is a prefix of another VRF'];
  if (contains(requested.block, block) && requested.block.length < block.length) return undefined;
  if (before && contains(blockOf(before), requested.block))
    return ['cycle', 'is inside the prefix itself'];
  const message = `${formatBlock(block)} is not strictly inside ${formatBlock(requested.block)}`;
  return ['not_inside_parent', message];
}

/** Makes the prefixes inside a network children of this prefix. Returns them. */
function adoptChildren(
  draft: Draft,
  vrf: string,
  block: Block,
  parents: readonly PrefixNode[],
): PrefixNode[] {
  const { after, prefixTree } = draft;
  const hasDuplicate = prefixTree.equalTo(vrf, block).some(({ row }) => row.id !== after.id);
  // An existing prefix with the same network keeps its children.
  const inside = hasDuplicate
    ? []
    : prefixTree.outermostInside(vrf, block, parents).filter(({ row }) => row.id !== after.id);
  for (const { row } of inside)
    draft.cascadeUpdate('prefixes', row, { parentPrefixId: after.id }, 'reparented');
  if (inside.length > 0)
    draft.warn(
      'contains_siblings',
      `${inside.length} prefixes inside it become its children`,
      'cidr',
    );
  return inside;
}

/** Moves children that are outside the new network to another parent. Returns the remaining. */
function releaseChildren(draft: Draft, vrf: string, block: Block): PrefixNode[] {
  const { before, after } = draft;
  if (!before) return [];
  const interim = interimParent(draft);
  const sameVrf = vrfKeyOf(before) === vrf;
  const kept: PrefixNode[] = [];
  for (const child of draft.prefixTree.children(before)) {
    const inside = sameVrf && child.block.length > block.length && contains(block, child.block);
    if (inside && (interim?.block.length ?? 0) <= block.length) kept.push(child);
    else
      draft.cascadeUpdate(
        'prefixes',
        child.row,
        { parentPrefixId: interim?.row.id ?? null },
        'reparented',
      );
  }
  // A former child can be the new parent.
  return kept.filter(({ row }) => row.id !== after.parentPrefixId);
}

/** Adds a conflict for each address and range that would be in no prefix after the change. */
function checkOrphans(draft: Draft, stillCovered: Block | null): void {
  const { before } = draft;
  if (!before || interimParent(draft)) return;
  const block = blockOf(before);
  if (stillCovered && contains(stillCovered, block)) return;
  const inner = draft.prefixTree.children(before).map((child) => child.block);
  if (stillCovered) inner.push(stillCovered);
  for (const each of contentsOf(draft, vrfKeyOf(before), block, inner)) {
    const message = `${each.label} would no longer be in a prefix`;
    draft.conflict('would_orphan_addresses', message, each);
  }
}

/**
 * The prefixes inside a network: those that the prefix gets when it moves there (`absorbed`) or else
 * has, and those of equal prefixes, which keep theirs. Null when there are too many.
 */
function prefixesInside(
  { after, prefixTree }: Draft,
  vrf: string,
  block: Block,
  absorbed: readonly PrefixNode[] | null,
): Block[] | null {
  const holders = prefixTree
    .equalTo(vrf, block)
    .map(({ row }) => row)
    .filter(({ id }) => id !== after.id);
  const inside = [...(absorbed ?? [])];
  for (const row of absorbed ? holders : [after, ...holders]) {
    const children = prefixTree.children(row, MAX_SEARCHED_CHILDREN + 1);
    if (children.length > MAX_SEARCHED_CHILDREN) return null;
    inside.push(...children);
  }
  return inside.map((node) => node.block);
}

/**
 * Warns when a container or a dynamic prefix has addresses outside its children, unless it has very
 * many children.
 */
function warnOfContents(
  draft: Draft,
  vrf: string,
  block: Block,
  absorbed: readonly PrefixNode[] | null,
): void {
  const { after } = draft;
  if (!draft.hasChanged('cidr', 'vrfId', 'status', 'allocationMode')) return;
  if (after.status !== 'container' && after.allocationMode !== 'dynamic') return;
  const inside = prefixesInside(draft, vrf, block, absorbed);
  if (!inside || contentsOf(draft, vrf, block, inside).length === 0) return;
  if (after.status === 'container')
    draft.warn(
      'container_with_addresses',
      'a container has addresses outside its child prefixes',
      'status',
    );
  if (after.allocationMode === 'dynamic')
    draft.warn(
      'dynamic_with_addresses',
      'a dynamic prefix has manually assigned addresses',
      'allocationMode',
    );
}

/** Accounts for the addresses that a prefix uses of its parent, and its children of itself. */
function updateUsage(
  draft: Draft,
  block: Block,
  parent: PrefixNode | undefined,
  absorbed: readonly PrefixNode[],
): void {
  const { before, after, prefixTree } = draft;
  const size = sizeOfLength(block.family, block.length);
  const inner = absorbed.reduce(
    (sum, { block: { family, length } }) => sum + sizeOfLength(family, length),
    0n,
  );
  const siblings = absorbed
    .filter(({ row }) => row.parentPrefixId === parent?.row.id)
    .reduce((sum, { block: { family, length } }) => sum + sizeOfLength(family, length), 0n);
  if (parent) warnWhenFull(draft, parent, size - siblings);
  draft.onAccept(() => {
    if (parent) prefixTree.addUsage(parent.row.id, size - siblings);
    if (!before) prefixTree.addUsage(after.id, inner);
  });
}

function remove(draft: Draft): void {
  const { before, prefixTree } = draft;
  if (!before) return;
  const interim = interimParent(draft);
  for (const { row } of prefixTree.children(before))
    draft.cascadeUpdate('prefixes', row, { parentPrefixId: interim?.row.id ?? null }, 'reparented');
  checkOrphans(draft, null);
}

/** Prefixes form one tree in each VRF: the parent is the smallest prefix that contains it. */
export const prefixRules: Rules = { write, remove };
