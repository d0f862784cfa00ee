import { contains, formatBlock, sizeOfLength, type Block, type Span } from '../cidr.ts';
import type { Draft, Rules } from '../planning.ts';
import type { Row } from '../resource.ts';
import { blockOf, type PrefixNode } from '../prefixTree.ts';
import { vrfKeyOf } from '../planSnapshot.ts';
import { isOfPlatform, isParentIn, spaceOf, type Space } from '../spaces.ts';
import { contentsOf } from './contents.ts';
import { checkAssignment, hasMoved, sharedInside, warnOfTenants } from './sharedSpace.ts';
import { counted } from '../../shared/counted.ts';

/** The usage above which a prefix counts as full, in percent. */
const FULL_PERCENT = 80n;

/** The number of children between which a prefix is searched for addresses, for a warning. */
const MAX_SEARCHED_CHILDREN = 10_000;

/** True when the VRF of a record allows each network and address once; so does the global table. */
export const enforcesUniqueness = ({ snapshot }: Draft, row: Row): boolean =>
  typeof row.vrfId !== 'string' || snapshot.get('vrfs', row.vrfId)?.enforceUnique !== false;

/**
 * Warns when `added` addresses, all in `part`, raise the usage of a prefix above `FULL_PERCENT` of what can be
 * used of it: of its network and broadcast address only what is in a child. A container is for children.
 */
export function warnWhenFull(
  draft: Draft,
  { row, block }: PrefixNode,
  part: Span,
  added: bigint,
): void {
  if (!draft.warns) return;
  const { used, reserved } = draft.prefixTree.usageOf(row);
  const isInPart = (value: bigint) => part.first <= value && value <= part.last;
  const unused = reserved - BigInt([block.first, block.last].filter(isInPart).length);
  const usable =
    sizeOfLength(block.family, block.length) -
    (row.status === 'container' || unused < 0n ? 0n : unused);
  const percent = ((used + added) * 100n) / usable;
  if ((used + added) * 100n > usable * FULL_PERCENT) {
    draft.warn(
      'parent_full',
      `${formatBlock(block)} will be ${percent < 100n ? percent : 100n} % full`,
      undefined,
      { resource: 'prefixes', row },
    );
  }
}

/**
 * The smallest prefix that contains the present network of a prefix, other than itself, as the
 * tenant of `child` sees it.
 */
const interimParent = (
  { prefixTree, before, snapshot }: Draft,
  child: Row | null = before,
): PrefixNode | undefined =>
  before && child
    ? prefixTree.smallestContaining(spaceOf(snapshot, child), blockOf(before), {
        orEqual: true,
        exclude: before.id,
      })[0]
    : undefined;

function write(draft: Draft): void {
  const { before, after, prefixTree } = draft;
  if (!draft.isValid('cidr', 'vrfId', 'tenantId')) return;
  const space = spaceOf(draft.snapshot, after);
  const block = blockOf(after);
  const moved = hasMoved(draft, space, 'cidr');
  const parents = prefixTree.smallestContaining(space, block, { exclude: after.id });
  if (moved && !checkAssignment(draft, space, block, 'cidr')) return;
  if (moved) checkUnique(draft, space, block);
  const parent = checkParent(draft, space, parents, block);
  if (draft.isValid('parentPrefixId')) after.parentPrefixId = parent?.row.id ?? null;
  const absorbed = moved
    ? [...adoptChildren(draft, space, block, parents), ...releaseChildren(draft, block)]
    : [];
  if (moved && before) checkOrphans(draft, spaceOf(draft.snapshot, before), block);
  warnOfContents(draft, space, block, moved ? absorbed : null);
  if (moved) updateUsage(draft, block, parent, absorbed);
}

function checkUnique(draft: Draft, space: Space, block: Block): void {
  const { after, prefixTree } = draft;
  const equal = [
    ...(enforcesUniqueness(draft, after) ? prefixTree.equalTo(space, block) : []),
    // What the platform has is assigned as smaller prefixes, so that it remains the parent.
    ...prefixTree.sharedEqualTo(space, block),
  ];
  const duplicate = equal.find(({ row }) => row.id !== after.id);
  if (duplicate)
    draft.conflict(
      'duplicate',
      `${formatBlock(block)} exists`,
      { resource: 'prefixes', row: duplicate.row },
      'cidr',
    );
}

/**
 * The parent of a network: the smallest of `parents`, or an equal one that the request names. Adds
 * an error or a conflict when the request names any other prefix.
 */
function checkParent(
  draft: Draft,
  space: Space,
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
  const error = parentError(draft, space, requested, block);
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
  { before }: Draft,
  space: Space,
  requested: PrefixNode,
  block: Block,
): [code: string, message: string] | undefined {
  if (requested.block.family !== block.family)
    return ['parent_family', 'is a prefix of the other address family'];
  if (vrfKeyOf(requested.row) !== space.vrf) return ['parent_vrf', 'is a prefix of another VRF'];
  if (!isParentIn(space, requested.row))
    return [
      'parent_tenant',
      `is a prefix of another tenant than ${space.tenantId}: each has its own tree here`,
    ];
  if (contains(requested.block, block) && requested.block.length < block.length) return undefined;
  if (before && contains(blockOf(before), requested.block))
    return ['cycle', 'is inside the prefix itself'];
  const message = `${formatBlock(block)} is not strictly inside ${formatBlock(requested.block)}`;
  return ['not_inside_parent', message];
}

/** Makes the prefixes inside a network children of this prefix. Returns them. */
function adoptChildren(
  draft: Draft,
  space: Space,
  block: Block,
  parents: readonly PrefixNode[],
): PrefixNode[] {
  const { after, prefixTree } = draft;
  const hasDuplicate = prefixTree.equalTo(space, block).some(({ row }) => row.id !== after.id);
  // An existing prefix with the same network keeps its children.
  const inside = hasDuplicate
    ? []
    : prefixTree.outermostInside(space, block, parents).filter(({ row }) => row.id !== after.id);
  for (const { row } of inside)
    draft.cascadeUpdate('prefixes', row, { parentPrefixId: after.id }, 'reparented');
  if (inside.length > 0)
    draft.warn(
      'contains_siblings',
      `It becomes the parent of ${counted(inside.length, 'prefix')} inside it`,
      'cidr',
    );
  if (isOfPlatform(space)) warnOfTenants(draft, space, block, inside);
  return inside;
}

/**
 * Moves children to another parent that are outside the new network, or whose tenant no longer sees
 * the prefix. Returns the remaining.
 */
function releaseChildren(draft: Draft, block: Block): PrefixNode[] {
  const { before, after, snapshot } = draft;
  if (!before) return [];
  const interimOf = interimParents(draft);
  const kept: PrefixNode[] = [];
  for (const child of draft.prefixTree.children(before)) {
    const interim = interimOf(child.row);
    const isCloser =
      interim === undefined ||
      interim.block.length < block.length ||
      (interim.block.length === block.length && interim.row.tenantId === after.tenantId);
    const inside =
      isParentIn(spaceOf(snapshot, child.row), after) &&
      child.block.length > block.length &&
      contains(block, child.block);
    if (inside && isCloser) kept.push(child);
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

/** The interim parent of each child: the same one for all children of a tenant. */
function interimParents(draft: Draft): (child: Row) => PrefixNode | undefined {
  const known = new Map<unknown, PrefixNode | undefined>();
  return (child) => {
    if (!known.has(child.tenantId)) known.set(child.tenantId, interimParent(draft, child));
    return known.get(child.tenantId);
  };
}

/**
 * Adds a conflict for each address and range of a space that would be in no prefix after the change,
 * which moves the prefix to `block` or, without it, deletes the prefix. What tenants have in a prefix
 * of the platform does not prevent its change.
 */
function checkOrphans(draft: Draft, space: Space, block: Block | null): void {
  const { before, after, prefixTree } = draft;
  if (!before || interimParent(draft)) return;
  const was = blockOf(before);
  const stillCovered = block && isParentIn(space, after) ? block : null;
  if (stillCovered && contains(stillCovered, was)) return;
  const inner = coversIn(draft, space, was, prefixTree.children(before));
  if (stillCovered) inner.push(stillCovered);
  for (const each of contentsOf(draft, space, was, inner)) {
    const message = `${each.label} would no longer be in a prefix`;
    draft.conflict('would_orphan_addresses', message, each);
  }
}

/** The networks in a block that contain records of a space: of its prefixes, and of the platform. */
const coversIn = (
  draft: Draft,
  space: Space,
  block: Block,
  nodes: readonly PrefixNode[],
): Block[] =>
  [
    ...nodes.filter(({ row }) => isParentIn(space, row)),
    ...sharedInside(draft, space, block).filter((node) => node.block.length > block.length),
  ].map((node) => node.block);

/**
 * The prefixes inside a network: those that the prefix gets when it moves there (`absorbed`) or else
 * has, and those of equal prefixes, which keep theirs. Null when there are too many.
 */
function prefixesInside(
  draft: Draft,
  space: Space,
  block: Block,
  absorbed: readonly PrefixNode[] | null,
): Block[] | null {
  const { after, prefixTree } = draft;
  const holders = prefixTree
    .equalTo(space, block)
    .map(({ row }) => row)
    .filter(({ id }) => id !== after.id);
  const inside = [...(absorbed ?? [])];
  for (const row of absorbed ? holders : [after, ...holders]) {
    const children = prefixTree.children(row, MAX_SEARCHED_CHILDREN + 1);
    if (children.length > MAX_SEARCHED_CHILDREN) return null;
    inside.push(...children);
  }
  return coversIn(draft, space, block, inside);
}

/**
 * Warns when a container or a dynamic prefix has addresses outside its children, unless it has very
 * many children.
 */
function warnOfContents(
  draft: Draft,
  space: Space,
  block: Block,
  absorbed: readonly PrefixNode[] | null,
): void {
  const { after } = draft;
  if (!draft.warns) return;
  if (!draft.hasChanged('tenantId', 'cidr', 'vrfId', 'status', 'allocationMode')) return;
  if (after.status !== 'container' && after.allocationMode !== 'dynamic') return;
  const inside = prefixesInside(draft, space, block, absorbed);
  if (!inside || contentsOf(draft, space, block, inside).length === 0) return;
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
  if (parent) warnWhenFull(draft, parent, block, size - siblings);
  draft.onAccept(() => {
    if (parent) prefixTree.addUsage(parent.row.id, size - siblings);
    if (!before) prefixTree.addUsage(after.id, inner);
  });
}

function remove(draft: Draft): void {
  const { before, prefixTree } = draft;
  if (!before) return;
  const interimOf = interimParents(draft);
  for (const { row } of prefixTree.children(before))
    draft.cascadeUpdate(
      'prefixes',
      row,
      { parentPrefixId: interimOf(row)?.row.id ?? null },
      'reparented',
    );
  checkOrphans(draft, spaceOf(draft.snapshot, before), null);
}

/** Prefixes form one tree in each space: the parent is the smallest prefix that contains it. */
export const prefixRules: Rules = { write, remove };
