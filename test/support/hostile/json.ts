/** A value that is written into JSON as it is, such as `1e400`. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Makes the key that has this value appear twice. */
export class RepeatedKey {
  readonly values: readonly [unknown, unknown];

  constructor(first: unknown, second: unknown) {
    this.values = [first, second];
  }
}

/** `JSON.stringify` that also writes what a careful client never sends. */
export function writeJson(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map(writeJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).flatMap(([key, inner]: [string, unknown]) =>
    (inner instanceof RepeatedKey ? inner.values : [inner]).map(
      (each) => `${JSON.stringify(key)}:${writeJson(each)}`,
    ),
  );
  return `{${members.join(',')}}`;
}

/** The way from the root of a value to a position in it. */
export type Path = readonly (string | number)[];

/** A copy of `root` in which `value` is at `path`; undefined removes what is there. */
export function withValue(root: unknown, path: Path, value: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  if (typeof step === 'number') {
    const items: unknown[] = Array.isArray(root) ? [...root] : [];
    if (value === undefined && rest.length === 0) return items.toSpliced(step, 1);
    items[step] = withValue(items[step], rest, value);
    return items;
  }
  const isObject = typeof root === 'object' && root !== null && !Array.isArray(root);
  const members = new Map<string, unknown>(isObject ? Object.entries(root) : []);
  if (value === undefined && rest.length === 0) members.delete(step);
  else members.set(step, withValue(members.get(step), rest, value));
  // Without a setter for `__proto__`, which is a key like any other here.
  return Object.fromEntries(members);
}

/** The value at `path`; undefined if there is none. */
export const valueAt = (root: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (node, step) =>
      typeof node === 'object' && node !== null
        ? (node as Record<string | number, unknown>)[step]
        : undefined,
    root,
  );
