import { PLATFORM } from '../../access/scope.ts';
import {
  addressBits,
  blockAt,
  contains,
  enclosingBlock,
  formatBlock,
  formatHost,
  overlaps,
  type Block,
  type Span,
} from '../cidr.ts';
import type { Draft } from '../planning.ts';
import { byPosition, spanOf, type PrefixNode } from '../prefixTree.ts';
import { isIn, type Space } from '../spaces.ts';

/** The number of overlapping prefixes that warnings name. */
const MAX_NAMED = 10;

/** True when a record is new, or moves in its space or to another one. */
export const hasMoved = (
  { before, hasChanged }: Draft,
  space: Space,
  ...fields: string[]
): boolean => before === null || hasChanged(...fields, 'vrfId') || !isIn(space, before);

/**
 * Only the platform assigns space inside its prefixes to tenants. Returns false, with an error, when
 * the caller may not do so and may not know what else is there. Otherwise adds a conflict for each
 * prefix of another tenant there: what is assigned to one tenant is not assigned to another.
 */
export function checkAssignment(draft: Draft, space: Space, span: Span, field: string): boolean {
  const from = assignedFrom(draft, space, span);
  if (!from || isPartOfAssigned(draft, space, span, from)) return true;
  const why = 'the platform assigns the space in its prefixes';
  if (!draft.requirePermission(field, { tenantId: PLATFORM }, why)) return false;
  for (const { row, block } of draft.prefixTree.assigned(from.row, enclosingBlock(span))) {
    if (row.tenantId === PLATFORM || row.tenantId === space.tenantId || !overlaps(block, span))
      continue;
    const message = `${formatBlock(block)} is assigned to tenant ${String(row.tenantId)}`;
    draft.conflict('already_assigned', message, { resource: 'prefixes', row }, field);
  }
  return true;
}

/**
 * The prefix of the platform from which a record of a tenant takes its space: the smallest prefix
 * around it, or one that a range reaches into. Undefined when the tenant has the space itself.
 */
function assignedFrom(draft: Draft, space: Space, span: Span): PrefixNode | undefined {
  if (!space.isShared || space.tenantId === PLATFORM) return undefined;
  const [closest, ...others] = prefixesAround(draft, space, enclosingBlock(span));
  const isOwn = [closest, ...others].some(
    (node) => node && node.block.length === closest?.block.length && isIn(space, node.row),
  );
  if (closest && !isOwn) return closest;
  return draft.resource.name === 'ip-ranges' ? reachedInto(draft, space, span) : undefined;
}

const prefixesAround = ({ prefixTree, after }: Draft, space: Space, block: Block): PrefixNode[] =>
  prefixTree.containing(space, block).filter(({ row }) => row.id !== after.id);

/** The prefixes of the platform that start in a span of a tenant's space, in order. */
export function sharedInside({ prefixTree }: Draft, space: Space, span: Span): PrefixNode[] {
  if (!space.isShared || space.tenantId === PLATFORM) return [];
  const { family, first, last } = span;
  return prefixTree
    .sharedInside(space, span, formatHost(family, first), formatHost(family, last))
    .sort(byPosition);
}

/** The first prefix of the platform that a range overlaps without being in it. */
function reachedInto(draft: Draft, space: Space, span: Span): PrefixNode | undefined {
  const { family, first } = span;
  return [
    ...prefixesAround(draft, space, blockAt(family, first, addressBits(family))),
    ...sharedInside(draft, space, span),
  ].find(({ row, block }) => row.tenantId === PLATFORM && !contains(block, span));
}

/** True when a record becomes smaller, in the space that it already has of this prefix. */
function isPartOfAssigned(draft: Draft, space: Space, span: Span, from: PrefixNode): boolean {
  const { before } = draft;
  if (!before || !isIn(space, before) || !contains(spanOf(before), span)) return false;
  const shared = prefixesAround(draft, space, enclosingBlock(spanOf(before))).find(
    ({ row }) => row.tenantId === PLATFORM,
  );
  return shared?.row.id === from.row.id;
}

/** Warns when tenants overlap in a prefix of the platform, which they have done before it. */
export function warnOfTenants(
  draft: Draft,
  space: Space,
  block: Block,
  inside: readonly PrefixNode[],
): void {
  const ofTenants = inside.filter(({ row }) => row.tenantId !== PLATFORM).sort(byPosition);
  const messages = draft.prefixTree
    .tenantsEqualTo(space, block)
    .map(({ row }) => `tenant ${String(row.tenantId)} has the same network`);
  let widest: PrefixNode | undefined;
  for (const node of ofTenants) {
    if (widest && contains(widest.block, node.block) && messages.length < MAX_NAMED)
      messages.push(
        `${formatBlock(widest.block)} of tenant ${String(widest.row.tenantId)} overlaps ${formatBlock(node.block)} of tenant ${String(node.row.tenantId)}`,
      );
    else if (!widest || !contains(widest.block, node.block)) widest = node;
  }
  for (const message of messages.slice(0, MAX_NAMED))
    draft.warn('tenants_overlap', message, 'cidr');
}
