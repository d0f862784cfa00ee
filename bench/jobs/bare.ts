import { fileURLToPath } from 'node:url';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { load } from '../load.ts';

/**
 * The reference: the SDK alone, client and worker on one connection with eager start, in a process of its own.
 * The settings of the worker are the product's. It measures itself when it is asked over HTTP, so that nothing but Temporal lies between start and result.
 */
Runtime.install({ logger: new DefaultLogger('ERROR') });
const connection = await NativeConnection.connect({ address: process.env.TEMPORAL_ADDRESS ?? '' });
const taskQueue = 'bare';
const worker = await Worker.create({
  connection, taskQueue,
  workflowsPath: fileURLToPath(new URL('./bareWorkflows.ts', import.meta.url)),
  activities: { nothing: () => Promise.resolve() },
  maxConcurrentLocalActivityExecutions: 100,
  maxConcurrentWorkflowTaskExecutions: 100,
  maxConcurrentWorkflowTaskPolls: 4,
  maxCachedWorkflows: 500,
});
const client = new Client({ connection });
const run = worker.run();
let made = 0;

const server = createServer((req, res) => {
  const query = new URL(req.url ?? '/', 'http://localhost').searchParams;
  const size = { atOnce: Number(query.get('atOnce')), total: Number(query.get('total')) };
  void load(size, () =>
    client.workflow.execute('bare', { taskQueue, workflowId: `bare-${process.pid}-${made++}`, requestEagerStart: true }),
  ).then((result) => res.end(JSON.stringify(result)));
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`bare on ${(server.address() as AddressInfo).port}\n`));
process.once('SIGTERM', () => {
  worker.shutdown();
  void run.then(() => process.exit(0));
});
