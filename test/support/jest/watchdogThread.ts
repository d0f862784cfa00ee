import { writeSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';

export type Watched = {
  /** Counts the turns of the process's event loop, about one a second. */
  turns: Int32Array;
  parent: number;
  limitMs: number;
};

const CHECK_MS = 500;

const { turns, parent, limitMs } = workerData as Watched;
let file = 'A test file';
let seen = 0;
let checksWithoutTurn = 0;

parentPort?.on('message', (started: string) => (file = started));

// Counted, not measured: a machine that was suspended is not a blocked loop.
setInterval(() => {
  const now = Atomics.load(turns, 0);
  checksWithoutTurn = now === seen ? checksWithoutTurn + 1 : 0;
  seen = now;
  if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL');
  if (checksWithoutTurn * CHECK_MS < limitMs) return;
  writeSync(2, `${file}: the event loop has not turned for ${limitMs} ms; its process is killed\n`);
  process.kill(process.pid, 'SIGKILL');
}, CHECK_MS);
