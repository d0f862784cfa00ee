import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { currentConnectionUser } from './connectionUser.ts';
import { tenantActivity } from './tenantActivity.ts';

/** How long a computation keeps other work of the process waiting, in milliseconds. */
const TURN_MS = 2;

/**
 * While other tenants are active, a patient computation rests for this multiple of the time that it
 * has run, within a limit: the system may have interrupted the turn.
 */
const REST_FACTOR = 3;
const MAX_REST_MS = 50;

/** Lets other work of the process run when enough time has passed. Error: the reason of the signal. */
export type Pause = () => Promise<void>;

type Options = {
  signal?: AbortSignal | undefined;
  /**
   * Whether it leaves most of the time to other tenants while they are active. Not for work that
   * holds locks.
   */
  isPatient?: boolean;
  /** It waits for rests no longer than this altogether: its client may have a time limit. */
  maxRestMs?: number;
};

/** What a pause depends on; tests have their own. */
export type Turns = {
  now(): number;
  rest(ms: number): Promise<unknown>;
  activity: Pick<typeof tenantActivity, 'othersAreActive'>;
};

export function createTurns({ now, rest, activity }: Turns) {
  /**
   * The turn that was given last. Computations of a process take turns one after another, and
   * between two turns everything else that is ready runs, however many computations there are.
   */
  let lastTurn: Promise<unknown> = Promise.resolve();
  /** The rest that ends last. Patient computations rest one after another, so all share one part. */
  let lastRest: Promise<unknown> = Promise.resolve();

  /** For a long computation of the current tenant: to be called often between its parts. */
  return ({ signal, isPatient = false, maxRestMs = Infinity }: Options = {}): Pause => {
    const tenant = currentConnectionUser()?.key;
    let turnStartedAt = now();
    let restedMs = 0;
    return async () => {
      const usedMs = now() - turnStartedAt;
      if (usedMs < TURN_MS) return;
      const mayRest = isPatient && restedMs < maxRestMs;
      if (mayRest && tenant !== undefined && activity.othersAreActive(tenant)) {
        const restStartedAt = now();
        lastRest = lastRest.then(() => rest(Math.min(REST_FACTOR * usedMs, MAX_REST_MS)));
        await lastRest;
        restedMs += now() - restStartedAt;
      }
      lastTurn = lastTurn.then(() => setImmediate());
      await lastTurn;
      signal?.throwIfAborted();
      turnStartedAt = now();
    };
  };
}

export const createPause = createTurns({
  now: () => performance.now(),
  rest: sleep,
  activity: tenantActivity,
});
