import type { RunFolder, WorkFolder } from './runFolder.ts';
import { startShim, type Shim } from './shim.ts';

/** What a run needs before its command is known: its folder, and a shim that waits for the command. */
export type PreparedRun = {
  run: RunFolder;
  shim: Shim;
  /** Ends the shim, if it has got no command, and removes the folder. */
  discard(): Promise<void>;
};

/** Prepares a run. Error: the folder or its pipes cannot be made, or the shim cannot be started. */
export async function prepareRun(workFolder: WorkFolder): Promise<PreparedRun> {
  const run = await workFolder.createRun();
  let shim: Shim | undefined;
  try {
    const started = startShim(await workFolder.takePipes());
    shim = started;
    await started.started;
    return {
      run,
      shim: started,
      async discard() {
        await started.discard();
        await run.remove();
      },
    };
  } catch (error) {
    await shim?.discard();
    await run.remove();
    throw error;
  }
}

export type Preparer = ReturnType<typeof createPreparer>;

/** Prepares the runs of a runner, and knows whether this machine can run commands now: its disk may be full. */
export function createPreparer(workFolder: WorkFolder) {
  let problem: string | undefined;

  /** Error: as `prepareRun`. */
  async function prepare(): Promise<PreparedRun> {
    try {
      const prepared = await prepareRun(workFolder);
      problem = undefined;
      return prepared;
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error);
      throw error;
    }
  }

  return {
    prepare,
    /** Why no run can be prepared, if the last one could not be: one is prepared to find out. */
    async problem(): Promise<string | undefined> {
      if (problem !== undefined)
        await prepare().then(
          (prepared) => prepared.discard(),
          () => undefined,
        );
      return problem;
    },
  };
}
