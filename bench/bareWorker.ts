import { fileURLToPath } from 'node:url';
import { Client } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { POLLERS } from '../temporal/pollers.ts';

/**
 * Starts the reference: the Temporal SDK without Holdfast, with a client and a worker on one
 * connection, the worker settings of Holdfast, and a minimal workflow that calls `nothing`.
 */
export async function startBareWorker(
  taskQueue: string,
  nothing: () => Promise<void>,
): Promise<Client> {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const connection = await NativeConnection.connect({
    address: process.env.TEMPORAL_ADDRESS ?? '',
  });
  const worker = await Worker.create({
    connection,
    taskQueue,
    workflowsPath: fileURLToPath(new URL('./jobs/bareWorkflows.ts', import.meta.url)),
    activities: { nothing },
    maxConcurrentLocalActivityExecutions: 100,
    maxConcurrentWorkflowTaskExecutions: 100,
    workflowTaskPollerBehavior: POLLERS,
    maxCachedWorkflows: 500,
  });
  const run = worker.run();
  process.once('SIGTERM', () => {
    worker.shutdown();
    void run.then(() => process.exit(0));
  });
  return new Client({ connection });
}
