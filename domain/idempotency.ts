/** How long an `Idempotency-Key` and its answer are remembered. */
export const KEEP_KEYS_MS = 24 * 3_600_000;

/** How long a request may work before another with the same key may take over. */
export const KEY_LEASE_MS = 60_000;
