import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startBareWorker } from '../bareWorker.ts';
import { load } from '../load.ts';

/**
 * The reference of the schedules benchmark: Temporal Schedules that start a minimal workflow. HTTP
 * requests create the schedules, and return the times at which the activities started.
 */
const taskQueue = 'bare-schedules';
const began: number[] = [];
const client = await startBareWorker(taskQueue, () => Promise.resolve(void began.push(Date.now())));

const server = createServer((req, res) => {
  const query = new URL(req.url ?? '/', 'http://localhost').searchParams;
  const [total, at] = [Number(query.get('total')), new Date(query.get('at') ?? '')];
  if (total === 0) return void res.end(JSON.stringify(began));
  const spec = { calendars: [{ minute: at.getUTCMinutes(), hour: at.getUTCHours() }], endAt: at };
  const action = { type: 'startWorkflow' as const, workflowType: 'bare', taskQueue, args: [] };
  void load({ concurrency: 10, total }, (n) =>
    client.schedule.create({
      scheduleId: `bare-${process.pid}-${n}`,
      spec,
      action,
      policies: { overlap: 'ALLOW_ALL', catchupWindow: 600_000 },
    }),
  ).then(() => res.end('[]'));
});
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`bare on ${(server.address() as AddressInfo).port}\n`),
);
