import { collectDefaultMetrics, Counter, Gauge, Registry } from '@prometheus-io/client';
import { askWithin } from './metrics/askWithin.ts';
import { databasePoolMetrics } from './metrics/databasePool.ts';
import { httpDurations, jobDurations, workDurations } from './metrics/durations.ts';
import { installationGauges } from './metrics/installationGauges.ts';
import { processGauges, type ProcessInfo } from './metrics/processGauges.ts';

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

export type MetricDescription = {
  name: string;
  type: string;
  help: string;
  labels: readonly string[];
};
type RegisteredMetric = Omit<MetricDescription, 'labels'> & { labelNames: readonly string[] };

/** What a process is, and metrics of others that it shows, in text format. */
type MetricsOptions = ProcessInfo & { others?: () => Promise<string> };

/** Creates the metrics of a process. `text()` returns them in Prometheus text format. */
export function createMetrics({ others, ...info }: MetricsOptions) {
  const registry = new Registry();
  const registers = [registry];
  const node = nodeMetrics();
  return {
    contentType: registry.contentType,
    async text(): Promise<string> {
      const texts = await Promise.all([node.metrics(), registry.metrics(), others?.() ?? '']);
      return texts.join('');
    },
    /** The metrics of the product, for their documentation. */
    describe: (): MetricDescription[] =>
      // Metrics know their labels; the types of the library do not say so.
      (registry.getMetricsAsArray() as unknown as RegisteredMetric[]).map(
        ({ name, type, help, labelNames }) => ({ name, type, help, labels: labelNames }),
      ),
    /** Sets how the state of retention is read when the metrics are. */
    measureRetention: retentionGauges(registers),
    /** Sets how the state of the installation is read when the metrics are. */
    measureInstallation: installationGauges(registers),
    ...processGauges(registers, info),
    ...httpDurations(registers),
    ...jobDurations(registers),
    ...workDurations(registers),
    ...workCounters(registers),
    ...eventCounters(registers),
    ...databasePoolMetrics(registers),
  };
}

/** The metrics of jobs, the outbox, deliveries, retention and denials. */
const workCounters = (registers: Registry[]) => ({
  jobsFinished: new Counter({
    name: 'holdfast_jobs_finished_total',
    help: 'Finished jobs, by type and final status. Declared commands have the type command.',
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
    help: 'Due outbox tasks, up to 10,000, as last counted by this process.',
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
});
