/** Escapes the characters of a text that have a meaning in a pattern of LIKE. */
export const escapeLike = (text: string): string =>
  text.replaceAll(/[\\%_]/g, (character) => `\\${character}`);
