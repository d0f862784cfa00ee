import { rm } from 'node:fs/promises';

type Server = { folder: string; stop: () => Promise<void> };

/** What globalSetup started, for globalTeardown; both run in Jest's first process. */
const started: Server[] = ((globalThis as { holdfastServers?: Server[] }).holdfastServers ??= []);

export const servers = {
  add: (folder: string, stop: () => Promise<void>): void => void started.push({ folder, stop }),
  async stopAll(): Promise<void> {
    // Each group of tests calls this at the end.
    const running = started.splice(0);
    for (const { stop } of running.toReversed()) await stop();
    for (const folder of new Set(running.map((server) => server.folder))) {
      await rm(folder, { recursive: true, force: true });
    }
  },
};
