import { sortedJson } from '../domain/shared/sortedJson.ts';

/** The number of values in a JSON value, itself included. It walks without recursion, so any depth is counted. */
export function sizeOf(value: unknown): number {
  let count = 0;
  const rest: unknown[] = [value];
  while (rest.length > 0) {
    const next = rest.pop();
    count += 1;
    if (Array.isArray(next)) for (const item of next) rest.push(item);
    else if (typeof next === 'object' && next !== null)
      for (const child of Object.values(next)) rest.push(child);
  }
  return count;
}

/** Whether no item of a list is there twice. It takes time in proportion to the size of the list. */
export function areUnique(items: readonly unknown[]): boolean {
  const texts = new Set<string>();
  return items.every((item) => texts.size < texts.add(sortedJson(item)).size);
}
