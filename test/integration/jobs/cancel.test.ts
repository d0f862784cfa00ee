import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JobRecord, LogRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody } from '../../support/client.ts';
import { openEventStream } from '../../support/eventStream.ts';
import { eventually } from '../../support/eventually.ts';
import type { PageOf } from '../../support/schedules.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

const ECHO = { type: 'core.echo', payload: {} };
const LONG_SLEEP = { type: 'core.sleep', payload: { durationMs: 60_000 } };
const WAIT = { prefer: 'wait=20' };

type Client = TestApp['client'];

const createJob = (body: object, client: Client = app.client) =>
  client.post<JobRecord>('/api/jobs', body).expect(201);
const readJob = (id: string, client: Client = app.client) =>
  client.get<JobRecord>(`/api/jobs/${id}`).expect(200);
const cancelJob = (id: string, headers: Record<string, string> = WAIT) =>
  app.client.post<JobRecord>(`/api/jobs/${id}/cancel`, undefined, headers);

/** Creates a long job and waits until its first attempt runs. */
async function runningJob(client: Client = app.client): Promise<JobRecord> {
  const { id } = await createJob(LONG_SLEEP, client);
  return eventually(
    () => readJob(id, client),
    ({ status }) => status === 'running',
  );
}

const tenantsOf = (table: string, subjectId: string): Promise<string[]> =>
  app.deps.db(table).where({ subject_id: subjectId }).distinct().pluck('tenant_id');

describe('cancelling', () => {
  test('stops a running attempt', async () => {
    const { id } = await runningJob();
    const job = await cancelJob(id).expect(202);
    expect(job).toMatchObject({ status: 'cancelled', error: null });
    expect(job.cancelRequestedAt).not.toBeNull();
    const events = await app.deps
      .db('events')
      .where({ subject_id: id })
      .orderBy('id')
      .pluck('type');
    expect(events).toEqual(['job.created', 'job.started', 'job.cancelled']);
  });

  test('ends a job that waits for its next attempt', async () => {
    const { id } = await createJob({
      type: 'core.sleep',
      payload: { durationMs: 1, failAttempts: 9 },
      retryPolicy: { initialIntervalSeconds: 600, maxIntervalSeconds: 600 },
    });
    await eventually(
      () => readJob(id),
      ({ error }) => error !== null,
    );
    expect((await cancelJob(id).expect(202)).status).toBe('cancelled');
  });

  test('is followed by no other attempt, also before Temporal knows of it', async () => {
    const { id } = await createJob({
      type: 'core.sleep',
      payload: { durationMs: 1, failAttempts: 9 },
      retryPolicy: { initialIntervalSeconds: 3 },
    });
    await eventually(
      () => readJob(id),
      ({ error }) => error !== null,
    );
    await app.deps.db('jobs').where({ id }).update({ cancel_requested_at: new Date() });
    const job = await app.client.get<JobRecord>(`/api/jobs/${id}`, WAIT).expect(200);
    expect(job).toMatchObject({ status: 'cancelled', attempts: 1, error: null });
  });

  test('is refused when the job has finished', async () => {
    const job = await app.client.post<JobRecord>('/api/jobs', ECHO, WAIT).expect(201);
    const problem = await app.client.post<ProblemBody>(`/api/jobs/${job.id}/cancel`).expect(409);
    expect(problem.code).toBe('job_already_finished');
  });

  test('honours If-Match', async () => {
    const { id, version } = await runningJob();
    await cancelJob(id, { 'if-match': `"${version - 1}"` }).expect(412);
    const current = await app.client.get<JobRecord>(`/api/jobs/${id}`);
    const etag = current.headers.get('etag') ?? '';
    const job = await cancelJob(id, { ...WAIT, 'if-match': etag }).expect(202);
    expect(job.status).toBe('cancelled');
  });

  test("records event and audit entry at the job's tenant, and raises the version", async () => {
    const { id } = await runningJob(app.client.as({ tenant: 'red' }));
    const requested = await cancelJob(id, {}).expect(202);
    const done = await app.client.get<JobRecord>(`/api/jobs/${id}`, WAIT).expect(200);
    expect(done.status).toBe('cancelled');
    expect(done.version).toBeGreaterThan(requested.version);
    expect(await tenantsOf('events', id)).toEqual(['red']);
    expect(await tenantsOf('audit_entries', id)).toEqual(['red']);
  });

  test("of a queued job is recorded at the job's tenant too", async () => {
    const idle = await startApp({}, { idle: true });
    try {
      const { id } = await createJob(ECHO, idle.client.as({ tenant: 'red' }));
      const job = await idle.client.post<JobRecord>(`/api/jobs/${id}/cancel`).expect(202);
      expect(job).toMatchObject({ status: 'cancelled', attempts: 0 });
      const events = await idle.deps
        .db('events')
        .where({ subject_id: id })
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

  test('three times concurrently cancels the job once', async () => {
    const { id } = await runningJob();
    const responses = await Promise.all([1, 2, 3].map(() => cancelJob(id)));
    for (const { status } of responses) expect([202, 409]).toContain(status);
    const events = await app.deps.db('events').where({ subject_id: id, type: 'job.cancelled' });
    expect(events).toHaveLength(1);
  });
});

describe('progress and log', () => {
  type LogPage = { items: LogRecord[]; nextCursor: string | null };

  test('are visible while the job runs', async () => {
    const { id } = await createJob(LONG_SLEEP);
    const job = await eventually(
      () => readJob(id),
      ({ progress, logs }) => progress !== null && logs.length > 0,
    );
    expect(job.progress?.percent).toBeGreaterThanOrEqual(0);
    const tags = new Set<string | null>();
    await eventually(
      async () => tags.add((await app.client.get(`/api/jobs/${id}`)).headers.get('etag')),
      () => tags.size > 1,
    );
    await cancelJob(id).expect(202);
  });

  test('the log has pages, oldest line first', async () => {
    const { id } = await app.client.post<JobRecord>('/api/jobs', ECHO, WAIT).expect(201);
    const path = `/api/jobs/${id}/logs?limit=2`;
    const first = await app.client.get<LogPage>(path).expect(200);
    expect(first.items.map(({ line }) => line)).toEqual([1, 2]);
    const second = await app.client.get<LogPage>(`${path}&cursor=${first.nextCursor}`).expect(200);
    expect(second.items.map(({ line }) => line)).toEqual([3]);
    expect(second.nextCursor).toBeNull();
  });

  test('the log can be followed to its end, and resumed after a line', async () => {
    const { id } = await createJob({
      type: 'core.sleep',
      payload: { durationMs: 300, failAttempts: 1 },
      retryPolicy: { initialIntervalSeconds: 0.2 },
    });
    const stream = await app.client.get<string>(`/api/jobs/${id}/logs?follow`);
    expect(stream.headers.get('content-type')).toMatch(/^text\/event-stream/);
    const ids = [...stream.body.matchAll(/^id: (\d+)$/gm)].map((match) => Number(match[1]));
    expect(ids).toEqual(ids.map((_, i) => i + 1));
    expect(ids.length).toBeGreaterThanOrEqual(5);
    expect(stream.body).toMatch(/event: end\ndata: {"status":"succeeded"}\n\n$/);
    expect(stream.body).toMatch(
      /event: job\ndata: {"status":"succeeded","attempt":2,"progress":.*}\n\nevent: end\n/,
    );
    const rest = await app.client
      .get<string>(`/api/jobs/${id}/logs?follow=true`, { 'last-event-id': '3' })
      .expect(200);
    expect(rest).toMatch(/^retry: \d+\n\nid: 4\n/);

    const path = `/api/jobs/${id}/logs`;
    const first = await app.client.get<PageOf<LogRecord>>(`${path}?limit=1`).expect(200);
    const again = await app.client
      .get<string>(`${path}?follow=true&cursor=${String(first.nextCursor)}`, {
        'last-event-id': '3',
      })
      .expect(200);
    const afterRetry = (text: string) => text.replace(/^retry: \d+/, '');
    expect(afterRetry(again)).toBe(afterRetry(rest));
    const page = await app.client
      .get<PageOf<LogRecord>>(`${path}?limit=1`, { 'last-event-id': '3' })
      .expect(200);
    expect(page).toEqual(first);
  });

  test('who follows the log sees each state that lasts, once', async () => {
    const { id } = await createJob(LONG_SLEEP);
    const stream = await openEventStream(app.client, `/api/jobs/${id}/logs?follow`);
    type State = { status: string; attempt: number; progress: { percent: number } | null };
    const states = () => stream.data<State>('job');
    await eventually(states, (all) => all.some(({ progress }) => progress !== null));
    await cancelJob(id).expect(202);
    expect(await stream.ended).toBe('ended');
    const all = states().map((state) => JSON.stringify(state));
    expect(new Set(all).size).toBe(all.length);
    expect(states().some(({ status, attempt }) => status === 'running' && attempt === 1)).toBe(
      true,
    );
    expect(states().at(-1)).toMatchObject({ status: 'cancelled', attempt: 1 });
    expect(stream.messages.slice(-2).map(({ event }) => event)).toEqual(['job', 'end']);
  });
});
