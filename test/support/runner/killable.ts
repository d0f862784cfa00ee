import { loadDeclaration } from '../../../runner/declaration/load.ts';
import { runCommand } from '../../../runner/command/runCommand.ts';
import { openWorkFolder } from '../../../runner/command/runFolder.ts';

/**
 * Runs the declaration `file` with the work folder `work`, and prints its lines. A test kills it, or pauses it. Its lease has
 * `leaseMs` milliseconds, which it renews as often as a runner does.
 */
const [, , file = '', work = '', leaseMs = '0'] = process.argv;

await runCommand(
  await loadDeclaration(file),
  {
    ...{ jobId: 'job_1', attempt: 1, payload: {}, target: null, secrets: {}, timeoutMs: 60_000 },
    lease:
      leaseMs === '0'
        ? undefined
        : {
            leftMs: () => Number(leaseMs),
            onRenewed: (renew) => void setInterval(renew, Number(leaseMs) / 4).unref(),
          },
  },
  {
    line: (_level, message) => void process.stdout.write(`${message}\n`),
    progress: () => undefined,
    artifact: () => Promise.resolve(),
  },
  { workFolder: await openWorkFolder(work), secretsFolder: undefined, wrapper: [] },
  new AbortController().signal,
);
