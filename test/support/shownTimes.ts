import type { Knex } from '../../db/core/knex.ts';

/** True if the times in a column are those that are shown, and that filters compare with: of milliseconds. */
export async function hasShownTimes(db: Knex, table: string, column: string): Promise<boolean> {
  const others = await db(table).whereRaw(`date_trunc('milliseconds', ??) <> ??`, [column, column]);
  return others.length === 0;
}
