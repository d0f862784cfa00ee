import { AsyncLocalStorage } from 'node:async_hooks';
import {
  diag,
  DiagLogLevel,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type Span,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
  type Resource,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
} from '@opentelemetry/sdk-trace';
import { within } from '../within.ts';
import type { ActiveSpan, ProcessIdentity, SpanOptions, TraceParent, Tracer } from './tracer.ts';
import type { TracingConfig } from './config.ts';
import { formatTraceParent, parseTraceParent } from './traceParent.ts';

/** How long the last spans may take when the process stops, in milliseconds. */
const STOP_LIMIT_MS = 3_000;

const KINDS = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const;

function samplerOf({ sampler, ratio }: TracingConfig): Sampler {
  const roots = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  };
  const name = sampler.replace('parentbased_', '') as keyof typeof roots;
  const root = roots[name]();
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

/** What each span says about its process. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` come first. */
function resourceOf({ role, instance, version }: ProcessIdentity): Resource {
  const own = resourceFromAttributes({
    'service.name': `holdfast-${role}`,
    'service.version': version,
    'service.instance.id': instance,
  });
  const detectors = [resourceAttributesEnvDetector, serviceNameEnvDetector];
  return own.merge(detectResources({ detectors }));
}

/** The exporter reports errors as JSON with their stack. */
function messageOf(text: string): string {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === 'string' ? message : text;
  } catch {
    return text;
  }
}

/** Passes on what OpenTelemetry says about itself, such as that a collector cannot be reached. */
function reportDiagnostics(warn: (message: string) => void): void {
  const ignore = () => undefined;
  const report = (text: string) => warn(messageOf(text));
  diag.setLogger(
    { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

const activeSpan = (span: Span): ActiveSpan => ({
  set: (attributes) => void span.setAttributes(attributes),
  rename: (name) => void span.updateName(name),
  fail: (message) => void span.setStatus({ code: SpanStatusCode.ERROR, message }),
});

/** Spans of the process, which are sent to a collector in batches; those beyond the queue are dropped. */
export function createOpenTelemetry(
  config: TracingConfig,
  process: ProcessIdentity,
  warn: (message: string) => void,
): Tracer {
  const provider = new TracerProvider({
    resource: resourceOf(process),
    sampler: samplerOf(config),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter(),
        maxQueueSize: config.queueSize,
        maxExportBatchSize: Math.min(config.batchSize, config.queueSize),
        scheduledDelayMillis: config.delayMs,
        exportTimeoutMillis: config.timeoutMs,
      }),
    ],
  });
  const tracer = provider.getTracer('holdfast', process.version);
  const storage = new AsyncLocalStorage<Context>();
  // What OpenTelemetry says belongs to no span, though a span may have caused the export.
  reportDiagnostics((message) => storage.run(ROOT_CONTEXT, () => warn(message)));
  const active = () => storage.getStore() ?? ROOT_CONTEXT;
  const position = () => trace.getSpanContext(active());

  /** The context for a child of `parent`: the current one, if it is in the same trace already. */
  function contextOf(parent: TraceParent | undefined): Context {
    const remote = parent === undefined ? undefined : parseTraceParent(parent);
    if (!remote) return parent === undefined ? active() : ROOT_CONTEXT;
    if (position()?.traceId === remote.traceId) return active();
    return trace.setSpanContext(ROOT_CONTEXT, { ...remote, isRemote: true });
  }

  async function span<T>(
    name: string,
    parent: TraceParent | undefined,
    { kind = 'internal', attributes = {} }: SpanOptions,
    work: (span: ActiveSpan) => Promise<T>,
  ): Promise<T> {
    const context = contextOf(parent);
    const made = tracer.startSpan(name, { kind: KINDS[kind], attributes }, context);
    try {
      return await storage.run(trace.setSpan(context, made), () => work(activeSpan(made)));
    } catch (error) {
      // The name only: a message may have data of a record.
      const message = error instanceof Error ? error.name : 'Error';
      made.setStatus({ code: SpanStatusCode.ERROR, message });
      throw error;
    } finally {
      made.end();
    }
  }

  return {
    span,
    outside: (work) => storage.run(ROOT_CONTEXT, work),
    current() {
      const context = position();
      return context && formatTraceParent(context);
    },
    traceId: () => position()?.traceId,
    async stop() {
      await within(STOP_LIMIT_MS, provider.shutdown()).catch(() => undefined);
    },
  };
}
