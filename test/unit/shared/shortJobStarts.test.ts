import { expect, test } from '@jest/globals';
import { startJobTask } from '../../../domain/dispatch/tasks.ts';
import { createShortJobStarts, type ShortJobRow } from '../../../temporal/shortJobStarts.ts';

const limits = { lane: 'inline', timeoutMs: 1, heartbeatMs: 1 } as const;
const short = (tenantId: string, n: number): ShortJobRow => ({
  id: `out_${tenantId}${n}`,
  task: startJobTask({ id: `job_${n}`, type: 'core.echo', tenantId }, limits),
  delayMs: 0,
  at: new Date(0),
});

/** Starts of short jobs whose attempts end when the test ends them. */
function createStarts() {
  const made: { workflowId: string; jobIds: readonly string[]; end(): void }[] = [];
  const started: string[][] = [];
  let accepts = true;
  const starts = createShortJobStarts({
    attempts: {
      accepts: () => accepts,
      make({ workflowId, jobIds }) {
        const { promise, resolve } = Promise.withResolvers<undefined>();
        made.push({ workflowId, jobIds, end: () => resolve(undefined) });
        return promise;
      },
    },
    startWorkflow: (rows) => void started.push(rows.map(({ id }) => id)),
  });
  const endLast = async () => {
    made.at(-1)?.end();
    await new Promise(setImmediate);
  };
  return { starts, made, started, endLast, stop: () => (accepts = false) };
}

test('a short job is attempted immediately, and those that come during the attempt together', async () => {
  const { starts, made, started, endLast } = createStarts();
  for (const n of [0, 1, 2]) starts.add('a', short('a', n));
  starts.add('b', short('b', 9));
  const workflowId = 'jobs:out_a0';
  expect(made).toMatchObject([
    { workflowId, jobIds: ['job_0'] },
    { workflowId: 'jobs:out_b9', jobIds: ['job_9'] },
  ]);
  made[0]?.end();
  await new Promise(setImmediate);
  expect(made.at(-1)).toMatchObject({ workflowId, jobIds: ['job_1', 'job_2'] });
  await endLast();
  expect(started).toEqual([]);
  starts.flush();
  expect(started).toEqual([['out_a0', 'out_a1', 'out_a2'], ['out_b9']]);
  starts.flush();
  expect(started).toHaveLength(2);
  starts.add('a', short('a', 3));
  expect(made.at(-1)).toMatchObject({ workflowId: 'jobs:out_a3', jobIds: ['job_3'] });
  starts.flush();
});

test('one statement claims at most twenty jobs, and a workflow has at most some fifty', async () => {
  const { starts, made, started, endLast } = createStarts();
  for (let n = 0; n < 90; n++) starts.add('a', short('a', n));
  for (let n = 0; n < 6; n++) await endLast();
  expect(made.map(({ jobIds }) => jobIds.length)).toEqual([1, 20, 20, 20, 20, 9]);
  expect(started.map((rows) => rows.length)).toEqual([61]);
  starts.flush();
  expect(started.map((rows) => rows.length)).toEqual([61, 29]);
});

test('a tenant attempts at most half of the jobs, and a process that stops none', async () => {
  const { starts, endLast, stop } = createStarts();
  for (let n = 0; n < 100; n++) starts.add('a', short('a', n));
  expect([starts.hasSpaceFor('a'), starts.hasSpaceFor('b')]).toEqual([false, true]);
  for (let n = 0; n < 100; n++) starts.add('b', short('b', n));
  expect(starts.hasSpaceFor('c')).toBe(false);
  await endLast();
  expect(starts.hasSpaceFor('c')).toBe(true);
  stop();
  expect(starts.hasSpaceFor('c')).toBe(false);
  starts.flush();
});
