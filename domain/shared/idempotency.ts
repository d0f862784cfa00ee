import { DAY_MS } from './durations.ts';

/** How long an `Idempotency-Key` and its response are kept. */
export const KEY_RETENTION_MS = DAY_MS;

/** After this time, another request with the same key may take over an unfinished one. */
export const KEY_LEASE_MS = 60_000;
