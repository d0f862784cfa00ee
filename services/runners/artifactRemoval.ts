import type { Knex } from '../../db/core/knex.ts';
import { endRemovals, findRemovals, postponeRemoval } from '../../db/runners/artifacts.ts';
import { eachConcurrently } from '../../platform/eachConcurrently.ts';
import type { Log } from '../../platform/log.ts';
import { orAborted } from '../../platform/within.ts';
import { StoreError, type ArchiveStore } from '../../platform/stores/store.ts';

type Deps = {
  db: Knex;
  log: Log;
  storeOf(store: string): Pick<ArchiveStore, 'remove'>;
  /** For how long a store may take for one object; for tests. */
  removeMs?: number;
};

/** An object that could not be removed is tried again after this time. */
const RETRY_SECONDS = 600;
const BATCH = 200;
const CONCURRENT = 8;
const REMOVE_MS = 10_000;
/** How long one call removes. It is called every minute, and other repairs come after it. */
const ROUND_MS = 30_000;

type Removal = { store: string; object: string };

/** A store that has not removed an object in time, or cannot be used, rests until the next round. */
const mustRest = (error: unknown): boolean => !(error instanceof StoreError) || error.transient;

/**
 * Removes what no job refers to any more from the stores, until nothing is due or the time of the round is
 * used up. A store that fails does not hold up the removals of another one.
 */
export function createArtifactRemoval({ db, log, storeOf, removeMs = REMOVE_MS }: Deps) {
  async function removeWithin({ store, object }: Removal, stopping: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(removeMs)]);
    // A file system that hangs knows no signal.
    await orAborted(signal, storeOf(store).remove(object, { uploadedOnce: true, signal }));
  }

  /** Removes a batch. Returns the stores that must rest. */
  async function removeBatch(found: readonly Removal[], signal: AbortSignal): Promise<Set<string>> {
    const resting = new Set<string>();
    const removed: string[] = [];
    async function remove(removal: Removal): Promise<void> {
      if (resting.has(removal.store)) return;
      try {
        await removeWithin(removal, signal);
        removed.push(removal.object);
      } catch (error) {
        if (signal.aborted) return;
        if (mustRest(error)) resting.add(removal.store);
        log.warn({ err: error, object: removal.object }, 'an artifact could not be removed yet');
        await postponeRemoval(db, removal.object, RETRY_SECONDS);
      }
    }
    try {
      await eachConcurrently(found.values(), CONCURRENT, remove, () => !signal.aborted);
    } finally {
      await endRemovals(db, removed);
    }
    return resting;
  }

  return async (signal: AbortSignal): Promise<void> => {
    const ending = AbortSignal.any([signal, AbortSignal.timeout(ROUND_MS)]);
    let resting: readonly string[] = [];
    for (;;) {
      const found = await findRemovals(db, BATCH, resting);
      resting = [...resting, ...(await removeBatch(found, ending))];
      signal.throwIfAborted();
      if (ending.aborted || found.length < BATCH) return;
    }
  };
}
