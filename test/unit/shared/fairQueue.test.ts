import { expect, test } from '@jest/globals';
import {
  cancelJobTask,
  signalApprovalTask,
  startJobTask,
  syncSchedule,
} from '../../../domain/dispatch/tasks.ts';
import { createFairQueue } from '../../../temporal/dispatcher.ts';

const limits = { lane: 'inline', timeoutMs: 1, heartbeatMs: 1 } as const;
const row = (tenantId: string, n: number) => ({
  id: `out_${tenantId}${n}`,
  task: startJobTask({ id: `job_${n}`, type: 'core.echo', tenantId }, limits),
  availableAt: new Date(0),
  at: new Date(0),
});

test('tenants take turns in the queue of the dispatcher, and one fills at most half of it', () => {
  const queue = createFairQueue();
  for (let n = 0; n < 150; n++) queue.add(row('noisy', n));
  expect(queue.size()).toBe(100);
  expect(queue.hasSpaceFor(row('noisy', 0).task)).toBe(false);
  queue.add(row('quiet', 0));
  queue.add(row('quiet', 1));
  const order = [0, 1, 2, 3].map(() => queue.take());
  expect(order.map((next) => next?.row.id)).toEqual([
    'out_noisy0',
    'out_quiet0',
    'out_noisy1',
    'out_quiet1',
  ]);
  order[1]?.done();
  queue.add(row('quiet', 2));
  queue.add(row('third', 0));
  expect(queue.take()?.row.id).toBe('out_third0');
  expect(queue.take()?.row.id).toBe('out_quiet2');
  queue.clear();
  expect(queue.take()).toBeUndefined();
});

test('tasks of all kinds count for their tenant, not each for itself', () => {
  const queue = createFairQueue();
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
  expect([queue.take(), queue.take()].map((next) => next?.row.id)).toEqual([
    'out_noisy0',
    'out_quiet0',
  ]);
});
