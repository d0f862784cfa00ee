import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { JobTypeRecord } from '../../../api/jobs/typeSchemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { startSink, type Sink } from '../../support/sink.ts';

let app: TestApp;
let sink: Sink;
beforeAll(async () => {
  [app, sink] = await Promise.all([startApp(), startSink()]);
});
afterAll(async () => {
  await app.stop();
  await sink.stop();
});

type Items<T> = { items: T[] };

const echo = (payload: object = { hello: 'world' }) => ({ type: 'core.echo', payload });
const WAIT = { prefer: 'wait=20' };

/** Creates a job, waits until it has finished, and returns it. */
const runJob = (body: object) => app.client.post<JobRecord>('/api/jobs', body, WAIT).expect(201);
const refuseJob = (body: object) => app.client.post<ProblemBody>('/api/jobs', body).expect(400);
const eventTypesOf = (jobId: string): Promise<string[]> =>
  app.deps.db('events').where({ subject_id: jobId }).orderBy('id').pluck('type');

describe('creating a job', () => {
  test('returns the record with its location and version, then runs it', async () => {
    const response = await app.client.post<JobRecord>('/api/jobs', echo());
    const { body: job, headers } = response;
    expect(response.status).toBe(201);
    expect(job).toMatchObject({
      type: 'core.echo',
      status: 'queued',
      createdBy: 'alice',
      tenantId: 'platform',
      retryCount: 0,
      workflowId: `job:${job.id}`,
    });
    expect(headers.get('location')).toBe(`/api/jobs/${job.id}`);
    expect(headers.get('etag')).toMatch(/^"1-[0-9a-f]{16}"$/);
    const done = await app.client.get<JobRecord>(`/api/jobs/${job.id}`, WAIT).expect(200);
    expect(done).toMatchObject({
      status: 'succeeded',
      result: { hello: 'world' },
      attempts: 1,
      error: null,
    });
    expect(done.logs.map(({ line }) => line)).toEqual([1, 2, 3]);
  });

  test('waits until the job has finished if the request prefers to', async () => {
    const response = await app.client.post<JobRecord>('/api/jobs', echo({ n: 1 }), WAIT);
    expect(response.status).toBe(201);
    expect(response.headers.get('preference-applied')).toBe('wait=20');
    expect(response.body).toMatchObject({ status: 'succeeded', result: { n: 1 } });
  });

  test('returns any JSON exactly as it was sent', async () => {
    const payload = {
      'a\u0000b': '\u0000 \ud800 ü 𝄞',
      big: 1e300,
      nested: { list: [1, null, { x: [] }] },
      __proto__x: 1,
    };
    expect((await runJob(echo(payload))).result).toEqual(payload);
  });

  test('reports all invalid fields together', async () => {
    const problem = await refuseJob({
      type: 7,
      extra: true,
      retryPolicy: { maxAttempts: 0, x: 1 },
    });
    expect(problem.code).toBe('invalid_request');
    expect(problem.errors?.map(({ pointer }) => pointer).sort()).toEqual([
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
      'a payload that violates the schema of the type',
      { type: 'core.sleep', payload: { durationMs: -1 } },
      '/payload/durationMs',
    ],
    [
      'an unknown payload field',
      { type: 'core.sleep', payload: { durationMs: 1, x: 1 } },
      '/payload/x',
    ],
    ['a payload that is not an object', { type: 'core.echo', payload: [] }, '/payload'],
    ['a blank creator', { ...echo(), createdBy: ' ' }, '/createdBy'],
  ])('rejects %s', async (_what, body, pointer) => {
    const problem = await refuseJob(body);
    expect(problem.errors).toContainEqual(expect.objectContaining({ in: 'body', pointer }));
  });

  test('accepts another creator only with job:impersonate, and audits the real actor', async () => {
    const body = { ...echo(), createdBy: 'bob' };
    const denied = await app.client.post<ProblemBody>('/api/jobs', body).expect(403);
    expect(denied.detail).toContain('job:impersonate');
    const admin = app.client.as({ roles: 'platform-admin' });
    const job = await admin.post<JobRecord>('/api/jobs', body).expect(201);
    expect(job.createdBy).toBe('bob');
    const entry = await app.deps
      .db('audit_entries')
      .where({ action: 'job.create', subject_id: job.id })
      .first();
    expect(entry).toMatchObject({ actor_id: 'alice', via: 'gateway', outcome: 'done' });
  });

  test('writes record, audit entry, event and outbox task together', async () => {
    const job = await runJob(echo({ secret: 'do-not-copy' }));
    const audit = await app.deps
      .db('audit_entries')
      .where({ subject_id: job.id })
      .orderBy('id')
      .select<{ action: string }[]>();
    expect(audit.map(({ action }) => action)).toEqual(['job.create', 'job.succeed']);
    expect(await eventTypesOf(job.id)).toEqual(['job.created', 'job.started', 'job.succeeded']);
    const events = await app.deps.db('events').where({ subject_id: job.id });
    expect(JSON.stringify([audit, events])).not.toContain('do-not-copy');
    await eventually(
      () => app.deps.db('outbox').where({ workflow_id: job.workflowId }),
      (rows) => rows.length === 0,
    );
  });
});

test('a job whose commit has waited for its locks is in the list of the time at which it began', async () => {
  const { id, createdAt } = await app.client.post<JobRecord>('/api/jobs', echo()).expect(201);
  const began = Date.parse(createdAt) - 45_000;
  await app.deps
    .db('jobs')
    .where({ id })
    .update({ created_at: new Date(began) });
  const isListed = async (filter: string, ms = began) => {
    const query = `createdAt.${filter}=${new Date(ms).toISOString()}`;
    const { items } = await app.client.get<Items<JobRecord>>(`/api/jobs?${query}`).expect(200);
    return items.some((job) => job.id === id);
  };
  expect([await isListed('lte'), await isListed('lt', began + 1)]).toEqual([true, true]);
  expect([await isListed('gte'), await isListed('gt', began - 1)]).toEqual([true, true]);
  expect([await isListed('lt'), await isListed('gt')]).toEqual([false, false]);
});

describe('the retry policy', () => {
  const failing = (failAttempts: number, retryPolicy: object) => ({
    type: 'core.sleep',
    payload: { durationMs: 1, failAttempts },
    retryPolicy,
  });

  test('leads to further attempts, which are counted and logged', async () => {
    const job = await runJob(failing(2, { initialIntervalSeconds: 0.05 }));
    expect(job).toMatchObject({ status: 'succeeded', attempts: 3, retryCount: 2, error: null });
    const errors = job.logs.filter(({ level }) => level === 'error');
    expect(errors.map(({ attempt }) => attempt)).toEqual([1, 2]);
  });

  test('ends the job with the error of the last attempt', async () => {
    const job = await runJob(failing(9, { maxAttempts: 2, initialIntervalSeconds: 0.05 }));
    expect(job).toMatchObject({ status: 'failed', attempts: 2, error: { code: 'sleep_failed' } });
    expect(await eventTypesOf(job.id)).toEqual(['job.created', 'job.started', 'job.failed']);
  });

  test('ends the job after an error code that is not retryable', async () => {
    const job = await runJob(failing(9, { nonRetryableCodes: ['sleep_failed'] }));
    expect(job).toMatchObject({ status: 'failed', attempts: 1 });
  });
});

describe('retrying a job', () => {
  test('runs a finished job again as a new job that refers to it', async () => {
    const first = await runJob(echo({ again: 1 }));
    const second = await app.client
      .post<JobRecord>(`/api/jobs/${first.id}/retry`, undefined, WAIT)
      .expect(201);
    expect(second).toMatchObject({
      status: 'succeeded',
      retryOf: first.id,
      result: { again: 1 },
    });
    const retries = await app.client
      .get<Items<JobRecord>>(`/api/jobs?retryOf=${first.id}`)
      .expect(200);
    expect(retries.items.map(({ id }) => id)).toEqual([second.id]);
  });

  test('is refused while the job runs', async () => {
    const body = { type: 'core.sleep', payload: { durationMs: 30_000 } };
    const job = await app.client.post<JobRecord>('/api/jobs', body).expect(201);
    const problem = await app.client.post<ProblemBody>(`/api/jobs/${job.id}/retry`).expect(409);
    expect(problem.code).toBe('job_still_running');
    await app.client.post(`/api/jobs/${job.id}/cancel`, undefined, WAIT).expect(202);
  });
});

describe('http.request', () => {
  const requestJob = (payload: object) => runJob({ type: 'http.request', payload });

  test('stores the response, and masks credentials in every read', async () => {
    sink.respond('/status', (_request, response) => response.end('{"status":"alive"}'));
    const job = await requestJob({
      url: sink.url('/status?api_key=abcdef123&a=b'),
      headers: {
        'X-Auth': 'abcdef123',
        Authorization: 'Bearer abcdef123',
        accept: 'application/json',
      },
    });
    expect(job).toMatchObject({
      status: 'succeeded',
      result: { status: 200, body: '{"status":"alive"}' },
      payload: {
        url: expect.stringMatching(/api_key=\*{8}&a=b$/),
        headers: { 'X-Auth': '********', Authorization: '********', accept: 'application/json' },
      },
    });
    expect(JSON.stringify(job)).not.toContain('abcdef123');
    expect(JSON.stringify(await app.deps.db('audit_entries'))).not.toContain('abcdef123');
  });

  test.each([
    'http://10.1.2.3/',
    'http://[::127.0.0.1]/',
    'http://user:pw@127.0.0.1/',
    'ftp://127.0.0.1/',
    'nonsense',
  ])('rejects %s when the job is created', async (url) => {
    const problem = await refuseJob({ type: 'http.request', payload: { url } });
    expect(problem.errors?.[0]?.pointer).toBe('/payload/url');
  });

  test('fails on a status that is not expected', async () => {
    sink.respond('/nothing', (_request, response) => response.writeHead(404).end());
    const url = sink.url('/nothing');
    expect(await requestJob({ url })).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'http_status' },
    });
    expect(await requestJob({ url, expectStatus: [404] })).toMatchObject({
      status: 'succeeded',
      result: { status: 404 },
    });
  });
});

test('the job types are listed with their payload schemas', async () => {
  const { items } = await app.client.get<Items<JobTypeRecord>>('/api/job-types').expect(200);
  expect(items.map(({ name }) => name)).toEqual([
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
    'audit.archive',
    'retention.purge',
  ]);
  expect(items[1]?.payloadSchema).toMatchObject({ required: ['durationMs'] });
});
