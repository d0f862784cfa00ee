import { setTimeout as sleep } from 'node:timers/promises';
import { databasePoolMetrics } from './metrics/databasePool.ts';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';

export type Metrics = ReturnType<typeof createMetrics>;

let ofNode: Registry | undefined;

/**
 * The metrics of Node, once a process: each collection has timers and observers that never stop. The utilisation of
 * the event loop is measured once a second, since each measurement changes five digests.
 */
function nodeMetrics(): Registry {
  if (!ofNode) {
    ofNode = new Registry();
    collectDefaultMetrics({ register: ofNode, eventLoopUtilizationTimeout: 1_000 });
  }
  return ofNode;
}

/** How far the purge is behind, and how many log lines are outside of all months. */
type RetentionState = { lagSeconds: number; linesOutside: number };
type ReadRetention = () => Promise<RetentionState>;

/** How long a scrape waits for the database. */
const READ_LIMIT_MS = 1_000;

/**
 * Asks one question at a time and waits at most `limitMs` for its answer; undefined if there is none
 * in time. The metrics that it is for keep their last value then, and the others are still answered.
 */
export function askWithin<T>(
  limitMs: number,
  read: () => Promise<T>,
): () => Promise<T | undefined> {
  let asking: Promise<T | undefined> | undefined;
  return async () => {
    asking ??= read()
      .catch(() => undefined)
      .finally(() => (asking = undefined));
    const waiting = new AbortController();
    const limit = sleep(limitMs, undefined, { signal: waiting.signal }).catch(() => undefined);
    try {
      return await Promise.race([asking, limit]);
    } finally {
      waiting.abort();
    }
  };
}

/** Registers the metrics of retention. Returns what sets how its state is read. */
function retentionGauges(registers: Registry[]): (read: ReadRetention) => void {
  let readRetention: ReadRetention = () => Promise.resolve({ lagSeconds: 0, linesOutside: 0 });
  const ask = askWithin(READ_LIMIT_MS, () => readRetention());
  const gauge = (name: string, help: string, of: keyof RetentionState) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        const state = await ask();
        if (state) this.set(state[of]);
      },
    });
  gauge(
    'holdfast_retention_lag_seconds',
    'Seconds since the start of the last purge that left nothing due.',
    'lagSeconds',
  );
  gauge(
    'holdfast_retention_log_lines_outside_months',
    'Log lines, estimated, that are in no month: they are purged one by one.',
    'linesOutside',
  );
  return (read) => void (readRetention = read);
}

/** Registers the metric of slots. Returns what sets which slots there are, by name. */
function slotsGauge(registers: Registry[]) {
  let slots: Readonly<Record<string, { held(): number }>> = {};
  new Gauge({
    name: 'holdfast_slots_held',
    help: 'Slots that callers hold in this process: open streams, exports and the like, by kind.',
    labelNames: ['kind'] as const,
    registers,
    collect() {
      for (const [kind, { held }] of Object.entries(slots)) this.set({ kind }, held());
    },
  });
  return (all: typeof slots): void => void (slots = all);
}

/** The metrics of events: what is published, and what streams read and send. */
const eventCounters = (registers: Registry[]) => ({
  eventsPublished: new Counter({
    name: 'holdfast_events_published_total',
    help: 'Events that this process published.',
    registers,
  }),
  eventLogReads: new Counter({
    name: 'holdfast_event_log_reads_total',
    help:
      'Reads of the event log for streams of events: by the process, for all followers, and by ' +
      'single followers that are behind.',
    labelNames: ['by'] as const,
    registers,
  }),
  eventsStreamed: new Counter({
    name: 'holdfast_events_streamed_total',
    help: 'Events sent in streams of events, counted once for each follower.',
    registers,
  }),
});

/** Creates the metrics of a process. `text()` returns them in Prometheus text format. */
export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  const measureRetention = retentionGauges(registers);
  const measureSlots = slotsGauge(registers);
  const node = nodeMetrics();
  return {
    contentType: registry.contentType,
    text: async () => `${await node.metrics()}${await registry.metrics()}`,
    /** Sets how the state of retention is read when the metrics are. */
    measureRetention,
    /** Sets of which slots the metrics show how many are held. */
    measureSlots,
    httpSeconds: new Histogram({
      name: 'holdfast_http_request_seconds',
      help: 'Duration of HTTP requests in seconds, by method, route and status.',
      labelNames: ['method', 'path', 'status'] as const,
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
      registers,
    }),
    jobsFinished: new Counter({
      name: 'holdfast_jobs_finished_total',
      help: 'Finished jobs, by type and final status.',
      labelNames: ['type', 'status'] as const,
      registers,
    }),
    dispatches: new Counter({
      name: 'holdfast_dispatches_total',
      help: 'Outbox tasks sent to Temporal, by path (inline, relay) and outcome (done, failed).',
      labelNames: ['path', 'outcome'] as const,
      registers,
    }),
    outboxRows: new Gauge({
      name: 'holdfast_outbox_rows',
      help: 'Pending outbox tasks, as last counted by this process.',
      registers,
    }),
    ...eventCounters(registers),
    ...databasePoolMetrics(registers),
    deliveryAttempts: new Counter({
      name: 'holdfast_delivery_attempts_total',
      help: 'Delivery attempts to webhooks, by outcome (succeeded, failed).',
      labelNames: ['outcome'] as const,
      registers,
    }),
    purgedRows: new Counter({
      name: 'holdfast_retention_purged_rows_total',
      help: 'Rows that retention has deleted, by kind.',
      labelNames: ['kind'] as const,
      registers,
    }),
    denied: new Counter({
      name: 'holdfast_denied_total',
      help: 'Denied requests, by audit action (access.denied, identity.untrusted).',
      labelNames: ['action'] as const,
      registers,
    }),
  };
}
