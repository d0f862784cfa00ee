import type { Knex } from '../core/knex.ts';

/** The ids of the master keys with which stored secrets are encrypted: `v1.<key id>.<value>`, see the vault. */
export async function masterKeysInUse(db: Knex): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `SELECT DISTINCT split_part(sealed, '.', 2) AS id FROM (
       SELECT sealed FROM secrets
       UNION ALL SELECT secret FROM webhooks WHERE deleted_at IS NULL
       UNION ALL SELECT previous_secret FROM webhooks WHERE deleted_at IS NULL
       UNION ALL SELECT entry.value FROM providers, json_each_text(providers.secrets) AS entry
     ) AS stored WHERE sealed IS NOT NULL ORDER BY 1`,
  );
  return rows.map(({ id }) => id);
}
