import { EVENT_DATA } from '../../domain/events/events.ts';
import type { Knex } from '../../db/core/knex.ts';
import { compileCheck, type SchemaCheck } from '../../platform/schemaCheck.ts';

const checks: Readonly<Record<string, SchemaCheck>> = Object.fromEntries(
  Object.entries(EVENT_DATA).map(([type, data]) => [type, compileCheck(data)]),
);

/** What is wrong with the events of a test: a type that is not declared, or data that its schema does not allow. */
export async function findInvalidEvents(db: Knex): Promise<string[]> {
  const events: { type: string; data: object }[] = await db('events').select('type', 'data');
  return events.flatMap(({ type, data }) => {
    const check = checks[type];
    const errors = check ? check(data) : [{ pointer: '', message: 'is not declared' }];
    return errors.map(({ pointer, message }) => `${type}${pointer} ${message}`);
  });
}
