import type { Config } from '../../platform/config.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { boundsOf, createSlots, sharesOf, streamSharesOf } from '../../platform/slots.ts';

/** What callers can hold of this process for longer than a moment, and how much of it each may. */
export function composeSlots(config: Pick<Config, 'maxEventStreams'>, metrics: Metrics) {
  const slots = { ...streamSlots(config), ...requestSlots(), ...inventorySlots() };
  metrics.measureSlots(slots);
  const unread = unreadBytes();
  metrics.measureUnread(unread);
  return { ...slots, unreadBytes: unread };
}

/** Bytes of large responses that clients have not read yet. Each is a slot. */
const unreadBytes = () => createSlots({ of: 'large responses', ...sharesOf(256 * 1_048_576) });

const streamSlots = ({ maxEventStreams }: Pick<Config, 'maxEventStreams'>) => ({
  logStreams: createSlots({ of: 'log streams', ...streamSharesOf(200) }),
  eventStreams: createSlots({ of: 'streams of events', ...streamSharesOf(maxEventStreams) }),
});

const requestSlots = () => ({
  exports: createSlots({ of: 'exports', ...sharesOf(40) }),
  /** Fewer than the connections to the store of archives, which backups and runners need as well. */
  downloads: createSlots({
    of: 'downloads of artifacts',
    ...boundsOf(10, 4, 2),
    waiting: { ...sharesOf(40), maxMs: 10_000 },
  }),
  waits: createSlots({ of: 'waiting requests', ...sharesOf(1_000) }),
  uploads: createSlots({
    of: 'uploads',
    ...boundsOf(16, 4, 2),
    waiting: { ...sharesOf(40), maxMs: 10_000 },
    long: { ...boundsOf(8, 2, 1), afterMs: 60_000 },
  }),
  /** Files that runners send. Up to 16 MiB of each are in memory. They share the connections to the store. */
  artifactUploads: createSlots({
    of: 'uploads of artifacts',
    ...boundsOf(10, 5, 2),
    waiting: { ...boundsOf(400, 200, 20), maxMs: 10_000 },
    long: { ...boundsOf(6, 2, 1), afterMs: 60_000 },
  }),
  /** Many lines of logs that runners send together. The wait is shorter than that of a runner with a short lease. */
  logLines: createSlots({
    of: 'large reports of lines',
    retryAfterSeconds: 1,
    ...boundsOf(16, 4, 4),
    waiting: { ...boundsOf(100, 25, 25), maxMs: 500 },
    long: { ...boundsOf(8, 2, 2), afterMs: 2_000 },
  }),
  /** Counts of what a purge would delete. Each reads many records. */
  previews: createSlots({
    of: 'previews of retention',
    ...boundsOf(2, 1, 1),
    waiting: { ...boundsOf(16, 4, 2), maxMs: 5_000 },
  }),
  webhookTests: createSlots({ of: 'webhook tests', ...boundsOf(20, 3, 3) }),
});

/** Plans, allocations and writes of many records. */
const inventorySlots = () => ({
  /** Plans that are not written. They keep connections and processor time busy for seconds. */
  questions: createSlots({
    of: 'validations',
    ...boundsOf(4, 2, 1),
    waiting: { ...boundsOf(40, 16, 8), maxMs: 2_000 },
  }),
  /** Reads that search, count or explain. */
  expensiveReads: createSlots({
    of: 'expensive reads',
    ...boundsOf(8, 2, 1),
    waiting: { ...boundsOf(400, 200, 100), maxMs: 10_000 },
  }),
  /** Searches for free networks. Each is short, and many may wait. */
  allocations: createSlots({
    of: 'allocations of prefixes',
    ...boundsOf(12, 6, 4),
    waiting: { ...boundsOf(400, 200, 100), maxMs: 10_000 },
  }),
  /** Writes of many records. */
  largeWrites: createSlots({
    of: 'bulk writes',
    ...boundsOf(6, 3, 2),
    waiting: { ...boundsOf(100, 40, 20), maxMs: 10_000 },
  }),
  /**
   * Dry runs of imports. Each has up to 300,000 records in memory. Few wait, and not for long: their
   * jobs occupy slots. The others are further attempts.
   */
  dryRuns: createSlots({
    of: 'dry runs of imports',
    retryAfterSeconds: 60,
    ...boundsOf(2, 1, 1),
    waiting: { ...boundsOf(4, 1, 1), maxMs: 10_000 },
  }),
  /** Transactions of imports, each with up to 500 rows. Imports take turns without a time limit. */
  importWrites: createSlots({
    of: 'imports',
    retryAfterSeconds: 10,
    ...boundsOf(2, 1, 1),
    waiting: boundsOf(400, 200, 200),
  }),
  /** Transactions of imports of the mode `all`: each writes a whole file. */
  wholeImports: createSlots({
    of: 'imports of the mode all',
    retryAfterSeconds: 10,
    ...boundsOf(2, 1, 1),
    waiting: { ...boundsOf(40, 8, 8), maxMs: 10_000 },
  }),
});
