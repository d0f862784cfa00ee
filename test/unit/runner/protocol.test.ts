import { afterEach, describe, expect, test } from '@jest/globals';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRunnerApi, retryTransient, RunnerApiError } from '../../../runner/protocol/api.ts';
import { createAttemptReport, type StopCause } from '../../../runner/protocol/attemptReport.ts';
import { eventually } from '../../support/eventually.ts';

type Answer = { status?: number; body?: object | string; headers?: Record<string, string> } | 'cut';
type Received = {
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage['headers'];
  body: string;
};

const servers: Server[] = [];
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
  for (const server of servers.splice(0)) server.close();
});

const problem = (status: number, code: string, headers?: Record<string, string>): Answer => ({
  status,
  body: { code },
  ...(headers && { headers }),
});

/** What is no answer of Holdfast: a page, JSON that is no problem, and a problem without a code. */
const FOREIGN = ['text/html', 'application/json', 'application/problem+json'] as const;
const foreign = (status: number, type: (typeof FOREIGN)[number] = 'text/html'): Answer => ({
  status,
  headers: { 'content-type': type },
  body:
    type === 'text/html' ? '<html>' : type === 'application/json' ? { code: 'x' } : { title: 'x' },
});

/** A runner API that answers as a test wants. `cut`: the connection ends without an answer. */
async function startApi(
  answer: (request: Received, count: number) => Answer,
  readToken?: () => Promise<string | undefined>,
) {
  const requests: Received[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://x');
      const received = { path: pathname, query: searchParams, headers: request.headers, body };
      requests.push(received);
      const result = answer(received, requests.length);
      if (result === 'cut') return void request.socket.destroy();
      const { status = 200, body: content = {}, headers } = result;
      const type = status < 400 ? 'application/json' : 'application/problem+json';
      response.writeHead(status, { 'content-type': type, ...headers });
      response.end(typeof content === 'string' ? content : JSON.stringify(content));
    });
  }).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const api = createRunnerApi({
    ...{ url: `http://127.0.0.1:${port}`, token: 'hfw_token' },
    ...(readToken && { readToken }),
  });
  closing.push(() => api.close());
  return { api, requests };
}

const LEASE_MS = 60_000;

/** A server that keeps lines as the product does. */
function lineStore(fault: (count: number) => Answer | undefined = () => undefined) {
  const lines: { message: string }[] = [];
  const answer = ({ query, body }: Received, count: number): Answer => {
    const first = Number(query.get('firstLine'));
    const sent = body
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as { message: string });
    const failure = fault(count);
    // The answer to what is stored can be lost, too.
    if (failure === undefined || count % 2 === 0)
      if (first <= lines.length + 1) lines.push(...sent.slice(lines.length + 1 - first));
    return (
      failure ?? {
        body: { have: lines.length, cancel: false, leaseMs: LEASE_MS, remainingLines: 100_000 },
      }
    );
  };
  return { lines, answer };
}

const STARTED = {
  outcome: 'started',
  attempt: 1,
  attemptToken: 'attempt-token',
  payload: {},
  target: null,
  secrets: {},
  timeoutMs: 60_000,
  leaseMs: LEASE_MS,
  maxAttempts: 3,
  remainingLines: 10_000,
} as const;

function startReport(api: Parameters<typeof createAttemptReport>[0]['api'], started = {}) {
  const stops: StopCause[] = [];
  const report = createAttemptReport({
    api,
    jobId: 'job_1',
    started: { ...STARTED, ...started },
    onStop: (cause) => void stops.push(cause),
  });
  closing.unshift(() => report.close());
  return { report, stops };
}

test('every line arrives once and in order, whatever answers are lost', async () => {
  const { lines, answer } = lineStore((count) =>
    count <= 4 ? (count % 2 === 0 ? 'cut' : problem(503, 'unavailable')) : undefined,
  );
  const { api, requests } = await startApi(answer);
  // Pauses between repetitions are a part of the lease.
  const { report, stops } = startReport(api, { leaseMs: 2_000, attempt: 3 });
  const at = new Date('2026-01-02T03:04:05.678Z');
  for (let i = 0; i < 2_500; i++) report.line('info', `line ${i}`, { i }, at);
  report.progress(40, 'half');
  await report.drain(30_000);
  expect(lines.map(({ message }) => message)).toEqual(
    Array.from({ length: 2_500 }, (_, i) => `line ${i}`),
  );
  expect(lines[0]).toEqual({
    level: 'info',
    message: 'line 0',
    data: { i: 0 },
    at: at.toISOString(),
  });
  expect(stops).toEqual([]);
  expect(requests[0]?.headers).toMatchObject({
    authorization: 'Bearer hfw_token',
    'attempt-token': 'attempt-token',
    'content-type': 'application/x-ndjson',
  });
  expect(requests.some(({ query }) => query.get('progress') === '40')).toBe(true);
});

describe('a token that is refused', () => {
  const runner = { runnerId: 'one', pool: 'default' };
  const onlyNew = ({ headers }: Received): Answer =>
    headers.authorization === 'Bearer hfw_new'
      ? { body: { types: [] } }
      : problem(401, 'token_invalid');

  test('is read again, and the request is made once more', async () => {
    let current: string | undefined = 'hfw_token';
    const { api, requests } = await startApi(onlyNew, () => Promise.resolve(current));
    const refused = { status: 401, code: 'token_invalid' };
    await expect(api.alive(runner)).rejects.toMatchObject(refused);
    current = undefined;
    await expect(api.alive(runner)).rejects.toMatchObject(refused);
    expect(requests).toHaveLength(2);
    current = 'hfw_new';
    expect(await api.alive(runner)).toEqual({ types: [] });
    const { signal } = new AbortController();
    await api.artifact('job_1', 'token', { name: 'a', file: import.meta.filename }, signal);
    expect(requests.slice(2).map(({ headers }) => headers.authorization)).toEqual([
      ...['Bearer hfw_token', 'Bearer hfw_new', 'Bearer hfw_new'],
    ]);
  });

  test('does not cost a file that is sent', async () => {
    const { api, requests } = await startApi(onlyNew, () => Promise.resolve('hfw_new'));
    const { signal } = new AbortController();
    await api.artifact('job_1', 'token', { name: 'a', file: import.meta.filename }, signal);
    expect(requests[1]?.body).toContain('does not cost a file that is sent');
  });

  test('is refused again only once', async () => {
    const { api, requests } = await startApi(
      () => problem(401, 'token_invalid'),
      () => Promise.resolve(`hfw_${Math.random()}`),
    );
    await expect(api.alive(runner)).rejects.toMatchObject({ status: 401 });
    expect(requests).toHaveLength(2);
  });
});

test('what the API refuses is not sent again, and it is asked again when it says', async () => {
  const answers: Answer[] = [
    problem(400, 'invalid_request'),
    problem(429, 'too_many_requests', { 'retry-after': '1' }),
  ];
  const times: number[] = [];
  const store = lineStore();
  const { api, requests } = await startApi((request, count) => {
    times.push(performance.now());
    return answers[count - 1] ?? store.answer(request, 2);
  });
  const { report } = startReport(api);
  report.progress(40, 'refused');
  await eventually(
    () => requests.length,
    (count) => count === 1,
  );
  // More than a request takes: a command that prints much must not end the pause.
  const printing = setInterval(() => {
    for (let i = 0; i < 500; i++) report.line('info', 'accepted', undefined, new Date());
  }, 20);
  await eventually(
    () => requests.length,
    (count) => count >= 3,
  );
  clearInterval(printing);
  expect(requests[1]?.query.get('progressMessage')).toBeNull();
  expect(store.lines[0]).toMatchObject({ message: 'accepted' });
  expect((times[2] ?? 0) - (times[1] ?? 0)).toBeGreaterThan(950);
});

test('lines that were sent with a progress that is refused are not lost with it', async () => {
  const store = lineStore();
  const { api } = await startApi((request, count) =>
    request.query.has('progress') ? problem(400, 'invalid_request') : store.answer(request, count),
  );
  const { report } = startReport(api);
  report.line('info', 'kept', undefined, new Date());
  report.progress(40, 'refused');
  await eventually(
    () => store.lines,
    ({ length }) => length > 0,
  );
  expect(store.lines[0]).toMatchObject({ message: 'kept' });
  expect(report.dropped()).toBe(0);
});

test('a redirection, as by a proxy, is followed by nobody, and the request is repeated', async () => {
  const away = { status: 302, headers: { location: '/login' } };
  const { api, requests } = await startApi((_, count) => (count < 3 ? away : {}));
  await retryTransient(() => api.leave({ runnerId: 'one', pool: 'lab' }), {
    until: performance.now() + 60_000,
  });
  expect(requests.map(({ path }) => path)).toEqual(Array(3).fill('/api/runner/leave'));
});

describe('an answer of a proxy', () => {
  test.each(
    [400, 401, 403, 404, 409, 413, 501].flatMap((status) =>
      FOREIGN.map((type) => [status, type] as const),
    ),
  )('is none of Holdfast, and the request is repeated: %d %s', async (status, type) => {
    const { api } = await startApi((_, count) => (count === 1 ? foreign(status, type) : {}));
    await retryTransient(() => api.leave({ runnerId: 'one', pool: 'lab' }), {
      until: performance.now() + 60_000,
    });
  });

  test.each([400, 401, 403, 404, 409, 413])(
    '%d stops no command and drops no line',
    async (status) => {
      const store = lineStore();
      const { api } = await startApi((request, count) =>
        count === 1 ? foreign(status) : store.answer(request, 2),
      );
      const { report, stops } = startReport(api, { leaseMs: 5_000 });
      report.line('info', 'kept', undefined, new Date());
      await report.drain(30_000);
      expect(store.lines[0]).toMatchObject({ message: 'kept' });
      expect([stops, report.dropped()]).toEqual([[], 0]);
    },
  );

  test('with success, but without JSON, is repeated, too', async () => {
    const { api } = await startApi((_, count) => (count === 1 ? { body: '' } : {}));
    await expect(api.alive({ runnerId: 'one', pool: 'lab' })).rejects.toMatchObject({ status: 0 });
    await api.alive({ runnerId: 'one', pool: 'lab' });
  });

  test('of 401 lets the token be read again', async () => {
    const { api, requests } = await startApi(
      (_, count) => (count === 1 ? foreign(401) : {}),
      () => Promise.resolve('hfw_new'),
    );
    await api.alive({ runnerId: 'one', pool: 'lab' });
    expect(requests).toHaveLength(2);
  });
});

test('an artifact that cannot be read is not sent again', async () => {
  const { api, requests } = await startApi(() => ({}));
  const signal = new AbortController().signal;
  const send = (file: string) =>
    retryTransient(() => api.artifact('job_1', 'token', { name: 'a', file }, signal), {
      until: performance.now() + 60_000,
    });
  await expect(send('/no/such/file')).rejects.toThrow('ENOENT');
  await send(import.meta.filename);
  expect(requests.map(({ headers }) => headers['content-length'])).toEqual([
    String((await stat(import.meta.filename)).size),
  ]);
});

test('a file is sent until an API that is busy takes it', async () => {
  const busy = problem(429, 'too_many_requests');
  const { api, requests } = await startApi((_, count) => (count < 3 ? busy : {}));
  const { signal } = new AbortController();
  const send = (awayMs: number) =>
    retryTransient(
      () => api.artifact('job_1', 'token', { name: 'a', file: import.meta.filename }, signal),
      { until: performance.now(), awayMs },
    );
  await expect(send(0)).rejects.toMatchObject({ status: 429 });
  await send(60_000);
  expect(requests).toHaveLength(3);
});

test.each([408, 502])(
  'what took longer than the API may be away is sent again after %d',
  async (status) => {
    let tries = 0;
    const send = async (tookMs: number) => {
      await sleep(tookMs);
      tries += 1;
      if (tries % 2 === 1) throw new RunnerApiError(status, 'late', 'The body was late');
    };
    const limit = { until: performance.now(), awayMs: 1_000 };
    await expect(retryTransient(() => send(0), limit)).rejects.toMatchObject({ status });
    tries = 0;
    await retryTransient(() => send(1_100), limit);
    expect(tries).toBe(2);
  },
);

test('what the API has not received is sent again, and lines that it has lost stop nothing', async () => {
  const seen: string[][] = [];
  const haves = [2, 1, 4];
  const { api } = await startApi(({ body }, count) => {
    seen.push(
      body
        .split('\n')
        .filter(Boolean)
        .map((line) => (JSON.parse(line) as { message: string }).message),
    );
    return {
      body: { have: haves[count - 1] ?? 4, cancel: false, leaseMs: LEASE_MS, remainingLines: 100 },
    };
  });
  const { report } = startReport(api);
  for (const message of ['a', 'b', 'c', 'd', 'e'])
    report.line('info', message, undefined, new Date());
  await report.drain(10_000);
  expect(seen.slice(0, 3)).toEqual([
    ['a', 'b', 'c', 'd', 'e'],
    ['c', 'd', 'e'],
    ['c', 'd', 'e'],
  ]);
});

test('full batches, and what is left at the end, wait for nothing', async () => {
  const { lines, answer } = lineStore();
  const { api } = await startApi(answer);
  const { report } = startReport(api, { remainingLines: 100_000 });
  const startedAt = performance.now();
  for (let i = 0; i < 40_500; i++) report.line('info', 'x', undefined, new Date());
  await report.drain(30_000);
  expect(lines).toHaveLength(40_500);
  // With a pause before each of the 41 batches it would be more than ten seconds.
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});

test('while the API takes no large reports, small ones are sent', async () => {
  const { lines, answer } = lineStore();
  const nothing = { have: 0, cancel: false, leaseMs: LEASE_MS, remainingLines: 100_000 };
  const { api, requests } = await startApi((request, count) =>
    request.body.length > 65_536 && lines.length === 0 ? { body: nothing } : answer(request, count),
  );
  const { report } = startReport(api, { remainingLines: 100_000 });
  for (let i = 0; i < 3_000; i++) report.line('info', 'x'.repeat(1_000), undefined, new Date());
  await report.drain(30_000);
  expect(lines).toHaveLength(3_000);
  const sizes = requests.map(({ body }) => body.length);
  const large = sizes.findIndex((size) => size > 65_536);
  expect(sizes[large + 1]).toBeLessThanOrEqual(65_536);
});

test('the answer can cancel the work, and a lost attempt reports nothing more', async () => {
  const cancelled = await startApi(() => ({
    body: { have: 0, cancel: true, leaseMs: LEASE_MS, remainingLines: 10 },
  }));
  const first = startReport(cancelled.api);
  first.report.progress(1, undefined);
  await eventually(
    () => first.stops,
    ({ length }) => length > 0,
  );
  expect(first.stops).toEqual(['cancelled']);

  const lost = await startApi(() => problem(409, 'attempt_lost'));
  const second = startReport(lost.api);
  second.report.line('info', 'late', undefined, new Date());
  await eventually(
    () => second.stops,
    ({ length }) => length > 0,
  );
  second.report.line('info', 'later', undefined, new Date());
  await second.report.drain(10_000);
  await second.report.close();
  expect(second.stops).toEqual(['lost']);
  expect(lost.requests).toHaveLength(1);
});

test('the work stops before the lease is over, unless no other attempt can begin', async () => {
  const { api } = await startApi(() => problem(503, 'unavailable'));
  const repeated = startReport(api, { leaseMs: 400 });
  const last = startReport(api, { leaseMs: 400, attempt: 3 });
  await eventually(
    () => repeated.stops,
    ({ length }) => length > 0,
  );
  expect(repeated.stops).toEqual(['lease']);
  expect(last.stops).toEqual([]);
});

test('an empty report keeps the lease', async () => {
  const { lines, answer } = lineStore();
  const { api, requests } = await startApi(answer);
  startReport(api, { leaseMs: 200 });
  await eventually(
    () => requests,
    ({ length }) => length > 0,
  );
  expect(requests[0]).toMatchObject({ path: '/api/runner/jobs/job_1/lines', body: '' });
  expect(lines).toEqual([]);
});

test('lines beyond the log and beyond the memory of the runner are dropped and counted', async () => {
  const { api } = await startApi(() => problem(503, 'unavailable'));
  const { report } = startReport(api, { remainingLines: 3 });
  for (let i = 0; i < 10; i++) report.line('info', 'x', undefined, new Date());
  expect(report.dropped()).toBe(7);
  const { report: large } = startReport(api, { remainingLines: 1_000_000 });
  for (let i = 0; i < 3_000; i++) large.line('info', 'x'.repeat(8_192), undefined, new Date());
  expect(large.dropped()).toBeGreaterThan(500);
});

test('transient errors are repeated, others are not', async () => {
  const { api, requests } = await startApi((_, count) =>
    count === 1
      ? 'cut'
      : count === 2
        ? problem(429, 'too_many_requests', { 'retry-after': '0' })
        : { status: 403, body: { code: 'permission_denied', detail: 'No.' } },
  );
  const begin = () =>
    api.begin('job_1', { runnerId: 'r', workflowRunId: 'w', digest: 'd', attemptToken: 't' });
  const until = performance.now() + 60_000;
  await expect(retryTransient(begin, { until })).rejects.toMatchObject({
    status: 403,
    code: 'permission_denied',
    message: 'The API answers 403 permission_denied: No.',
  });
  expect(requests).toHaveLength(3);
  // Without a store, no repetition would store an artifact.
  const lacking = await startApi(() => problem(501, 'not_supported'));
  const announce = () => lacking.api.alive({ runnerId: 'r', pool: 'p' });
  await expect(retryTransient(announce, { until })).rejects.toMatchObject({ status: 501 });
  expect(lacking.requests).toHaveLength(1);
  const unreachable = createRunnerApi({ url: 'http://127.0.0.1:1', token: 'hfw_x' });
  closing.push(() => unreachable.close());
  const call = retryTransient(() => unreachable.alive({ runnerId: 'r', pool: 'p' }), {
    until: performance.now(),
  });
  await expect(call).rejects.toBeInstanceOf(RunnerApiError);
});
