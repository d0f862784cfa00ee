import { PLATFORM } from '../../domain/access/scope.ts';
import type { Knex } from '../core/knex.ts';
import { TABLES } from './tables.ts';

/** The ids of the rows that migrations insert, by table. */
const SEED_ROWS: Readonly<Record<string, string>> = { tenants: PLATFORM, providers: 'local' };

/** The tables that contain more rows than a new installation has. */
export async function findNonEmptyTables(db: Knex): Promise<string[]> {
  const names: string[] = [];
  for (const { name, key } of TABLES) {
    const { rows } = await db.raw<{ rows: unknown[] }>(
      'SELECT FROM ?? WHERE ?? IS DISTINCT FROM ? LIMIT 1',
      [name, key[0], SEED_ROWS[name] ?? null],
    );
    if (rows.length > 0) names.push(name);
  }
  return names;
}
