import { expect, test } from '@jest/globals';
import { createEnvReader } from '../../../platform/envReader.ts';
import { currentTrace, inSpan, inSpanOf, startTracing } from '../../../platform/tracing.ts';
import { readTracing } from '../../../platform/tracing/config.ts';
import { formatTraceParent, parseTraceParent } from '../../../platform/tracing/traceParent.ts';

const read = (env: Record<string, string>) => {
  const reader = createEnvReader(env);
  return { config: readTracing(reader), problems: reader.problems };
};

test('traces are off unless a collector is named', () => {
  expect(read({}).config).toBeUndefined();
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
  expect(read({ ...endpoint, OTEL_SDK_DISABLED: 'true' }).config).toBeUndefined();
  expect(read({ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }).config).toBeUndefined();
  expect(read({ ...endpoint, OTEL_TRACES_SAMPLER_ARG: '0.1' })).toMatchObject({
    config: { sampler: 'parentbased_always_on', ratio: 0.1 },
    problems: [],
  });
});

test('what cannot be done is a problem of the configuration', () => {
  const { problems } = read({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_TRACES_SAMPLER: 'sometimes',
    OTEL_TRACES_SAMPLER_ARG: '2',
  });
  expect(problems.map((problem) => problem.split(':')[0]).sort()).toEqual([
    ...['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_TRACES_SAMPLER'],
    'OTEL_TRACES_SAMPLER_ARG',
  ]);
});

test('a position in a trace is read as W3C Trace Context says', () => {
  const text = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const position = parseTraceParent(text);
  expect(position && formatTraceParent(position)).toBe(text);
  for (const wrong of [
    '',
    'x',
    text.replace('00-', 'ff-'),
    text.replace('0af7651916cd43dd8448eb211c80319c', '0'.repeat(32)),
    text.replace('b7ad6b7169203331', '0'.repeat(16)),
    text.toUpperCase(),
  ])
    expect(parseTraceParent(wrong)).toBeUndefined();
});

test('without traces work runs as it is', async () => {
  const stop = await startTracing(
    undefined,
    { role: 'api', instance: 'a', version: '1' },
    () => undefined,
  );
  const work = () => Promise.resolve(currentTrace() ?? 'none');
  expect(await inSpan('a', {}, work)).toBe('none');
  expect(await inSpanOf('00-x', 'a', {}, work)).toBe('none');
  await stop();
});
