import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { JobTypeRecord } from '../../../api/jobs/typeSchemas.ts';
import type { ApprovalRecord } from '../../../api/approvals/schemas.ts';
import { jobWorkflowId } from '../../../domain/dispatch/workflowIds.ts';
import { StoreError } from '../../../platform/stores/store.ts';
import { createArtifacts } from '../../../services/runners/artifacts.ts';
import { approve, createRequest } from '../../support/approvals.ts';
import { createWatchRunners } from '../../../services/runners/watch.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { expectInvalid, expectProblem } from '../../support/problem.ts';
import {
  attemptCalls,
  createHandRunner,
  createRunnerToken,
  definition,
  digestOf,
  startTestRunner,
} from '../../support/runner.ts';
import { admin, createUser, type Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
let approver: TestClient;
let runner: Awaited<ReturnType<typeof startTestRunner>>;

const WAIT = { prefer: 'wait=30' };

type WithId = { id: string };

/** Resolved by tests that let an attempt of `net.gate` go on. */
const gates = new Map<string, PromiseWithResolvers<object>>();
const gate = (id: string) => {
  const known = gates.get(id) ?? Promise.withResolvers<object>();
  gates.set(id, known);
  return known;
};

beforeAll(async () => {
  app = await startApp({
    HOLDFAST_BACKUP_DIR: await mkdtemp(path.join(tmpdir(), 'holdfast-artifacts-')),
  });
  root = admin(app);
  approver = app.client.as({ actor: 'ann', roles: 'approver' });
  await createUser(app, 'viewer');
  await createRunnerToken(app, 'default');
  await root
    .put('/api/pools/default', { acceptTypes: ['net.*'], tenantSharePercent: 100 })
    .expect(200);
  runner = await startTestRunner(app, {
    'net.check': {
      async work({ payload, lines }) {
        await lines(
          1,
          [{ level: 'info', message: 'Checking' }],
          '&progress=40&progressMessage=half',
        );
        return { result: { ports: payload.ports ?? 0 } };
      },
      more: { result: { type: 'object', properties: { ports: { type: 'integer' } } } },
    },
    'net.fail': {
      work: ({ attempt }) =>
        Promise.resolve(
          attempt < 3
            ? { failure: { code: 'busy', message: 'Not now' } }
            : { result: { attempts: attempt } },
        ),
      more: { retry: { maxAttempts: 3, initialIntervalSeconds: 0.05 } },
    },
    'net.gate': {
      work: ({ jobId, signal }) =>
        Promise.race([
          gate(jobId).promise,
          new Promise<object>((resolve) =>
            signal.addEventListener('abort', () => resolve({ cancelled: true })),
          ),
        ]),
      more: { concurrency: { limit: 1, per: 'type', whenFull: 'wait' } },
    },
    'net.again': {
      work: ({ jobId }) => gate(jobId).promise,
      more: { retry: { maxAttempts: 3, initialIntervalSeconds: 0.05 } },
    },
    'net.about': {
      work: ({ target }) => Promise.resolve({ result: { target } }),
      more: {
        targets: 'site',
        payload: {
          type: 'object',
          properties: { peers: { type: 'array', items: { 'x-holdfast-ref': 'sites' } } },
        },
      },
    },
    'other.hello': { work: () => Promise.resolve({ result: {} }) },
  });
});
afterAll(async () => {
  await runner.stop();
  await app.stop();
});

const createJob = (type: string, payload: object = {}, headers: Record<string, string> = {}) =>
  root.post<JobRecord>('/api/jobs', { type, payload }, headers).expect(201);
const readJob = (id: string) => root.get<JobRecord>(`/api/jobs/${id}`).expect(200);
const running = (id: string) =>
  eventually(
    () => readJob(id),
    ({ status }) => status === 'running',
  );
const ended = (id: string) => root.get<JobRecord>(`/api/jobs/${id}`, WAIT).expect(200);

describe('a job of a runner', () => {
  test('is about a site, which the runner gets as it is when the attempt begins', async () => {
    const { id } = await root
      .post<{ id: string }>('/api/inventory/sites', { name: 'before' })
      .expect(201);
    const about = (targetId: string, peers: string[] = [id]) => ({
      type: 'net.about',
      payload: { peers },
      target: { kind: 'site', id: targetId },
    });
    const job = await root.post<JobRecord>('/api/jobs', about(id), WAIT).expect(201);
    expect(job).toMatchObject({
      status: 'succeeded',
      siteId: id,
      result: { target: { kind: 'site', id, name: 'before', siteId: id } },
    });
    const unknown = 'sit_00000000000000000000000000';
    await expectInvalid(root.post('/api/jobs', about(unknown)), '/target/id');
    await expectInvalid(root.post('/api/jobs', about(id, [unknown])), '/payload/peers/0');
  });

  test('runs with its payload, and has log, progress and result', async () => {
    const job = await createJob('net.check', { ports: 3 }, WAIT);
    expect(job).toMatchObject({
      status: 'succeeded',
      result: { ports: 3 },
      progress: { percent: 40, message: 'half' },
      typeDigest: digestOf('net.check'),
      attempts: 1,
    });
    expect(job.logs.map(({ message }) => message)).toEqual([
      'Attempt 1 started',
      'Checking',
      'Succeeded in attempt 1',
    ]);
    const events = await app.deps
      .db('events')
      .where({ subject_id: job.id })
      .orderBy('id')
      .pluck('type');
    expect(events).toEqual(['job.created', 'job.started', 'job.succeeded']);
  });

  test('is retried as its type says', async () => {
    const job = await createJob('net.fail', {}, WAIT);
    expect(job).toMatchObject({ status: 'succeeded', attempts: 3, result: { attempts: 3 } });
  });

  test('with a result that its type does not allow fails', async () => {
    const job = await createJob('net.check', { ports: 'three' }, WAIT);
    expect(job).toMatchObject({ status: 'failed', error: { code: 'invalid_result' } });
  });

  test('is cancelled when its runner has stopped the work; the next of its type runs then', async () => {
    const first = await createJob('net.gate');
    await running(first.id);
    const second = await createJob('net.gate');
    const load = { slots: 10, runningJobs: 1, queuedJobs: 1 };
    expect(await root.get('/api/pools/default').expect(200)).toMatchObject(load);
    const { items } = await root.get<Page<WithId>>('/api/runners?pool=default').expect(200);
    expect(items).toMatchObject([{ name: 'test', runningJobs: 1 }]);
    expect(await root.get(`/api/runners/${items[0]?.id}`).expect(200)).toEqual(items[0]);
    await root.post(`/api/jobs/${first.id}/cancel`).expect(202);
    expect(await ended(first.id)).toMatchObject({ status: 'cancelled', error: null });
    await running(second.id);
    gate(second.id).resolve({ result: {} });
    expect(await ended(second.id)).toMatchObject({ status: 'succeeded', attempts: 1 });
  });
});

test('a job with one attempt whose workflow is cancelled in Temporal is cancelled', async () => {
  const { id } = await createJob('net.gate');
  await running(id);
  await app.deps.temporal.call(20_000, ({ workflow }) =>
    workflow.getHandle(jobWorkflowId(id)).cancel(),
  );
  expect(await ended(id)).toMatchObject({ status: 'cancelled', error: null, attempts: 1 });
});

test('a job that is to be cancelled is cancelled, also if its runner asks before Temporal knows of it', async () => {
  const { id } = await createJob('net.again');
  await running(id);
  await app.deps.db('jobs').where({ id }).update({ cancel_requested_at: new Date() });
  // The next attempt is to begin immediately.
  gate(id).resolve({ failure: { code: 'busy', message: 'Not now' } });
  expect(await ended(id)).toMatchObject({ status: 'cancelled', attempts: 1, error: null });
  const events = await app.deps.db('events').where({ subject_id: id }).orderBy('id').pluck('type');
  expect(events).toEqual(['job.created', 'job.started', 'job.cancelled']);
});

const handRunner = (name: string, more: object = {}) => createHandRunner(app, name, more);

describe('artifacts', () => {
  const put = (client: TestClient, id: string, token: string, name: string, text: string) =>
    client.put(`/api/runner/jobs/${id}/artifacts/${name}`, text, {
      'attempt-token': token,
      'content-type': 'application/octet-stream',
    });
  const content = (id: string, name: string, client = root) =>
    client.get<string>(`/api/jobs/${id}/artifacts/${name}`);
  const objects = async () => (await readdir(app.env.HOLDFAST_BACKUP_DIR ?? '')).length;

  test('are stored encrypted, downloaded by readers of the job, and removed with its data', async () => {
    const hand = await handRunner('hand.files');
    const { id } = await createJob('hand.files');
    await hand.granted(id);
    const { attemptToken } = await hand.begin(id, 'run-1').expect(200);
    await put(hand.client, id, attemptToken, 'report.csv', 'first').expect(200);
    await put(hand.client, id, attemptToken, 'report.csv', 'port,state\n').expect(200);
    await put(hand.client, id, attemptToken, 'empty', '').expect(200);
    await expectProblem(put(hand.client, id, 'x'.repeat(43), 'late', 'x'), 409, 'attempt_lost');
    await expectProblem(put(hand.client, id, attemptToken, '..', 'x'), 404, 'not_found');
    const { end } = attemptCalls(hand.client, id, attemptToken);
    await end({ result: {} }).expect(200);
    const { items } = await root.get<Page<object>>(`/api/jobs/${id}/artifacts`).expect(200);
    expect(items).toMatchObject([
      { name: 'empty', bytes: 0 },
      { name: 'report.csv', bytes: 11, attempt: 1, sha256: digestOf('port,state\n') },
    ]);
    expect(await content(id, 'report.csv').expect(200)).toBe('port,state\n');
    expect(await content(id, 'empty').expect(200)).toBe('');
    const stranger = app.client.as({ actor: 'eve', roles: 'viewer', tenant: 'red' });
    await expectProblem(content(id, 'report.csv', stranger), 404, 'not_found');
    await app.deps.artifacts.removeUnused(new AbortController().signal);
    expect(await objects()).toBe(2);
    await app.deps.db('job_artifacts').where({ job_id: id }).delete();
    await app.deps.artifacts.removeUnused(new AbortController().signal);
    expect(await objects()).toBe(0);
  });

  test('that the store does not return are unavailable for a while, without its words', async () => {
    const hand = await handRunner('hand.unreadable');
    const { id } = await createJob('hand.unreadable');
    await hand.granted(id);
    const { attemptToken } = await hand.begin(id, 'run-1').expect(200);
    await put(hand.client, id, attemptToken, 'report.csv', 'x').expect(200);
    const { db } = app.deps;
    const [object = ''] = await db('job_artifacts').where({ job_id: id }).pluck<string[]>('object');
    const expectUnavailable = async () => {
      const { status, headers, body } = await content(id, 'report.csv');
      expect([status, headers.get('retry-after')]).toEqual([503, '10']);
      expect(JSON.stringify(body)).not.toMatch(/EISDIR|store is not configured/);
    };
    // A folder has a size, but cannot be read.
    const file = path.join(app.env.HOLDFAST_BACKUP_DIR ?? '', object);
    await rm(file);
    await mkdir(file);
    await expectUnavailable();
    await rm(file, { recursive: true });
    await db('job_artifacts').where({ job_id: id }).update({ store: 's3' });
    await expectUnavailable();
    await db('job_artifacts').where({ job_id: id }).delete();
    await db('artifact_removals').delete();
    await attemptCalls(hand.client, id, attemptToken).end({ result: {} }).expect(200);
  });

  describe('that no job refers to', () => {
    const due = (store: string, count: number) =>
      app.deps.db('artifact_removals').insert(
        Array.from({ length: count }, (_, n) => ({
          store,
          object: `artifact-${store}-${n}`,
          due_at: new Date(Date.now() - 60_000),
        })),
      );
    const stillDue = (): Promise<string[]> =>
      app.deps
        .db('artifact_removals')
        .where('due_at', '<', new Date())
        .orderBy('object')
        .pluck('object');
    const removal = (remove: (name: string) => Promise<void>) =>
      createArtifacts({
        ...app.deps,
        removeMs: 1_000,
        archives: {
          targetStore: () => 'folder',
          storeOf: ({ store }) =>
            ({ remove: (name: string) => remove(`${store}/${name}`) }) as never,
        },
      }).removeUnused(new AbortController().signal);

    test('are removed until none is due, a few at a time', async () => {
      let [running, most] = [0, 0];
      const removed = new Set<string>();
      await due('folder', 450);
      await removal(async (name) => {
        most = Math.max(most, ++running);
        await new Promise(setImmediate);
        running -= 1;
        if (name.endsWith('-7')) throw new StoreError('store_refused', 'Locked.', false);
        removed.add(name);
      });
      expect([removed.size, most, await stillDue()]).toEqual([449, 8, []]);
      expect(await app.deps.db('artifact_removals').pluck('object')).toEqual(['artifact-folder-7']);
      await app.deps.db('artifact_removals').delete();
    });

    test('of a store that does not answer do not hold up those of another', async () => {
      const asked = new Set<string>();
      await due('s3', 300);
      await due('folder', 10);
      await removal((name) => {
        asked.add(name);
        return name.startsWith('s3/') ? new Promise(() => undefined) : Promise.resolve();
      });
      expect([...asked].filter((name) => name.startsWith('s3/')).length).toBeLessThan(9);
      const left = await stillDue();
      expect(left.length).toBeGreaterThan(291);
      expect(left.filter((object) => object.startsWith('artifact-folder'))).toEqual([]);
      await app.deps.db('artifact_removals').delete();
    });
  });

  test('are sent a few at a time for each tenant; the others wait, and are refused if too many do', async () => {
    const hand = await handRunner('hand.busy');
    const { id } = await createJob('hand.busy');
    await hand.granted(id);
    const { attemptToken } = await hand.begin(id, 'run-1').expect(200);
    const { artifactUploads } = app.deps.slots;
    const { tenantId } = await root.get<JobRecord>(`/api/jobs/${id}`).expect(200);
    const other = (n: number, most: number) =>
      ({ kind: 'system', tenantId: n < most ? tenantId : 'blue', actorId: `job_${n}` }) as const;
    const held = Array.from({ length: 10 }, (_, n) => artifactUploads.takeNow(other(n, 8)));
    const leaving = new AbortController();
    const ahead = Array.from({ length: 400 }, (_, n) =>
      artifactUploads.take(other(n, 380), leaving.signal),
    );
    const refused = await put(hand.client, id, attemptToken, 'a', 'x');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5']);
    leaving.abort();
    await Promise.allSettled(ahead);
    const waiting = put(hand.client, id, attemptToken, 'a', 'x').expect(200);
    await expectProblem(put(hand.client, id, 'x'.repeat(43), 'late', 'x'), 409, 'attempt_lost');
    expect(artifactUploads.held()).toBe(10);
    for (const release of held) release();
    expect(await waiting).toMatchObject({ name: 'a', bytes: 1 });
    expect(artifactUploads.held()).toBe(0);
  });

  test('are limited in number, and one can be replaced', async () => {
    const hand = await handRunner('hand.many');
    const { id } = await createJob('hand.many');
    await hand.granted(id);
    const { attemptToken } = await hand.begin(id, 'run-1').expect(200);
    for (let n = 0; n < 20; n++)
      await put(hand.client, id, attemptToken, `file-${n}`, 'x').expect(200);
    await expectProblem(put(hand.client, id, attemptToken, 'one-more', 'x'), 409, 'limit_reached');
    await put(hand.client, id, attemptToken, 'file-3', 'y').expect(200);
    const { end } = attemptCalls(hand.client, id, attemptToken);
    await end({ result: {} }).expect(200);
  });

  test('are limited in their bytes together, also those that are sent at the same time', async () => {
    const hand = await handRunner('hand.large');
    const { id } = await createJob('hand.large');
    await hand.granted(id);
    const { attemptToken } = await hand.begin(id, 'run-1').expect(200);
    const putHere = (name: string, text: string) => put(hand.client, id, attemptToken, name, text);
    await putHere('large', 'x').expect(200);
    const { db, artifacts } = app.deps;
    await db('job_artifacts')
      .where({ job_id: id })
      .update({ bytes: 64 * 1_048_576 - 1 });
    await expectProblem(putHere('two', 'xx'), 409, 'limit_reached');
    const reading = Promise.withResolvers<undefined>();
    const end = Promise.withResolvers<undefined>();
    async function* slowly() {
      reading.resolve(undefined);
      yield Buffer.from('x');
      await end.promise;
    }
    const attempt = await db('jobs').where({ id }).first('run_id', 'attempts');
    const slow = artifacts.putOwn(
      { jobId: id, runId: attempt.run_id as string, attempt: attempt.attempts as number },
      { name: 'slow', source: Readable.from(slowly()) },
    );
    await reading.promise;
    await putHere('one', 'x').expect(200);
    end.resolve(undefined);
    await expect(slow).rejects.toMatchObject({ code: 'limit_reached' });
    await attemptCalls(hand.client, id, attemptToken).end({ result: {} }).expect(200);
  });
});

describe('an approved job', () => {
  const requested = (jobType: string) =>
    createRequest(root, { title: 'A script', jobType, jobPayload: {} });
  const executed = (id: string) =>
    eventually(
      () => root.get<ApprovalRecord>(`/api/workflows/${id}`).expect(200),
      ({ execution }) => !['none', 'queued', 'running'].includes(execution),
    );

  test('runs with the version that was requested', async () => {
    const request = await requested('net.check');
    expect(request).toMatchObject({ typeDigest: digestOf('net.check') });
    await approve(approver, request.id).expect(200);
    const { execution, jobId } = await executed(request.id);
    expect(execution).toBe('succeeded');
    expect(await readJob(jobId ?? '')).toMatchObject({ typeDigest: digestOf('net.check') });
  });

  test('is stale if its type has another version', async () => {
    const hand = await handRunner('hand.approved');
    const request = await requested('hand.approved');
    await root.put('/api/pools/hand', { acceptTypes: ['hand.*'] }).expect(200);
    await hand.leave();
    await hand.announce('other code');
    await approve(approver, request.id).expect(200);
    expect(await executed(request.id)).toMatchObject({
      execution: 'stale',
      error: { code: 'stale_type' },
    });
  });

  test('becomes stale if its type gets another version after the approval, before it runs', async () => {
    const hand = await handRunner('hand.changed');
    const request = await requested('hand.changed');
    await approve(approver, request.id).expect(200);
    const { jobId } = await eventually(
      () => root.get<ApprovalRecord>(`/api/workflows/${request.id}`).expect(200),
      ({ execution }) => execution === 'running',
    );
    const id = jobId ?? '';
    await root.put('/api/pools/hand', { acceptTypes: ['hand.*'] }).expect(200);
    // Another runner still has the version: the job waits for it.
    const other = await handRunner('hand.changed');
    await hand.announce('other code');
    const begin = () => hand.begin(id, 'run-1', 'other code').expect(200);
    expect(await begin()).toMatchObject({ outcome: 'wait', code: 'other_digest' });
    await other.leave();
    expect(await begin()).toMatchObject({ outcome: 'failed', code: 'stale_type' });
    expect(await readJob(id)).toMatchObject({ status: 'failed', attempts: 0 });
    expect(await executed(request.id)).toMatchObject({
      execution: 'stale',
      error: { code: 'stale_type' },
    });
    await hand.leave();
  });
});

describe('a job type of runners', () => {
  test('waits until it is accepted, and creates no job when it is disabled', async () => {
    const create = () =>
      root.post<JobRecord>('/api/jobs', { type: 'other.hello', payload: {} }, WAIT);
    await expectInvalid(create(), '/type');
    const { items } = await root.get<Page<JobTypeRecord>>('/api/job-types').expect(200);
    expect(items.find(({ name }) => name === 'other.hello')).toMatchObject({
      state: 'waiting',
      pools: ['default'],
      digest: null,
    });
    await root.post('/api/job-types/other.hello/accept').expect(200);
    expect(await create().expect(201)).toMatchObject({ status: 'succeeded' });
    await root.post('/api/job-types/other.hello/disable').expect(200);
    await expectInvalid(create(), '/type');
  });

  test('has secret fields of earlier versions, with which its jobs were created', async () => {
    const payloadOf = (secret: string) => ({
      type: 'object',
      properties: { [secret]: { type: 'string', 'x-holdfast-secret': true } },
    });
    const hand = await handRunner('hand.marked', { payload: payloadOf('first') });
    const { id } = await createJob('hand.marked', { first: 'not shown', other: 'shown' });
    await hand.announce('a second version', { payload: payloadOf('second') });
    const later = await createJob('hand.marked', { second: 'not shown' });
    const viewer = app.client.as({ actor: 'vic', roles: 'viewer' });
    const shown = async (job: string) =>
      (await viewer.get<JobRecord>(`/api/jobs/${job}`).expect(200)).payload;
    expect(await shown(id)).toEqual({ first: '********', other: 'shown' });
    expect(await shown(later.id)).toEqual({ second: '********' });
    await hand.leave();
  });

  test.each([
    ['core.echo', {}, /Holdfast itself/],
    ['core.mine', {}, /Holdfast itself/],
    ['net.check', {}, /another pool/],
    ['odd.pool', { pool: 'default' }, /pool default/],
    ['odd.payload', { payload: { type: 'string' } }, /type object/],
    ['odd.schema', { payload: { type: 'object', properties: { a: { type: 'text' } } } }, /payload/],
  ])('%s is refused from a runner that may not announce it', async (name, more, reason) => {
    const client = await createRunnerToken(app, 'odd');
    const { types } = await client
      .post<{ types: { state: string; reason?: string }[] }>('/api/runner/announce', {
        runnerId: crypto.randomUUID(),
        name: 'odd',
        version: '1',
        slots: 1,
        pool: 'odd',
        types: [
          { digest: digestOf(name), definition: { ...definition(name), pool: 'odd', ...more } },
        ],
      })
      .expect(200);
    expect(types).toMatchObject([
      { name, state: 'refused', reason: expect.stringMatching(reason) },
    ]);
  });

  test('without a runner, its jobs wait and say so', async () => {
    const client = await createRunnerToken(app, 'empty');
    await root.put('/api/pools/empty', { acceptTypes: ['*'] }).expect(200);
    const runnerId = crypto.randomUUID();
    const announce = (name: string) =>
      client
        .post('/api/runner/announce', {
          runnerId,
          name: 'away',
          version: '1',
          slots: 1,
          pool: 'empty',
          types: [{ digest: digestOf('a'), definition: { ...definition(name), pool: 'empty' } }],
        })
        .expect(200);
    await announce('away.type');
    const leave = () => client.post('/api/runner/leave', { runnerId, pool: 'empty' }).expect(204);
    await leave();
    const { id } = await createJob('away.type');
    expect(await readJob(id)).toMatchObject({
      status: 'queued',
      waitingFor: { pool: 'empty', runners: 0, reason: 'no_runner' },
    });
    const listed = async (pool: string, client = root) => {
      const path = `/api/jobs?pool=${pool}&status=queued&limit=1`;
      return (await client.get<Page<WithId>>(path).expect(200)).items.map((each) => each.id);
    };
    expect([await listed('empty'), await listed('odd')]).toEqual([[id], []]);
    const stranger = app.client.as({ actor: 'eve', roles: 'viewer', tenant: 'red' });
    expect(await listed('empty', stranger)).toEqual([]);
    const reason = async () => (await readJob(id)).waitingFor?.reason;
    await announce('other.type');
    expect(await reason()).toBe('not_announced');
    await announce('away.type');
    expect(await reason()).toBe('no_slot');
    await root.post('/api/job-types/away.type/disable').expect(200);
    await app.deps.jobTypes.refresh();
    expect(await reason()).toBe('type_disabled');
    await leave();
    await app.deps
      .db('jobs')
      .where({ id })
      .update({ created_at: new Date(Date.now() - 600_000) });
    // Another process finds the job at the same time, and reports it first.
    const { signal } = new AbortController();
    const { db, commit, log } = app.deps;
    const report = createWatchRunners({ db, commit, log });
    await createWatchRunners({
      db,
      log,
      commit: async (caller, useCase) => {
        await report(signal);
        return commit(caller, useCase);
      },
    })(signal);
    await app.deps.housekeeping.run(signal);
    const events = await app.deps
      .db('events')
      .where({ subject_id: id })
      .orderBy('id')
      .pluck('type');
    expect(events).toEqual(['job.created', 'job.waiting']);
    await root.post(`/api/jobs/${id}/cancel`).expect(202);
    expect(await readJob(id)).toMatchObject({ status: 'cancelled', waitingFor: null });
  });
});
