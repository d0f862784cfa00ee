import { createSlots, sharesOf } from '../../platform/slots.ts';

/** What callers can hold of this process for longer than a moment, and how much of it each may. */
export const composeSlots = () => ({
  logStreams: createSlots({ of: 'log streams', retryAfterSeconds: 5, ...sharesOf(200) }),
  exports: createSlots({ of: 'exports', retryAfterSeconds: 5, ...sharesOf(40) }),
  waits: createSlots({ of: 'waiting requests', retryAfterSeconds: 5, ...sharesOf(1_000) }),
  uploads: createSlots({
    of: 'uploads',
    retryAfterSeconds: 5,
    ...{ total: 16, perTenant: 4, perCaller: 2 },
    waiting: { ...sharesOf(40), maxMs: 10_000 },
  }),
  webhookTests: createSlots({
    of: 'webhook tests',
    retryAfterSeconds: 5,
    ...{ total: 20, perTenant: 3, perCaller: 3 },
  }),
});
