import { createHash, randomUUID } from 'node:crypto';
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { Worker } from '@temporalio/worker';
import type { ServiceAccountRecord, TokenWithSecret } from '../../api/auth/tokenSchemas.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { EndAnswer, LinesAnswer } from '../../domain/runners/protocol.ts';
import type { BeginAnswer, StartedAttempt } from '../../runner/protocol/api.ts';
import type { TestApp } from './app.ts';
import type { TestClient } from './client.ts';
import { eventually } from './eventually.ts';
import { admin } from './users.ts';

/** What an activity of a test does with an attempt that has started. */
export type Work = (attempt: TestAttempt) => Promise<object>;

export type TestAttempt = StartedAttempt & {
  jobId: string;
  lines(firstLine: number, lines: object[], query?: string): Promise<LinesAnswer>;
  end(body: object): ReturnType<TestClient['post']>;
  signal: AbortSignal;
};

export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/** A definition of a type for the pool `default`. */
export const definition = (name: string, more: object = {}) => ({
  name,
  summary: `Runs ${name}`,
  pool: 'default',
  access: 'open',
  payload: { type: 'object', additionalProperties: true },
  timeoutSeconds: 60,
  lostAfterSeconds: 5,
  ...more,
});

/** Creates a pool and a token for its runners, and returns a client with it. */
export const createRunnerToken = async (app: TestApp, pool: string): Promise<TestClient> =>
  app.client.as({ token: await createRunnerSecret(app, pool) });

/** Creates a pool and a token for its runners. */
export async function createRunnerSecret(app: TestApp, pool: string): Promise<string> {
  const root = admin(app);
  const { status } = await root.post('/api/pools', { name: pool });
  if (status !== 201 && status !== 409) throw new Error(`The pool was not created: ${status}`);
  const name = `runner-${randomUUID()}`;
  const owner = await app.deps.db('users').whereNot({ provider_id: 'service' }).first('id');
  const account = await root
    .post<ServiceAccountRecord>('/api/service-accounts', { name, ownerId: owner?.id })
    .expect(201);
  const { token } = await root
    .post<TokenWithSecret>(`/api/service-accounts/${account.id}/tokens`, { name, pools: [pool] })
    .expect(201);
  return assertDefined(token, 'token');
}

/** A runner of the pool that has announced a type, which is accepted. */
export async function acceptedType(
  app: TestApp,
  pool: string,
  more: object = {},
): Promise<{ runner: string; type: string }> {
  const type = `accepted.${pool}`;
  const client = await createRunnerToken(app, pool);
  const { runner } = await client
    .post<{ runner: string }>('/api/runner/announce', {
      ...{ runnerId: randomUUID(), name: 'host', version: '1', slots: 1, pool },
      types: [{ digest: digestOf(type), definition: { ...definition(type, more), pool } }],
    })
    .expect(200);
  await admin(app).post(`/api/job-types/${type}/accept`).expect(200);
  return { runner, type };
}

/** Calls of the runner API for one attempt. */
export function attemptCalls(client: TestClient, jobId: string, attemptToken: string) {
  const headers = { 'attempt-token': attemptToken };
  const path = `/api/runner/jobs/${jobId}`;
  return {
    linesRequest: (firstLine: number, lines: object[], query = '') =>
      client.post<LinesAnswer>(
        `${path}/lines?firstLine=${firstLine}${query}`,
        lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
        { ...headers, 'content-type': 'application/x-ndjson' },
      ),
    end: (body: object) => client.post<EndAnswer>(`${path}/end`, body, headers),
  };
}

/** A runner of the pool `hand` without a Temporal worker, for tests that speak the protocol by hand. */
export async function createHandRunner(app: TestApp, name: string, more: object = {}) {
  const client = await createRunnerToken(app, 'hand');
  await admin(app)
    .put('/api/pools/hand', { acceptTypes: ['hand.*'], tenantSharePercent: 100 })
    .expect(200);
  const runnerId = randomUUID();
  const announce = (digest: string, change: object = {}) =>
    client
      .post<{ types: { state: string; reason?: string }[] }>('/api/runner/announce', {
        runnerId,
        name: 'hand',
        version: '1',
        slots: 5,
        pool: 'hand',
        types: [
          {
            digest: digestOf(digest),
            definition: { ...definition(name, more), pool: 'hand', ...change },
          },
        ],
      })
      .expect(200);
  await announce(name);
  const begin = (jobId: string, workflowRunId: string, digest = name, more: object = {}) =>
    client.post<StartedAttempt>(`/api/runner/jobs/${jobId}/begin`, {
      runnerId,
      workflowRunId,
      digest: digestOf(digest),
      ...more,
    });
  const granted = (id: string) =>
    eventually(
      () => app.deps.db('jobs').where({ id }).first('slot'),
      ({ slot }) => slot === 'held',
    );
  const leave = () => client.post('/api/runner/leave', { runnerId, pool: 'hand' }).expect(204);
  return { client, runnerId, announce, begin, granted, leave };
}

/** A runner in this process that speaks the protocol, without anything that a real one adds. */
export async function startTestRunner(
  app: TestApp,
  types: Record<string, { work: Work; more?: object; digest?: string }>,
  {
    pool = 'default',
    slots = 10,
    token,
  }: { pool?: string; slots?: number; token?: TestClient } = {},
) {
  const client = token ?? (await createRunnerToken(app, pool));
  const runnerId = randomUUID();
  const digests = Object.fromEntries(
    Object.entries(types).map(([name, { digest }]) => [name, digestOf(digest ?? name)]),
  );
  const announce = () =>
    client.post<{ taskQueue: string; types: { name: string; state: string; reason?: string }[] }>(
      '/api/runner/announce',
      {
        runnerId,
        name: 'test',
        version: '1',
        slots,
        pool,
        types: Object.entries(types).map(([name, { more }]) => ({
          digest: digests[name],
          definition: { ...definition(name, more), pool },
        })),
      },
    );
  const announced = await announce().expect(200);
  const begin = (name: string, jobId: string, workflowRunId: string) =>
    client
      .post<BeginAnswer>(`/api/runner/jobs/${jobId}/begin`, {
        runnerId,
        workflowRunId,
        digest: digests[name],
      })
      .expect(200);

  const activity = (name: string, work: Work) => async (input: { jobId: string }) => {
    const context = Context.current();
    const beat = setInterval(() => context.heartbeat(), 200);
    try {
      const runId = assertDefined(context.info.workflowExecution, 'workflow').runId;
      const answer = await begin(name, input.jobId, runId);
      if (answer.outcome === 'ended') return;
      if (answer.outcome === 'failed') throw ApplicationFailure.nonRetryable('', answer.code);
      if (answer.outcome === 'wait')
        throw ApplicationFailure.create({ type: answer.code, nextRetryDelay: answer.retryInMs });
      const calls = attemptCalls(client, input.jobId, answer.attemptToken);
      const end = await work({
        ...answer,
        jobId: input.jobId,
        signal: context.cancellationSignal,
        lines: (firstLine, lines, query) => calls.linesRequest(firstLine, lines, query).expect(200),
        end: calls.end,
      });
      const ended = await calls.end(end).expect(200);
      if (ended.status === 'succeeded' || ended.status === 'cancelled') return;
      throw ApplicationFailure.create({
        type: ended.code ?? 'failed',
        nonRetryable: ended.retryInMs === null,
        ...(ended.retryInMs !== null && { nextRetryDelay: ended.retryInMs }),
      });
    } finally {
      clearInterval(beat);
    }
  };
  const worker = await Worker.create({
    connection: await app.deps.temporal.nativeConnection(),
    namespace: app.deps.temporal.namespace,
    dataConverter: app.deps.temporal.dataConverter,
    taskQueue: announced.taskQueue,
    activities: Object.fromEntries(
      Object.entries(types).map(([name, { work }]) => [name, activity(name, work)]),
    ),
    maxHeartbeatThrottleInterval: 300,
    shutdownGraceTime: 100,
    shutdownForceTime: 2_000,
  });
  const running = worker.run();
  return {
    client,
    runnerId,
    digests,
    announced,
    announce,
    begin,
    async stop() {
      worker.shutdown();
      await running;
      await client.post('/api/runner/leave', { runnerId, pool }).expect(204);
    },
  };
}
