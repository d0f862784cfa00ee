import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { RemoteJobType } from '../../../domain/jobs/jobType.ts';
import { createRemoteTypes } from '../../../services/runners/remoteTypes.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { attemptCalls, createHandRunner } from '../../support/runner.ts';
import { admin, createUser } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;

beforeAll(async () => {
  app = await startApp();
  root = admin(app);
  await createUser(app, 'viewer');
});
afterAll(() => app.stop());

type HandRunner = Awaited<ReturnType<typeof createHandRunner>>;

async function createJob(type: string, hand: HandRunner): Promise<string> {
  const { id } = await root.post<JobRecord>('/api/jobs', { type, payload: {} }).expect(201);
  await hand.granted(id);
  return id;
}

const resultWith = (property: string) => ({ result: { type: 'object', required: [property] } });

/** Two runners in the middle of an upgrade: the second has the version that is current now. */
async function upgradingRunners(name: string, before: object, after: object) {
  const old = await createHandRunner(app, name, before);
  const current = await createHandRunner(app, name, before);
  await current.announce('current', after);
  return { old, current };
}

test('a result is checked with the version that its runner has', async () => {
  const name = 'hand.results';
  const { old, current } = await upgradingRunners(name, resultWith('a'), resultWith('b'));
  const end = async (hand: HandRunner, digest: string, result: object) => {
    const id = await createJob(name, hand);
    const { attemptToken } = await hand.begin(id, 'run-1', digest).expect(200);
    return attemptCalls(hand.client, id, attemptToken).end({ result }).expect(200);
  };
  expect(await end(old, name, { a: 1 })).toMatchObject({ status: 'succeeded' });
  expect(await end(current, 'current', { b: 1 })).toMatchObject({ status: 'succeeded' });
  const refused = { status: 'failed', code: 'invalid_result' };
  expect(await end(old, name, { b: 1 })).toMatchObject(refused);
  expect(await end(current, 'current', { a: 1 })).toMatchObject(refused);
});

test('the limits of an attempt are those of the version that its runner has', async () => {
  const name = 'hand.limits';
  const { old, current } = await upgradingRunners(
    name,
    { timeoutSeconds: 60, lostAfterSeconds: 5 },
    { timeoutSeconds: 120, lostAfterSeconds: 30, concurrency: { limit: 1 } },
  );
  const begin = async (hand: HandRunner, digest: string) =>
    hand.begin(await createJob(name, hand), 'run-1', digest).expect(200);
  const one = { outcome: 'started', timeoutMs: 60_000, leaseMs: 5_000 };
  expect(await begin(old, name)).toMatchObject(one);
  expect(await begin(old, name)).toMatchObject(one);
  const other = { outcome: 'started', timeoutMs: 120_000, leaseMs: 30_000 };
  expect(await begin(current, 'current')).toMatchObject(other);
  expect(await begin(current, 'current')).toMatchObject({ outcome: 'wait', code: 'concurrency' });
});

test('a process that has not heard of a change of a type decides by the record', async () => {
  const name = 'hand.unheard';
  const hand = await createHandRunner(app, name);
  const id = await createJob(name, hand);
  const { jobTypes, db, notifications, log } = app.deps;
  const stale = jobTypes.all().filter((type): type is RemoteJobType => type.lane === 'remote');
  jobTypes.useRemote(() => Promise.resolve(stale));
  try {
    await root.post(`/api/job-types/${name}/disable`).expect(200);
    await jobTypes.refresh();
    const refused = { outcome: 'wait', code: 'job_type_disabled' };
    expect(await hand.begin(id, 'run-1').expect(200)).toMatchObject(refused);

    await root.post(`/api/job-types/${name}/accept`).expect(200);
    await root.put('/api/pools/hand', { acceptTypes: [] }).expect(200);
    await hand.announce('changed', { payload: { type: 'object', required: ['more'] } });
    await root.post(`/api/job-types/${name}/accept`).expect(200);
    await jobTypes.refresh();
    const answer = await hand.begin(id, 'run-1', 'changed').expect(200);
    expect(answer).toMatchObject({ outcome: 'failed', code: 'payload_invalid' });
  } finally {
    createRemoteTypes({ db, jobTypes, notifications, log });
  }
});

test('a schema that was accepted before a limit refuses what is sent, with the reason', async () => {
  const name = 'hand.older';
  const hand = await createHandRunner(app, name);
  const id = await createJob(name, hand);
  // More steps of patterns than a schema may have today.
  const properties = Object.fromEntries(
    Array.from({ length: 60 }, (_, n) => [
      `p${n}`,
      { type: 'string', pattern: '^[^\\r\\n]{1,255}$' },
    ]),
  );
  const older = JSON.stringify({ type: 'object', properties });
  const { db, jobTypes } = app.deps;
  for (const table of ['job_types', 'job_type_versions'])
    await db.raw(
      `UPDATE ?? SET definition = jsonb_set(jsonb_set(definition::jsonb, '{payload}', ?), '{result}', ?)::json WHERE name = ?`,
      [table, older, older, name],
    );
  await jobTypes.refresh();
  const { errors } = await root
    .post<ProblemBody>('/api/jobs', { type: name, payload: {} })
    .expect(400);
  expect(errors?.map(({ code, message }) => [code, message])).toEqual([
    ['schema_not_accepted', expect.stringContaining('The patterns are too long')],
  ]);
  const failed = { outcome: 'failed', code: 'payload_invalid' };
  expect(await hand.begin(id, 'run-1').expect(200)).toMatchObject(failed);
});
