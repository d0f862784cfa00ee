import { killAll, startProcess, type TestProcess } from './processes.ts';

/**
 * One worker in a process of its own, for tests that kill it. The worker that replaces a killed one
 * serves the next test too: most of the cost of such a test is the start of a process.
 */
export function replaceableWorker(env: () => Record<string, string>) {
  let worker: TestProcess | undefined;
  const start = async (): Promise<TestProcess> => (worker ??= await startProcess(env()));
  const end = async (how: 'kill' | 'terminate') => {
    const code = await worker?.[how]();
    worker = undefined;
    return code;
  };
  return {
    /** Starts the worker unless it runs. */
    start,
    /** Ends the worker as a power cut would. */
    kill: async () => void (await end('kill')),
    /** Asks the worker to stop; resolves with its exit code. */
    terminate: () => end('terminate'),
    async replace(): Promise<void> {
      await end('kill');
      await start();
    },
    /** For afterAll: also ends what a failed test left running. */
    async stop(): Promise<void> {
      worker = undefined;
      await killAll();
    },
  };
}
