import { isJsonObject } from '../../../domain/shared/jsonObject.ts';

/** JSON Pointers (RFC 6901), and values at them. */

/** What a pointer appends for a key. */
export const childPointer = (pointer: string, key: string | number): string =>
  `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;

/** The keys of a pointer. */
export const keysOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));

/** The pointer without the start `base`, or undefined if it is not below it. */
export function pointerBelow(base: string, pointer: string): string | undefined {
  if (pointer === base) return '';
  return pointer.startsWith(`${base}/`) ? pointer.slice(base.length) : undefined;
}

/** An object with one key set, or without it if the value is undefined. */
export function withKey(value: unknown, key: string, next: unknown): Record<string, unknown> {
  const { [key]: _old, ...others } = isJsonObject(value) ? value : {};
  if (next === undefined) return others;
  // A key keeps its position, so that fields do not move while one types.
  return isJsonObject(value) && key in value
    ? { ...value, [key]: next }
    : { ...others, [key]: next };
}

/**
 * The pointer of the field that shows an error: the field itself, or the nearest one around it.
 * Undefined if no field is.
 */
export function nearestPointer(pointer: string, shown: ReadonlySet<string>): string | undefined {
  let at = pointer;
  for (;;) {
    if (shown.has(at)) return at;
    if (at === '') return undefined;
    at = at.slice(0, at.lastIndexOf('/'));
  }
}
