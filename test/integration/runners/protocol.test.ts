import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord, LogRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { expectInvalid, expectProblem } from '../../support/problem.ts';
import {
  acceptedType,
  attemptCalls,
  createHandRunner,
  createRunnerToken,
  digestOf,
} from '../../support/runner.ts';
import { admin, createUser, type Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;

beforeAll(async () => {
  app = await startApp();
  root = admin(app);
  await createUser(app, 'viewer');
});
afterAll(() => app.stop());

const handRunner = (name: string, more: object = {}) => createHandRunner(app, name, more);
const createJob = (type: string) =>
  root.post<JobRecord>('/api/jobs', { type, payload: {} }).expect(201);
const readJob = (id: string) => root.get<JobRecord>(`/api/jobs/${id}`).expect(200);

test('an attempt whose lease has ended is lost, and its runner can report nothing more', async () => {
  const hand = await handRunner('hand.lost', { retry: { maxAttempts: 2 } });
  const { id } = await createJob('hand.lost');
  await hand.granted(id);
  const first = await hand.begin(id, 'run-1').expect(200);
  expect(first).toMatchObject({ outcome: 'started', attempt: 1, target: null, secrets: {} });
  const old = attemptCalls(hand.client, id, first.attemptToken);
  expect(await hand.begin(id, 'run-1').expect(200)).toMatchObject({
    outcome: 'wait',
    code: 'leased',
  });
  await app.deps
    .db('remote_attempts')
    .where({ job_id: id })
    .update({ leased_until: new Date(0) });
  // It has only been slow: nobody else has started.
  await old.linesRequest(1, [{ level: 'info', message: 'one' }]).expect(200);
  await app.deps
    .db('remote_attempts')
    .where({ job_id: id })
    .update({ leased_until: new Date(0) });
  const second = await hand.begin(id, 'run-1').expect(200);
  expect(second).toMatchObject({ outcome: 'started', attempt: 2 });
  await expectProblem(old.linesRequest(2, []), 409, 'attempt_lost');
  await expectProblem(old.end({ result: {} }), 409, 'attempt_lost');
  const current = attemptCalls(hand.client, id, second.attemptToken);
  const answer = await current.end({ result: { once: true } }).expect(200);
  expect(answer).toEqual({ status: 'succeeded', code: null, retryInMs: null });
  expect(await current.end({ failure: { code: 'late', message: '' } }).expect(200)).toEqual(answer);
  expect(await readJob(id)).toMatchObject({ status: 'succeeded', result: { once: true } });
});

test('a request to begin that is repeated gets the same attempt, until the attempt reports', async () => {
  const hand = await handRunner('hand.again');
  const { id } = await createJob('hand.again');
  await hand.granted(id);
  const [first, second, third] = ['a', 'b', 'c'].map((letter) => letter.repeat(43));
  const ask = (attemptToken = first, unanswered: (string | undefined)[] = []) =>
    hand
      .begin(id, 'run-1', 'hand.again', {
        attemptToken,
        unanswered: unanswered.map((token = '') => digestOf(token)),
      })
      .expect(200);
  const endLease = () =>
    app.deps
      .db('remote_attempts')
      .where({ job_id: id })
      .update({ leased_until: new Date(0) });
  const started = { outcome: 'started', attempt: 1, maxAttempts: 1 };
  expect(await ask()).toMatchObject({ ...started, attemptToken: first });
  expect(await ask()).toMatchObject(started);
  await endLease();
  expect(await ask()).toMatchObject(started);
  // Another runner, which knows that this one has got no answer.
  expect(await ask(second)).toMatchObject({ outcome: 'wait', code: 'leased' });
  expect(await ask(second, [third, first])).toMatchObject(started);
  await expectProblem(
    attemptCalls(hand.client, id, first ?? '').linesRequest(1, []),
    409,
    'attempt_lost',
  );
  expect(await ask(first)).toMatchObject({ outcome: 'wait', code: 'leased' });
  const { linesRequest, end } = attemptCalls(hand.client, id, second ?? '');
  await linesRequest(1, [{ level: 'info', message: 'one' }]).expect(200);
  expect(await ask(second)).toMatchObject({ outcome: 'wait', code: 'leased' });
  await end({ result: {} }).expect(200);
  expect(await ask(second)).toEqual({ outcome: 'ended' });
  const { logs, attempts } = await readJob(id);
  expect(attempts).toBe(1);
  expect(logs.map(({ message }) => message)).toEqual([
    'Attempt 1 started',
    'one',
    'Succeeded in attempt 1',
  ]);
  const short = { attemptToken: 'short' };
  await expectInvalid(hand.begin(id, 'run-1', 'hand.again', short), '/attemptToken');
});

test('reports of the end that arrive several times at a time are recorded once', async () => {
  const hand = await handRunner('hand.ends', {
    retry: { maxAttempts: 2, initialIntervalSeconds: 0.05 },
  });
  const { id } = await createJob('hand.ends');
  const attempt = async (body: object) => {
    const begin = () => hand.begin(id, 'run-1').expect(200);
    const { attemptToken } = (await started(begin)) as { attemptToken: string };
    const { end } = attemptCalls(hand.client, id, attemptToken);
    return Promise.all(Array.from({ length: 5 }, () => end(body).expect(200)));
  };
  const failure = { failure: { code: 'busy', message: 'Not now' } };
  const retrying = await attempt(failure);
  expect(new Set(retrying.map(({ status, retryInMs }) => `${status} ${retryInMs}`)).size).toBe(1);
  for (const answer of await attempt(failure))
    expect(answer).toEqual({ status: 'failed', code: 'busy', retryInMs: null });
  const { logs } = await readJob(id);
  expect(logs.map(({ message }) => message)).toEqual([
    'Attempt 1 started',
    'Attempt 1 failed: busy: Not now; next attempt in 0.05 s',
    'Attempt 2 started',
    'Attempt 2 failed: busy: Not now; no further attempt',
    'Failed: busy',
  ]);
  const events = await app.deps.db('events').where({ subject_id: id, type: 'job.failed' });
  expect(events).toHaveLength(1);
});

test('lines for which there is no slot are sent again; meantime the lease and the progress count', async () => {
  const hand = await handRunner('hand.crowd');
  const { id } = await createJob('hand.crowd');
  await hand.granted(id);
  const { attemptToken } = await hand.begin(id, 'run-1').expect(200);
  const { linesRequest } = attemptCalls(hand.client, id, attemptToken);
  const { logLines } = app.deps.slots;
  const held = Array.from({ length: 16 }, (_, n) =>
    logLines.takeNow({ kind: 'system', tenantId: `t${n}`, actorId: 'a' }),
  );
  const large = Array.from({ length: 10 }, () => ({ level: 'info', message: 'x'.repeat(8_000) }));
  expect(await linesRequest(1, large, '&progress=30').expect(200)).toMatchObject({
    have: 0,
    cancel: false,
  });
  expect(await root.get<JobRecord>(`/api/jobs/${id}`).expect(200)).toMatchObject({
    progress: { percent: 30 },
  });
  expect(await linesRequest(1, large.slice(0, 1)).expect(200)).toMatchObject({ have: 1 });
  for (const release of held) release();
  expect(await linesRequest(2, large).expect(200)).toMatchObject({ have: 11 });
  expect(logLines.held()).toBe(0);
});

test('lines that were received are left out, and none is missing', async () => {
  const hand = await handRunner('hand.lines');
  const { id } = await createJob('hand.lines');
  await hand.granted(id);
  const { attemptToken } = await hand.begin(id, 'run-1').expect(200);
  const { linesRequest, end } = attemptCalls(hand.client, id, attemptToken);
  const line = (n: number) => ({ level: 'info', message: `line ${n}` });
  expect(await linesRequest(1, [line(1), line(2)]).expect(200)).toMatchObject({
    have: 2,
    cancel: false,
  });
  expect(await linesRequest(4, [line(4)]).expect(200)).toMatchObject({ have: 2 });
  expect(await linesRequest(2, [line(2), line(3)]).expect(200)).toMatchObject({ have: 3 });
  await expectInvalid(linesRequest(4, [{ level: 'loud', message: 'x' }]), '/0/level');
  await root.post(`/api/jobs/${id}/cancel`).expect(202);
  expect(await linesRequest(4, []).expect(200)).toMatchObject({ have: 3, cancel: true });
  await end({ cancelled: true }).expect(200);
  const { items } = await root.get<Page<LogRecord>>(`/api/jobs/${id}/logs`).expect(200);
  expect(items.map(({ message }) => message).filter((text) => text.startsWith('line'))).toEqual([
    'line 1',
    'line 2',
    'line 3',
  ]);
  expect(await readJob(id)).toMatchObject({ status: 'cancelled' });
});

test('a run that was reset in Temporal continues its job after the lease of the former run', async () => {
  const hand = await handRunner('hand.reset', { retry: { maxAttempts: 2 } });
  const { id } = await createJob('hand.reset');
  await hand.granted(id);
  await hand.begin(id, 'former-run').expect(200);
  const state = await eventually(
    () => app.deps.describeWorkflow(`job:${id}`),
    ({ found }) => found,
  );
  const runId = state.found ? (state.runId ?? '') : '';
  const ask = (run: string) => hand.begin(id, run).expect(200);
  expect(await ask(runId)).toMatchObject({ outcome: 'wait', code: 'leased' });
  const ended = { leased_until: new Date(0) };
  await app.deps.db('remote_attempts').where({ job_id: id }).update(ended);
  expect(await ask('another-run')).toMatchObject({ outcome: 'ended' });
  expect(await ask(runId)).toMatchObject({ outcome: 'wait', code: 'claim_lost' });
  expect(await ask(runId)).toMatchObject({ outcome: 'started', attempt: 2 });
});

test('a last attempt that was cancelled without a request ends its job only with its workflow', async () => {
  const hand = await handRunner('hand.cancelled');
  const { id } = await createJob('hand.cancelled');
  await hand.granted(id);
  const { attemptToken } = await hand.begin(id, 'run-1').expect(200);
  const { end } = attemptCalls(hand.client, id, attemptToken);
  const answer = { status: 'cancelled', code: 'cancelled', retryInMs: null };
  expect(await end({ cancelled: true }).expect(200)).toEqual(answer);
  expect(await end({ cancelled: true }).expect(200)).toEqual(answer);
  expect(await readJob(id)).toMatchObject({ status: 'running' });
  await expect(
    app.deps.remoteAttempts.finalize({ jobId: id, runId: 'run-1' }),
  ).rejects.toMatchObject({ code: 'interrupted', retryInMs: null });
});

test('the last attempt that is lost ends the job, and its outcome is unknown', async () => {
  const hand = await handRunner('hand.once');
  const { id } = await createJob('hand.once');
  await hand.granted(id);
  await hand.begin(id, 'run-1').expect(200);
  await app.deps
    .db('remote_attempts')
    .where({ job_id: id })
    .update({ leased_until: new Date(0) });
  expect(await hand.begin(id, 'run-1').expect(200)).toEqual({
    outcome: 'failed',
    code: 'worker_lost',
  });
  expect(await readJob(id)).toMatchObject({
    status: 'failed',
    error: { code: 'outcome_unknown' },
  });
  expect(await hand.begin(id, 'run-1').expect(200)).toEqual({ outcome: 'ended' });
});

/** Ends the lease of an attempt, and with `limit` the time until which it may report. */
const endLease = (id: string, limit?: 'limit') =>
  app.deps
    .db('remote_attempts')
    .where({ job_id: id })
    .update({ leased_until: new Date(0), ...(limit && { ends_at: new Date(0) }) });

test('a last attempt whose runner nobody replaces ends the job after its limit, and its workflow', async () => {
  const hand = await handRunner('hand.alone');
  const { id } = await createJob('hand.alone');
  await hand.granted(id);
  await hand.begin(id, 'run-1').expect(200);
  const reconcile = async () => {
    await app.deps
      .db('jobs')
      .where({ id })
      .update({ checked_at: new Date(0) });
    await app.deps.reconcile.reconcileJobs(AbortSignal.timeout(20_000));
    return readJob(id);
  };
  await eventually(
    () => app.deps.db('outbox').where({ workflow_id: `job:${id}` }),
    (tasks) => tasks.length === 0,
  );
  await endLease(id);
  expect(await reconcile()).toMatchObject({ status: 'running' });
  await endLease(id, 'limit');
  expect(await reconcile()).toMatchObject({ status: 'failed', error: { code: 'outcome_unknown' } });
  await eventually(
    () => app.deps.describeWorkflow(`job:${id}`),
    (state) => state.found && state.status === 'cancelled',
  );
  expect(await readJob(id)).toMatchObject({ status: 'failed' });
});

/** Two jobs of a type of which one runs at a time; the first has started. */
async function limitedJobs(name: string, more: object = {}) {
  const hand = await handRunner(name, { concurrency: { limit: 1 }, ...more });
  const [first, second] = [await createJob(name), await createJob(name)];
  await hand.granted(first.id);
  await hand.granted(second.id);
  const { attemptToken } = await hand.begin(first.id, 'run-1').expect(200);
  const beginSecond = () => hand.begin(second.id, 'run-2').expect(200);
  const full = { outcome: 'wait', code: 'concurrency' };
  expect(await beginSecond()).toMatchObject(full);
  await endLease(first.id);
  return { ...{ hand, first, second, beginSecond, full }, attemptToken };
}

const started = (begin: () => Promise<unknown>) =>
  eventually(begin, (answer) => (answer as { outcome: string }).outcome === 'started');

test('a last attempt, which goes on without a lease, counts for the limit until it is answered', async () => {
  const { hand, first, beginSecond, full, attemptToken } = await limitedJobs('hand.limited');
  expect(await beginSecond()).toMatchObject(full);
  await attemptCalls(hand.client, first.id, attemptToken).end({ result: {} }).expect(200);
  await started(beginSecond);
});

test('it counts no longer than it may report', async () => {
  const { first, beginSecond, full } = await limitedJobs('hand.late');
  expect(await beginSecond()).toMatchObject(full);
  await endLease(first.id, 'limit');
  await started(beginSecond);
});

test('it counts also when its job has ended because its runner was lost', async () => {
  const { hand, first, beginSecond, full } = await limitedJobs('hand.cut-off');
  expect(await hand.begin(first.id, 'run-1').expect(200)).toMatchObject({ code: 'worker_lost' });
  expect(await readJob(first.id)).toMatchObject({ status: 'failed' });
  expect(await beginSecond()).toMatchObject(full);
  await endLease(first.id, 'limit');
  await started(beginSecond);
});

test('nor when its runner has learned that the job has ended, and has ended it', async () => {
  const { first, hand, beginSecond, full, attemptToken } = await limitedJobs('hand.learned');
  expect(await hand.begin(first.id, 'run-1').expect(200)).toMatchObject({ code: 'worker_lost' });
  expect(await beginSecond()).toMatchObject(full);
  const { end, linesRequest } = attemptCalls(hand.client, first.id, attemptToken);
  await expectProblem(linesRequest(1, []), 409, 'attempt_lost');
  await end({ failure: { code: 'attempt_lost', message: '' } }).expect(200);
  await started(beginSecond);
});

test('nor, where another attempt may follow, when its job has ended and its lease, too', async () => {
  const { hand, first, beginSecond } = await limitedJobs('hand.ended', {
    retry: { maxAttempts: 3 },
  });
  await root.post(`/api/jobs/${first.id}/cancel`).expect(202);
  expect(await hand.begin(first.id, 'run-1').expect(200)).toMatchObject({ code: 'cancelled' });
  await app.deps.jobAttempts.finalizeAbandoned(
    { jobId: first.id, runId: 'run-1' },
    'cancelled',
    'cancelled',
  );
  await started(beginSecond);
});

test('an attempt without a lease that another one may follow does not count for the limit', async () => {
  const { beginSecond } = await limitedJobs('hand.followed', { retry: { maxAttempts: 2 } });
  await started(beginSecond);
});

test('an interrupted attempt makes the last one a later one', async () => {
  const { hand, second, beginSecond } = await limitedJobs('hand.interrupted', {
    retry: { maxAttempts: 2, initialIntervalSeconds: 0.05 },
  });
  const { attemptToken } = (await started(beginSecond)) as { attemptToken: string };
  const failure = { code: 'interrupted', message: 'The runner stops' };
  await attemptCalls(hand.client, second.id, attemptToken).end({ failure }).expect(200);
  expect(await started(beginSecond)).toMatchObject({ attempt: 2, maxAttempts: 3 });
});

test('attempts that are lost end their jobs, also if the limit is smaller now', async () => {
  const name = 'hand.smaller';
  const hand = await handRunner(name, { concurrency: { limit: 2 } });
  const jobs = [await createJob(name), await createJob(name)];
  for (const { id } of jobs) {
    await hand.granted(id);
    await hand.begin(id, 'run-1').expect(200);
    await endLease(id);
  }
  await hand.announce('smaller', { concurrency: { limit: 1 } });
  await app.deps.jobTypes.refresh();
  for (const { id } of jobs)
    expect(await hand.begin(id, 'run-1', 'smaller').expect(200)).toEqual({
      outcome: 'failed',
      code: 'worker_lost',
    });
});

test('a job that is to be cancelled waits for the attempt that runs', async () => {
  const hand = await handRunner('hand.stopped', { retry: { maxAttempts: 2 } });
  const { id } = await createJob('hand.stopped');
  await hand.granted(id);
  await hand.begin(id, 'run-1').expect(200);
  await app.deps.db('jobs').where({ id }).update({ cancel_requested_at: new Date() });
  const leased = { outcome: 'wait', code: 'leased' };
  expect(await hand.begin(id, 'run-1').expect(200)).toMatchObject(leased);
  await endLease(id);
  const cancelled = { outcome: 'failed', code: 'cancelled' };
  expect(await hand.begin(id, 'run-1').expect(200)).toEqual(cancelled);
  await app.deps.jobAttempts.finalizeAbandoned(
    { jobId: id, runId: 'run-1' },
    'failed',
    cancelled.code,
  );
  expect(await readJob(id)).toMatchObject({ status: 'cancelled', error: null });
});

test('a runner begins only what was accepted, and what it has announced', async () => {
  const hand = await handRunner('hand.shape');
  await root.put('/api/pools/hand', { acceptTypes: [] }).expect(200);
  const { id } = await createJob('hand.shape');
  await hand.granted(id);
  const changed = { payload: { type: 'object', required: ['more'] } };
  expect((await hand.announce('another', changed)).types).toMatchObject([{ state: 'waiting' }]);
  expect(await hand.begin(id, 'run-1').expect(200)).toMatchObject({
    outcome: 'wait',
    code: 'not_announced',
  });
  expect(await hand.begin(id, 'run-1', 'another').expect(200)).toMatchObject({
    code: 'not_accepted',
  });
  await root.post('/api/job-types/hand.shape/accept').expect(200);
  expect(await hand.begin(id, 'run-1', 'another').expect(200)).toEqual({
    outcome: 'failed',
    code: 'payload_invalid',
  });
  expect(await readJob(id)).toMatchObject({
    error: { code: 'payload_invalid', message: 'The payload/more is required' },
  });
  const { detail } = await expectProblem(
    root.post(`/api/jobs/${id}/retry`),
    409,
    'job_not_retryable',
  );
  expect(detail).toContain('payload.more: is required');
});

test('a job with a payload that is not allowed any more waits for the attempt that runs', async () => {
  const name = 'hand.narrowed';
  const hand = await handRunner(name, { retry: { maxAttempts: 2 } });
  const { id } = await createJob(name);
  await hand.granted(id);
  await hand.begin(id, 'run-1').expect(200);
  await hand.announce('narrow', { payload: { type: 'object', required: ['more'] } });
  await root.post(`/api/job-types/${name}/accept`);
  const again = () => hand.begin(id, 'run-1', 'narrow').expect(200);
  expect(await again()).toMatchObject({ outcome: 'wait', code: 'leased' });
  expect(await readJob(id)).toMatchObject({ status: 'running' });
  await endLease(id);
  expect(await again()).toEqual({ outcome: 'failed', code: 'payload_invalid' });
  expect(await readJob(id)).toMatchObject({ status: 'failed' });
});

test('a job that its type refuses while others run says so', async () => {
  const concurrency = { limit: 1, whenFull: 'refuse' };
  const hand = await handRunner('hand.refusing', { concurrency });
  const [first, second] = [await createJob('hand.refusing'), await createJob('hand.refusing')];
  for (const { id } of [first, second]) await hand.granted(id);
  await hand.begin(first.id, 'run-1').expect(200);
  const code = 'concurrency_limit';
  expect(await hand.begin(second.id, 'run-2').expect(200)).toEqual({ outcome: 'failed', code });
  const message = 'As many jobs of the type run as its concurrency limit allows';
  expect(await readJob(second.id)).toMatchObject({ error: { code, message } });
});

test('an attempt gets the secrets that its type asks for, if they are for its pool', async () => {
  const secrets = { API_TOKEN: { secret: 'hand-key' } };
  const hand = await handRunner('hand.secrets', { secrets, retry: { maxAttempts: 2 } });
  const create = async () => {
    const { id } = await createJob('hand.secrets');
    await hand.granted(id);
    return id;
  };
  const lost = await create();
  const failed = { outcome: 'failed', code: 'secret_missing' };
  expect(await hand.begin(lost, 'run-1').expect(200)).toEqual(failed);
  expect(await readJob(lost)).toMatchObject({ status: 'failed', error: { code: failed.code } });
  const value = 'canary of hand';
  const { id: secretId } = await root
    .post<{ id: string }>('/api/secrets', { name: 'hand-key', value, pools: ['default'] })
    .expect(201);
  expect(await hand.begin(await create(), 'run-1').expect(200)).toEqual(failed);
  await root.put(`/api/secrets/${secretId}`, { pools: ['hand'] }).expect(200);

  const id = await create();
  const first = await hand.begin(id, 'run-1').expect(200);
  expect(first).toMatchObject({ outcome: 'started', secrets: { API_TOKEN: value } });
  expect(await hand.begin(id, 'run-1').expect(200)).toMatchObject({ outcome: 'wait' });
  await app.deps
    .db('remote_attempts')
    .where({ job_id: id })
    .update({ leased_until: new Date(0) });
  await root.put(`/api/secrets/${secretId}`, { value: 'the next value' }).expect(200);
  const second = await hand.begin(id, 'run-1').expect(200);
  expect(second).toMatchObject({ attempt: 2, secrets: { API_TOKEN: 'the next value' } });
  const { end } = attemptCalls(hand.client, id, second.attemptToken);
  await end({ result: {} }).expect(200);
  const used = await app.deps
    .db('audit_entries')
    .where({ subject_id: secretId, action: 'secret.use' })
    .orderBy('id')
    .pluck('after');
  expect(used).toEqual([1, 2].map((attempt) => ({ jobId: id, attempt, pool: 'hand' })));
  for (const table of ['jobs', 'job_logs', 'remote_attempts', 'audit_entries', 'events'])
    expect(JSON.stringify(await app.deps.db(table))).not.toContain(value);
});

test('an attempt begins only while a role of its creator names a granted type', async () => {
  const hand = await handRunner('hand.granted', { access: 'granted' });
  const job = { type: 'hand.granted', payload: {} };
  const role = '/api/rbac/roles/hand-jobs';
  await root
    .post('/api/rbac/roles', {
      id: 'hand-jobs',
      name: 'Jobs by hand',
      permissions: ['job:write'],
      jobTypes: ['hand.*'],
    })
    .expect(201);
  const as = (roles: string) => app.client.as({ actor: 'hanna', roles });
  await expectProblem(as('operator').post('/api/jobs', job), 403, 'permission_denied');
  const { id } = await as('hand-jobs').post<JobRecord>('/api/jobs', job).expect(201);
  await hand.granted(id);
  await root.put(role, { jobTypes: ['net.*'] }).expect(200);
  const code = 'permission_lost';
  expect(await hand.begin(id, 'run-1').expect(200)).toEqual({ outcome: 'failed', code });
  expect(await readJob(id)).toMatchObject({ status: 'failed', error: { code } });
});

test('a job that PostgreSQL has lost has ended for its runner', async () => {
  const hand = await handRunner('hand.forgotten');
  const begin = hand.begin(app.deps.ids.next('job'), 'run-1').expect(200);
  expect(await begin).toEqual({ outcome: 'ended' });
});

test('a runner has no access to anything else, nor to jobs of other pools', async () => {
  const hand = await handRunner('hand.alone');
  await acceptedType(app, 'else');
  const { id } = await createJob('accepted.else');
  await expectProblem(hand.begin(id, 'run-1'), 404, 'not_found');
  await expectProblem(hand.client.get('/api/jobs'), 403, 'token_not_accepted');
  await expectProblem(hand.client.get('/api/search?q=net'), 403, 'token_not_accepted');
  await expectProblem(
    root.post('/api/runner/alive', { runnerId: crypto.randomUUID(), pool: 'hand' }),
    403,
    'permission_denied',
  );
  expect(await hand.client.get('/api/auth/token').expect(200)).toMatchObject({
    kind: 'runner',
    pools: ['hand'],
  });
  await root.post(`/api/jobs/${id}/cancel`).expect(202);
});

test('a hostile runner damages neither the log nor another job, and its text is kept as text', async () => {
  const hand = await handRunner('hand.hostile');
  const [mine, other] = [await createJob('hand.hostile'), await createJob('hand.hostile')];
  await hand.granted(mine.id);
  await hand.granted(other.id);
  const { attemptToken } = await hand.begin(mine.id, 'run-1').expect(200);
  const { linesRequest, end } = attemptCalls(hand.client, mine.id, attemptToken);

  // The token of one attempt, for another job; and by a runner of another pool.
  const stolen = attemptCalls(hand.client, other.id, attemptToken);
  await expectProblem(
    stolen.linesRequest(1, [{ level: 'info', message: 'x' }]),
    409,
    'attempt_lost',
  );
  await expectProblem(stolen.end({ result: {} }), 409, 'attempt_lost');
  const stranger = attemptCalls(await createRunnerToken(app, 'else'), mine.id, attemptToken);
  await expectProblem(stranger.end({ result: {} }), 409, 'attempt_lost');

  const odd = ['\u0000\u001b[31m\u202e\r\n', '\ud800', 'x'.repeat(1_000_000)];
  const lines = odd.map((message) => ({ level: 'info', message, data: { message } }));
  expect(await linesRequest(1, lines.slice(0, 2)).expect(200)).toMatchObject({ have: 2 });
  const { status } = await linesRequest(3, lines.slice(2));
  expect([200, 400, 413]).toContain(status);
  const path = `/api/runner/jobs/${mine.id}/lines?firstLine=3`;
  const headers = { 'attempt-token': attemptToken, 'content-type': 'application/x-ndjson' };
  for (const body of ['{"level":"info","message":', '[]\n', '\u0000\n'])
    await expectProblem(hand.client.post(path, body, headers), 400, 'invalid_request');
  for (const name of ['..%2F..%2Fetc', 'a%00b', '.hidden', 'x'.repeat(129)])
    await hand.client
      .put(`/api/runner/jobs/${mine.id}/artifacts/${name}`, 'x', {
        'attempt-token': attemptToken,
        'content-type': 'application/octet-stream',
      })
      .expect(404);

  await end({ result: { text: odd[0] } }).expect(200);
  // What ended once stays so.
  await end({ failure: { code: 'other', message: 'second' } }).expect(200);
  const ended = await readJob(mine.id);
  expect(ended.status).toBe('succeeded');
  expect(ended.logs.every(({ message }) => message.length <= 8_192)).toBe(true);
  expect(ended.logs[1]?.message).toBe('\ufffd\u001b[31m\u202e\r\n');
  expect(await readJob(other.id)).toMatchObject({ status: 'queued', attempts: 0 });
  await root.post(`/api/jobs/${other.id}/cancel`).expect(202);
});
