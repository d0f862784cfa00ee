import { Worker } from 'node:worker_threads';
import type { Watched } from './watchdogThread.ts';

const TURN_MS = 1_000;

/**
 * Kills this process when its parent has ended, or when its event loop has not turned for `limitMs`: a test whose
 * promises go round in circles stops every timer, also the one of its own time limit. A thread of its own sees to that.
 * Returns what says which file runs, for the message.
 */
export function watchProcess(limitMs: number): (file: string) => void {
  const turns = new Int32Array(new SharedArrayBuffer(4));
  setInterval(() => Atomics.add(turns, 0, 1), TURN_MS).unref();
  const workerData: Watched = { turns, parent: process.ppid, limitMs };
  const thread = new Worker(new URL('./watchdogThread.ts', import.meta.url), {
    workerData,
    execArgv: [],
  });
  thread.unref();
  return (file) => thread.postMessage(file);
}
