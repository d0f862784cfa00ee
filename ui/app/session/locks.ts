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

/** Calls `lead` once, when this tab is the one of the browser that holds the lock; it keeps it. */
export function whenLeader(name: string, lead: () => void): void {
  if (!hasLocks()) {
    keepLease(name, lead);
    return;
  }
  void navigator.locks.request(name, () => {
    lead();
    return new Promise<never>(() => undefined);
  });
}

type Lease = { owner: string; until: number };

function readLease(name: string): Lease | undefined {
  try {
    const lease = JSON.parse(localStorage.getItem(name) ?? 'null') as Lease | null;
    return lease !== null && lease.until > Date.now() ? lease : undefined;
  } catch {
    return undefined;
  }
}

function keepLease(name: string, lead: () => void): void {
  const owner = `${Date.now()}-${Math.random()}`;
  let leads = false;
  const write = () => {
    const lease: Lease = { owner, until: Date.now() + LEASE_MS };
    localStorage.setItem(name, JSON.stringify(lease));
  };
  const tryToLead = () => {
    const holder = readLease(name)?.owner;
    if (holder !== undefined && holder !== owner) return;
    write();
    if (leads) return;
    setTimeout(() => {
      if (leads || readLease(name)?.owner !== owner) return;
      leads = true;
      lead();
    }, AGREE_MS);
  };
  tryToLead();
  setInterval(tryToLead, RENEW_MS);
  addEventListener('pagehide', () => {
    if (readLease(name)?.owner === owner) localStorage.removeItem(name);
  });
}
