import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

const echo = (payload: object = { hello: 'world' }) => ({ type: 'core.echo', payload });
const WAIT = { prefer: 'wait=20' };

describe('creating a job', () => {
  test('answers 201 with the record, its place and its version, then runs it', async () => {
    const made = await app.client.post('/api/jobs', echo());
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      type: 'core.echo',
      status: 'queued',
      createdBy: 'alice',
      tenantId: 'platform',
      retryCount: 0,
    });
    expect(made.headers.get('location')).toBe(`/api/jobs/${made.body.id}`);
    expect(made.headers.get('etag')).toMatch(/^"1\.\d+"$/);
    expect(made.body.workflowId).toBe(`job:${made.body.id}`);
    const done = await app.client.get(`/api/jobs/${made.body.id}`, WAIT);
    expect(done.body).toMatchObject({
      status: 'succeeded',
      result: { hello: 'world' },
      attempts: 1,
      error: null,
    });
    expect(done.body.logs.map((l: { line: number }) => l.line)).toEqual([1, 2, 3]);
  });

  test('waits for the end when the request prefers to', async () => {
    const made = await app.client.post('/api/jobs', echo({ n: 1 }), WAIT);
    expect(made.status).toBe(201);
    expect(made.headers.get('preference-applied')).toBe('wait=20');
    expect(made.body).toMatchObject({ status: 'succeeded', result: { n: 1 } });
  });

  test('keeps any JSON as it was sent', async () => {
    const payload = {
      'a\u0000b': '\u0000 \ud800 ü 𝄞',
      big: 1e300,
      nested: { list: [1, null, { x: [] }] },
      __proto__x: 1,
    };
    const done = await app.client.post('/api/jobs', echo(payload), WAIT);
    expect(done.body.result).toEqual(payload);
  });

  test('names every bad field at once', async () => {
    const bad = await app.client.post('/api/jobs', {
      type: 7,
      extra: true,
      retryPolicy: { maxAttempts: 0, x: 1 },
    });
    expect(bad.status).toBe(400);
    expect(bad.body.code).toBe('invalid_request');
    expect(bad.body.errors.map((e: { pointer: string }) => e.pointer).sort()).toEqual([
      '/extra',
      '/payload',
      '/retryPolicy/maxAttempts',
      '/retryPolicy/x',
      '/type',
    ]);
  });

  test.each([
    ['an unknown type', { type: 'no.such', payload: {} }, '/type'],
    [
      'a payload against the schema of the type',
      { type: 'core.sleep', payload: { durationMs: -1 } },
      '/payload/durationMs',
    ],
    [
      'an unknown payload field',
      { type: 'core.sleep', payload: { durationMs: 1, x: 1 } },
      '/payload/x',
    ],
    ['a payload that is no object', { type: 'core.echo', payload: [] }, '/payload'],
    ['a blank creator', { ...echo(), createdBy: ' ' }, '/createdBy'],
  ])('refuses %s', async (_what, body, pointer) => {
    const bad = await app.client.post('/api/jobs', body);
    expect(bad.status).toBe(400);
    expect(bad.body.errors).toContainEqual(expect.objectContaining({ in: 'body', pointer }));
  });

  test('takes another creator only with job:impersonate, and audits the real one', async () => {
    const body = { ...echo(), createdBy: 'bob' };
    const denied = await app.client.post('/api/jobs', body);
    expect(denied.status).toBe(403);
    expect(denied.body.detail).toContain('job:impersonate');
    const made = await app.client.as({ roles: 'platform-admin' }).post('/api/jobs', body);
    expect(made.body.createdBy).toBe('bob');
    const entry = await app.deps
      .db('audit_entries')
      .where({ action: 'job.create', subject_id: made.body.id })
      .first();
    expect(entry).toMatchObject({ actor_id: 'alice', via: 'gateway', outcome: 'done' });
  });

  test('writes record, audit entry, event and owed start together', async () => {
    const { body } = await app.client.post('/api/jobs', echo({ secret: 'do-not-copy' }), WAIT);
    const audit = await app.deps.db('audit_entries').where({ subject_id: body.id }).orderBy('id');
    const events = await app.deps.db('events').where({ subject_id: body.id }).orderBy('id');
    expect(audit.map((a: any) => a.action)).toEqual(['job.create', 'job.succeed']);
    expect(events.map((e: any) => e.type)).toEqual(['job.created', 'job.succeeded']);
    expect(JSON.stringify([audit, events])).not.toContain('do-not-copy');
    await eventually(
      () => app.deps.db('outbox').where({ workflow_id: body.workflowId }),
      (rows) => rows.length === 0,
    );
  });
});

describe('retrying', () => {
  test('follows the policy, counts the attempts and keeps their log', async () => {
    const { body } = await app.client.post(
      '/api/jobs',
      {
        type: 'core.sleep',
        payload: { durationMs: 1, failAttempts: 2 },
        retryPolicy: { initialIntervalSeconds: 0.05 },
      },
      WAIT,
    );
    expect(body).toMatchObject({ status: 'succeeded', attempts: 3, retryCount: 2, error: null });
    expect(body.logs.filter((l: any) => l.level === 'error').map((l: any) => l.attempt)).toEqual([
      1, 2,
    ]);
  });

  test('ends when the attempts are used up, with the error of the last', async () => {
    const { body } = await app.client.post(
      '/api/jobs',
      {
        type: 'core.sleep',
        payload: { durationMs: 1, failAttempts: 9 },
        retryPolicy: { maxAttempts: 2, initialIntervalSeconds: 0.05 },
      },
      WAIT,
    );
    expect(body).toMatchObject({ status: 'failed', attempts: 2, error: { code: 'sleep_failed' } });
    const events = await app.deps
      .db('events')
      .where({ subject_id: body.id })
      .orderBy('id')
      .pluck('type');
    expect(events).toEqual(['job.created', 'job.failed']);
  });

  test('ends at once after a code that the policy does not repeat', async () => {
    const { body } = await app.client.post(
      '/api/jobs',
      {
        type: 'core.sleep',
        payload: { durationMs: 1, failAttempts: 9 },
        retryPolicy: { nonRetryableCodes: ['sleep_failed'] },
      },
      WAIT,
    );
    expect(body).toMatchObject({ status: 'failed', attempts: 1 });
  });

  test('runs a job that has ended again as a new, linked one', async () => {
    const first = (await app.client.post('/api/jobs', echo({ again: 1 }), WAIT)).body;
    const second = await app.client.post(`/api/jobs/${first.id}/retry`, undefined, WAIT);
    expect(second.status).toBe(201);
    expect(second.body).toMatchObject({
      status: 'succeeded',
      retryOf: first.id,
      result: { again: 1 },
    });
    const linked = await app.client.get(`/api/jobs?retryOf=${first.id}`);
    expect(linked.body.items.map((j: any) => j.id)).toEqual([second.body.id]);
  });

  test('is refused while the job runs', async () => {
    const { body } = await app.client.post('/api/jobs', {
      type: 'core.sleep',
      payload: { durationMs: 30_000 },
    });
    const refused = await app.client.post(`/api/jobs/${body.id}/retry`);
    expect(refused.status).toBe(409);
    expect(refused.body.code).toBe('job_not_finished');
    await app.client.post(`/api/jobs/${body.id}/cancel`, undefined, WAIT);
  });
});

describe('cancelling', () => {
  const running = async (durationMs = 60_000) => {
    const { body } = await app.client.post('/api/jobs', {
      type: 'core.sleep',
      payload: { durationMs },
    });
    return eventually(
      async () => (await app.client.get(`/api/jobs/${body.id}`)).body,
      (job) => job.status === 'running',
    );
  };

  test('reaches an attempt that runs', async () => {
    const job = await running();
    const answer = await app.client.post(`/api/jobs/${job.id}/cancel`, undefined, WAIT);
    expect(answer.status).toBe(202);
    expect(answer.body).toMatchObject({ status: 'cancelled', error: null });
    expect(answer.body.cancelRequestedAt).not.toBeNull();
    const events = await app.deps
      .db('events')
      .where({ subject_id: job.id })
      .orderBy('id')
      .pluck('type');
    expect(events).toEqual(['job.created', 'job.cancelled']);
  });

  test('reaches a job that waits for its next attempt', async () => {
    const { body } = await app.client.post('/api/jobs', {
      type: 'core.sleep',
      payload: { durationMs: 1, failAttempts: 9 },
      retryPolicy: { initialIntervalSeconds: 600, maxIntervalSeconds: 600 },
    });
    await eventually(
      async () => (await app.client.get(`/api/jobs/${body.id}`)).body,
      (job) => job.error !== null,
    );
    const answer = await app.client.post(`/api/jobs/${body.id}/cancel`, undefined, WAIT);
    expect(answer.body.status).toBe('cancelled');
  });

  test('is refused when the job has ended', async () => {
    const { body } = await app.client.post('/api/jobs', echo(), WAIT);
    const refused = await app.client.post(`/api/jobs/${body.id}/cancel`);
    expect(refused.status).toBe(409);
    expect(refused.body.code).toBe('job_finished');
  });

  test('honours If-Match', async () => {
    const job = await running();
    const stale = await app.client.post(`/api/jobs/${job.id}/cancel`, undefined, {
      'if-match': `"${job.version - 1}"`,
    });
    expect(stale.status).toBe(412);
    const fresh = await app.client.get(`/api/jobs/${job.id}`);
    const done = await app.client.post(`/api/jobs/${job.id}/cancel`, undefined, {
      ...WAIT,
      'if-match': fresh.headers.get('etag') ?? '',
    });
    expect(done.body.status).toBe('cancelled');
  });

  test('tells its event at the tenant of the job, and never gives two states one version', async () => {
    const red = app.client.as({ tenant: 'red' });
    const { body } = await red.post('/api/jobs', {
      type: 'core.sleep',
      payload: { durationMs: 60_000 },
    });
    await eventually(
      async () => (await red.get(`/api/jobs/${body.id}`)).body,
      (job) => job.status === 'running',
    );
    const asked = await app.client.post(`/api/jobs/${body.id}/cancel`);
    const done = await app.client.get(`/api/jobs/${body.id}`, WAIT);
    expect(done.body.status).toBe('cancelled');
    expect(done.body.version).toBeGreaterThan(asked.body.version);
    const tenants = await Promise.all(
      ['events', 'audit_entries'].map((table) =>
        app.deps.db(table).where({ subject_id: body.id }).distinct().pluck('tenant_id'),
      ),
    );
    expect(tenants).toEqual([['red'], ['red']]);
  });

  test('of a queued job is told at its tenant too', async () => {
    const idle = await startApp({ HOLDFAST_ROLE: 'api' });
    try {
      const { body } = await idle.client.as({ tenant: 'red' }).post('/api/jobs', echo());
      const done = await idle.client.post(`/api/jobs/${body.id}/cancel`);
      expect(done.body).toMatchObject({ status: 'cancelled', attempts: 0 });
      const events = await idle.deps
        .db('events')
        .where({ subject_id: body.id })
        .orderBy('id')
        .select('type', 'tenant_id');
      expect(events).toEqual([
        { type: 'job.created', tenant_id: 'red' },
        { type: 'job.cancelled', tenant_id: 'red' },
      ]);
    } finally {
      await idle.stop();
    }
  });

  test('two at once give one cancelled job and no error', async () => {
    const job = await running();
    const answers = await Promise.all(
      [1, 2, 3].map(() => app.client.post(`/api/jobs/${job.id}/cancel`, undefined, WAIT)),
    );
    for (const { status } of answers) expect([202, 409]).toContain(status);
    const events = await app.deps.db('events').where({ subject_id: job.id, type: 'job.cancelled' });
    expect(events).toHaveLength(1);
  });
});

describe('progress and log', () => {
  test('can be read while the job runs', async () => {
    const { body } = await app.client.post('/api/jobs', {
      type: 'core.sleep',
      payload: { durationMs: 60_000 },
    });
    const seen = await eventually(
      async () => (await app.client.get(`/api/jobs/${body.id}`)).body,
      (job) => job.progress !== null && job.logs.length > 0,
    );
    expect(seen.progress.percent).toBeGreaterThanOrEqual(0);
    const tags = new Set<string | null>();
    await eventually(
      async () => tags.add((await app.client.get(`/api/jobs/${body.id}`)).headers.get('etag')),
      () => tags.size > 1,
    );
    await app.client.post(`/api/jobs/${body.id}/cancel`, undefined, WAIT);
  });

  test('the log is paged, oldest line first', async () => {
    const { body } = await app.client.post('/api/jobs', echo(), WAIT);
    const first = await app.client.get(`/api/jobs/${body.id}/logs?limit=2`);
    expect(first.body.items.map((l: any) => l.line)).toEqual([1, 2]);
    const second = await app.client.get(
      `/api/jobs/${body.id}/logs?limit=2&cursor=${first.body.nextCursor}`,
    );
    expect(second.body.items.map((l: any) => l.line)).toEqual([3]);
    expect(second.body.nextCursor).toBeNull();
  });

  test('the log is followed to the end, and taken up after a line', async () => {
    const { body } = await app.client.post('/api/jobs', {
      type: 'core.sleep',
      payload: { durationMs: 300, failAttempts: 1 },
      retryPolicy: { initialIntervalSeconds: 0.2 },
    });
    const all = await app.client.get(`/api/jobs/${body.id}/logs?follow`);
    expect(all.headers.get('content-type')).toMatch(/^text\/event-stream/);
    const ids = [...String(all.body).matchAll(/^id: (\d+)$/gm)].map((m) => Number(m[1]));
    expect(ids).toEqual(ids.map((_, i) => i + 1));
    expect(ids.length).toBeGreaterThanOrEqual(5);
    expect(all.body).toMatch(/event: end\ndata: {"status":"succeeded"}\n\n$/);
    const rest = await app.client.get(`/api/jobs/${body.id}/logs?follow=true`, {
      'last-event-id': '3',
    });
    expect(rest.body).toMatch(/^id: 4\n/);
  });
});

describe('http.request', () => {
  test('sends a request and keeps the answer; credentials are masked in every read', async () => {
    const { body } = await app.client.post(
      '/api/jobs',
      {
        type: 'http.request',
        payload: {
          url: `${app.client.base}/livez?api_key=abcdef123&a=b`,
          headers: {
            'X-Auth': 'abcdef123',
            Authorization: 'Bearer abcdef123',
            accept: 'application/json',
          },
        },
      },
      WAIT,
    );
    expect(body).toMatchObject({
      status: 'succeeded',
      result: { status: 200, body: '{"status":"alive"}' },
    });
    expect(body.payload.headers).toEqual({
      'X-Auth': '********',
      Authorization: '********',
      accept: 'application/json',
    });
    expect(body.payload.url).toMatch(/api_key=\*{8}&a=b$/);
    expect(JSON.stringify(body)).not.toContain('abcdef123');
    expect(JSON.stringify(await app.deps.db('audit_entries'))).not.toContain('abcdef123');
  });

  test.each([
    ['an address that is not public', 'http://10.1.2.3/', 'address_not_allowed'],
    ['an IPv6 address that is not public', 'http://[::127.0.0.1]/', 'address_not_allowed'],
  ])('refuses %s without a second attempt', async (_what, url, code) => {
    const { body } = await app.client.post(
      '/api/jobs',
      { type: 'http.request', payload: { url } },
      WAIT,
    );
    expect(body).toMatchObject({ status: 'failed', attempts: 1, error: { code } });
  });

  test.each(['http://user:pw@127.0.0.1/', 'ftp://127.0.0.1/', 'nonsense'])(
    'does not take %s at all',
    async (url) => {
      const bad = await app.client.post('/api/jobs', { type: 'http.request', payload: { url } });
      expect([bad.status, bad.body.errors[0].pointer]).toEqual([400, '/payload/url']);
    },
  );

  test('an unexpected status is a failure', async () => {
    const { body } = await app.client.post(
      '/api/jobs',
      { type: 'http.request', payload: { url: `${app.client.base}/nothing` } },
      WAIT,
    );
    expect(body).toMatchObject({ status: 'failed', attempts: 1, error: { code: 'http_status' } });
    const expected = await app.client.post(
      '/api/jobs',
      {
        type: 'http.request',
        payload: { url: `${app.client.base}/nothing`, expectStatus: [404] },
      },
      WAIT,
    );
    expect(expected.body).toMatchObject({ status: 'succeeded', result: { status: 404 } });
  });
});

test('the job types are listed with their schemas', async () => {
  const { body } = await app.client.get('/api/job-types');
  expect(body.items.map((t: any) => t.name)).toEqual([
    'core.echo',
    'core.sleep',
    'http.request',
    'webhook.deliver',
    'webhook.replay',
    'schedule.backfill',
    'inventory.import',
    'inventory.apply',
    'backup.create',
    'backup.verify',
    'backup.validate',
    'backup.restore',
  ]);
  expect(body.items[1].payloadSchema.required).toEqual(['durationMs']);
});
