import { closeSync, openSync, readdirSync } from 'node:fs';
import { createPreparer } from '../../../runner/command/preparedRun.ts';
import { openWorkFolder } from '../../../runner/command/runFolder.ts';

/** More than a run needs. */
const MOST_LEFT = 24;

const preparer = createPreparer(await openWorkFolder(process.argv[2] ?? ''));
const prepare = async () => (await preparer.prepare()).discard();
const openFiles = () => readdirSync('/proc/self/fd').length;

/** Prepares a run with a limit of the files that this process can open. True if it can. */
async function prepareWith(left: number): Promise<boolean> {
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'));
  } catch {
    for (const fd of taken.splice(0, left)) closeSync(fd);
  }
  try {
    return await prepare().then(
      () => true,
      () => false,
    );
  } finally {
    for (const fd of taken) closeSync(fd);
  }
}

await prepare();
const before = openFiles();
const prepared: boolean[] = [];
for (let left = 0; left <= MOST_LEFT; left++) prepared.push(await prepareWith(left));
await prepare();
process.stdout.write(JSON.stringify({ prepared, leaked: openFiles() - before }));
process.exit();
