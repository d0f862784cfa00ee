import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';

const WATCHDOG = new URL('../../support/jest/watchdog.ts', import.meta.url).href;

/** Its promises go round in circles: no timer runs any more. */
const CIRCLES = 'const turn = () => Promise.resolve().then(turn); await turn();';

const watched = (limitMs: number, rest: string) =>
  `const { watchProcess } = await import('${WATCHDOG}');
   watchProcess(${limitMs})('some.test.ts');
   ${rest}`;

const run = (code: string): ChildProcess =>
  spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });

test('a process whose event loop does not turn is killed, and says in which file', async () => {
  const child = run(watched(500, CIRCLES));
  const [[, signal], said] = await Promise.all([
    once(child, 'exit'),
    child.stderr ? text(child.stderr) : '',
  ]);
  expect(signal).toBe('SIGKILL');
  expect(said).toContain('some.test.ts: the event loop has not turned');
});

test('a process whose parent has ended does not stay', async () => {
  const orphan = JSON.stringify(watched(600_000, `console.log('started'); ${CIRCLES}`));
  const parent = run(`
    const { spawn } = await import('node:child_process');
    const child = spawn(process.execPath, ['--input-type=module', '--eval', ${orphan}], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout.once('data', () => process.stderr.write('started', () => process.exit()));
  `);
  // The child has inherited the stream, which ends with the last process that has it.
  const said = parent.stderr ? await text(parent.stderr) : '';
  expect(said).toBe('started');
});
