import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { claimKey } from '../../../db/core/idempotency.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { claimOutbox } from '../../../db/core/outbox.ts';
import { claimAttempts, claimMultiStep, findWithLogs } from '../../../db/jobs/jobs.ts';
import { Job } from '../../../db/models/Job.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { expectRowShape } from '../../support/rowShape.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

const createJob = () =>
  app.client.post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);

/** All columns of a table, as the properties of its model. */
async function propertiesOf(table: string): Promise<string[]> {
  const columns: string[] = await app.deps
    .db('information_schema.columns')
    .where({ table_name: table })
    .pluck('column_name');
  return (
    columns
      // The reconciler alone uses it.
      .filter((column) => column !== 'waiting_reported_at')
      .map((column) => column.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()))
      .sort()
  );
}

type Claim = Parameters<typeof claimMultiStep>[1];

const claimAttempt = async (db: Knex, { jobId, ...claim }: Claim) =>
  (await claimAttempts(db, { ...claim, jobIds: [jobId], needsSlot: false }))[0];

describe('raw queries return the columns that their types declare', () => {
  test.each([
    ['claimAttempt', claimAttempt],
    ['claimMultiStep', claimMultiStep],
  ])('%s', async (_name, claim) => {
    const { id } = await createJob();
    await app.deps.db('jobs').where({ id }).update({ slot: 'held' });
    const { db, ids } = app.deps;
    const claimAgain = () => {
      const startedEvents = { ids: [ids.next('evt')], exceptTypes: ['webhook.deliver'] };
      return claim(db, { jobId: id, runId: 'run', now: new Date(), startedEvents });
    };
    const job = await claimAgain();
    expect(Object.keys(job ?? {}).sort()).toEqual(await propertiesOf('jobs'));
    expect(await Job.query(db).findById(id)).toMatchObject(Object.assign({}, job));
    // Only the start of a job is an event, and not if its type emits none.
    await claimAgain();
    const started = await db('events').where({ type: 'job.started', subject_id: id });
    expect(started).toMatchObject([{ tenant_id: job?.tenantId, actor_id: 'system' }]);
    const quiet = await createJob();
    await db('jobs').where({ id: quiet.id }).update({ slot: 'held', type: 'webhook.deliver' });
    const startedEvents = { ids: [ids.next('evt')], exceptTypes: ['webhook.deliver'] };
    await claim(db, { jobId: quiet.id, runId: 'run', now: new Date(), startedEvents });
    expect(await db('events').where({ type: 'job.started', subject_id: quiet.id })).toEqual([]);
  });

  test('findWithLogs', async () => {
    const { id } = await createJob();
    await claimAttempt(app.deps.db, {
      jobId: id,
      runId: 'run',
      now: new Date(),
    });
    const found = await findWithLogs(app.deps.db, id, { kind: 'everywhere' }, 10);
    expect(Object.keys(found?.job ?? {}).sort()).toEqual(await propertiesOf('jobs'));
    const [line] = found?.logs ?? [];
    expect(line).toEqual({
      line: 1,
      attempt: 1,
      level: 'info',
      message: 'Attempt 1 started',
      data: null,
      at: expect.any(Date),
    });
  });

  test('claimOutbox', async () => {
    await createJob();
    const now = new Date(Date.now() + 3_600_000);
    const [task] = await claimOutbox(app.deps.db, { now, leaseMs: 1_000, limit: 1 });
    expectRowShape(task, { id: 'string', task: 'json', attempts: 'number', availableAt: 'date' });
  });

  test('claimKey', async () => {
    const key = { actorId: 'alice', tenantId: 'platform', key: 'shape' };
    const claim = (digit: number) =>
      claimKey(app.deps.db, {
        key,
        fingerprints: [Buffer.alloc(32, digit)],
        leaseMs: 60_000,
        keepMs: 60_000,
      });
    expectRowShape((await claim(0)) as object, { claim: 'json' });
    const { known } = (await claim(1)) as { known: object };
    expectRowShape(known, {
      fingerprint: 'json',
      leaseUntil: 'date',
      subjectId: 'nullable',
      answer: 'nullable',
    });
  });
});
