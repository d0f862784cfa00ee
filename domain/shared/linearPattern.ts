import { RE2JS } from 're2js';

/** A regular expression that takes time in proportion to the text. */
export type LinearPattern = {
  /** Whether the text has a match anywhere. */
  test(text: string): boolean;
  /** The number of its instructions. A test takes at most that many steps for each character. */
  size: number;
};

/**
 * Compiles a regular expression that we did not write: RE2 takes time in proportion to the text, where
 * others can take for ever. Error: a syntax that it does not have, such as back references.
 */
export function linearPattern(pattern: string): LinearPattern {
  const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
  return { test: (text) => compiled.matcher(text).find(), size: compiled.programSize() };
}
