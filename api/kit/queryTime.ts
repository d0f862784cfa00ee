import { invalidField, type FieldPlace } from '../../domain/shared/errors.ts';

/** A time from the query, or from elsewhere. A leap second is valid RFC 3339, and no time that PostgreSQL or JavaScript knows. */
export function dateOf(name: string, text: string, place: FieldPlace = 'query'): Date {
  const date = new Date(text);
  if (Number.isNaN(date.getTime()))
    throw invalidField(place, `/${name}`, 'format', 'is not a time that exists');
  return date;
}
