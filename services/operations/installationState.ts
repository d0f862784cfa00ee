import type { Knex } from '../../db/core/knex.ts';
import {
  measureInstallation,
  readInstallationState,
} from '../../db/operations/installationState.ts';
import { useConnectionsForProcess } from '../../platform/connectionUser.ts';
import { askWithin } from '../../platform/metrics/askWithin.ts';
import type {
  InstallationState,
  ReadInstallationState,
} from '../../platform/metrics/installationGauges.ts';

/** Values that are older than this, in seconds, are measured again. */
const MAX_AGE_SECONDS = 10;

/** Within this time a process asks the database once, in milliseconds. */
const CACHE_MS = 5_000;

/** How long a scrape waits for the database. */
const LIMIT_MS = 1_000;

/**
 * Reads the state of the installation for the metrics. All processes share one measurement: the process
 * whose metrics are read when it is old makes the next one. A process whose metrics nobody reads asks
 * nothing. Without an answer in time the last values stay, and get older.
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

  const refresh = askWithin(LIMIT_MS, async () => {
    const state = await useConnectionsForProcess(read);
    last = { at: performance.now(), state };
  });

  return async () => {
    if (!last || performance.now() - last.at >= cacheMs) await refresh();
    if (!last) return undefined;
    const { at, state } = last;
    return { ...state, ageSeconds: state.ageSeconds + (performance.now() - at) / 1_000 };
  };
}
