import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { claimAttempts } from '../../../db/jobs/jobs.ts';
import { Job } from '../../../db/models/Job.ts';
import { DEFAULT_RETRY } from '../../../domain/jobs/retry.ts';
import { createRecordTogether } from '../../../services/jobs/recordTogether.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { seedJobs } from '../../support/retention.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

const db = () => app.deps.db;
/** Jobs whose first attempt runs in the run `run`. */
const seedRunning = (count: number) =>
  seedJobs(db(), { tenant: 'platform', days: 0, status: 'running', lines: 1, count });

test.each([
  { attempts: 1, interruptions: 0, isClaimed: true },
  { attempts: 2, interruptions: 0, isClaimed: false },
  { attempts: 11, interruptions: 9, isClaimed: false },
  { attempts: 11, interruptions: 10, isClaimed: true },
  { attempts: 12, interruptions: 11, isClaimed: false },
])(
  'a job with two attempts gets another one: $isClaimed, after $attempts and $interruptions interruptions',
  async ({ attempts, interruptions, isClaimed }) => {
    const [id = ''] = await seedRunning(1);
    const retryPolicy = JSON.stringify({ ...DEFAULT_RETRY, maxAttempts: 2 });
    await db()('jobs').where({ id }).update({ attempts, interruptions, retry_policy: retryPolicy });
    const claimed = await claimAttempts(db(), {
      jobIds: [id],
      runId: 'run',
      needsSlot: false,
      now: new Date(),
    });
    expect(claimed.map((job) => job.attempts)).toEqual(isClaimed ? [attempts + 1] : []);
  },
);

test('the success of an attempt that is not current leaves those that are recorded with it', async () => {
  const ids = await seedRunning(3);
  const [, replaced] = ids;
  const jobs = await Job.query(db()).findByIds(ids).orderBy('id');
  await db()('jobs').where({ id: replaced }).update({ attempts: 2 });
  const run = { runId: 'run', workflowId: 'jobs:together' };
  const record = createRecordTogether(app.deps)(run);
  const recorded = jobs.map((job, n) => record(job, { lines: [], progress: {} }, `{"n":${n}}`));
  expect(await Promise.all(recorded)).toEqual([true, false, true]);
  const rows = await db()('jobs').whereIn('id', ids).orderBy('id').select('status', 'result');
  expect(rows).toEqual([
    { status: 'succeeded', result: { n: 0 } },
    { status: 'running', result: { done: true } },
    { status: 'succeeded', result: { n: 2 } },
  ]);
  const audited = await db()('audit_entries')
    .where({ action: 'job.succeed' })
    .whereIn('subject_id', ids)
    .orderBy('subject_id')
    .pluck('subject_id');
  expect(audited).toEqual([ids[0], ids[2]]);
});
