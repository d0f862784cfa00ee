import { expect, test } from '@jest/globals';
import {
  cancelJobTask,
  signalApprovalTask,
  startJobTask,
  startShortJobsTask,
  syncSchedule,
} from '../../../domain/dispatch/tasks.ts';
import { createDispatchQueue } from '../../../temporal/dispatchQueue.ts';

const limits = { lane: 'activity', timeoutMs: 1, heartbeatMs: 1 } as const;
const row = (tenantId: string, n: number) => ({
  id: `out_${tenantId}${n}`,
  task: startJobTask({ id: `job_${n}`, type: 'core.sleep', tenantId }, limits),
  delayMs: 0,
  at: new Date(0),
});
const short = (tenantId: string, n: number, type = 'core.echo') => ({
  ...row(tenantId, n),
  task: startJobTask({ id: `job_${n}`, type, tenantId }, { ...limits, lane: 'inline' }),
});

/** A queue, and a promise that resolves when tasks that had to wait may be taken. */
function createQueue() {
  const ready = Promise.withResolvers<undefined>();
  const queue = createDispatchQueue({ onReady: () => ready.resolve(undefined), now: () => 0 });
  return { queue, ready: ready.promise };
}

test('tenants take turns in the queue of the dispatcher, and one fills at most half of it', () => {
  const { queue } = createQueue();
  for (let n = 0; n < 150; n++) queue.add(row('noisy', n));
  expect(queue.size()).toBe(100);
  expect(queue.hasSpaceFor(row('noisy', 0).task)).toBe(false);
  queue.add(row('quiet', 0));
  queue.add(row('quiet', 1));
  const order = [0, 1, 2, 3].map(() => queue.take());
  expect(order.map((next) => next?.rows[0]?.id)).toEqual([
    'out_noisy0',
    'out_quiet0',
    'out_noisy1',
    'out_quiet1',
  ]);
  order[1]?.done();
  queue.add(row('quiet', 2));
  queue.add(row('third', 0));
  expect(queue.take()?.rows[0]?.id).toBe('out_third0');
  expect(queue.take()?.rows[0]?.id).toBe('out_quiet2');
  queue.clear();
  expect(queue.take()).toBeUndefined();
});

test('tasks of all kinds count for their tenant, not each for itself', () => {
  const { queue } = createQueue();
  const taskOf = (n: number) => {
    const record = { id: `r${n}`, tenantId: 'noisy' };
    return [
      cancelJobTask(record),
      signalApprovalTask(record, 'approve', `dec_${n}`),
      syncSchedule(record),
    ][n % 3];
  };
  for (let n = 0; n < 150; n++) {
    const task = taskOf(n);
    if (task) queue.add({ ...row('noisy', n), task });
  }
  expect(queue.size()).toBe(100);
  queue.add(row('quiet', 0));
  expect([queue.take(), queue.take()].map((next) => next?.rows[0]?.id)).toEqual([
    'out_noisy0',
    'out_quiet0',
  ]);
});

const idsOf = (taken: { rows: { id: string }[] } | undefined) => taken?.rows.map(({ id }) => id);

test('short jobs that arrive while others are started go together, by tenant and type', async () => {
  const { queue, ready } = createQueue();
  queue.add(short('a', 0));
  const first = queue.take();
  expect(idsOf(first)).toEqual(['out_a0']);
  for (const n of [1, 2]) queue.add(short('a', n));
  queue.add(short('a', 3, 'core.other'));
  queue.add(short('b', 4));
  queue.add(row('a', 5));
  expect([queue.take(), queue.take(), queue.take()].map(idsOf)).toEqual([
    ['out_b4'],
    ['out_a3'],
    ['out_a5'],
  ]);
  expect(queue.isReady()).toBe(false);
  expect(queue.take()).toBeUndefined();
  first?.done();
  await ready;
  expect(idsOf(queue.take())).toEqual(['out_a1', 'out_a2']);
});

test('at most twenty short jobs go together, and one that comes alone does not wait', async () => {
  const { queue, ready } = createQueue();
  for (let n = 0; n < 25; n++) queue.add(short('a', n));
  const first = queue.take();
  expect(first?.rows).toHaveLength(20);
  first?.done();
  await ready;
  const second = queue.take();
  expect(second?.rows).toHaveLength(5);
  second?.done();
  queue.add(short('a', 25));
  expect(idsOf(queue.take())).toEqual(['out_a25']);
});

test('a job that is started again, or goes on after its first attempt, is started alone', () => {
  const { queue } = createQueue();
  const firstAttempt = { code: 'failed', retryInMs: 1 };
  for (const n of [0, 1]) {
    const { task } = short('a', n);
    queue.add({ ...short('a', n), task: { ...task, alone: true } });
    const goesOn = { ...task, input: { ...task.input, firstAttempt } };
    queue.add({ ...short('a', n + 2), task: goesOn });
  }
  const taken = [0, 1, 2, 3].map(() => idsOf(queue.take()));
  expect(taken).toEqual([['out_a0'], ['out_a2'], ['out_a1'], ['out_a3']]);
});

test('the start of several short jobs names them, and what they have in common', () => {
  const [first, ...others] = [0, 1, 2].map((n) => short('a', n).task);
  expect(first && startShortJobsTask('out_a0', first, others)).toEqual({
    kind: 'start',
    workflow: 'shortJobs',
    workflowId: 'jobs:out_a0',
    input: { jobIds: ['job_0', 'job_1', 'job_2'], timeoutMs: 1 },
    summary: '3 × core.echo',
    attributes: { tenant: 'a', jobType: 'core.echo', record: 'several' },
  });
});
