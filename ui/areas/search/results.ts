import { escapeRegex } from '../../parts/escapeRegex.ts';
import { ownValue } from '../../parts/ownValue.ts';
/** A record that a search has found, as the API presents it. */
export type Found = {
  kind: string;
  id: string;
  label: string;
  description: string;
  tenantId: string | null;
  vrfId: string | null;
  match: 'exact' | 'prefix' | 'word' | 'part' | 'similar';
};

/** A network around an address. */
export type Around = Pick<Found, 'id' | 'label' | 'description' | 'vrfId'>;

export type FoundGroup = { kind: string; items: readonly Found[]; hasMore: boolean };

/** Results by kind. The kind with the best match is first, and in each kind the best match. */
export function groupFound({
  items,
  more,
}: {
  items: readonly Found[];
  more: readonly string[];
}): FoundGroup[] {
  const groups = new Map<string, Found[]>();
  for (const item of items) {
    const group = groups.get(item.kind);
    if (group) group.push(item);
    else groups.set(item.kind, [item]);
  }
  return [...groups].map(([kind, found]) => ({ kind, items: found, hasMore: more.includes(kind) }));
}

/** A part of a text; those that were searched for are marked. */
export type MarkedPart = { text: string; isMarked: boolean };

/** Marks the words of a search in a text, in any case. */
export function markWords(text: string, query: string): MarkedPart[] {
  const words = query.trim().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [{ text, isMarked: false }];
  // The longest first: of `core core-1` all of `core-1` is marked.
  const pattern = words
    .sort((one, other) => other.length - one.length)
    .map(escapeRegex)
    .join('|');
  return text
    .split(new RegExp(`(${pattern})`, 'gi'))
    .map((part, index) => ({ text: part, isMarked: index % 2 === 1 }))
    .filter((part) => part.text !== '');
}

const MATCHES: Readonly<Record<Found['match'], string>> = {
  exact: 'exact match',
  prefix: 'begins with it',
  word: 'has a word that begins with it',
  part: 'contains it',
  similar: 'similar spelling',
};

/** Why a record was found; undefined if the marked text shows it. */
export function matchReason(
  { label, description, match }: Pick<Found, 'label' | 'description' | 'match'>,
  query: string,
): string | undefined {
  if (match === 'exact' || match === 'similar') return ownValue(MATCHES, match);
  const isShown = markWords(`${label} ${description}`, query).some(({ isMarked }) => isMarked);
  return isShown ? undefined : `another field ${ownValue(MATCHES, match) ?? match}`;
}

export type Space = { vrfId: string | null; prefixes: readonly Around[] };

/** Networks around an address by VRF, the smallest first in each. */
export function spacesAround(around: readonly Around[]): Space[] {
  const groups = new Map<string | null, Around[]>();
  for (const prefix of around) {
    const group = groups.get(prefix.vrfId);
    if (group) group.push(prefix);
    else groups.set(prefix.vrfId, [prefix]);
  }
  return [...groups].map(([vrfId, prefixes]) => ({ vrfId, prefixes }));
}
