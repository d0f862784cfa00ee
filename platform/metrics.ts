import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';

export type Metrics = ReturnType<typeof createMetrics>;

/** The counters of one process, in Prometheus text form through `registry.metrics()`. */
export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  return {
    registry,
    httpSeconds: new Histogram({
      name: 'holdfast_http_request_seconds',
      help: 'Time to answer a request, by route and status.',
      labelNames: ['method', 'path', 'status'] as const,
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
      registers,
    }),
    jobsFinished: new Counter({
      name: 'holdfast_jobs_finished_total',
      help: 'Jobs that ended, by type and status.',
      labelNames: ['type', 'status'] as const,
      registers,
    }),
    dispatches: new Counter({
      name: 'holdfast_dispatches_total',
      help: 'Calls to Temporal, by way (quick, relay) and outcome (done, failed).',
      labelNames: ['way', 'outcome'] as const,
      registers,
    }),
    outboxRows: new Gauge({
      name: 'holdfast_outbox_rows',
      help: 'Calls to Temporal that are due and not yet made, as this process last saw.',
      registers,
    }),
    eventsPublished: new Counter({
      name: 'holdfast_events_published_total',
      help: 'Events that this process has published.',
      registers,
    }),
    deliveryAttempts: new Counter({
      name: 'holdfast_delivery_attempts_total',
      help: 'Attempts to deliver an event to a webhook, by outcome (succeeded, failed).',
      labelNames: ['outcome'] as const,
      registers,
    }),
    refused: new Counter({
      name: 'holdfast_refused_total',
      help: 'Denied attempts, by action: access.denied, identity.untrusted.',
      labelNames: ['action'] as const,
      registers,
    }),
  };
}
