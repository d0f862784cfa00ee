import type { TracingConfig } from './tracing/config.ts';
import type {
  ActiveSpan,
  ProcessIdentity,
  SpanOptions,
  TraceParent,
  Tracer,
} from './tracing/tracer.ts';

export type { ActiveSpan, TraceParent } from './tracing/tracer.ts';

const NO_SPAN: ActiveSpan = {
  set: () => undefined,
  rename: () => undefined,
  fail: () => undefined,
};

/** Undefined while traces are off: then nothing of OpenTelemetry is loaded. */
let tracer: Tracer | undefined;

/**
 * Turns traces on, if they are configured. `warn` gets what goes wrong with sending them. Returns what
 * turns them off and sends the last spans.
 */
export async function startTracing(
  config: TracingConfig | undefined,
  process: ProcessIdentity,
  warn: (message: string) => void,
): Promise<() => Promise<void>> {
  if (!config) return () => Promise.resolve();
  const { createOpenTelemetry } = await import('./tracing/openTelemetry.ts');
  const started = createOpenTelemetry(config, process, warn);
  tracer = started;
  return async () => {
    tracer = undefined;
    await started.stop();
  };
}

/** Runs `work` in a span: a child of the current one, or the first of a new trace. */
export const inSpan = <T>(
  name: string,
  options: SpanOptions,
  work: (span: ActiveSpan) => Promise<T>,
): Promise<T> => (tracer ? tracer.span(name, undefined, options, work) : work(NO_SPAN));

/**
 * Runs `work` in a span of the trace of `parent`; without one outside of all spans, since the current one
 * may be that of other work, which has woken this.
 */
export function inSpanOf<T>(
  parent: TraceParent | null | undefined,
  name: string,
  options: SpanOptions,
  work: (span: ActiveSpan) => Promise<T>,
): Promise<T> {
  if (!tracer) return work(NO_SPAN);
  if (parent) return tracer.span(name, parent, options, work);
  return tracer.outside(() => work(NO_SPAN));
}

/** Runs `work` in a child of the current span; outside of spans it makes none. */
export const inChildSpan = <T>(
  name: string,
  options: SpanOptions,
  work: (span: ActiveSpan) => Promise<T>,
): Promise<T> =>
  tracer?.current() === undefined ? work(NO_SPAN) : tracer.span(name, undefined, options, work);

/** Where the current code is in a trace; undefined without one, and while traces are off. */
export const currentTrace = (): TraceParent | undefined => tracer?.current();

/** The id of the current trace, for log lines. */
export const currentTraceId = (): string | undefined => tracer?.traceId();
