import { invalidField } from '../../domain/errors.ts';

/** A time from the query. A leap second is valid RFC 3339, and no time that PostgreSQL or JavaScript knows. */
export function dateOf(name: string, text: string): Date {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) throw invalidField('query', `/${name}`, 'format', 'is not a time that exists');
  return date;
}
