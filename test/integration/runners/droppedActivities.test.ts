import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { jobWorkflowId } from '../../../domain/dispatch/workflowIds.ts';
import { isFinal } from '../../../domain/jobs/jobs.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { attemptCalls, createHandRunner } from '../../support/runner.ts';
import { admin, createUser } from '../../support/users.ts';

/**
 * A runner by hand has no activity: its attempts are as those whose activities Temporal has dropped, as in an outage.
 * Their runners learn from the API only what becomes of them.
 */
let app: TestApp;
let root: TestClient;

beforeAll(async () => {
  app = await startApp();
  root = admin(app);
  await createUser(app, 'viewer');
});
afterAll(() => app.stop());

const readJob = (id: string) => root.get<JobRecord>(`/api/jobs/${id}`).expect(200);

const handleOf = (id: string) =>
  app.deps.temporal.call(20_000, ({ workflow }) =>
    Promise.resolve(workflow.getHandle(jobWorkflowId(id))),
  );

/** A job whose attempt has started, for the run that Temporal has of it. */
async function startedJob(name: string, more: object = {}) {
  const hand = await createHandRunner(app, name, { lostAfterSeconds: 60, ...more });
  const { id } = await root.post<JobRecord>('/api/jobs', { type: name, payload: {} }).expect(201);
  await hand.granted(id);
  const state = await eventually(
    () => app.deps.describeWorkflow(jobWorkflowId(id)),
    ({ found }) => found,
  );
  const runId = state.found ? (state.runId ?? '') : '';
  const begin = () => hand.begin(id, runId).expect(200);
  const { attemptToken } = await begin();
  return { id, begin, calls: attemptCalls(hand.client, id, attemptToken) };
}

const endLease = (id: string) =>
  app.deps
    .db('remote_attempts')
    .where({ job_id: id })
    .update({ leased_until: new Date(0) });

test('a job is cancelled when its command has stopped', async () => {
  const { id, calls } = await startedJob('hand.cancel');
  await root.post(`/api/jobs/${id}/cancel`).expect(202);
  // Its workflow waits for a timer before it checks again whether the attempt has ended.
  const handle = await handleOf(id);
  const { job } = await eventually(
    async () => {
      const { events } = await handle.fetchHistory();
      return {
        hasTimer: events?.some((event) => event.timerStartedEventAttributes),
        job: await readJob(id),
      };
    },
    ({ hasTimer, job: { status } }) => hasTimer === true || isFinal(status),
  );
  expect(job).toMatchObject({ status: 'running' });
  expect(await calls.linesRequest(1, []).expect(200)).toMatchObject({ cancel: true });
  await calls.end({ cancelled: true }).expect(200);
  expect(await readJob(id)).toMatchObject({ status: 'cancelled', attempts: 1, error: null });
  await expect(handle.result()).rejects.toMatchObject({ name: 'WorkflowFailedError' });
});

test('a job whose workflow is cancelled in Temporal lets its runner stop, and ends with the lease', async () => {
  const { id, calls } = await startedJob('hand.temporal');
  await (await handleOf(id)).cancel();
  await eventually(
    () => calls.linesRequest(1, []).expect(200),
    ({ cancel }) => cancel,
  );
  expect(await readJob(id)).toMatchObject({ status: 'running' });
  await endLease(id);
  await eventually(
    () => readJob(id),
    ({ status }) => status === 'cancelled',
  );
});

test('the next attempt begins when it is due, and not with the next activity', async () => {
  const { id, begin, calls } = await startedJob('hand.later', {
    retry: { maxAttempts: 2, initialIntervalSeconds: 60 },
  });
  const failure = { failure: { code: 'busy', message: 'Not now' } };
  const answer = { status: 'retrying', code: 'busy', retryInMs: 60_000 };
  expect(await calls.end(failure).expect(200)).toEqual(answer);
  expect(await calls.end(failure).expect(200)).toEqual(answer);
  const asked: unknown = await eventually(
    begin,
    (answer) => (answer as { code?: string }).code !== 'no_slot',
  );
  expect(asked).toMatchObject({ outcome: 'wait', code: 'retry_later' });
  expect(await app.deps.db('jobs').where({ id }).first('slot', 'attempts')).toEqual({
    slot: null,
    attempts: 1,
  });
  await app.deps.db.raw(
    `UPDATE remote_attempts SET answer = (answer::jsonb || '{"dueAt": "2026-01-01T00:00:00Z"}')::json
     WHERE job_id = ?`,
    [id],
  );
  const { attempt } = await eventually(
    begin,
    (answer) => (answer as { outcome: string }).outcome === 'started',
  );
  expect(attempt).toBe(2);
});
