import type { Knex } from '../../db/core/knex.ts';
import {
  measureInstallation,
  readInstallationState,
} from '../../db/operations/installationState.ts';
import { useConnectionsForProcess } from '../../platform/connectionUser.ts';
import type {
  InstallationState,
  ReadInstallationState,
} from '../../platform/metrics/installationGauges.ts';

/** Values that are older than this, in seconds, are measured again. */
const MAX_AGE_SECONDS = 10;

/** Within this time a process asks the database once, in milliseconds. */
const CACHE_MS = 5_000;

/**
 * Reads the state of the installation for the metrics. All processes share one measurement: the process
 * whose metrics are read when it is old makes the next one. A process whose metrics nobody reads asks
 * nothing.
 */
export function createReadInstallationState({
  db,
  cacheMs = CACHE_MS,
}: {
  db: Knex;
  cacheMs?: number;
}): ReadInstallationState {
  let last: { at: number; state: InstallationState } | undefined;

  async function read(): Promise<InstallationState> {
    const stored = await readInstallationState(db);
    if (stored && stored.ageSeconds <= MAX_AGE_SECONDS) return stored;
    await measureInstallation(db);
    const state = (await readInstallationState(db)) ?? stored;
    if (!state) throw new Error('Another process measures the installation for the first time');
    return state;
  }

  /** The last values with their age now. */
  function aged({ at, state }: NonNullable<typeof last>): InstallationState {
    return { ...state, ageSeconds: state.ageSeconds + (performance.now() - at) / 1_000 };
  }

  return async () => {
    if (last && performance.now() - last.at < cacheMs) return aged(last);
    try {
      const state = await useConnectionsForProcess(read);
      last = { at: performance.now(), state };
      return state;
    } catch (error) {
      if (last) return aged(last);
      throw error;
    }
  };
}
