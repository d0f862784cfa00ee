import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { deleteTemporalSchedules, startAppOn, testEnv, type TestApp } from '../../support/app.ts';
import { createClient, type TestClient } from '../../support/client.ts';
import { startCollector, type ReceivedSpan } from '../../support/collector.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { killAll, startProcess, type TestProcess } from '../../support/processes.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');

let database: TestDatabase;
let collector: Awaited<ReturnType<typeof startCollector>>;
let api: TestProcess;
let worker: TestProcess;
let client: TestClient;
let observer: TestApp;
beforeAll(async () => {
  database = await createDatabase();
  collector = await startCollector();
  const env = {
    ...testEnv(database.url),
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_BSP_SCHEDULE_DELAY: '50',
  };
  observer = await startAppOn(database.url, env, { idle: true });
  [api, worker] = await Promise.all([
    startProcess({ ...env, HOLDFAST_ROLE: 'api', HOLDFAST_INSTANCE: 'api-1' }),
    startProcess({ ...env, HOLDFAST_ROLE: 'worker', HOLDFAST_INSTANCE: 'worker-1' }),
  ]);
  client = createClient(api.base);
});
afterAll(async () => {
  await deleteTemporalSchedules(observer.deps);
  await observer.stop();
  await Promise.all([api.terminate(), worker.terminate()]);
  await killAll();
  await collector.stop();
  await database.drop();
});

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`;

/** The spans of a trace, as soon as they have all of these names. */
const spansOf = (traceId: string, names: readonly string[]) =>
  eventually(
    () => collector.spans.filter((span) => span.traceId === traceId),
    (spans) => names.every((name) => spans.some((span) => span.name === name)),
  );

/** The names from a span up to the first one of its trace. */
function pathOf(spans: readonly ReceivedSpan[], name: string): string[] {
  const names: string[] = [];
  let span = spans.find((each) => each.name === name);
  while (span) {
    names.unshift(span.name);
    const { parentSpanId } = span;
    span = spans.find(({ spanId }) => spanId === parentSpanId);
  }
  return names;
}

test('a trace goes from the request through the outbox and Temporal to the attempt in another process', async () => {
  // The job waits for a slot: another process starts its workflow, long after the commit.
  const job = await client
    .post<JobRecord>(
      '/api/jobs',
      { type: 'core.sleep', payload: { durationMs: 1 } },
      { prefer: 'wait=20', traceparent: PARENT },
    )
    .expect(201);
  expect(job.status).toBe('succeeded');
  const spans = await spansOf(TRACE, [
    ...['POST /api/jobs', 'commit', 'dispatch start', 'activity runJobAttempt'],
    'attempt core.sleep',
  ]);
  expect(spans.find(({ name }) => name === 'POST /api/jobs')).toMatchObject({
    parentSpanId: 'b7ad6b7169203331',
    service: 'holdfast-api',
    attributes: { 'http.response.status_code': 201, 'http.route': '/api/jobs' },
  });
  expect(pathOf(spans, 'attempt core.sleep')).toEqual([
    ...['POST /api/jobs', 'commit', 'dispatch start', 'activity runJobAttempt'],
    'attempt core.sleep',
  ]);
  expect(spans.find(({ name }) => name === 'attempt core.sleep')).toMatchObject({
    service: 'holdfast-worker',
    attributes: { 'holdfast.job.id': job.id, 'holdfast.job.attempt': 1 },
  });
  // The workflow has the id of the job, and nothing of the trace in its input.
  const history = await observer.deps.temporal.call(5_000, (temporal) =>
    temporal.workflow.getHandle(`job:${job.id}`).fetchHistory(),
  );
  const started = history.events?.[0]?.workflowExecutionStartedEventAttributes;
  expect(Object.keys(started?.header?.fields ?? {})).toEqual(['holdfast-trace']);
  expect(Buffer.from(started?.input?.payloads?.[0]?.data ?? '').toString()).not.toContain(TRACE);
});

test('short jobs that are attempted together stay in the traces of their requests', async () => {
  const create = (type: string, payload: object, traceId: string) =>
    client
      .post<JobRecord>(
        '/api/jobs',
        { type, payload },
        { prefer: 'wait=20', traceparent: `00-${traceId}-b7ad6b7169203331-01` },
      )
      .expect(201);
  const [first, second] = ['a', 'b'].map((digit) => digit.repeat(32)) as [string, string];
  await Promise.all([first, second].map((id) => create('core.echo', { message: 'x' }, id)));
  for (const traceId of [first, second]) {
    const spans = await spansOf(traceId, ['attempt core.echo', 'commit', 'POST /api/jobs']);
    expect(pathOf(spans, 'attempt core.echo')[0]).toBe('POST /api/jobs');
  }
});

test('a trace that is not recorded stays so', async () => {
  const traceId = 'c'.repeat(32);
  await client
    .post(
      '/api/jobs',
      { type: 'core.echo', payload: { message: 'x' } },
      { prefer: 'wait=20', traceparent: `00-${traceId}-b7ad6b7169203331-00` },
    )
    .expect(201);
  await client.get('/api/jobs', { traceparent: `00-${'d'.repeat(32)}-b7ad6b7169203331-01` });
  await spansOf('d'.repeat(32), ['GET /api/jobs']);
  expect(collector.spans.filter((span) => span.traceId === traceId)).toEqual([]);
});

test('the metrics of the SDK that alerts and dashboard use are in /metrics', async () => {
  const used = await Promise.all(
    ['ops/prometheus/alerts.yaml', 'ops/grafana/holdfast.json', 'docs/operations.md'].map((file) =>
      readFile(path.join(ROOT, file), 'utf8'),
    ),
  );
  const names = new Set(used.join('\n').match(/\btemporal_\w+(?=[{`)[( ])/g));
  names.delete('temporal_');
  const monitoring = createClient(worker.base, { token: null });
  const text = String(await monitoring.get('/metrics').expect(200));
  expect(names.size).toBeGreaterThan(2);
  for (const name of names) expect(text).toContain(name);
});
