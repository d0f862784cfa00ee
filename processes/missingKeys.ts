import { setTimeout as sleep } from 'node:timers/promises';
import { sealedValueOfEachKey, type SealedValue } from '../db/auth/sealedValues.ts';
import type { Knex } from '../db/core/knex.ts';
import type { Log } from '../platform/log.ts';
import type { Vault } from '../platform/vault.ts';

const TRIES = 60;
const PAUSE_MS = 5_000;

/**
 * Says at start which master keys of stored secrets this process lacks, and which have the name of a key but not its
 * bytes. Every process needs all of them: an API opens the secrets of identity providers, a worker signs deliveries. Waits
 * some minutes for the database and its schema.
 */
export async function reportMissingKeys(
  { db, vault }: { db: Knex; vault: Vault },
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  let reason: unknown;
  for (let left = TRIES; left > 0 && !signal.aborted; left--) {
    try {
      report(await sealedValueOfEachKey(db), vault, log);
      return;
    } catch (error) {
      reason = error;
      await sleep(PAUSE_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
  if (!signal.aborted)
    log.warn({ err: reason }, 'the master keys could not be compared with the stored secrets');
}

function report(values: readonly SealedValue[], vault: Vault, log: Log): void {
  const idsOf = (some: readonly SealedValue[]) => some.map(({ keyId }) => keyId);
  const missing = values.filter(({ keyId }) => !vault.has(keyId));
  if (missing.length > 0)
    log.error(
      { keys: idsOf(missing) },
      'stored secrets are encrypted with master keys that HOLDFAST_MASTER_KEYS of this process does not have; every process needs them',
    );
  const wrong = values.filter(
    ({ keyId, sealed, context }) => vault.has(keyId) && !vault.canOpen(sealed, context),
  );
  if (wrong.length > 0)
    log.error(
      { keys: idsOf(wrong) },
      'master keys of HOLDFAST_MASTER_KEYS do not open the secrets that keys of the same names have encrypted; every process needs the same keys',
    );
}
