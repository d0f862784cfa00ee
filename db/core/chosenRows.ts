import type { Model, QueryBuilder } from 'objection';

/**
 * SQL: the part `chosen` of a statement, with the ids of the rows that it changes. `select` locks them, and skips those
 * that are locked. Within `IN (…)` of the statement, PostgreSQL may run it again for each row of the table: the
 * rows that the statement has changed are skipped as well, so that its LIMIT finds others each time.
 */
export const chosenRows = (select: string): string => `chosen AS MATERIALIZED (${select})`;

/** Updates the rows that `select` finds, without those that others have locked, and returns them. See `chosenRows`. */
export const claimChosen = <M extends Model>(
  update: QueryBuilder<M, number>,
  select: QueryBuilder<M>,
  columns: readonly string[],
): Promise<M[]> =>
  update
    .withMaterialized('chosen', select.select('id').forUpdate().skipLocked())
    .whereIn('id', (query) => query.select('id').from('chosen'))
    // The types of Objection keep the number of rows as the result.
    .returning([...columns]) as unknown as Promise<M[]>;
