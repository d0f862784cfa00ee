import { excerpt } from '../../domain/shared/excerpt.ts';

/**
 * A text of at most `max` characters that Holdfast accepts: PostgreSQL cannot store NUL characters, and UTF-8 has no half
 * of a surrogate pair.
 */
export const storable = (text: string, max: number): string =>
  excerpt(text.replaceAll('\0', '\uFFFD'), max).toWellFormed();
