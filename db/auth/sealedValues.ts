import type { Knex } from '../core/knex.ts';

/** A stored secret as the vault has sealed it: `v1.<key id>.<value>`, for a context. */
export type SealedValue = { keyId: string; sealed: string; context: string };

/**
 * One stored secret for each master key with which stored secrets are encrypted. The contexts are those of
 * `domain/secrets/secrets.ts`, `webhooks/secrets.ts` and `providers/config.ts`.
 */
export async function sealedValueOfEachKey(db: Knex): Promise<SealedValue[]> {
  const { rows } = await db.raw<{ rows: SealedValue[] }>(
    `SELECT DISTINCT ON (split_part(sealed, '.', 2)) split_part(sealed, '.', 2) AS "keyId", sealed, context FROM (
       SELECT sealed, 'secret:' || id || ':value' AS context FROM secrets
       UNION ALL SELECT secret, 'webhook:' || id FROM webhooks WHERE deleted_at IS NULL
       UNION ALL SELECT previous_secret, 'webhook:' || id FROM webhooks WHERE deleted_at IS NULL
       UNION ALL SELECT entry.value, 'provider:' || id || ':' || entry.key FROM providers, json_each_text(providers.secrets) AS entry
     ) AS stored WHERE sealed IS NOT NULL ORDER BY 1`,
  );
  return rows;
}
