import { rm } from 'node:fs/promises';

type Server = { folder: string; stop: () => Promise<void> };

/** What globalSetup started, for globalTeardown; both run in Jest's first process. */
const started: Server[] = ((globalThis as { holdfastServers?: Server[] }).holdfastServers ??= []);

export const servers = {
  add: (folder: string, stop: () => Promise<void>): void => void started.push({ folder, stop }),
  async stopAll(): Promise<void> {
    for (const { stop } of started.toReversed()) await stop();
    for (const folder of new Set(started.map((server) => server.folder))) {
      await rm(folder, { recursive: true, force: true });
    }
  },
};
