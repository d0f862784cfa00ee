import { execFile } from 'node:child_process';
import { closeSync, constants, openSync, rmSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

/** A pipe whose ends are both open. */
export type Pipe = { readFd: number; writeFd: number };

const execute = promisify(execFile);

/** Named pipes that are made together: starting the program that makes them takes longer than they do. */
const BATCH = 32;
const MIN_LEFT = 8;

/**
 * Pipes for the outputs of commands. Those of Node are sockets, which commands cannot open again as
 * `/dev/stdout`. They have names in `folder`, which must exist, until they are opened.
 */
export function createPipes(folder: string) {
  let names: string[] = [];
  let count = 0;
  let making: Promise<void> | undefined;

  async function make() {
    const batch = Array.from({ length: BATCH }, () => path.join(folder, `pipe-${count++}`));
    await execute('mkfifo', ['-m', '600', ...batch], { env: { PATH: process.env.PATH } });
    names.push(...batch);
  }

  const makeMore = () => (making ??= make().finally(() => (making = undefined)));

  function open(file: string): Pipe {
    // Without O_NONBLOCK it would wait for a writer.
    const readFd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      return { readFd, writeFd: openSync(file, constants.O_WRONLY) };
    } catch (error) {
      closeSync(readFd);
      throw error;
    }
  }

  function openBoth(stdoutFile: string, stderrFile: string): [stdout: Pipe, stderr: Pipe] {
    let stdout: Pipe | undefined;
    try {
      stdout = open(stdoutFile);
      return [stdout, open(stderrFile)];
    } catch (error) {
      for (const fd of stdout ? [stdout.readFd, stdout.writeFd] : []) closeSync(fd);
      throw error;
    } finally {
      rmSync(stdoutFile);
      rmSync(stderrFile);
    }
  }

  return {
    /** Opens the pipes of one command. Error: they cannot be made. */
    async take(): Promise<[stdout: Pipe, stderr: Pipe]> {
      for (;;) {
        const [stdout, stderr] = names;
        if (stdout !== undefined && stderr !== undefined) {
          names = names.slice(2);
          // A failure shows when there are none left.
          if (names.length < MIN_LEFT) makeMore().catch(() => undefined);
          return openBoth(stdout, stderr);
        }
        await makeMore();
      }
    },
  };
}
