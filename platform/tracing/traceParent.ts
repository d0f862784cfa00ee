import type { TraceParent } from './tracer.ts';

/** A position in a trace: 32 and 16 hexadecimal digits, and the bit that says whether it is recorded. */
export type TracePosition = { traceId: string; spanId: string; traceFlags: number };

const TRACE_PARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Reads a `traceparent` of version 00 (W3C Trace Context, 3.2); undefined for any other text. */
export function parseTraceParent(text: TraceParent): TracePosition | undefined {
  const [, traceId, spanId, flags] = TRACE_PARENT.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) };
}

export const formatTraceParent = ({ traceId, spanId, traceFlags }: TracePosition): TraceParent =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
