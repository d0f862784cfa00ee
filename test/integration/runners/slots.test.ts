import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { attemptCalls, createRunnerToken, definition, digestOf } from '../../support/runner.ts';
import { admin, createUser } from '../../support/users.ts';

/** Jobs that cannot begin must not keep the slots of their pool: each test has a pool of two slots. */
let app: TestApp;
let root: TestClient;
let client: TestClient;
let pool: string;
let runnerId: string;
let count = 0;

beforeAll(async () => {
  app = await startApp();
  root = admin(app);
  await createUser(app, 'viewer');
});
afterAll(() => app.stop());

beforeEach(async () => {
  pool = `slots-${++count}`;
  client = await createRunnerToken(app, pool);
  await root
    .put(`/api/pools/${pool}`, { acceptTypes: ['slots.*'], tenantSharePercent: 100 })
    .expect(200);
  runnerId = randomUUID();
  await announce(['blocked', 'other']);
});

const nameOf = (type: string) => `slots.${type}-${count}`;

/** `changed`: types that are announced with another payload. */
const announce = (types: string[], changed: string[] = []) =>
  client
    .post('/api/runner/announce', {
      ...{ runnerId, name: 'hand', version: '1', slots: 2, pool },
      types: types.map((type) => {
        const isChanged = changed.includes(type);
        const more = isChanged ? { payload: { type: 'object', required: ['more'] } } : {};
        const digest = digestOf(isChanged ? `${nameOf(type)} changed` : nameOf(type));
        return { digest, definition: { ...definition(nameOf(type)), pool, ...more } };
      }),
    })
    .expect(200);

const createJob = (type: string) =>
  root.post<JobRecord>('/api/jobs', { type: nameOf(type), payload: {} }).expect(201);
const slotOf = async (id: string): Promise<string | null> =>
  (await app.deps.db('jobs').where({ id }).first('slot')).slot as string | null;
const slotIs = (id: string, slot: string | null) =>
  eventually(
    () => slotOf(id),
    (is) => is === slot,
  );
const begin = (id: string, type: string, digest: string | undefined = nameOf(type)) =>
  client
    .post<{ outcome: string; code?: string; attemptToken: string }>(
      `/api/runner/jobs/${id}/begin`,
      { runnerId, workflowRunId: 'run-1', ...(digest !== '' && { digest: digestOf(digest) }) },
    )
    .expect(200);

/** Two jobs that hold all slots of the pool, and one of another type that waits. */
async function fillPool() {
  const blocked = [await createJob('blocked'), await createJob('blocked')];
  for (const { id } of blocked) await slotIs(id, 'held');
  const other = await createJob('other');
  return { blocked, other };
}

/** Lets jobs ask in vain, and expects that the other one gets a slot and that they get none then. */
async function expectReleased(
  { blocked, other }: Awaited<ReturnType<typeof fillPool>>,
  code: string,
  digest?: string,
) {
  for (const { id } of blocked)
    expect(await begin(id, 'blocked', digest)).toMatchObject({ outcome: 'wait', code });
  await slotIs(other.id, 'held');
  const { attemptToken } = await begin(other.id, 'other');
  await attemptCalls(client, other.id, attemptToken).end({ result: {} }).expect(200);
  // The pool is free now, and those that cannot begin do not take it.
  const next = await createJob('other');
  await slotIs(next.id, 'held');
  for (const { id } of blocked) expect(await slotOf(id)).toBeNull();
  await root.post(`/api/jobs/${next.id}/cancel`).expect(202);
}

/** The jobs get slots when they ask after what has blocked them has ended. */
async function expectStarted({ blocked }: Awaited<ReturnType<typeof fillPool>>, digest?: string) {
  for (const { id } of blocked)
    await eventually(
      () => begin(id, 'blocked', digest),
      ({ outcome }) => outcome === 'started',
    );
}

/** The jobs say what they wait for. */
async function expectWaits({ blocked }: Awaited<ReturnType<typeof fillPool>>, reason: string) {
  for (const { id } of blocked)
    expect(await root.get<JobRecord>(`/api/jobs/${id}`).expect(200)).toMatchObject({
      waitingFor: { reason },
    });
}

test('jobs of a disabled type release their slots, and wait without one', async () => {
  const jobs = await fillPool();
  await root.post(`/api/job-types/${nameOf('blocked')}/disable`).expect(200);
  await expectReleased(jobs, 'job_type_disabled');
  await root.post(`/api/job-types/${nameOf('blocked')}/accept`).expect(200);
  await expectStarted(jobs);
});

test('jobs of a type that their runner does not have release their slots', async () => {
  const jobs = await fillPool();
  await announce(['other']);
  await expectReleased(jobs, 'not_announced', '');
  await expectWaits(jobs, 'not_announced');
  await announce(['blocked', 'other']);
  await expectStarted(jobs);
});

test('jobs of a type whose change is not accepted release their slots', async () => {
  const jobs = await fillPool();
  await root.put(`/api/pools/${pool}`, { acceptTypes: [] }).expect(200);
  await announce(['blocked', 'other'], ['blocked']);
  await expectReleased(jobs, 'not_accepted', `${nameOf('blocked')} changed`);
  await expectWaits(jobs, 'not_accepted');
  await announce(['blocked', 'other']);
  await expectStarted(jobs);
});

test('an approved job that another version has to run releases its slot', async () => {
  const jobs = await fillPool();
  for (const { id } of jobs.blocked)
    await app.deps
      .db('jobs')
      .where({ id })
      .update({ source_kind: 'approval', type_digest: digestOf('approved') });
  // A runner without slots still has that version.
  await client
    .post('/api/runner/announce', {
      ...{ runnerId: randomUUID(), name: 'away', version: '1', slots: 1, pool },
      reachesTemporal: false,
      types: [],
    })
    .expect(200);
  await app.deps
    .db('runners')
    .where({ pool, name: 'away' })
    .update({ types: JSON.stringify({ [nameOf('blocked')]: digestOf('approved') }) });
  await expectReleased(jobs, 'other_digest');
  await expectWaits(jobs, 'other_digest');
});

test('jobs that cannot start get no slot, and others of their tenant do not wait for them', async () => {
  await announce(['blocked', 'other'], ['blocked']);
  await root.put(`/api/pools/${pool}`, { acceptTypes: [] }).expect(200);
  await announce(['other']);
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) ids.push((await createJobOf('blocked', { more: 1 })).id);
  const other = await createJob('other');
  await slotIs(other.id, 'held');
  for (const id of ids) expect(await slotOf(id)).toBe('waiting');
  // Nor if their type is deleted while they are created.
  await app.deps
    .db('job_type_versions')
    .where({ name: nameOf('blocked') })
    .delete();
  await app.deps
    .db('job_types')
    .where({ name: nameOf('blocked') })
    .delete();
  await announce(['other']);
  const next = await createJob('other');
  await slotIs(next.id, 'held');
  for (const id of ids) {
    expect(await slotOf(id)).toBe('waiting');
    await root.post(`/api/jobs/${id}/cancel`).expect(202);
  }
});

const createJobOf = (type: string, payload: object) =>
  root.post<JobRecord>('/api/jobs', { type: nameOf(type), payload }).expect(201);

test('a job whose type is deleted while it gets its slot waits for one again', async () => {
  const { jobTypes } = app.deps;
  const { find } = jobTypes;
  const { id } = await createJob('blocked');
  await slotIs(id, 'held');
  // The process finds no type any more for a job to which it has granted a slot.
  jobTypes.find = (name) => (name === nameOf('blocked') ? undefined : find(name));
  try {
    await app.deps.db('jobs').where({ id }).update({ slot: 'waiting' });
    for (let round = 0; round < 2; round++) {
      const other = await createJob('other');
      await slotIs(other.id, 'held');
      expect(await slotOf(id)).toBe('waiting');
      await root.post(`/api/jobs/${other.id}/cancel`).expect(202);
    }
  } finally {
    jobTypes.find = find;
  }
  await slotIs(id, 'held');
});

test('an attempt that runs keeps its slot, whatever others ask', async () => {
  const { id } = await createJob('blocked');
  await slotIs(id, 'held');
  await begin(id, 'blocked');
  await root.post(`/api/job-types/${nameOf('blocked')}/disable`).expect(200);
  const disabled = { outcome: 'wait', code: 'job_type_disabled' };
  expect(await begin(id, 'blocked')).toMatchObject(disabled);
  expect(await slotOf(id)).toBe('held');
  // The lease of the last attempt has ended, and Temporal asks again: its runner is lost.
  await app.deps
    .db('remote_attempts')
    .where({ job_id: id })
    .update({ leased_until: new Date(0) });
  expect(await begin(id, 'blocked')).toEqual({ outcome: 'failed', code: 'worker_lost' });
});
