import { diffLines, type LineChange } from './lines.ts';

/** How a change of a value is shown. */
export type Change =
  | { kind: 'none' }
  | { kind: 'value'; before: unknown; after: unknown }
  | { kind: 'list'; removed: readonly unknown[]; added: readonly unknown[]; kept: number }
  | { kind: 'lines'; lines: readonly LineChange[] };

type Action = 'create' | 'update' | 'delete';

const HEADERS: Readonly<Record<Action, readonly string[]>> = {
  create: ['Value'],
  update: ['Before', 'After'],
  delete: ['Was'],
};

/** The columns of a table of changes. Both sides are shown for an action that is not known here. */
export function sidesOf(given: Action = 'update'): { action: Action; headers: readonly string[] } {
  const action = Object.hasOwn(HEADERS, given) ? given : 'update';
  return { action, headers: HEADERS[action] };
}

/** A text beyond it is compared by lines. */
const LONG_TEXT = 120;

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

const isScalar = (value: unknown): boolean => !isObject(value);

/** JSON with sorted keys, so that the order of keys is no difference. */
export function stableJson(value: unknown, indent = 0): string {
  const sort = (_key: string, each: unknown): unknown =>
    isObject(each) && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each;
  return JSON.stringify(value, sort, indent) ?? 'null';
}

/** True when two values are equal as JSON; null and a missing value are equal. */
export const isSameValue = (one: unknown, other: unknown): boolean =>
  one === other || stableJson(one ?? null) === stableJson(other ?? null);

const isEmpty = (value: unknown): boolean => value === null || value === undefined;

/** Members of lists that are in one and not in the other; a value may be in a list several times. */
function compareLists(before: readonly unknown[], after: readonly unknown[]): Change {
  const left = new Map<string, number>();
  for (const each of after) left.set(stableJson(each), (left.get(stableJson(each)) ?? 0) + 1);
  const removed: unknown[] = [];
  let kept = 0;
  for (const each of before) {
    const key = stableJson(each);
    const count = left.get(key) ?? 0;
    if (count > 0) {
      left.set(key, count - 1);
      kept += 1;
    } else removed.push(each);
  }
  const added = [...after].reverse().flatMap((each) => {
    const key = stableJson(each);
    const count = left.get(key) ?? 0;
    if (count === 0) return [];
    left.set(key, count - 1);
    return [each];
  });
  return { kind: 'list', removed, added: added.reverse(), kept };
}

const linesOf = (value: unknown): string[] => {
  if (isEmpty(value) || value === '') return [];
  return (typeof value === 'string' ? value : stableJson(value, 2)).split('\n');
};

const isLong = (value: unknown): boolean =>
  typeof value === 'string' && (value.includes('\n') || value.length > LONG_TEXT);

const isListOrEmpty = (value: unknown): value is unknown[] | null | undefined =>
  isEmpty(value) || Array.isArray(value);

/** How the change from one value to another is shown best. */
export function changeOf(before: unknown, after: unknown): Change {
  if (isSameValue(before, after)) return { kind: 'none' };
  if (isListOrEmpty(before) && isListOrEmpty(after)) {
    const change = compareLists(before ?? [], after ?? []);
    const isOrder = change.kind === 'list' && change.removed.length + change.added.length === 0;
    const areScalars = [...(before ?? []), ...(after ?? [])].every(isScalar);
    if (areScalars && !isOrder) return change;
    return { kind: 'lines', lines: diffLines(linesOf(before), linesOf(after)) };
  }
  if (isObject(before) || isObject(after) || isLong(before) || isLong(after))
    return { kind: 'lines', lines: diffLines(linesOf(before), linesOf(after)) };
  return { kind: 'value', before, after };
}

/**
 * The part of a short text that differs: what is equal before and after it. For emphasis only, so
 * texts without much in common have no part.
 */
export function changedPart(
  before: string,
  after: string,
): { start: number; end: number } | undefined {
  const short = Math.min(before.length, after.length);
  let start = 0;
  while (start < short && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < short - start && before[before.length - 1 - end] === after[after.length - 1 - end])
    end += 1;
  // Half of a surrogate pair is no character.
  if (start > 0 && /[\uD800-\uDBFF]/.test(before.charAt(start - 1))) start -= 1;
  if (end > 0 && /[\uDC00-\uDFFF]/.test(before.charAt(before.length - end))) end -= 1;
  const common = start + end;
  return common * 3 >= Math.max(before.length, after.length) ? { start, end } : undefined;
}
