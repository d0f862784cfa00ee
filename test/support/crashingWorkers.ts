import { setTimeout as sleep } from 'node:timers/promises';
import type { TestApp } from './app.ts';
import { launchProcess } from './processes.ts';

/**
 * Workers on the database and task queue of an app, in processes of their own. `crash` kills
 * `kills` of them at random, one every `everyMs`, and replaces each; afterwards the workers stay
 * and finish what the killed ones left.
 */
export async function startCrashingWorkers(app: TestApp, count = 2) {
  const launch = () => {
    const launched = launchProcess({ ...app.env, HOLDFAST_ROLE: 'worker' });
    launched.ready.catch(() => undefined);
    return launched;
  };
  const workers = Array.from({ length: count }, launch);
  await Promise.all(workers.map(({ ready }) => ready));
  return {
    async crash(kills: number, everyMs: number): Promise<void> {
      for (let n = 0; n < kills; n++) {
        await sleep(everyMs);
        const index = Math.floor(Math.random() * workers.length);
        await workers[index]?.kill();
        workers[index] = launch();
      }
    },
  };
}
