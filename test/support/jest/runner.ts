import path from 'node:path';
import pLimit from 'p-limit';
import Tinypool from 'tinypool';
import type { Test, TestResult } from '@jest/test-result';
import type { Config } from '@jest/types';
import { COMPILE_CACHE } from '../compileCache.ts';
import { effortFactor } from '../effort.ts';
import { nextTemporalCheck, temporalRestarts } from '../temporalKeeper.ts';
import type { FileTask } from './worker.ts';

type OnStart = (test: Test) => Promise<void>;
type OnResult = (test: Test, result: TestResult) => Promise<void>;
type OnFailure = (test: Test, error: unknown) => Promise<void>;

/**
 * A file that takes longer has stopped making progress: its process is killed, and the file fails. Runs that do more
 * work may take longer.
 */
const FILE_LIMIT_MS = 10 * 60_000 * effortFactor();

/**
 * Runs test files with jest-light-runner in child processes, each of which keeps the modules that it has loaded. The
 * runner's own pool sends a new process its configuration in a message that can arrive before the process listens, and
 * then waits for ever; here the configuration comes with each file.
 */
export default class ChildProcessRunner {
  readonly #globalConfig: Config.GlobalConfig;

  constructor(globalConfig: Config.GlobalConfig) {
    this.#globalConfig = globalConfig;
  }

  async runTests(
    tests: Test[],
    _watcher: unknown,
    onStart: OnStart,
    onResult: OnResult,
    onFailure: OnFailure,
  ): Promise<void> {
    const globalConfig = this.#globalConfig;
    const { maxWorkers } = globalConfig;
    const most = maxReruns();
    const pool = startPool(maxWorkers);
    const limit = pLimit(maxWorkers);
    const run = async (test: Test): Promise<Outcome> => {
      const projectConfig = test.context.config;
      const task: FileTask = { path: test.path, globalConfig, projectConfig };
      return runFileOf(pool, task).then(
        (result) => ({ result }),
        (error: unknown) => ({ error }),
      );
    };
    const report = (test: Test, outcome: Outcome): Promise<void> =>
      'result' in outcome ? onResult(test, outcome.result) : onFailure(test, outcome.error);
    const failed: { test: Test; outcome: Outcome }[] = [];
    const runFile = async (test: Test) => {
      await onStart(test);
      const outcome = await run(test);
      if (hasPassed(outcome) || most === 0) return report(test, outcome);
      failed.push({ test, outcome });
    };
    await Promise.all(tests.map((test) => limit(() => runFile(test))));
    const mayRerun = failed.length <= most;
    for (const { test, outcome } of failed) {
      if (mayRerun) printFailure(test, outcome);
      await report(test, mayRerun ? await run(test) : outcome);
    }
    await pool.destroy();
  }
}

/** The results of the tests of a file, or why it could not be run. */
type Outcome = { result: TestResult } | { error: unknown };

const hasPassed = (outcome: Outcome): boolean =>
  'result' in outcome && outcome.result.numFailingTests === 0;

/**
 * How many files may run once more, alone and after all others, because they have failed beside others: the environment
 * variable TEST_RERUNS, 0 by default. If more have failed, none runs again.
 */
function maxReruns(): number {
  const value = Number(process.env.TEST_RERUNS ?? 0);
  if (!Number.isInteger(value) || value < 0)
    throw new Error('TEST_RERUNS must be a number of files');
  return value;
}

/** What passes the second time is a defect of the test or of the product that depends on time: it is shown. */
function printFailure({ path: file }: Test, outcome: Outcome): void {
  const text = 'result' in outcome ? outcome.result.failureMessage : String(outcome.error);
  process.stderr.write(
    `UNSTABLE ${path.relative('.', file)} has failed and runs once more:\n${text ?? ''}\n`,
  );
}

/** Runs a file, and once more if it fails while the Temporal server did not work. Errors: the file cannot be run. */
async function runFileOf(pool: Tinypool, task: FileTask): Promise<TestResult> {
  const restarts = temporalRestarts();
  const run = async () =>
    (await pool.run(task, { signal: AbortSignal.timeout(FILE_LIMIT_MS) })) as TestResult;
  const [first] = await Promise.allSettled([run()]);
  if (first.status === 'fulfilled' && first.value.numFailingTests === 0) return first.value;
  await nextTemporalCheck();
  if (temporalRestarts() > restarts) return run();
  if (first.status === 'rejected') throw first.reason;
  return first.value;
}

/** The environment is read here, after the global setup has added the addresses of its servers. */
const startPool = (maxWorkers: number) =>
  new Tinypool({
    filename: new URL('./worker.ts', import.meta.url).href,
    runtime: 'child_process',
    minThreads: maxWorkers,
    maxThreads: maxWorkers,
    execArgv: ['--max-semi-space-size=64'],
    env: { ...(process.env as Record<string, string>), NODE_COMPILE_CACHE: COMPILE_CACHE },
  });
