import { unicodeForms } from '../../domain/shared/unicodeForms.ts';
import { anyOf, type Sql } from './sql.ts';

/** Escapes the characters of a text that have a meaning in a pattern of LIKE. */
export const escapeLike = (text: string): string =>
  text.replaceAll(/[\\%_]/g, (character) => `\\${character}`);

const asciiLower = (text: string): string =>
  text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());

const titleCase = (lower: string): string =>
  lower.replaceAll(/(?<!\p{L})\p{L}/gu, (letter) => letter.toUpperCase());

/**
 * The forms that `lower` of PostgreSQL can have made of a text that is this one but for the case of its letters. With the
 * locale C, which Holdfast's databases have, it changes the letters A to Z only: `Århus` and `ÅRHUS` stay different. So the
 * forms are the text as it is, in lower case, in capitals and with capitals at the beginning of its words; one form
 * if it has only ASCII letters. A text that is not in the Unicode form NFC has them in that form, too.
 */
export function letterCases(text: string): string[] {
  const forms = unicodeForms(text).flatMap((each) => {
    const lower = each.toLowerCase();
    return [lower, each, each.toUpperCase(), titleCase(lower)];
  });
  return [...new Set(forms.map(asciiLower))];
}

/**
 * SQL: a lower-cased column is like a text in any letter case. Each form has a condition of its own, which an index on
 * trigrams can serve.
 *
 * @param pattern makes the pattern of an escaped form, for example `%…%`.
 */
export const likeAnyCase = (
  column: string,
  text: string,
  pattern: (escaped: string) => string,
): Sql =>
  anyOf(
    letterCases(text).map((form) => ({
      sql: `${column} LIKE ?`,
      bindings: [pattern(escapeLike(form))],
    })),
  );
