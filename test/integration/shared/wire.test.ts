import { Agent, request } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { encodeCursor } from '../../../api/http/pagination.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { EVENT_DATA } from '../../../domain/events/events.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { expectProblem } from '../../support/problem.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

const echo = { type: 'core.echo', payload: {} };

type JobPage = { items: JobRecord[]; nextCursor: string | null };
type RawResponse = {
  status: number;
  body: ProblemBody | null;
  headers: NodeJS.Dict<string | string[]>;
};

/** Sends headers exactly as they are, including repeated ones, which `fetch` cannot. */
function raw(
  path: string,
  headers: string[],
  { method = 'GET', body = '' } = {},
): Promise<RawResponse> {
  return new Promise((resolve, reject) => {
    const sent = request(app.client.base + path, { method, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          body: (text === '' ? null : JSON.parse(text)) as ProblemBody | null,
          headers: response.headers,
        }),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const IDENTITY = ['host', 'x', 'x-service-actor-id', 'alice', 'x-service-role-ids', 'operator'];

describe('identity', () => {
  test.each([
    ['no header at all', ['host', 'x'], 401, 'identity_required'],
    ['no actor', ['host', 'x', 'x-service-role-ids', 'operator'], 401, 'identity_required'],
    ['no roles', ['host', 'x', 'x-service-actor-id', 'alice'], 401, 'identity_required'],
    [
      'an empty actor',
      ['host', 'x', 'x-service-actor-id', ' ', 'x-service-role-ids', 'operator'],
      401,
      'identity_required',
    ],
    [
      'roles that name none',
      ['host', 'x', 'x-service-actor-id', 'alice', 'x-service-role-ids', ' , '],
      401,
      'identity_required',
    ],
    ['a repeated actor', [...IDENTITY, 'x-service-actor-id', 'mallory'], 401, 'identity_required'],
    [
      'repeated roles',
      [...IDENTITY, 'x-service-role-ids', 'platform-admin'],
      401,
      'identity_required',
    ],
    ['an empty tenant', [...IDENTITY, 'x-service-tenant-id', ''], 401, 'identity_required'],
    ['a tenant that is no id', [...IDENTITY, 'x-service-tenant-id', 'a b'], 400, 'invalid_request'],
    [
      'an unknown session and headers',
      [...IDENTITY, 'authorization', 'Bearer x'],
      401,
      'session_invalid',
    ],
    ['an unknown session', ['host', 'x', 'authorization', 'Bearer x'], 401, 'session_invalid'],
    [
      'a role without permissions',
      ['host', 'x', 'x-service-actor-id', 'a', 'x-service-role-ids', 'no-such-role'],
      403,
      'permission_denied',
    ],
  ])('with %s', async (_what, headers, status, code) => {
    const answer = await raw('/api/jobs', headers);
    expect([answer.status, answer.body?.code]).toEqual([status, code]);
  });

  test('a denied attempt names permission and scope, and is recorded in the audit log', async () => {
    const denied = await app.client
      .as({ roles: 'viewer', tenant: 'blue' })
      .post<ProblemBody>('/api/jobs', echo, { 'x-request-id': 'denied-1' })
      .expect(403);
    expect(denied.detail).toBe('Permission job:write is missing at tenant blue.');
    const entry = await app.deps.db('audit_entries').where({ request_id: 'denied-1' }).first();
    expect(entry).toMatchObject({
      outcome: 'denied',
      actor_id: 'alice',
      tenant_id: 'blue',
      after: { permission: 'job:write' },
    });
  });

  test('identity headers from an untrusted address are refused and audited', async () => {
    const untrusted = await startApp({ HOLDFAST_TRUSTED_GATEWAYS: '10.9.9.0/24' });
    try {
      await expectProblem(untrusted.client.get('/api/jobs'), 401, 'identity_required');
      const entry = await untrusted.deps
        .db('audit_entries')
        .where({ action: 'identity.untrusted' })
        .first();
      expect(entry).toMatchObject({
        outcome: 'denied',
        actor_id: 'anonymous',
        address: expect.stringContaining('127.0.0.1'),
      });
    } finally {
      await untrusted.stop();
    }
  });
});

describe('tenants', () => {
  test('a job is invisible to other tenants in reads, lists, logs and actions', async () => {
    const red = app.client.as({ tenant: 'red' });
    const blue = app.client.as({ tenant: 'blue' });
    const job = await red.post<JobRecord>('/api/jobs', echo).expect(201);
    expect(job.tenantId).toBe('red');
    for (const request of [
      blue.get(`/api/jobs/${job.id}`),
      blue.get(`/api/jobs/${job.id}/logs`),
      blue.get(`/api/jobs/${job.id}/logs?follow`),
      blue.post(`/api/jobs/${job.id}/cancel`),
      blue.post(`/api/jobs/${job.id}/retry`),
    ])
      await expectProblem(request, 404, 'not_found');
    const listed = async (client: typeof red, query = '') =>
      (await client.get<JobPage>(`/api/jobs${query}`)).body.items.map(({ id }) => id);
    expect(await listed(blue)).not.toContain(job.id);
    expect(await listed(blue, '?tenantId=red')).toEqual([]);
    expect(await listed(red)).toContain(job.id);
    expect(await listed(app.client, '?tenantId=red')).toEqual([job.id]);
  });
});

describe('an invalid request', () => {
  test.each([
    ['malformed JSON', 'POST', '/api/jobs', '{"type":', 'application/json', 400, 'invalid_request'],
    [
      'another media type',
      'POST',
      '/api/jobs',
      'a=b',
      'application/x-www-form-urlencoded',
      415,
      'media_type_unsupported',
    ],
    [
      'a body that is too large',
      'POST',
      '/api/jobs',
      JSON.stringify({ type: 'core.echo', payload: { x: 'x'.repeat(1_100_000) } }),
      'application/json',
      413,
      'body_too_large',
    ],
    [
      'another charset',
      'POST',
      '/api/jobs',
      '{}',
      'application/json; charset=iso-8859-1',
      415,
      'media_type_unsupported',
    ],
    [
      'JSON that is nested too deep',
      'POST',
      '/api/jobs',
      `{"type":"core.echo","payload":{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}}`,
      'application/json',
      400,
      'invalid_request',
    ],
    [
      'half of a character',
      'POST',
      '/api/jobs',
      '{"type":"core.echo","payload":{},"createdBy":"b\\ud800ob"}',
      'application/json',
      400,
      'invalid_request',
    ],
    [
      'a body where there is none',
      'POST',
      '/api/jobs/job_01jd0cmxk5e5v8kyzwq0q8s3rt/cancel',
      '{"a":1}',
      'application/json',
      400,
      'invalid_request',
    ],
  ])('%s', async (_what, method, path, body, type, status, code) => {
    const answer = await raw(
      path,
      [...IDENTITY, 'content-type', type, 'content-length', String(Buffer.byteLength(body))],
      { method, body },
    );
    expect([answer.status, answer.body?.code]).toEqual([status, code]);
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
    expect(answer.body?.requestId).toBe(answer.headers['x-request-id']);
  });

  test.each([
    ['/api/jobs?limit=0', '/limit'],
    ['/api/jobs?limit=201', '/limit'],
    ['/api/jobs?limit=x', '/limit'],
    ['/api/jobs?nope=1', '/nope'],
    ['/api/jobs?status=done', '/status/0'],
    ['/api/jobs?createdAfter=yesterday', '/createdAfter'],
    ['/api/jobs?createdAfter=2026-01-01T23:59:60Z', '/createdAfter'],
    ['/api/jobs?limit=1&limit=2', '/limit'],
    ['/api/jobs?cursor=garbage', '/cursor'],
    ['/api/jobs?createdBy=%00', '/createdBy'],
    [`/api/jobs?cursor=${encodeCursor('webhooks', 'job_01jd0cmxk5e5v8kyzwq0q8s3rt')}`, '/cursor'],
    [`/api/jobs?cursor=${encodeCursor('jobs', "job_' OR 1=1")}`, '/cursor'],
  ])('%s names %s', async (path, pointer) => {
    const { errors } = await app.client.get<ProblemBody>(path).expect(400);
    expect(errors).toContainEqual(expect.objectContaining({ in: 'query', pointer }));
  });

  test.each([
    ['prefer', 'wait=soon', '/Prefer'],
    ['last-event-id', 'x', '/Last-Event-ID'],
    ['if-match', 'no-quotes', '/If-Match'],
    ['idempotency-key', 'a b', '/Idempotency-Key'],
  ])('a bad %s header', async (name, value, pointer) => {
    const job = await app.client
      .post<JobRecord>('/api/jobs', echo, { prefer: 'wait=20' })
      .expect(201);
    const path =
      name === 'last-event-id'
        ? `/api/jobs/${job.id}/logs?follow=true`
        : name === 'if-match'
          ? `/api/jobs/${job.id}/cancel`
          : '/api/jobs';
    const headers = { [name]: value };
    const { errors } = await (
      name === 'last-event-id'
        ? app.client.get<ProblemBody>(path, headers)
        : app.client.post<ProblemBody>(path, name === 'if-match' ? undefined : echo, headers)
    ).expect(400);
    expect(errors?.[0]).toMatchObject({ in: 'header', pointer });
  });

  test.each([
    '/api/jobs/nope',
    '/api/jobs/%00',
    '/api/jobs/job_01jd0cmxk5e5v8kyzwq0q8s3rt',
    '/api/nothing',
    '/%zz',
    '/',
  ])('%s is not found', async (path) => {
    await expectProblem(app.client.get(path), 404, 'not_found');
  });

  test('an unsupported method is answered with the supported ones', async () => {
    const answer = await app.client.send<ProblemBody>('DELETE', '/api/jobs');
    expect([answer.status, answer.body.code]).toEqual([405, 'method_not_allowed']);
    expect(answer.headers.get('allow')).toBe('GET, HEAD, OPTIONS, POST');
    const options = await app.client.send('OPTIONS', '/api/jobs');
    expect([options.status, options.headers.get('allow')]).toEqual([
      204,
      'GET, HEAD, OPTIONS, POST',
    ]);
  });
});

describe('lists', () => {
  test('pages have no gaps and no duplicates while records are added', async () => {
    const client = app.client.as({ tenant: 'pages' });
    const ids: string[] = [];
    for (let i = 0; i < 7; i++)
      ids.push((await client.post<JobRecord>('/api/jobs', echo).expect(201)).id);
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const path = `/api/jobs?limit=3${cursor && `&cursor=${cursor}`}`;
      const page: JobPage = await client.get<JobPage>(path).expect(200);
      seen.push(...page.items.map(({ id }) => id));
      cursor = page.nextCursor;
      await client.post('/api/jobs', echo);
    }
    expect(seen).toEqual(ids.toReversed());
  });

  test('filters narrow the list and accept several values', async () => {
    const client = app.client.as({ tenant: 'filters', actor: 'carol' });
    const done = await client.post<JobRecord>('/api/jobs', echo, { prefer: 'wait=20' }).expect(201);
    const failed = await client
      .post<JobRecord>(
        '/api/jobs',
        {
          type: 'core.sleep',
          payload: { durationMs: 0, failAttempts: 1 },
          retryPolicy: { maxAttempts: 1 },
        },
        { prefer: 'wait=20' },
      )
      .expect(201);
    const ids = async (query: string) =>
      (await client.get<JobPage>(`/api/jobs?${query}`).expect(200)).items.map(({ id }) => id);
    expect(await ids('status=failed')).toEqual([failed.id]);
    expect(await ids('status=failed&status=succeeded')).toEqual([failed.id, done.id]);
    expect(await ids('type=core.echo')).toEqual([done.id]);
    expect(await ids('createdBy=carol')).toEqual([failed.id, done.id]);
    expect(await ids('createdBy=dave')).toEqual([]);
    expect(await ids(`createdAfter=${failed.createdAt}`)).toEqual([failed.id]);
    expect(await ids(`createdBefore=${failed.createdAt}`)).toEqual([done.id]);
    expect(await ids(`createdAt>=${failed.createdAt}`)).toEqual([failed.id]);
    expect(await ids('status!=failed')).toEqual([done.id]);
    expect(await ids('sort=createdAt')).toEqual([done.id, failed.id]);
    expect(await ids('source=api&internal=false')).toEqual([failed.id, done.id]);
    expect([await ids('internal=true'), await ids('source!=api')]).toEqual([[], []]);
  });
});

describe('Idempotency-Key', () => {
  const keyed = (key: string, prefer?: string) => ({
    'idempotency-key': key,
    ...(prefer && { prefer }),
  });

  test('repeats the first response for the same request', async () => {
    const first = await app.client.post('/api/jobs', echo, keyed('k1'));
    const again = await app.client.post('/api/jobs', echo, keyed('k1'));
    expect(again.status).toBe(201);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(again.headers.get('location')).toBe(first.headers.get('location'));
  });

  test('refuses another body with the same key', async () => {
    await app.client.post('/api/jobs', echo, keyed('k2'));
    const other = app.client.post('/api/jobs', { ...echo, payload: { x: 1 } }, keyed('k2'));
    await expectProblem(other, 422, 'idempotency_mismatch');
  });

  test('belongs to one actor at one tenant', async () => {
    const ids = new Set<string>();
    for (const client of [
      app.client,
      app.client.as({ actor: 'bob' }),
      app.client.as({ tenant: 'red' }),
    ])
      ids.add((await client.post<JobRecord>('/api/jobs', echo, keyed('k3')).expect(201)).id);
    expect(ids.size).toBe(3);
  });

  test('is not used up by a refused request', async () => {
    const bad = await app.client.as({ roles: 'viewer' }).post('/api/jobs', echo, keyed('k4'));
    expect(bad.status).toBe(403);
    const unknown = await app.client.post(
      '/api/jobs',
      { type: 'no.such', payload: {} },
      keyed('k4'),
    );
    expect(unknown.status).toBe(400);
    const good = await app.client.post('/api/jobs', { type: 'no.such', payload: {} }, keyed('k4'));
    expect(good.headers.get('idempotent-replayed')).toBeNull();
  });

  test('twenty concurrent requests create one job', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => app.client.post<JobRecord>('/api/jobs', echo, keyed('k5'))),
    );
    const made = answers.filter((answer) => answer.status === 201);
    expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true);
    expect(new Set(made.map((answer) => answer.body.id)).size).toBe(1);
    const entries: string[] = await app.deps
      .db('audit_entries')
      .where({ action: 'job.create', subject_id: made[0]?.body.id })
      .pluck('id');
    expect(entries).toHaveLength(1);
  });

  test('builds the response from the record when the stored one was lost', async () => {
    const first = await app.client.post<JobRecord>('/api/jobs', echo, keyed('k6')).expect(201);
    await app.deps
      .db('idempotency_keys')
      .where({ key: 'k6' })
      .update({ answer: null, lease_until: new Date(0) });
    const again = await app.client.post<JobRecord>('/api/jobs', echo, keyed('k6'));
    expect([again.status, again.body.id]).toEqual([201, first.id]);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
  });

  test('can be claimed again when its process died before the commit', async () => {
    await app.client.post('/api/jobs', echo, keyed('k7'));
    await app.deps
      .db('idempotency_keys')
      .where({ key: 'k7' })
      .update({ answer: null, subject_id: null });
    const blocked = app.client.post('/api/jobs', echo, keyed('k7'));
    await expectProblem(blocked, 409, 'idempotency_in_progress');
    await app.deps
      .db('idempotency_keys')
      .where({ key: 'k7' })
      .update({ lease_until: new Date(0) });
    const taken = await app.client.post('/api/jobs', echo, keyed('k7'));
    expect([taken.status, taken.headers.get('idempotent-replayed')]).toEqual([201, null]);
  });
});

describe('other responses', () => {
  test('a current ETag is answered with 304', async () => {
    const { id } = await app.client
      .post<JobRecord>('/api/jobs', echo, { prefer: 'wait=20' })
      .expect(201);
    const read = await app.client.get(`/api/jobs/${id}`);
    const again = await raw(`/api/jobs/${id}`, [
      ...IDENTITY,
      'if-none-match',
      read.headers.get('etag') ?? '',
    ]);
    expect([again.status, again.body]).toEqual([304, null]);
  });

  test('a valid request id is kept, an invalid one is replaced', async () => {
    expect(
      (await app.client.get('/livez', { 'x-request-id': 'abc-123' })).headers.get('x-request-id'),
    ).toBe('abc-123');
    expect(
      (await app.client.get('/livez', { 'x-request-id': 'a b' })).headers.get('x-request-id'),
    ).toMatch(/^req_/);
  });

  test('Server-Timing on request', async () => {
    expect((await app.client.get('/livez')).headers.get('server-timing')).toBeNull();
    expect(
      (await app.client.get('/livez', { prefer: 'timing' })).headers.get('server-timing'),
    ).toMatch(/^total;dur=/);
  });

  test('health, metrics, OpenAPI document and reference page need no identity', async () => {
    const fetchPublic = (path: string) => fetch(app.client.base + path);
    expect(await (await fetchPublic('/livez')).json()).toEqual({ status: 'alive' });
    await eventually(app.deps.readiness.report, ({ status }) => status === 'ready');
    expect(await (await fetchPublic('/readyz')).json()).toEqual(app.deps.readiness.report());
    expect(await (await fetchPublic('/routez')).json()).toEqual({ status: 'open' });
    expect(await (await fetchPublic('/metrics')).text()).toContain('holdfast_dispatches_total');
    expect(await (await fetchPublic('/api/openapi.json')).json()).toMatchObject({
      openapi: '3.1.0',
    });
    expect(await (await fetchPublic('/api/docs')).text()).toContain('swagger-ui-bundle.js');
    expect((await fetchPublic('/api/docs/assets/swagger-ui.css')).status).toBe(200);
    expect((await fetchPublic('/api/docs/assets/..%2f..%2fpackage.json')).status).toBe(404);
  });
});

describe('compression', () => {
  type Received = { status: number; headers: NodeJS.Dict<string | string[]>; content: Buffer };

  /** Sends a request with `Accept-Encoding` and returns the bytes of the response as they came. */
  const receive = (
    path: string,
    encoding: string,
    { method = 'GET', body = '', more = {} } = {},
  ): Promise<Received> =>
    new Promise((resolve, reject) => {
      const headers = {
        'x-service-actor-id': 'alice',
        'x-service-role-ids': 'platform-admin',
        'x-service-tenant-id': 'platform',
        'accept-encoding': encoding,
        ...(body !== '' && { 'content-type': 'application/json' }),
        ...more,
      };
      const sent = request(app.client.base + path, { method, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            content: Buffer.concat(chunks),
          }),
        );
      });
      sent.on('error', reject);
      sent.end(body);
    });

  const LONG = '/api/job-types';

  test('follows Accept-Encoding, and Vary says so', async () => {
    const plain = await receive(LONG, 'identity');
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(plain.headers.vary).toContain('Accept-Encoding');
    const gzip = await receive(LONG, 'gzip');
    expect(gzip.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(gzip.content)).toEqual(plain.content);
    const brotli = await receive(LONG, 'gzip, deflate, br, zstd');
    expect(brotli.headers['content-encoding']).toBe('br');
    expect(brotliDecompressSync(brotli.content)).toEqual(plain.content);
    expect(brotli.content.length).toBeLessThan(plain.content.length / 2);
    for (const refused of ['br;q=0, gzip;q=0', 'identity;q=0', '*;q=0'])
      expect((await receive(LONG, refused)).content).toEqual(plain.content);
  });

  test('leaves out HEAD, unchanged and short responses', async () => {
    const document = await receive('/api/openapi.json', 'gzip');
    expect(document.headers['content-encoding']).toBe('gzip');
    expect(document.content.length).toBeLessThan(350_000);
    const more = { 'if-none-match': String(document.headers.etag) };
    const unchanged = await receive('/api/openapi.json', 'gzip', { more });
    const { headers } = await receive(LONG, 'gzip', { method: 'HEAD' });
    const short = await receive('/api/jobs?limit=1', 'gzip');
    expect([unchanged.status, unchanged.content.length]).toEqual([304, 0]);
    expect(
      [unchanged.headers, headers, short.headers].map((each) => each['content-encoding']),
    ).toEqual([undefined, undefined, undefined]);
  });

  test('leaves out responses with a secret and streams', async () => {
    const body = JSON.stringify({
      endpointUrl: 'https://127.0.0.1:1/',
      eventTypes: Object.keys(EVENT_DATA),
    });
    const webhook = await receive('/api/webhooks', 'gzip', { method: 'POST', body });
    expect([webhook.status, webhook.headers['content-encoding']]).toEqual([201, undefined]);
    const { id } = JSON.parse(webhook.content.toString()) as { id: string };
    const read = await receive(`/api/webhooks/${id}`, 'gzip');
    expect(read.headers['content-encoding']).toBe('gzip');
    const file = await receive('/api/audit/export', 'gzip');
    expect([file.status, file.headers['content-encoding']]).toEqual([200, undefined]);
    expect(file.content.length).toBeGreaterThan(1_400);
    const job = await app.client
      .post<JobRecord>('/api/jobs', echo, { prefer: 'wait=30' })
      .expect(201);
    const logs = await receive(`/api/jobs/${job.id}/logs?follow`, 'gzip');
    expect(logs.headers['content-type']).toContain('text/event-stream');
    expect(logs.headers['content-encoding']).toBeUndefined();
    await app.client
      .as({ actor: 'alice', roles: 'platform-admin', tenant: 'platform' })
      .delete(`/api/webhooks/${id}`)
      .expect(204);
  });
});

describe('an answer before the body was read', () => {
  const LARGE = 'a'.repeat(2_000_000);

  /** Sends the request and then another one on the same connection, and returns both statuses. */
  async function sendTwo(path: string, headers: Record<string, string>): Promise<number[]> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const identity = { 'x-service-actor-id': 'alice', 'x-service-role-ids': 'operator' };
    const send = (method: string, to: string, more: Record<string, string>, body: string) =>
      new Promise<number>((resolve, reject) => {
        const url = app.client.base + to;
        const sent = request(url, { method, agent, headers: { ...identity, ...more } });
        sent.once('response', (response) => {
          response.resume().once('end', () => resolve(response.statusCode ?? 0));
        });
        sent.setTimeout(5_000, () => sent.destroy(new Error(`${method} ${to} has no answer`)));
        sent.once('error', reject);
        sent.end(body);
      });
    try {
      return [await send('POST', path, headers, LARGE), await send('GET', '/api/jobs', {}, '')];
    } finally {
      agent.destroy();
    }
  }

  test.each([
    ['a file', '/api/inventory/import?resource=tags', { 'content-type': 'text/csv' }, 400],
    [
      'a file of unknown length',
      '/api/inventory/import?resource=tags',
      { 'content-type': 'text/csv', 'transfer-encoding': 'chunked' },
      400,
    ],
    ['JSON', '/api/jobs', { 'content-type': 'application/json' }, 413],
    [
      'JSON of unknown length',
      '/api/jobs',
      { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
      413,
    ],
  ])('leaves the connection usable: %s', async (_, path, headers, status) => {
    expect(await sendTwo(path, headers)).toEqual([status, 200]);
  });
});
