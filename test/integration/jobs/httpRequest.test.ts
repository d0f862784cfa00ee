import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JobRecord, JobSummary, LogRecord } from '../../../api/jobs/schemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { jobIdOf, triggerSchedule, type PageOf } from '../../support/schedules.ts';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { respondWith, startSink, type Sink } from '../../support/sink.ts';

let app: TestApp;
let sink: Sink;
beforeAll(async () => {
  [app, sink] = await Promise.all([startApp(), startSink()]);
});
afterAll(async () => {
  await app.stop();
  await sink.stop();
});

const WAIT = { prefer: 'wait=30' };
const request = (path: string, fields: object = {}, retryPolicy?: object) =>
  app.client
    .post<JobRecord>(
      '/api/jobs',
      {
        type: 'http.request',
        payload: { url: sink.url(path), ...fields },
        ...(retryPolicy && { retryPolicy }),
      },
      WAIT,
    )
    .expect(201);

describe('the response to a failed request', () => {
  let requests = 0;
  const failWith = async (body: string, fields: object = {}, type = 'text/plain', query = '') => {
    const path = `/fails-${++requests}`;
    sink.respond(path, respondWith(422, { 'content-type': type }, body));
    const job = await request(path + query, fields);
    expect(job).toMatchObject({ status: 'failed', error: { code: 'http_status' } });
    return { job, response: assertDefined(job.error?.response, 'the response') };
  };

  test('is in the error of the job and in its log, but not in lists', async () => {
    const body = '{"detail":"the VLAN 7 is in use"}';
    const { job, response } = await failWith(body, {}, 'application/problem+json');
    expect(response).toEqual({
      status: 422,
      contentType: 'application/problem+json',
      body,
      truncated: false,
    });
    const log = await app.client.get<PageOf<LogRecord>>(`/api/jobs/${job.id}/logs`).expect(200);
    expect(log.items.map(({ data }) => data)).toContainEqual({ response });
    const list = await app.client.get<PageOf<JobSummary>>('/api/jobs?limit=200').expect(200);
    const listed = list.items.find(({ id }) => id === job.id);
    expect(listed?.error).toEqual({ code: 'http_status', message: 'The server answered 422' });
  });

  test('is cut to 4 KiB, never inside a character', async () => {
    const { response } = await failWith(`x${'é'.repeat(4_000)}`);
    expect(response).toMatchObject({ body: `x${'é'.repeat(2_047)}`, truncated: true });
  });

  test('has no control characters that a terminal would execute', async () => {
    const { response } = await failWith('a\u0000b\u001b[2Jc\u202ed\nnext line');
    expect(response.body).toBe('a\\u0000b\\u001b[2Jc\\u202ed\nnext line');
  });

  test('shows neither credentials nor those of the request that it repeats', async () => {
    const body = JSON.stringify({
      youSent: ['tok-12345', 'dXNlcjpwYXNz', 'a b&c', 'body-s3cret'],
      session: { accessToken: 'tok-new' },
    });
    const { job, response } = await failWith(
      body,
      {
        method: 'POST',
        headers: { 'X-Token': 'tok-12345', Authorization: 'Basic dXNlcjpwYXNz' },
        body: '{"password":"body-s3cret"}',
      },
      'application/json',
      '?api_key=a%20b%26c',
    );
    const stored = JSON.stringify([job.error, job.logs]);
    for (const secret of ['tok-12345', 'dXNlcjpwYXNz', 'a b&c', 'body-s3cret', 'tok-new'])
      expect(stored).not.toContain(secret);
    expect(JSON.parse(response.body)).toEqual({
      youSent: Array(4).fill('********'),
      session: { accessToken: '********' },
    });
  });
});

test('the result has no credentials of the request that the server repeats', async () => {
  const secrets = [
    'tok-12345',
    'dXNlcjpwYXNzLXdvcmQ=',
    'pass-word',
    'session-7f3a',
    'body-s3cret',
    'q-s3cret',
  ];
  const youSent = { secrets, page: 2, consent: 'true' };
  sink.respond(
    '/echo',
    respondWith(
      200,
      { 'content-type': 'application/json', etag: '"tok-12345"' },
      JSON.stringify(youSent),
    ),
  );
  const job = await request('/echo?sig=q-s3cret', {
    method: 'POST',
    headers: {
      'X-Token': 'tok-12345',
      Authorization: 'Basic dXNlcjpwYXNzLXdvcmQ=',
      Cookie: 'consent=true; id=session-7f3a',
    },
    body: '{"password":"body-s3cret"}',
  });
  const stored = JSON.stringify(job.result);
  for (const secret of secrets) expect(stored).not.toContain(secret);
  const { body, headers } = job.result as { body: string; headers: Record<string, string> };
  expect(JSON.parse(body)).toEqual({ ...youSent, secrets: secrets.map(() => '********') });
  expect(headers.etag).toBe('"********"');
});

test('the result keeps the words and numbers of parameters that are no credentials', async () => {
  const body = JSON.stringify({ datacenter: 'datacenter', author: 'katherine', pin: 2024 });
  sink.respond('/words', respondWith(200, { 'content-type': 'application/json' }, body));
  const job = await request('/words?keyword=datacenter&author=katherine', {
    method: 'POST',
    headers: { 'X-Key-Format': 'json', 'X-Author-Name': 'application' },
    body: '{"pin":2024}',
  });
  expect(job.result).toMatchObject({ body, headers: { 'content-type': 'application/json' } });
});

test('a header of the payload in any letter case replaces that of the job, and is sent once', async () => {
  sink.respond('/once', respondWith(204));
  await request('/once', {
    method: 'POST',
    headers: { 'Idempotency-Key': 'mine', 'CONTENT-TYPE': 'text/csv' },
    body: 'a,b',
  });
  const raw = assertDefined(sink.requestsTo('/once')[0], 'the request').headers;
  expect(raw['idempotency-key']).toBe('mine');
  expect(raw['content-type']).toBe('text/csv');
});

describe('a request that fails', () => {
  const fast = { initialIntervalSeconds: 0.05 };
  const busy = (path: string) => {
    sink.respond(path, respondWith(503));
    return path;
  };

  test.each(['GET', 'PUT', 'DELETE'])('is repeated with the method %s', async (method) => {
    const path = busy(`/repeated-${method}`);
    expect(await request(path, { method }, fast)).toMatchObject({ status: 'failed', attempts: 3 });
    expect(sink.requestsTo(path)).toHaveLength(3);
  });

  test.each(['POST', 'PATCH'])('is sent once with the method %s', async (method) => {
    const path = busy(`/once-${method}`);
    const job = await request(path, { method }, fast);
    expect(job).toMatchObject({ attempts: 1, retryPolicy: { maxAttempts: 1, ...fast } });
    // A retry by hand is a new job with the same policy.
    const again = await app.client.post<JobRecord>(`/api/jobs/${job.id}/retry`, {}, WAIT);
    expect(again.body).toMatchObject({ attempts: 1, retryPolicy: { maxAttempts: 1 } });
    expect(sink.requestsTo(path)).toHaveLength(2);
  });

  test.each(['POST', 'PATCH'])('is repeated as the policy of its job says: %s', async (method) => {
    const path = busy(`/as-asked-${method}`);
    const job = await request(path, { method }, { ...fast, maxAttempts: 2 });
    expect(job).toMatchObject({ status: 'failed', attempts: 2 });
    expect(sink.requestsTo(path)).toHaveLength(2);
    expect(job.logs.map(({ message }) => message)).toContainEqual(
      expect.stringContaining(`The ${method} is sent again`),
    );
  });

  test('is sent once by a schedule, too, unless that has a policy', async () => {
    for (const [retryPolicy, attempts] of [
      [fast, 1],
      [{ ...fast, maxAttempts: 2 }, 2],
    ] as const) {
      const path = busy(`/scheduled-${attempts}`);
      const schedule = await app.client
        .post<ScheduleRecord>('/api/schedules', {
          name: path,
          cronExpression: '@yearly',
          jobType: 'http.request',
          payload: { url: sink.url(path), method: 'POST' },
          retryPolicy,
        })
        .expect(201);
      const id = jobIdOf(await triggerSchedule(app.client, schedule.id));
      const job = await app.client.get<JobRecord>(`/api/jobs/${id}`, WAIT).expect(200);
      expect(job).toMatchObject({ status: 'failed', attempts });
    }
  });

  test('without a response says whether the server may have executed it', async () => {
    sink.respond('/cut', (_received, response) => response.destroy());
    const unknown = 'whether the server has executed the POST is unknown';
    const cut = await request('/cut', { method: 'POST' });
    expect(cut).toMatchObject({ attempts: 1, error: { code: 'invalid_response' } });
    expect(cut.error?.message).toContain(unknown);
    const { port } = new URL(app.client.base);
    const refused = await request('', { method: 'POST', url: `http://localhost:${port}/` });
    expect(refused.error?.code).toBe('address_not_allowed');
    expect(refused.error?.message).not.toContain('unknown');
    const get = await request('/cut', {}, fast);
    expect(get.error?.message).not.toContain('unknown');
  });
});
