import { Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';
import { MetricsBuffer, type BufferedMetricUpdate } from '@temporalio/worker';

/** Updates that are kept until they are read; those beyond are lost, and the SDK says so. */
const MAX_UPDATES = 50_000;

/** Updates are read this often, whether the metrics are read or not. */
const DRAIN_MS = 1_000;

/**
 * Series of one metric. Nearly all labels are names in the code; the types of activities can be names
 * that others choose, so that there is a limit.
 */
const MAX_SERIES = 300;

/** The tags that become labels. Others are the same for all series of a process, or name single things. */
const LABELS = [
  'operation',
  'status_code',
  'task_queue',
  'workflow_type',
  'activity_type',
  'poller_type',
  'worker_type',
  'failure_reason',
] as const;

/** Boundaries in seconds. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

type Labels = Partial<Record<(typeof LABELS)[number], string>>;

type Series = { update(labels: Labels, value: number): void; seen: Set<string> };

type Buffer = { retrieveUpdates(): Iterable<BufferedMetricUpdate> };

/** The name as Prometheus wants it: with its unit, and `_total` for a counter. */
function promName(ofSdk: string, kind: string): string {
  const name = ofSdk.startsWith('temporal_') ? ofSdk : `temporal_${ofSdk}`;
  if (kind === 'counter') return `${name}_total`;
  return kind === 'histogram' && name.endsWith('_latency') ? `${name}_seconds` : name;
}

function labelsOf(attributes: BufferedMetricUpdate['attributes']): { labels: Labels; id: string } {
  const labels: Labels = {};
  for (const label of LABELS) {
    const value = attributes[label];
    if (value !== undefined) labels[label] = String(value);
  }
  return { labels, id: LABELS.map((label) => labels[label]).join('\0') };
}

/**
 * The metrics of the Temporal SDK, in Prometheus text format. The SDK counts in native code and hands
 * over single updates: they are added up here, so that they appear beside those of the product.
 */
export function createSdkMetrics(buffer: Buffer) {
  const registry = new Registry();
  const metrics = new Map<string, Series>();
  const labelsOfAttributes = new WeakMap<object, ReturnType<typeof labelsOf>>();

  function create({ metric: { kind, name: ofSdk, description } }: BufferedMetricUpdate): Series {
    const help = description ?? `${ofSdk} of the Temporal SDK.`;
    const options = {
      name: promName(ofSdk, kind),
      help,
      labelNames: LABELS,
      registers: [registry],
    };
    const seen = new Set<string>();
    if (kind === 'counter') {
      const counter = new Counter(options);
      return { update: (labels, value) => counter.inc(labels, value), seen };
    }
    if (kind === 'histogram') {
      const histogram = new Histogram({ ...options, buckets: BUCKETS });
      return { update: (labels, value) => histogram.observe(labels, value), seen };
    }
    const gauge = new Gauge(options);
    const set = (labels: Labels, value: number) => gauge.set(labels, value);
    const add = (labels: Labels, value: number) => gauge.inc(labels, value);
    return { update: kind === 'gauge' ? set : add, seen };
  }

  function add(update: BufferedMetricUpdate): void {
    const { metric, attributes, value } = update;
    let series = metrics.get(metric.name);
    if (!series) metrics.set(metric.name, (series = create(update)));
    // The SDK repeats its objects with attributes.
    let known = labelsOfAttributes.get(attributes);
    if (!known) labelsOfAttributes.set(attributes, (known = labelsOf(attributes)));
    const { labels, id } = known;
    if (!series.seen.has(id) && series.seen.size >= MAX_SERIES) return;
    series.seen.add(id);
    series.update(labels, value);
  }

  function drain(): void {
    for (const update of buffer.retrieveUpdates()) add(update);
  }

  return {
    drain,
    text(): Promise<string> {
      drain();
      return registry.metrics();
    },
  };
}

let ofProcess: ReturnType<typeof createSdkMetrics> | undefined;

/** Makes the buffer for the runtime of the SDK, of which there is one in a process. */
export function collectSdkMetrics(): MetricsBuffer {
  const buffer = new MetricsBuffer({ maxBufferSize: MAX_UPDATES, useSecondsForDurations: true });
  const metrics = createSdkMetrics(buffer);
  ofProcess = metrics;
  setInterval(metrics.drain, DRAIN_MS).unref();
  return buffer;
}

/** The metrics of the SDK in this process; nothing where they are not collected. */
export const sdkMetricsText = (): Promise<string> => ofProcess?.text() ?? Promise.resolve('');
