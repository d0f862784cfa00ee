import { randomBytes } from 'node:crypto';
import type { ConnectionFacts } from '../../domain/shared/connectionBudget.ts';
import type { Knex } from './knex.ts';

/** Names the connection of this process that listens, and says how large its pool is. */
export const listenerName = (poolSize: number): string =>
  `holdfast-changes pool=${poolSize} process=${PROCESS}`;

const PROCESS = randomBytes(4).toString('hex');

/**
 * `datid` leaves out processes of the server. Roles may see the names of all connections; the kind of
 * those of other roles is hidden, and then taken for a client.
 */
const FACTS = `
  WITH client AS (
    SELECT application_name AS name, datname = current_database() AS is_here FROM pg_stat_activity
    WHERE datid IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend'
  ), listener AS (
    SELECT substring(name FROM 'pool=([0-9]{1,3})')::integer AS pool FROM client
    WHERE is_here AND name LIKE 'holdfast-changes pool=%' AND name <> ?
  )
  SELECT current_setting('max_connections')::integer AS "maxConnections",
    current_setting('superuser_reserved_connections')::integer
      + coalesce(current_setting('reserved_connections', true), '0')::integer AS reserved,
    (SELECT min(allowed) FROM (
      SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user
      UNION ALL SELECT datconnlimit FROM pg_database WHERE datname = current_database()
    ) AS l (allowed) WHERE allowed >= 0) AS "ownLimit",
    coalesce((SELECT json_agg(pool) FROM listener WHERE pool IS NOT NULL), '[]') AS "otherPools",
    (SELECT count(*) FROM client
      WHERE NOT (is_here AND (name = 'holdfast' OR name LIKE 'holdfast-changes%')))::integer
      AS "othersConnected"`;

/** Reads what PostgreSQL accepts and who is connected to it. */
export async function readConnectionFacts(db: Knex, poolSize: number): Promise<ConnectionFacts> {
  const { rows } = await db.raw<{ rows: ConnectionFacts[] }>(FACTS, [listenerName(poolSize)]);
  const [facts] = rows;
  if (!facts) throw new Error('The limits of PostgreSQL could not be read');
  return facts;
}
