import { setTimeout as sleep } from 'node:timers/promises';
import { masterKeysInUse } from '../db/auth/sealedValues.ts';
import type { Knex } from '../db/core/knex.ts';
import type { Log } from '../platform/log.ts';
import type { Vault } from '../platform/vault.ts';

const TRIES = 60;
const PAUSE_MS = 5_000;

/**
 * Says at start which master keys of stored secrets this process lacks. Every process needs all of them: an API opens
 * the secrets of identity providers, a worker signs deliveries. Waits some minutes for the database and its schema.
 */
export async function reportMissingKeys(
  { db, vault }: { db: Knex; vault: Vault },
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  for (let left = TRIES; left > 0 && !signal.aborted; left--) {
    try {
      const missing = (await masterKeysInUse(db)).filter((id) => !vault.has(id));
      if (missing.length > 0)
        log.error(
          { keys: missing },
          'stored secrets are encrypted with master keys that HOLDFAST_MASTER_KEYS of this process does not have; every process needs them',
        );
      return;
    } catch {
      await sleep(PAUSE_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}
