import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startBareWorker } from '../bareWorker.ts';
import { load } from '../load.ts';

/**
 * The reference of the jobs benchmark, with eager start. It measures itself when an HTTP request
 * asks for it, so that HTTP is not part of the measured time.
 */
const taskQueue = 'bare';
const client = await startBareWorker(taskQueue, () => Promise.resolve());
let made = 0;

const server = createServer((req, res) => {
  const query = new URL(req.url ?? '/', 'http://localhost').searchParams;
  const size = { concurrency: Number(query.get('concurrency')), total: Number(query.get('total')) };
  void load(size, () =>
    client.workflow.execute('bare', {
      taskQueue,
      workflowId: `bare-${process.pid}-${made++}`,
      requestEagerStart: true,
    }),
  ).then((result) => res.end(JSON.stringify(result)));
});
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`bare on ${(server.address() as AddressInfo).port}\n`),
);
