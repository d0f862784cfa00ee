import { contains } from '../../../../domain/inventory/cidr.ts';
import { labelOfField } from '../../../parts/format.ts';
import { isSingle } from '../addresses/neighbours.ts';
import type { MapItem, MapMarks, MapModel } from './mapModel.ts';
import { sizeText } from './networks.ts';

/** What is known of a part of a map. It is free only if everything was read that could be in it. */
export type ItemState =
  | { kind: 'prefix' | 'address'; status: string | null }
  | { kind: 'prefixesUnread' | 'contentsUnread' | 'unreadable' | 'inRange' | 'used' | 'free' };

export function stateOf(item: MapItem, model: MapModel, marks: MapMarks): ItemState {
  const { block, node } = item;
  if (node) return { kind: 'prefix', status: node.prefix.status };
  if (!model.isRead(block)) return { kind: 'prefixesUnread' };
  const address = isSingle(block) ? marks.at(block.first) : undefined;
  if (address) return { kind: 'address', status: address.status };
  const ranges = marks.rangesIn(block);
  if (ranges.some((range) => contains(range, block))) return { kind: 'inRange' };
  if (ranges.length > 0 || marks.hasAddress(block)) return { kind: 'used' };
  if (item.parent.prefix.id === null) return { kind: 'unreadable' };
  return { kind: marks.isRead(block) ? 'free' : 'contentsUnread' };
}

const WORDS = {
  prefixesUnread: 'Not read',
  contentsUnread: 'Addresses not read',
  unreadable: 'In a prefix that you may not read',
  inRange: 'In a range',
  used: 'No prefix, in use',
  free: 'Free',
} as const;

const UNREADABLE = 'You may not read it';

/** The same in words, without what it is. */
export function stateText(state: ItemState): string {
  if (state.kind === 'prefix')
    return state.status === null ? UNREADABLE : labelOfField(state.status);
  if (state.kind === 'address')
    return `Address, ${(state.status === null ? UNREADABLE : labelOfField(state.status)).toLowerCase()}`;
  return WORDS[state.kind];
}

/** An item in words, for the pointer and for screen readers. */
export const itemText = ({ cidr, block }: MapItem, state: ItemState): string =>
  `${cidr}, ${stateText(state).toLowerCase()}, ${sizeText(block)}`;
