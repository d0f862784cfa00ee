import { localNow } from '../../parts/clock.ts';
/**
 * Locks that the tabs of a browser share. The Web Locks API exists on https and on this machine only;
 * elsewhere a lease in the local storage decides which tab leads, and other work is not locked.
 */
const LEASE_MS = 6_000;
const RENEW_MS = 2_000;
/** Two tabs that take a lease in the same moment both read afterwards who has it. */
const AGREE_MS = 150;

const hasLocks = (): boolean => 'locks' in navigator;

/** Runs `work` in one tab at a time. */
export const withLock = <T>(name: string, work: () => Promise<T>): Promise<T> =>
  hasLocks() ? navigator.locks.request(name, work) : work();

/** True if another tab holds the lock. */
export async function isHeldElsewhere(name: string, holdsItself: boolean): Promise<boolean> {
  if (holdsItself) return false;
  if (!hasLocks()) return readLease(name) !== undefined;
  const { held = [] } = await navigator.locks.query();
  return held.some((lock) => lock.name === name);
}

/**
 * Competes for the lock until the function that it returns is called. `onChange` says that this tab is the
 * one of the browser that has it, or has it no longer.
 */
export function compete(name: string, onChange: (leads: boolean) => void): () => void {
  let leads = false;
  const change = (next: boolean) => {
    if (leads === next) return;
    leads = next;
    onChange(next);
  };
  const stop = hasLocks() ? holdLock(name, change) : keepLease(name, change);
  return () => {
    stop();
    change(false);
  };
}

function holdLock(name: string, change: (leads: boolean) => void): () => void {
  const stopped = new AbortController();
  const { promise: held, resolve: release } = Promise.withResolvers<undefined>();
  const lead = () => {
    change(true);
    return held;
  };
  navigator.locks.request(name, { signal: stopped.signal }, lead).catch(() => undefined);
  return () => {
    stopped.abort();
    release(undefined);
  };
}

type Lease = { owner: string; until: number };

function readLease(name: string): Lease | undefined {
  try {
    const lease = JSON.parse(localStorage.getItem(name) ?? 'null') as Lease | null;
    if (lease === null) return undefined;
    const leftMs = lease.until - localNow();
    // One with more time left than any has is older than a change of the clock.
    return leftMs > 0 && leftMs <= LEASE_MS ? lease : undefined;
  } catch {
    return undefined;
  }
}

function writeLease(name: string, lease: Lease): void {
  try {
    localStorage.setItem(name, JSON.stringify(lease));
  } catch {
    // Storage is disabled: no tab leads, and each helps itself.
  }
}

function keepLease(name: string, change: (leads: boolean) => void): () => void {
  const owner = `${localNow()}-${Math.random()}`;
  let agreement: ReturnType<typeof setTimeout> | undefined;
  const isOwn = () => readLease(name)?.owner === owner;
  const tryToLead = () => {
    // A tab in the background is slow, so that another one may have taken the lease.
    if (readLease(name) !== undefined && !isOwn()) {
      change(false);
      return;
    }
    writeLease(name, { owner, until: localNow() + LEASE_MS });
    agreement = setTimeout(() => change(isOwn()), AGREE_MS);
  };
  const release = () => {
    if (isOwn()) localStorage.removeItem(name);
  };
  tryToLead();
  const renewal = setInterval(tryToLead, RENEW_MS);
  addEventListener('pagehide', release);
  return () => {
    clearInterval(renewal);
    clearTimeout(agreement);
    removeEventListener('pagehide', release);
    release();
  };
}
