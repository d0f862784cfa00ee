import { setTimeout as sleep } from 'node:timers/promises';
import type { TestApp } from './app.ts';
import { launchProcess } from './processes.ts';

/** Workers of an app's database and task queue, of which one dies every `everyMs`, whatever it is at, and another takes its place. */
export async function startMortals(app: TestApp, count: number, everyMs = 1_000) {
  const launch = () => {
    const launched = launchProcess({ ...app.env, HOLDFAST_ROLE: 'worker' });
    launched.ready.catch(() => undefined);
    return launched;
  };
  const alive = Array.from({ length: count }, launch);
  await Promise.all(alive.map(({ ready }) => ready));
  let killing = true;
  let kills = 0;
  const reaper = (async () => {
    while (killing) {
      await sleep(everyMs);
      const at = Math.floor(Math.random() * alive.length);
      await alive[at]?.kill();
      alive[at] = launch();
      kills += 1;
    }
  })();
  return {
    kills: () => kills,
    async spare() {
      killing = false;
      await reaper;
    },
  };
}
