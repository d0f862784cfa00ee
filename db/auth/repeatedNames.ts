import type { Knex } from '../core/knex.ts';
import { LOCAL_PROVIDER, NO_PROVIDER } from '../../domain/auth/providers.ts';

/** Records that have one name in other spellings. */
export type RepeatedName = { what: string; records: string[] };

const RECORDS = (name: string) => `array_agg(${name} || ' (' || id || ')' ORDER BY id) AS records`;

/**
 * Local accounts, service accounts of a tenant and identity providers with the same name, from before all spellings of a
 * name were one. Reads all of them.
 */
export async function findRepeatedNames(db: Knex, limit: number): Promise<RepeatedName[]> {
  const { rows } = await db.raw<{ rows: RepeatedName[] }>(
    `SELECT 'local accounts' AS what, ${RECORDS('username')} FROM users WHERE provider_id = ?
     GROUP BY known_name(username) HAVING count(*) > 1
     UNION ALL
     SELECT 'service accounts of ' || tenant_id, ${RECORDS('username')} FROM users WHERE provider_id = ?
     GROUP BY tenant_id, known_name(username) HAVING count(*) > 1
     UNION ALL
     SELECT 'identity providers', ${RECORDS('name')} FROM providers
     GROUP BY known_name(name) HAVING count(*) > 1
     LIMIT ?`,
    [LOCAL_PROVIDER, NO_PROVIDER, limit],
  );
  return rows;
}
