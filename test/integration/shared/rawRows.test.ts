import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { claimKey } from '../../../db/core/idempotency.ts';
import { claimOutbox } from '../../../db/core/outbox.ts';
import { claimAttempt, claimMultiStep, findWithLogs } from '../../../db/jobs/jobs.ts';
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
  return columns
    .map((column) => column.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()))
    .sort();
}

describe('raw queries return the columns that their types declare', () => {
  test.each([
    ['claimAttempt', claimAttempt],
    ['claimMultiStep', claimMultiStep],
  ])('%s', async (_name, claim) => {
    const { id } = await createJob();
    await app.deps.db('jobs').where({ id }).update({ slot: 'held' });
    const job = await claim(app.deps.db, {
      jobId: id,
      runId: 'run',
      needsSlot: true,
      now: new Date(),
    });
    expect(Object.keys(job ?? {}).sort()).toEqual(await propertiesOf('jobs'));
    expect(job).toEqual(await Job.query(app.deps.db).findById(id));
  });

  test('findWithLogs', async () => {
    const { id } = await createJob();
    await claimAttempt(app.deps.db, {
      jobId: id,
      runId: 'run',
      needsSlot: false,
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
    expectRowShape(task, { id: 'string', task: 'json', attempts: 'number' });
  });

  test('claimKey', async () => {
    const now = new Date();
    const claim = { actorId: 'alice', tenantId: 'platform', key: 'shape', leaseUntil: now };
    const input = { claim, fingerprint: Buffer.alloc(32), now, keepMs: 60_000 };
    expect(await claimKey(app.deps.db, input)).toBeUndefined();
    const known = await claimKey(app.deps.db, { ...input, fingerprint: Buffer.alloc(32, 1) });
    expectRowShape(known, {
      fingerprint: 'json',
      leaseUntil: 'date',
      subjectId: 'nullable',
      answer: 'nullable',
    });
  });
});
