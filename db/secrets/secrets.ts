import { PLATFORM } from '../../domain/access/scope.ts';
import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';

/** A secret as an attempt finds it. */
export type FoundSecret = { id: string; name: string; pools: string[]; sealed: string };

/**
 * The secrets with these names for jobs of a tenant: its own or, for names that it has not used, those
 * of the platform.
 */
export async function findSecretsOf(
  db: Knex,
  tenantId: string,
  names: readonly string[],
): Promise<FoundSecret[]> {
  const { rows } = await prepared<FoundSecret>(
    db,
    `SELECT DISTINCT ON (name) id, name, pools, sealed FROM secrets
     WHERE tenant_id = ANY (?::text[]) AND name = ANY (?::text[])
     ORDER BY name, tenant_id = '${PLATFORM}'`,
    [[tenantId, PLATFORM], [...names]],
  );
  return rows;
}
