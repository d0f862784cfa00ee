import { createBase64Pieces, shortBase64 } from './base64Pieces.ts';
import { viewsOf, withoutUnfinishedEscape } from './escapes.ts';
import { MASK } from './mask.ts';

/** Shorter values are in ordinary words. */
export const MIN_MASKED_CHARS = 6;

/** More are not masked, a line would take too long: values and their forms, and the lines of values. */
const MAX_PATTERNS = 5_000;

const MAX_VALUE_CHARS = 65_536;

export type Masker = ReturnType<typeof createMasker>;

/**
 * What is searched for a value in each view of a text: the value, also with its own escapes resolved, since those are
 * resolved with the escapes around it; and as a form sends it.
 */
const formsOf = (value: string): string[] =>
  viewsOf(value).flatMap(({ text }) => [text, text.replaceAll(' ', '+')]);

const linesOf = (value: string): string[] => value.split(/\r\n|\r|\n/).map((line) => line.trim());

type Interval = [start: number, end: number];

/** Adds an interval to others, which start no later. Those that meet are one. */
function addInterval(intervals: Interval[], [start, end]: Interval): void {
  const last = intervals.at(-1);
  if (last && start <= last[1]) last[1] = Math.max(last[1], end);
  else intervals.push([start, end]);
}

/** The start of a pattern that is searched first. */
const HEAD_CHARS = 12;

/** For each prefix of a pattern with up to `count` characters: the length of its longest border (Knuth, Morris, Pratt). */
function bordersOf(pattern: string, count: number): Uint32Array {
  const borders = new Uint32Array(count);
  let border = 0;
  for (let i = 1; i < count; i++) {
    const unit = pattern.charCodeAt(i);
    while (border > 0 && unit !== pattern.charCodeAt(border)) border = borders[border - 1] ?? 0;
    if (unit === pattern.charCodeAt(border)) border++;
    borders[i] = border;
  }
  return borders;
}

/** Where a pattern may begin in a text, from `start` on: with its head, or with a part of that at the end. */
function nextStart(pattern: string, text: string, start: number): number {
  const head = pattern.slice(0, HEAD_CHARS);
  const next = text.indexOf(head, start);
  return next === -1
    ? text.indexOf(pattern.charAt(0), Math.max(start, text.length - head.length + 1))
    : next;
}

/**
 * Finds a pattern in a text from `start` on, also where it overlaps itself. `unfinished` is how many characters at
 * the end are a start of it, or the whole. The time does not depend on how much the pattern repeats itself (Knuth, Morris
 * and Pratt).
 */
function findPattern(
  pattern: string,
  text: string,
  start: number,
): { found: Interval[]; unfinished: number } {
  const found: Interval[] = [];
  let borders: Uint32Array | undefined;
  let matched = 0;
  for (let at = start; at < text.length; at++) {
    if (matched === 0) at = nextStart(pattern, text, at);
    if (at === -1) break;
    const unit = text.charCodeAt(at);
    while (matched > 0 && unit !== pattern.charCodeAt(matched)) {
      // Later starts have fewer characters left.
      borders ??= bordersOf(pattern, Math.min(pattern.length, text.length - at + matched));
      matched = borders[matched - 1] ?? 0;
    }
    if (unit === pattern.charCodeAt(matched)) matched++;
    if (matched === pattern.length) addInterval(found, [at + 1 - matched, at + 1]);
  }
  return { found, unfinished: matched };
}

/**
 * Replaces secrets in texts: as they are; in base64, whole or in pieces; escaped for URLs, JSON, XML, HTML, shells and
 * programming languages, also in each other. Of a value with several lines, also each line. Values and forms shorter than
 * `minChars` are not replaced.
 */
export function createMasker(
  secrets: Iterable<string> = [],
  { minChars = MIN_MASKED_CHARS }: { minChars?: number } = {},
) {
  const patterns = new Set<string>();
  const base64 = createBase64Pieces();

  /** False if there are too many. */
  function addPatterns(values: Iterable<string>): boolean {
    for (const value of values) {
      if (value.length < minChars || patterns.has(value)) continue;
      if (patterns.size >= MAX_PATTERNS) return false;
      patterns.add(value);
    }
    return true;
  }

  /**
   * Adds secrets, so that none takes what another needs: first all values, then their forms and lines. False
   * if there are too many, or one is too long: something of them is not masked.
   */
  function addAll(values: readonly string[]): boolean {
    const short = values.filter(({ length }) => length <= MAX_VALUE_CHARS);
    const whole = [...new Set(short.flatMap((value) => [value, value.trim()]))].filter(
      ({ length }) => length >= minChars,
    );
    return (
      addPatterns(whole) &&
      whole.every((value) => addPatterns(formsOf(value)) && addPatterns(shortBase64(value))) &&
      // These contain those of its lines.
      whole.every((value) => base64.add(value)) &&
      short.every((value) => linesOf(value).every((line) => addPatterns(formsOf(line)))) &&
      short.length === values.length
    );
  }

  /** Adds a secret. False as of `addAll`. */
  const add = (secret: string): boolean => addAll([secret]);

  /** The intervals of a text that contain secrets, merged and in order. */
  function findSecrets(value: string): Interval[] {
    const found = viewsOf(value).flatMap(({ text, starts }) => {
      const inView = [...patterns].flatMap((pattern) =>
        text.includes(pattern.slice(0, HEAD_CHARS)) ? findPattern(pattern, text, 0).found : [],
      );
      return [...inView, ...base64.find(text)].map(([start, end]): Interval => [
        starts?.[start] ?? start,
        starts?.[end] ?? end,
      ]);
    });
    const merged: Interval[] = [];
    for (const each of found.sort(([a], [b]) => a - b)) addInterval(merged, each);
    return merged;
  }

  function text(value: string): string {
    const secretParts = findSecrets(value);
    if (secretParts.length === 0) return value;
    let masked = '';
    let end = 0;
    for (const [from, to] of secretParts) {
      masked += value.slice(end, from) + MASK;
      end = to;
    }
    return masked + value.slice(end);
  }

  function json(value: unknown): unknown {
    if (typeof value === 'string') return text(value);
    if (typeof value === 'number') return text(String(value)) === String(value) ? value : MASK;
    if (Array.isArray(value)) return value.map(json);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [text(name), json(inner)]),
    );
  }

  /** Of a text without escapes: how many characters at its end may be the start of a secret. */
  function unfinishedInView(value: string): number {
    const [start, end] = base64.find(value).at(-1) ?? [0, 0];
    let longest = end === value.length ? end - start : 0;
    for (const pattern of patterns) {
      const from = Math.max(0, value.length - pattern.length + 1);
      longest = Math.max(longest, findPattern(pattern, value, from).unfinished);
    }
    return longest;
  }

  /**
   * How many characters at the end of a text may be the start of a secret that goes on in what follows.
   */
  function unfinished(value: string): number {
    let first = value.length;
    for (const whole of new Set([value, withoutUnfinishedEscape(value)]))
      for (const { text: view, starts } of viewsOf(whole))
        for (const each of new Set([view, withoutUnfinishedEscape(view)])) {
          const start = each.length - unfinishedInView(each);
          if (start < each.length) first = Math.min(first, starts?.[start] ?? start);
        }
    return value.length - first;
  }

  addAll([...secrets]);
  return { add, addAll, text, json, unfinished };
}
