import { cut } from './excerpt.ts';

/** Longer pointers are cut: a client chooses how long its names are. */
const MAX_POINTER_CHARS = 1_000;

/** Escapes a name as a token of a JSON Pointer (RFC 6901, 3). */
export const escapePointer = (name: string): string =>
  name.replaceAll('~', '~0').replaceAll('/', '~1');

/** The name that a token of a JSON Pointer has. */
export const unescapePointer = (token: string): string =>
  token.replaceAll('~1', '/').replaceAll('~0', '~');

export const cutPointer = (pointer: string): string => cut(pointer, MAX_POINTER_CHARS);

/** The pointer to a value, by the names of the fields and the positions in lists that lead to it. */
export const pointerTo = (path: readonly (string | number)[]): string =>
  cutPointer(path.map((each) => `/${escapePointer(cutPointer(String(each)))}`).join(''));
