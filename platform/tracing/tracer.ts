/**
 * The position in a trace, as the header `traceparent` has it (W3C Trace Context). It is stored with
 * jobs and outbox tasks, and sent to Temporal as a header of the run.
 */
export type TraceParent = string;

export type SpanOptions = {
  kind?: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  attributes?: Readonly<Record<string, string | number | boolean>>;
};

/** The span that is being made. */
export type ActiveSpan = {
  set(attributes: Readonly<Record<string, string | number | boolean>>): void;
  rename(name: string): void;
  /** Marks it as failed, without an exception. */
  fail(message: string): void;
};

/** What makes spans. `parent` undefined: a child of the current span, or a new trace. */
export type Tracer = {
  span<T>(
    name: string,
    parent: TraceParent | undefined,
    options: SpanOptions,
    work: (span: ActiveSpan) => Promise<T>,
  ): Promise<T>;
  /** Runs work that belongs to no span. */
  outside<T>(work: () => Promise<T>): Promise<T>;
  current(): TraceParent | undefined;
  traceId(): string | undefined;
  stop(): Promise<void>;
};

/** What spans say about their process. */
export type ProcessIdentity = { role: string; instance: string; version: string };
