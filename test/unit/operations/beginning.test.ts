import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import { COMPILE_CACHE } from '../../support/compileCache.ts';

const PROCESSES = path.resolve(import.meta.dirname, '../../../processes');

const start = (args: readonly string[], env: Record<string, string>) =>
  spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
  });

test('a variable that is empty is not set for any reader', async () => {
  const program = `await import('${PROCESSES}/beginning.ts');
    const names = Object.keys(process.env).filter((name) => !name.startsWith('NODE_'));
    process.stdout.write(names.sort().join(' '));`;
  const child = start(['--input-type=module', '--eval', program], {
    HOLDFAST_DATA_DIR: '',
    HOLDFAST_MASTER_KEYS: ' ',
    DATABASE_URL: '',
    TEMPORAL_ADDRESS: '',
    HOLDFAST_PORT: '0',
    OTHER: '',
  });
  expect(await text(child.stdout)).toBe('HOLDFAST_PORT OTHER PATH');
});

test.each([
  ['a process that starts', ['serve.js']],
  ['a command', ['cli/migrate.ts', 'up']],
])('SIGTERM ends %s although its database does not answer', async (_, [program = '', ...words]) => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const connected = once(silent, 'connection');
  const { port } = silent.address() as AddressInfo;
  const child = start([path.join(PROCESSES, program), ...words], {
    DATABASE_URL: `postgres://a:b@127.0.0.1:${port}/x`,
    TEMPORAL_ADDRESS: '127.0.0.1:1',
    HOLDFAST_PORT: '0',
  });
  const ended = once(child, 'exit');
  await connected;
  child.kill('SIGTERM');
  // As the first process of a container it would end in no other way: by itself, and not by the signal.
  expect(await ended).toEqual([143, null]);
  silent.close();
});
