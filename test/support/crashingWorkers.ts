import { setTimeout as sleep } from 'node:timers/promises';
import type { TestApp } from './app.ts';
import { launchProcess, type TestProcess } from './processes.ts';

/**
 * Two workers on the database and task queue of an app, in processes of their own; `first` already
 * runs. `crash` kills one of them at random every `everyMs`, and replaces it before the next kill:
 * what the last one leaves is finished by the worker that has lived beside it.
 */
export async function startCrashingWorkers(app: TestApp, first?: TestProcess) {
  const launch = () => {
    const launched = launchProcess({ ...app.env, HOLDFAST_ROLE: 'worker' });
    launched.ready.catch(() => undefined);
    return launched;
  };
  const started = [launch(), ...(first ? [] : [launch()])];
  await Promise.all(started.map(({ ready }) => ready));
  const workers: { kill(): Promise<void> }[] = [...started, ...(first ? [first] : [])];
  let killed: number | undefined;
  return {
    async crash(kills: number, everyMs: number): Promise<void> {
      for (let n = 0; n < kills; n++) {
        if (killed !== undefined) workers[killed] = launch();
        await sleep(everyMs);
        killed = Math.floor(Math.random() * workers.length);
        await workers[killed]?.kill();
      }
    },
  };
}
