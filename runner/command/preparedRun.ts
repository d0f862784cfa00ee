import type { RunFolder, WorkFolder } from './runFolder.ts';
import { startShim, type Shim } from './shim.ts';

/** What a run needs before its command is known: its folder, and a shim that waits for the command. */
export type PreparedRun = {
  run: RunFolder;
  shim: Shim;
  /** Ends the shim, if it has got no command, and removes the folder. */
  discard(): Promise<void>;
};

/** Prepares a run. Error: the folder or its pipes cannot be made. */
export async function prepareRun(workFolder: WorkFolder): Promise<PreparedRun> {
  const run = await workFolder.createRun();
  try {
    const shim = startShim(await workFolder.takePipes());
    return {
      run,
      shim,
      async discard() {
        await shim.discard();
        await run.remove();
      },
    };
  } catch (error) {
    await run.remove();
    throw error;
  }
}
