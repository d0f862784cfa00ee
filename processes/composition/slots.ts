import type { Config } from '../../platform/config.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { createSlots, sharesOf } from '../../platform/slots.ts';

/** What callers can hold of this process for longer than a moment, and how much of it each may. */
export function composeSlots(config: Pick<Config, 'maxEventStreams'>, metrics: Metrics) {
  const slots = { ...streamSlots(config), ...requestSlots(), ...inventorySlots() };
  metrics.measureSlots(slots);
  const unread = unreadBytes();
  metrics.measureUnread(unread);
  return { ...slots, unreadBytes: unread };
}

/** Bytes of large responses that clients have not read yet. Each is a slot. */
const unreadBytes = () =>
  createSlots({ of: 'large responses', retryAfterSeconds: 5, ...sharesOf(256 * 1_048_576) });

const streamSlots = ({ maxEventStreams }: Pick<Config, 'maxEventStreams'>) => ({
  logStreams: createSlots({ of: 'log streams', retryAfterSeconds: 5, ...sharesOf(200) }),
  eventStreams: createSlots({
    of: 'streams of events',
    retryAfterSeconds: 5,
    ...sharesOf(maxEventStreams),
  }),
});

const requestSlots = () => ({
  exports: createSlots({ of: 'exports', retryAfterSeconds: 5, ...sharesOf(40) }),
  /** Fewer than the connections to the store of archives, which backups and runners need as well. */
  downloads: createSlots({
    of: 'downloads of artifacts',
    retryAfterSeconds: 5,
    ...{ total: 10, perTenant: 4, perCaller: 2 },
    waiting: { ...sharesOf(40), maxMs: 10_000 },
  }),
  waits: createSlots({ of: 'waiting requests', retryAfterSeconds: 5, ...sharesOf(1_000) }),
  uploads: createSlots({
    of: 'uploads',
    retryAfterSeconds: 5,
    ...{ total: 16, perTenant: 4, perCaller: 2 },
    waiting: { ...sharesOf(40), maxMs: 10_000 },
    long: { total: 8, perTenant: 2, perCaller: 1, afterMs: 60_000 },
  }),
  /** Files that runners send. Up to 16 MiB of each are in memory. They share the connections to the store. */
  artifactUploads: createSlots({
    of: 'uploads of artifacts',
    retryAfterSeconds: 5,
    ...{ total: 10, perTenant: 5, perCaller: 2 },
    waiting: { total: 400, perTenant: 200, perCaller: 20, maxMs: 10_000 },
    long: { total: 6, perTenant: 2, perCaller: 1, afterMs: 60_000 },
  }),
  /** Many lines of logs that runners send together. The wait is shorter than that of a runner with a short lease. */
  logLines: createSlots({
    of: 'large reports of lines',
    retryAfterSeconds: 1,
    ...{ total: 16, perTenant: 4, perCaller: 4 },
    waiting: { total: 100, perTenant: 25, perCaller: 25, maxMs: 500 },
    long: { total: 8, perTenant: 2, perCaller: 2, afterMs: 2_000 },
  }),
  /** Counts of what a purge would delete. Each reads many records. */
  previews: createSlots({
    of: 'previews of retention',
    retryAfterSeconds: 5,
    ...{ total: 2, perTenant: 1, perCaller: 1 },
    waiting: { total: 16, perTenant: 4, perCaller: 2, maxMs: 5_000 },
  }),
  webhookTests: createSlots({
    of: 'webhook tests',
    retryAfterSeconds: 5,
    ...{ total: 20, perTenant: 3, perCaller: 3 },
  }),
});

/** Plans, allocations and writes of many records. */
const inventorySlots = () => ({
  /** Plans that are not written. They keep connections and processor time busy for seconds. */
  questions: createSlots({
    of: 'validations',
    retryAfterSeconds: 5,
    ...{ total: 4, perTenant: 2, perCaller: 1 },
    waiting: { total: 40, perTenant: 16, perCaller: 8, maxMs: 2_000 },
  }),
  /** Reads that search, count or explain. */
  expensiveReads: createSlots({
    of: 'expensive reads',
    retryAfterSeconds: 5,
    ...{ total: 8, perTenant: 2, perCaller: 1 },
    waiting: { total: 400, perTenant: 200, perCaller: 100, maxMs: 10_000 },
  }),
  /** Searches for free networks. Each is short, and many may wait. */
  allocations: createSlots({
    of: 'allocations of prefixes',
    retryAfterSeconds: 5,
    ...{ total: 12, perTenant: 6, perCaller: 4 },
    waiting: { total: 400, perTenant: 200, perCaller: 100, maxMs: 10_000 },
  }),
  /** Writes of many records. */
  largeWrites: createSlots({
    of: 'bulk writes',
    retryAfterSeconds: 5,
    ...{ total: 6, perTenant: 3, perCaller: 2 },
    waiting: { total: 100, perTenant: 40, perCaller: 20, maxMs: 10_000 },
  }),
  /**
   * Dry runs of imports. Each has up to 300,000 records in memory. Few wait, and not for long: their
   * jobs occupy slots. The others are further attempts.
   */
  dryRuns: createSlots({
    of: 'dry runs of imports',
    retryAfterSeconds: 60,
    ...{ total: 2, perTenant: 1, perCaller: 1 },
    waiting: { total: 4, perTenant: 1, perCaller: 1, maxMs: 10_000 },
  }),
  /** Transactions of imports, each with up to 500 rows. Imports take turns without a time limit. */
  importWrites: createSlots({
    of: 'imports',
    retryAfterSeconds: 10,
    ...{ total: 2, perTenant: 1, perCaller: 1 },
    waiting: { total: 400, perTenant: 200, perCaller: 200 },
  }),
  /** Transactions of imports of the mode `all`: each writes a whole file. */
  wholeImports: createSlots({
    of: 'imports of the mode all',
    retryAfterSeconds: 10,
    ...{ total: 2, perTenant: 1, perCaller: 1 },
    waiting: { total: 40, perTenant: 8, perCaller: 8, maxMs: 10_000 },
  }),
});
