import type { Readable } from 'node:stream';
import { PLATFORM, shareTenantOf } from '../domain/access/scope.ts';
import { hasAccount, type Caller } from '../domain/shared/caller.ts';
import { AppError } from '../domain/shared/errors.ts';
import { createWaitQueue } from './waitQueue.ts';

/**
 * How many there are at most: in all, of one tenant, and of one caller. The last `keptForNew` of all are for tenants that
 * hold none: where holders stay for long and nobody waits, a few tenants could otherwise hold all for ever.
 */
export type SlotBounds = {
  total: number;
  perTenant: number;
  perCaller: number;
  keptForNew?: number;
};

export type SlotHolder = Pick<Caller, 'kind' | 'tenantId' | 'actorId'> &
  Partial<Pick<Caller, 'rights'>>;

type Options = SlotBounds & {
  /** What needs a slot, in the plural, for the error: `log streams`. */
  of: string;
  /** 5 without it. */
  retryAfterSeconds?: number;
  /**
   * Callers that wait for a slot, each for `maxMs` at most, without it until their signal aborts.
   * Without `waiting`, nobody waits.
   */
  waiting?: SlotBounds & { maxMs?: number };
  /** Bounds for the holders that receive a file for longer than `afterMs`. */
  long?: SlotBounds & { afterMs: number };
};

/** Frees a slot; later calls have no effect. */
type Release = () => void;

export type Slots = ReturnType<typeof createSlots>;

/** In all, of one tenant, and of one caller. */
export const boundsOf = (total: number, perTenant: number, perCaller: number): SlotBounds => ({
  total,
  perTenant,
  perCaller,
});

/** A quarter of the slots for one tenant, a tenth for one caller. */
export const sharesOf = (total: number): SlotBounds => ({
  total,
  perTenant: Math.max(1, Math.floor(total / 4)),
  perCaller: Math.max(1, Math.floor(total / 10)),
});

/** The same for streams, which stay open: a tenth is kept for tenants that have none. */
export const streamSharesOf = (total: number): SlotBounds => ({
  ...sharesOf(total),
  keptForNew: Math.floor(total / 10),
});

/** A user is one caller in all tenants; the name that a gateway sends is one in its tenant. */
export const callerKey = ({ kind, tenantId, actorId }: SlotHolder): string =>
  hasAccount({ kind }) ? `user:${actorId}` : `${kind}:${tenantId}:${actorId}`;

/**
 * The platform has no share: it leaves the tenants what one of their callers may have, unless a caller may have
 * everything.
 */
const ofPlatform = ({ total, perCaller }: SlotBounds): number =>
  perCaller < total ? total - perCaller : total;

/** Counts holders in all, by tenant and by caller. */
function createCount() {
  let total = 0;
  const counts = new Map<string, number>();
  const of = (key: string) => counts.get(key) ?? 0;
  const keysOf = (holder: SlotHolder) => [`tenant:${shareTenantOf(holder)}`, callerKey(holder)];
  return {
    total: () => total,
    ofTenant: (tenantId: string) => of(`tenant:${tenantId}`),
    ofCaller: (holder: SlotHolder) => of(callerKey(holder)),
    hasFreeSlot(bounds: SlotBounds, holder: SlotHolder): boolean {
      const tenantId = shareTenantOf(holder);
      const ofTenant = of(`tenant:${tenantId}`);
      const { keptForNew = 0 } = bounds;
      return (
        total < bounds.total - (ofTenant > 0 ? keptForNew : 0) &&
        of(callerKey(holder)) < bounds.perCaller &&
        ofTenant < (tenantId === PLATFORM ? ofPlatform(bounds) : bounds.perTenant)
      );
    },
    add(holder: SlotHolder, change: number) {
      total += change;
      for (const key of keysOf(holder)) {
        const count = of(key) + change;
        if (count > 0) counts.set(key, count);
        else counts.delete(key);
      }
    },
  };
}

/**
 * Slots of one process for something costly: a bound in all, one for each tenant, so that no tenant
 * takes all of them, and one for each caller. A slot that becomes free goes to the tenant that
 * holds the fewest, and within it to the one who has waited longest.
 */
export function createSlots({ of, retryAfterSeconds = 5, waiting, long, ...bounds }: Options) {
  const held = createCount();
  const queued = createCount();
  const queue = createWaitQueue<{ holder: SlotHolder }, Release>();

  const refusal = () =>
    new AppError('too_many_requests', `Too many ${of} are open or in progress.`, {
      retryAfterSeconds,
    });

  function occupy(holder: SlotHolder, count = 1): Release {
    held.add(holder, count);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      held.add(holder, -count);
      grantWaiting();
    };
  }

  function grantWaiting(): void {
    // One that becomes free may be what two wait for: one of the same tenant, one of the same user.
    for (;;) {
      const [next] = queue
        .entries()
        .filter(({ holder }) => held.hasFreeSlot(bounds, holder))
        .sort(
          (a, b) => held.ofTenant(shareTenantOf(a.holder)) - held.ofTenant(shareTenantOf(b.holder)),
        );
      if (!next) return;
      queue.grant(next, occupy(next.holder));
    }
  }

  const tryTake = (holder: SlotHolder, count = 1): Release | undefined =>
    held.hasFreeSlot(bounds, holder) ? occupy(holder, count) : undefined;

  async function waitForSlot(
    holder: SlotHolder,
    maxMs: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Release> {
    queued.add(holder, 1);
    try {
      return await queue.wait({ holder }, { maxMs, signal, refusal });
    } finally {
      queued.add(holder, -1);
    }
  }

  /**
   * Takes a slot, or waits for one if this kind of slot allows it. Errors: `too_many_requests`;
   * the reason of `signal`.
   */
  async function take(holder: SlotHolder, signal?: AbortSignal): Promise<Release> {
    signal?.throwIfAborted();
    const release = tryTake(holder);
    if (release) return release;
    if (!waiting || !queued.hasFreeSlot(waiting, holder)) throw refusal();
    return waitForSlot(holder, waiting.maxMs, signal);
  }

  /** Does `work` while holding a slot. Errors: those of `take` and `work`. */
  async function run<T>(
    holder: SlotHolder,
    signal: AbortSignal | undefined,
    work: () => Promise<T>,
  ): Promise<T> {
    const release = await take(holder, signal);
    try {
      return await work();
    } finally {
      release();
    }
  }

  const longHeld = createCount();

  /**
   * As `run`, for `work` that reads what a client sends. Once it takes long, it must be among the few that
   * may: slow clients would hold up all others. Otherwise `source` ends with `too_many_requests`.
   */
  const receive = <T>(
    holder: SlotHolder,
    signal: AbortSignal | undefined,
    source: Readable,
    work: () => Promise<T>,
  ): Promise<T> =>
    run(holder, signal, async () => {
      if (!long) return work();
      let isLong = false;
      const timer = setTimeout(() => {
        isLong = longHeld.hasFreeSlot(long, holder);
        if (isLong) longHeld.add(holder, 1);
        else source.destroy(refusal());
      }, long.afterMs);
      try {
        return await work();
      } finally {
        clearTimeout(timer);
        if (isLong) longHeld.add(holder, -1);
      }
    });

  return {
    /** How many are held. */
    held: (): number => held.total(),
    /** Takes a slot if there is one now. */
    tryTake,
    take,
    /**
     * Takes a slot now, or `count` of them if one is free: what is larger than a share is possible, alone.
     * Error: `too_many_requests`.
     */
    takeNow(holder: SlotHolder, count = 1): Release {
      const release = tryTake(holder, count);
      if (!release) throw refusal();
      return release;
    },
    /** Takes `count` slots, also if none is free: for what cannot be refused any more. */
    takeAnyway: (holder: SlotHolder, count: number): Release => occupy(holder, count),
    /**
     * Error: `too_many_requests` if the caller holds its share, or some of that of its tenant, which is used up. Who
     * holds nothing can act until the tenant holds twice its share: on those who do, for example.
     */
    requireShare(holder: SlotHolder): void {
      const { perCaller, perTenant } = bounds;
      const ofTenant = held.ofCaller(holder) > 0 ? perTenant : 2 * perTenant;
      if (!held.hasFreeSlot({ total: Infinity, perCaller, perTenant: ofTenant }, holder))
        throw refusal();
    },
    run,
    receive,
  };
}
