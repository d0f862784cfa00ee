import { invalidField, type FieldLocation } from '../../domain/shared/errors.ts';

/** The times that have four digits of the year in UTC. */
const EARLIEST = Date.parse('0001-01-01T00:00:00Z');
const LATEST = Date.parse('9999-12-31T23:59:59.999Z');

/**
 * The bound of a range of times of records, which have milliseconds: between two of them, `gte` and `lt`
 * begin at the later one. Errors: those of `parseTime`.
 */
export function parseTimeBound(
  name: string,
  text: string,
  operator: 'gte' | 'gt' | 'lte' | 'lt',
): Date {
  const time = parseTime(name, text).getTime();
  const isBetween = /\.\d{3}\d*[1-9]/.test(text);
  const isLater = isBetween && (operator === 'gte' || operator === 'lt');
  return new Date(Math.min(time + (isLater ? 1 : 0), LATEST));
}

/**
 * Parses an RFC 3339 time that a schema has accepted. Error: `invalid_request` for a leap second,
 * which is valid RFC 3339 but is not supported by JavaScript and PostgreSQL, and for a year that
 * RFC 3339 cannot write in UTC.
 */
export function parseTime(name: string, text: string, location: FieldLocation = 'query'): Date {
  // The schema allows a space and lower case, with which JavaScript reads other years.
  const date = new Date(text.replace(/\s/, 'T').toUpperCase());
  if (Number.isNaN(date.getTime()))
    throw invalidField(location, `/${name}`, 'format', 'is not a valid time');
  if (date.getTime() < EARLIEST || date.getTime() > LATEST)
    throw invalidField(location, `/${name}`, 'format', 'must be in the years 1 to 9999 in UTC');
  return date;
}
