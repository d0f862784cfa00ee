import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { encodeCursor } from '../../../api/http/pagination.ts';
import { startApp, type TestApp } from '../../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

const echo = { type: 'core.echo', payload: {} };

/** Sends headers as they are, repeated ones too, which fetch cannot. */
function raw(
  path: string,
  headers: string[],
  { method = 'GET', body = '' } = {},
): Promise<{ status: number; body: any; headers: NodeJS.Dict<string | string[]> }> {
  return new Promise((resolve, reject) => {
    const sent = request(app.client.base + path, { method, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          body: text === '' ? null : JSON.parse(text),
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
    ['a session and headers', [...IDENTITY, 'authorization', 'Bearer x'], 400, 'invalid_request'],
    ['an unknown session', ['host', 'x', 'authorization', 'Bearer x'], 401, 'session_invalid'],
    [
      'a role that gives nothing',
      ['host', 'x', 'x-service-actor-id', 'a', 'x-service-role-ids', 'no-such-role'],
      403,
      'permission_denied',
    ],
  ])('with %s', async (_what, headers, status, code) => {
    const answer = await raw('/api/jobs', headers);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });

  test('a denied attempt names permission and scope, and is in the audit trail', async () => {
    const denied = await app.client
      .as({ roles: 'viewer', tenant: 'blue' })
      .post('/api/jobs', echo, { 'x-request-id': 'denied-1' });
    expect(denied.status).toBe(403);
    expect(denied.body.detail).toBe('Permission job:write is missing at tenant blue.');
    const entry = await app.deps.db('audit_entries').where({ request_id: 'denied-1' }).first();
    expect(entry).toMatchObject({
      outcome: 'denied',
      actor_id: 'alice',
      tenant_id: 'blue',
      after: { permission: 'job:write' },
    });
  });

  test('headers from an address that is no trusted gateway are refused and audited', async () => {
    const stranger = await startApp({ HOLDFAST_TRUSTED_GATEWAYS: '10.9.9.0/24' });
    try {
      const answer = await stranger.client.get('/api/jobs');
      expect([answer.status, answer.body.code]).toEqual([401, 'identity_required']);
      const entry = await stranger.deps
        .db('audit_entries')
        .where({ action: 'identity.untrusted' })
        .first();
      expect(entry).toMatchObject({
        outcome: 'denied',
        actor_id: 'anonymous',
        address: expect.stringContaining('127.0.0.1'),
      });
    } finally {
      await stranger.stop();
    }
  });
});

describe('tenants', () => {
  test('a job is not there for another tenant, in reads, lists, logs and actions', async () => {
    const red = app.client.as({ tenant: 'red' });
    const blue = app.client.as({ tenant: 'blue' });
    const job = (await red.post('/api/jobs', echo)).body;
    expect(job.tenantId).toBe('red');
    for (const answer of await Promise.all([
      blue.get(`/api/jobs/${job.id}`),
      blue.get(`/api/jobs/${job.id}/logs`),
      blue.get(`/api/jobs/${job.id}/logs?follow`),
      blue.post(`/api/jobs/${job.id}/cancel`),
      blue.post(`/api/jobs/${job.id}/retry`),
    ])) {
      expect([answer.status, answer.body.code]).toEqual([404, 'not_found']);
    }
    const listed = async (client: typeof red, query = '') =>
      (await client.get(`/api/jobs${query}`)).body.items.map((j: any) => j.id);
    expect(await listed(blue)).not.toContain(job.id);
    expect(await listed(blue, '?tenantId=red')).toEqual([]);
    expect(await listed(red)).toContain(job.id);
    expect(await listed(app.client, '?tenantId=red')).toEqual([job.id]);
  });
});

describe('a request that is not right', () => {
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
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
    expect(answer.body.requestId).toBe(answer.headers['x-request-id']);
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
    const { status, body } = await app.client.get(path);
    expect(status).toBe(400);
    expect(body.errors).toContainEqual(expect.objectContaining({ in: 'query', pointer }));
  });

  test.each([
    ['prefer', 'wait=soon', '/Prefer'],
    ['last-event-id', 'x', '/Last-Event-ID'],
    ['if-match', 'no-quotes', '/If-Match'],
    ['idempotency-key', 'a b', '/Idempotency-Key'],
  ])('a bad %s header', async (name, value, pointer) => {
    const { body: job } = await app.client.post('/api/jobs', echo, { prefer: 'wait=20' });
    const path =
      name === 'last-event-id'
        ? `/api/jobs/${job.id}/logs`
        : name === 'if-match'
          ? `/api/jobs/${job.id}/cancel`
          : '/api/jobs';
    const answer =
      name === 'last-event-id'
        ? await app.client.get(path, { [name]: value })
        : await app.client.post(path, name === 'if-match' ? undefined : echo, { [name]: value });
    expect(answer.status).toBe(400);
    expect(answer.body.errors[0]).toMatchObject({ in: 'header', pointer });
  });

  test.each([
    '/api/jobs/nope',
    '/api/jobs/%00',
    '/api/jobs/job_01jd0cmxk5e5v8kyzwq0q8s3rt',
    '/api/nothing',
    '/%zz',
    '/',
  ])('%s is not found', async (path) => {
    const { status, body } = await app.client.get(path);
    expect([status, body.code]).toEqual([404, 'not_found']);
  });

  test('a method that the path does not have is answered with those that it has', async () => {
    const answer = await app.client.send('DELETE', '/api/jobs');
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
  test('pages meet without a gap or a double, newest first, while records are added', async () => {
    const client = app.client.as({ tenant: 'pages' });
    const ids: string[] = [];
    for (let i = 0; i < 7; i++) ids.push((await client.post('/api/jobs', echo)).body.id);
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: any = (await client.get(`/api/jobs?limit=3${cursor && `&cursor=${cursor}`}`))
        .body;
      seen.push(...page.items.map((job: any) => job.id));
      cursor = page.nextCursor;
      await client.post('/api/jobs', echo);
    }
    expect(seen).toEqual(ids.toReversed());
  });

  test('filters narrow, and take several values', async () => {
    const client = app.client.as({ tenant: 'filters', actor: 'carol' });
    const done = (await client.post('/api/jobs', echo, { prefer: 'wait=20' })).body;
    const failed = (
      await client.post(
        '/api/jobs',
        {
          type: 'core.sleep',
          payload: { durationMs: 0, failAttempts: 1 },
          retryPolicy: { maxAttempts: 1 },
        },
        { prefer: 'wait=20' },
      )
    ).body;
    const ids = async (query: string) =>
      (await client.get(`/api/jobs?${query}`)).body.items.map((job: any) => job.id);
    expect(await ids('status=failed')).toEqual([failed.id]);
    expect(await ids('status=failed&status=succeeded')).toEqual([failed.id, done.id]);
    expect(await ids('type=core.echo')).toEqual([done.id]);
    expect(await ids('createdBy=carol')).toEqual([failed.id, done.id]);
    expect(await ids('createdBy=dave')).toEqual([]);
    expect(await ids(`createdAfter=${failed.createdAt}`)).toEqual([failed.id]);
    expect(await ids(`createdBefore=${failed.createdAt}`)).toEqual([done.id]);
  });
});

describe('Idempotency-Key', () => {
  const keyed = (key: string, prefer?: string) => ({
    'idempotency-key': key,
    ...(prefer && { prefer }),
  });

  test('the same request again gives the first answer again', async () => {
    const first = await app.client.post('/api/jobs', echo, keyed('k1'));
    const again = await app.client.post('/api/jobs', echo, keyed('k1'));
    expect(again.status).toBe(201);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(again.headers.get('location')).toBe(first.headers.get('location'));
  });

  test('another body with the key is refused', async () => {
    await app.client.post('/api/jobs', echo, keyed('k2'));
    const other = await app.client.post('/api/jobs', { ...echo, payload: { x: 1 } }, keyed('k2'));
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_mismatch']);
  });

  test('the key is one actor’s at one tenant', async () => {
    const mine = await app.client.post('/api/jobs', echo, keyed('k3'));
    const hers = await app.client.as({ actor: 'bob' }).post('/api/jobs', echo, keyed('k3'));
    const there = await app.client.as({ tenant: 'red' }).post('/api/jobs', echo, keyed('k3'));
    expect(new Set([mine, hers, there].map((answer) => answer.body.id)).size).toBe(3);
  });

  test('a refused request does not use up the key', async () => {
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

  test('twenty at once make one job', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => app.client.post('/api/jobs', echo, keyed('k5'))),
    );
    const made = answers.filter((answer) => answer.status === 201);
    expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true);
    expect(new Set(made.map((answer) => answer.body.id)).size).toBe(1);
    const [{ count }] = (await app.deps
      .db('audit_entries')
      .where({ action: 'job.create', subject_id: made[0]?.body.id })
      .count()) as any;
    expect(count).toBe(1);
  });

  test('what was committed is answered from the record when its answer was lost', async () => {
    const first = await app.client.post('/api/jobs', echo, keyed('k6'));
    await app.deps
      .db('idempotency_keys')
      .where({ key: 'k6' })
      .update({ answer: null, lease_until: new Date(0) });
    const again = await app.client.post('/api/jobs', echo, keyed('k6'));
    expect([again.status, again.body.id]).toEqual([201, first.body.id]);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
  });

  test('a claim whose process died before its commit is taken over', async () => {
    await app.client.post('/api/jobs', echo, keyed('k7'));
    await app.deps
      .db('idempotency_keys')
      .where({ key: 'k7' })
      .update({ answer: null, subject_id: null });
    const blocked = await app.client.post('/api/jobs', echo, keyed('k7'));
    expect([blocked.status, blocked.body.code]).toEqual([409, 'idempotency_in_progress']);
    await app.deps
      .db('idempotency_keys')
      .where({ key: 'k7' })
      .update({ lease_until: new Date(0) });
    const taken = await app.client.post('/api/jobs', echo, keyed('k7'));
    expect([taken.status, taken.headers.get('idempotent-replayed')]).toEqual([201, null]);
  });
});

describe('around the records', () => {
  test('an ETag that is still right is answered without a body', async () => {
    const { body } = await app.client.post('/api/jobs', echo, { prefer: 'wait=20' });
    const read = await app.client.get(`/api/jobs/${body.id}`);
    const again = await raw(`/api/jobs/${body.id}`, [
      ...IDENTITY,
      'if-none-match',
      read.headers.get('etag') ?? '',
    ]);
    expect([again.status, again.body]).toEqual([304, null]);
  });

  test('the request id is taken over when it is one, and made when not', async () => {
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

  test('health, metrics, description and page are there without an identity', async () => {
    const stranger = (path: string) => fetch(app.client.base + path);
    expect(await (await stranger('/livez')).json()).toEqual({ status: 'alive' });
    expect(await (await stranger('/readyz')).json()).toEqual({
      status: 'ready',
      parts: { postgres: 'ready', temporal: 'ready', worker: 'ready' },
    });
    expect(await (await stranger('/metrics')).text()).toContain('holdfast_dispatches_total');
    expect(((await (await stranger('/api/openapi.json')).json()) as any).openapi).toBe('3.1.0');
    expect(await (await stranger('/api/docs')).text()).toContain('swagger-ui-bundle.js');
    expect((await stranger('/api/docs/assets/swagger-ui.css')).status).toBe(200);
    expect((await stranger('/api/docs/assets/..%2f..%2fpackage.json')).status).toBe(404);
  });
});
