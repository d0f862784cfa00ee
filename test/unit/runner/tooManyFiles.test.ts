import { expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const PROGRAM = path.join(import.meta.dirname, '../../support/runner/tooManyFiles.ts');

test('a run for which too many files are open leaves none of its own open', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'hf-files-'));
  const command = 'ulimit -n 80; exec "$0" "$@"';
  const run = promisify(execFile);
  const { stdout } = await run('bash', ['-c', command, process.execPath, PROGRAM, folder]);
  await rm(folder, { recursive: true });
  const { prepared, leaked } = JSON.parse(stdout) as { prepared: boolean[]; leaked: number };
  expect([prepared[0], prepared.at(-1)]).toEqual([false, true]);
  // Node itself keeps an end of a connection that it could open when it cannot start the process.
  expect(leaked).toBeLessThanOrEqual(2);
});
