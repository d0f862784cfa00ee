import type { TestResult } from '@jest/test-result';
import type { Config } from '@jest/types';
import { effortFactor } from '../effort.ts';
import { watchProcess } from './watchdog.ts';

/** One test file, with the configuration that a process keeps from its first file on. */
export type FileTask = {
  path: string;
  globalConfig: Config.GlobalConfig;
  projectConfig: Config.ProjectConfig;
};

/** The part of jest-light-runner that runs a file; the package does not export it by name. */
type FileRunner = {
  default(path: string): Promise<TestResult>;
  setWorkerData(data: object): void;
};

const { default: runTestFile, setWorkerData } = (await import(
  new URL('./worker-runner.js', import.meta.resolve('jest-light-runner')).href
)) as FileRunner;

/** No test computes for as long without a pause. */
const BLOCKED_LIMIT_MS = 120_000 * effortFactor();

const startFile = watchProcess(BLOCKED_LIMIT_MS);

/** What each child process of the runner does. */
export default function runFile({ path, globalConfig, projectConfig }: FileTask) {
  startFile(path);
  setWorkerData({ globalConfig, projectConfig, runtime: 'child_process' });
  return runTestFile(path);
}
