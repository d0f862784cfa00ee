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

/** Creates the metrics of a process. `text()` returns them in Prometheus text format. */
export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  let readRetentionLag: () => Promise<number> = () => Promise.resolve(0);
  new Gauge({
    name: 'holdfast_retention_lag_seconds',
    help: 'Seconds since the start of the last purge that left nothing due.',
    registers,
    async collect() {
      // Without a database the metric keeps its last value, and the others are still answered.
      const lag = await readRetentionLag().catch(() => undefined);
      if (lag !== undefined) this.set(lag);
    },
  });
  const node = nodeMetrics();
  return {
    contentType: registry.contentType,
    text: async () => `${await node.metrics()}${await registry.metrics()}`,
    /** Sets how the lag of the purge is read when the metrics are. */
    measureRetentionLag: (read: () => Promise<number>): void => void (readRetentionLag = read),
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
    eventsPublished: new Counter({
      name: 'holdfast_events_published_total',
      help: 'Events that this process published.',
      registers,
    }),
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
