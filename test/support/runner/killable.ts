import { loadDeclaration } from '../../../runner/declaration/load.ts';
import { runCommand } from '../../../runner/command/runCommand.ts';
import { openWorkFolder } from '../../../runner/command/runFolder.ts';

/** Runs the declaration `file` with the work folder `work`, and prints its lines. A test kills it. */
const [, , file = '', work = ''] = process.argv;

await runCommand(
  await loadDeclaration(file),
  { jobId: 'job_1', attempt: 1, payload: {}, target: null, secrets: {}, timeoutMs: 60_000 },
  {
    line: (_level, message) => void process.stdout.write(`${message}\n`),
    progress: () => undefined,
    artifact: () => Promise.resolve(),
  },
  { workFolder: await openWorkFolder(work), secretsFolder: undefined, wrapper: [] },
  new AbortController().signal,
);
