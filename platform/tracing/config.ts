import type { EnvReader } from '../envReader.ts';

export type TracingConfig = {
  sampler: SamplerName;
  /** The share of traces that the samplers by ratio keep, 0 to 1. */
  ratio: number;
  queueSize: number;
  batchSize: number;
  delayMs: number;
  timeoutMs: number;
};

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;
export type SamplerName = (typeof SAMPLERS)[number];

const PROTOCOL = 'http/protobuf';

function readRatio(read: EnvReader): number {
  const value = read.text('OTEL_TRACES_SAMPLER_ARG');
  if (value === undefined) return 1;
  const ratio = Number(value);
  if (ratio >= 0 && ratio <= 1) return ratio;
  read.addProblem('OTEL_TRACES_SAMPLER_ARG', 'must be a number from 0 to 1');
  return 1;
}

/**
 * Reads whether and how spans are sent, from the variables of the OpenTelemetry specification; undefined
 * unless a collector is named. Address, headers and certificates are read by the exporter itself.
 */
export function readTracing(read: EnvReader): TracingConfig | undefined {
  const isDisabled = read.text('OTEL_SDK_DISABLED')?.toLowerCase() === 'true';
  const exporter = read.text('OTEL_TRACES_EXPORTER') ?? 'otlp';
  const collector =
    read.text('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') ?? read.text('OTEL_EXPORTER_OTLP_ENDPOINT');
  if (isDisabled || exporter === 'none' || collector === undefined) return undefined;
  if (exporter !== 'otlp') read.addProblem('OTEL_TRACES_EXPORTER', 'must be otlp or none');
  if (!/^https?:$/.test(URL.parse(collector)?.protocol ?? ''))
    read.addProblem('OTEL_EXPORTER_OTLP_ENDPOINT', 'must be an http or https URL');
  for (const name of ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'])
    if ((read.text(name) ?? PROTOCOL) !== PROTOCOL)
      read.addProblem(name, `must be ${PROTOCOL}, usually port 4318 of a collector`);
  return {
    sampler: read.oneOf('OTEL_TRACES_SAMPLER', SAMPLERS, 'parentbased_always_on'),
    ratio: readRatio(read),
    queueSize: read.integer('OTEL_BSP_MAX_QUEUE_SIZE', 2_048, [1, 100_000]),
    batchSize: read.integer('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, [1, 100_000]),
    delayMs: read.integer('OTEL_BSP_SCHEDULE_DELAY', 5_000, [1, 600_000]),
    timeoutMs: read.integer('OTEL_BSP_EXPORT_TIMEOUT', 30_000, [1, 600_000]),
  };
}
