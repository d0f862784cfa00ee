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
  maxRestMs?: number | undefined;
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
  /**
   * The rest of each tenant that ends last. Its patient computations rest one after another, so all
   * share one part, and wait for no rest of another tenant.
   */
  const lastRests = new Map<string, Promise<unknown>>();

  async function restAfterOthersOf(tenant: string, ms: number): Promise<void> {
    const last = (lastRests.get(tenant) ?? Promise.resolve()).then(() => rest(ms));
    lastRests.set(tenant, last);
    await last;
    if (lastRests.get(tenant) === last) lastRests.delete(tenant);
  }

  /** For a long computation of the current tenant: to be called often between its parts. */
  return ({ signal, isPatient = false, maxRestMs = Infinity }: Options = {}): Pause => {
    const user = currentConnectionUser();
    const tenant = user?.key;
    let turnStartedAt = now();
    let restedMs = 0;
    return async () => {
      const usedMs = now() - turnStartedAt;
      if (usedMs < TURN_MS) return;
      const mayRest = isPatient && restedMs < maxRestMs;
      if (mayRest && tenant !== undefined && activity.othersAreActive(tenant)) {
        const restStartedAt = now();
        await restAfterOthersOf(tenant, Math.min(REST_FACTOR * usedMs, MAX_REST_MS));
        const lastedMs = now() - restStartedAt;
        restedMs += lastedMs;
        if (user) user.restedMs += lastedMs;
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
