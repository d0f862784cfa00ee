import { isTenantKey } from './connectionUser.ts';

/** How long a tenant counts as active after it has last used the database, in milliseconds. */
const ACTIVE_MS = 250;

type Use = { key: string; at: number };

/** Which users, by key, have used something within the last `activeMs`. */
export function createActivity(activeMs: number, now: () => number) {
  // The last use, and the last one of another key: enough to answer for any key.
  let latest: Use | undefined;
  let other: Use | undefined;
  return {
    note(key: string): void {
      if (latest && latest.key !== key) other = latest;
      latest = { key, at: now() };
    },
    othersAreActive(key: string): boolean {
      const use = latest?.key === key ? other : latest;
      return use !== undefined && now() - use.at < activeMs;
    },
  };
}

/**
 * Which tenants use this process now. Long work of one tenant leaves time to the others while they
 * are active, and to nobody else. Keys are those of users of connections.
 */
export function createTenantActivity(now: () => number = () => performance.now()) {
  const { note, othersAreActive } = createActivity(ACTIVE_MS, now);
  return {
    othersAreActive,
    note(key: string): void {
      // The caller of a request is not known yet.
      if (isTenantKey(key)) note(key);
    },
  };
}

/** The activity of all tenants in this process. */
export const tenantActivity = createTenantActivity();
