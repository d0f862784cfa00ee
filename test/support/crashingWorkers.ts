import { setTimeout as sleep } from 'node:timers/promises';
import type { TestApp } from './app.ts';
import { launchProcess } from './processes.ts';

/** Workers on the database and task queue of an app. Every `everyMs` one is killed and replaced. */
export async function startCrashingWorkers(app: TestApp, count: number, everyMs = 1_000) {
  const launch = () => {
    const launched = launchProcess({ ...app.env, HOLDFAST_ROLE: 'worker' });
    launched.ready.catch(() => undefined);
    return launched;
  };
  const workers = Array.from({ length: count }, launch);
  await Promise.all(workers.map(({ ready }) => ready));
  let crashing = true;
  let kills = 0;
  const killLoop = (async () => {
    while (crashing) {
      await sleep(everyMs);
      const index = Math.floor(Math.random() * workers.length);
      await workers[index]?.kill();
      workers[index] = launch();
      kills += 1;
    }
  })();
  return {
    kills: () => kills,
    async stopCrashing() {
      crashing = false;
      await killLoop;
    },
  };
}
