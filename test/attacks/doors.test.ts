import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import type { ProblemBody } from '../support/client.ts';
import { startApp, startAppOn, type TestApp } from '../support/app.ts';
import { endpointOf } from '../../platform/ownEndpoints.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { sendBytes, sendRaw } from '../support/rawHttp.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

describe('/metrics', () => {
  const read = (headers: Record<string, string>, of = app) =>
    sendRaw(`${of.client.base}/metrics`, { headers });

  test('is for programs on this machine', async () => {
    for (const host of ['localhost:9090', '127.0.0.1', '[::1]:1'])
      expect(await read({ host })).toMatchObject({
        status: 200,
        text: expect.stringContaining('holdfast_'),
      });
    const scraper = {
      'user-agent': 'Prometheus/3.0',
      accept: 'text/plain',
      'accept-encoding': 'gzip',
      'x-prometheus-scrape-timeout-seconds': '10',
    };
    expect((await read(scraper)).status).toBe(200);
  });

  test.each([
    { 'X-Forwarded-For': '8.8.8.8' },
    { 'x-forwarded-for': '127.0.0.1' },
    { 'X-Forwarded-Proto': 'https' },
    { Forwarded: 'for=8.8.8.8' },
    { Via: '1.1 proxy' },
    { 'X-Real-IP': '8.8.8.8' },
    { 'CF-Connecting-IP': '8.8.8.8' },
    { 'Fastly-Client-IP': '8.8.8.8' },
    { 'X-Whatever-Comes': '8.8.8.8' },
    { host: 'holdfast.example' },
    { host: '127.0.0.1.example' },
  ])('is not served to a proxy on this machine: %j', async (headers) => {
    const answer = await read(headers);
    expect(answer.status).toBe(404);
    expect(answer.text).not.toContain('holdfast_');
  });

  test('with a token is for monitoring only, from anywhere', async () => {
    const token = 'a token of monitoring';
    const guarded = await startAppOn(
      app.databaseUrl,
      { HOLDFAST_METRICS_TOKEN: token.replaceAll(' ', '-') },
      { idle: true },
    );
    const right = { authorization: `Bearer ${token.replaceAll(' ', '-')}` };
    expect((await read({}, guarded)).status).toBe(404);
    expect((await read({ authorization: 'Bearer wrong' }, guarded)).status).toBe(404);
    expect((await read({ ...right, 'x-forwarded-for': '8.8.8.8' }, guarded)).status).toBe(200);
    await guarded.stop();
  });

  test('is not on the port of the API when it has its own', async () => {
    const separate = await startAppOn(
      app.databaseUrl,
      { HOLDFAST_METRICS_PORT: '9' },
      { idle: true },
    );
    expect((await read({}, separate)).status).toBe(404);
    await separate.stop();
  });
});

describe('http.request', () => {
  const requestJob = (payload: object) =>
    app.client.post(
      '/api/jobs',
      { type: 'http.request', payload, retryPolicy: { maxAttempts: 1 } },
      { prefer: 'wait=30' },
    );
  const refusal = async (payload: object) =>
    ((await requestJob(payload).expect(400)) as ProblemBody).errors?.[0];

  test("does not reach Holdfast's own servers, whatever networks are allowed", async () => {
    const { port: api } = assertDefined(endpointOf(app.client.base), 'endpoint of the API');
    const { port: postgres } = assertDefined(endpointOf(app.databaseUrl), 'database');
    const temporal = assertDefined(
      endpointOf(app.env.TEMPORAL_ADDRESS ?? ''),
      'endpoint of Temporal',
    );
    const urls = [
      `http://127.0.0.1:${api}/metrics`,
      `http://127.1:${api}/api/jobs`,
      `http://2130706433:${api}/livez`,
      `http://127.0.0.1:${postgres}/`,
      `http://127.0.0.1:${temporal.port}/`,
    ];
    const refusals = await Promise.all(urls.map((url) => refusal({ url })));
    const code = 'address_not_allowed';
    expect(refusals).toMatchObject(urls.map(() => ({ pointer: '/payload/url', code })));
    // A name is resolved when the job runs.
    const job = (await requestJob({ url: `http://localhost:${api}/livez` }).expect(
      201,
    )) as JobRecord;
    expect(job.error).toMatchObject({ code });
  });

  test('sends no header that a server may take for one of a gateway', async () => {
    const names = ['X_Service_Actor_Id', 'x-service.role_ids', 'X_Forwarded_For', 'x-real_ip'];
    const headers = Object.fromEntries(names.map((name) => [name, 'root']));
    const { errors } = (await requestJob({ url: 'http://127.0.0.1:1/', headers }).expect(
      400,
    )) as ProblemBody;
    expect(errors).toMatchObject(
      names.map((name) => ({ pointer: `/payload/headers/${name}`, code: 'header_not_allowed' })),
    );
  });
});

describe('what is no HTTP request', () => {
  test.each([
    ['a header with a NUL', 'GET / HTTP/1.1\r\nhost: x\r\na: b\0c\r\n\r\n', 400],
    ['another protocol', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n', 400],
    [
      'two lengths',
      'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\na',
      400,
    ],
    ['large headers', `GET / HTTP/1.1\r\nhost: x\r\na: ${'b'.repeat(40_000)}\r\n\r\n`, 431],
  ])('%s is answered with a problem, and the connection ends', async (_what, bytes, status) => {
    const { answer } = await sendBytes(app.client.base, (socket) => socket.write(bytes));
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(head).toContain('content-type: application/problem+json');
    expect(JSON.parse(body)).toMatchObject({ status, code: 'invalid_request' });
  });
});
