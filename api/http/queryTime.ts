import { invalidField, type FieldLocation } from '../../domain/shared/errors.ts';

/**
 * Parses an RFC 3339 time that a schema has accepted. Error: `invalid_request` for a leap second,
 * which is valid RFC 3339 but is not supported by JavaScript and PostgreSQL.
 */
export function parseTime(name: string, text: string, location: FieldLocation = 'query'): Date {
  const date = new Date(text);
  if (Number.isNaN(date.getTime()))
    throw invalidField(location, `/${name}`, 'format', 'is not a valid time');
  return date;
}
