import { PLATFORM } from '../../domain/access/scope.ts';
import { mayTakeMore } from '../../domain/dispatch/shares.ts';
import { JobFailure } from '../../domain/jobs/jobType.ts';

/** Steps that read or write all records: each uses a connection of its own and one core. */
const MAX_RUNNING = 2;
/** Half for one tenant. */
const SHARE_PERCENT = 50;
const MAX_WAITING = 40;
const MAX_WAITING_PER_TENANT = 20;

type StepOwner = { signal: AbortSignal; caller: { tenantId: string } };

type Waiting = { tenantId: string; grant: () => void };

/**
 * Limits how many heavy steps run concurrently in this process, and of one tenant. Further steps
 * wait in order, until their signal aborts. Error: `busy` when too many wait.
 */
export function createConcurrencyLimit() {
  const running: string[] = [];
  const waiting: Waiting[] = [];

  // The backups of the platform are of all tenants.
  const mayRun = (tenantId: string): boolean =>
    tenantId === PLATFORM
      ? running.length < MAX_RUNNING
      : mayTakeMore(
          running.filter((each) => each === tenantId).length,
          MAX_RUNNING - running.length,
          SHARE_PERCENT,
        );

  async function acquire({ signal, caller: { tenantId } }: StepOwner): Promise<void> {
    if (mayRun(tenantId)) {
      running.push(tenantId);
      return;
    }
    const ofTenant = waiting.filter((each) => each.tenantId === tenantId).length;
    if (waiting.length >= MAX_WAITING || ofTenant >= MAX_WAITING_PER_TENANT)
      throw new JobFailure('busy', 'Too many backups and restores are waiting in this process', {
        retryAfterMs: 10_000,
      });
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const entry = { tenantId, grant: () => resolve(undefined) };
    waiting.push(entry);
    const cancelWaiting = () => {
      const at = waiting.indexOf(entry);
      // A step that was granted its slot in the same moment releases it itself.
      if (at === -1) return;
      waiting.splice(at, 1);
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', cancelWaiting, { once: true });
    await promise.finally(() => signal.removeEventListener('abort', cancelWaiting));
  }

  function release(tenantId: string): void {
    running.splice(running.indexOf(tenantId), 1);
    for (;;) {
      const next = waiting.find((each) => mayRun(each.tenantId));
      if (!next) return;
      waiting.splice(waiting.indexOf(next), 1);
      running.push(next.tenantId);
      next.grant();
    }
  }

  return async function runLimited<T>(owner: StepOwner, step: () => Promise<T>): Promise<T> {
    owner.signal.throwIfAborted();
    await acquire(owner);
    try {
      return await step();
    } finally {
      release(owner.caller.tenantId);
    }
  };
}

export type ConcurrencyLimit = ReturnType<typeof createConcurrencyLimit>;
