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

/** A text that two JSON values have in common if they are equal, whatever the order of their names is. */
function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, child]) => `${JSON.stringify(name)}:${canonicalText(child)}`).join()}}`;
}

/** Whether no item of a list is there twice. It takes time in proportion to the size of the list. */
export function areUnique(items: readonly unknown[]): boolean {
  const texts = new Set<string>();
  return items.every((item) => texts.size < texts.add(canonicalText(item)).size);
}
