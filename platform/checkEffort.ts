/** How much there is of a value, or of a schema, as far as it decides how long a check can take. */
export type Size = {
  /** Values in it, itself included. */
  parts: number;
  /** Characters of its texts and of its names. */
  characters: number;
};

/** The size of a JSON value. It walks without recursion, so any depth is measured. */
export function sizeOf(value: unknown): Size {
  const size: Size = { parts: 0, characters: 0 };
  const rest: unknown[] = [value];
  while (rest.length > 0) {
    const next = rest.pop();
    size.parts += 1;
    if (typeof next === 'string') size.characters += next.length;
    else if (Array.isArray(next)) for (const item of next) rest.push(item);
    else if (typeof next === 'object' && next !== null)
      for (const [name, child] of Object.entries(next)) {
        size.characters += name.length;
        rest.push(child);
      }
  }
  return size;
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
