import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import { once } from 'node:events';
import path from 'node:path';
import { promisify } from 'node:util';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { missingFor } from '../../../runner/command/capabilities.ts';
import { loadFolders, type DeclaredType } from '../../../runner/declaration/load.ts';
import { compileForeignSchema } from '../../../platform/foreignSchema.ts';
import { createDeclaredTypes, type DeclaredTypes } from '../../support/runner/declared.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const EXAMPLES = path.join(ROOT, 'examples/job-types');
const HOST = { secretsFolder: undefined, wrapper: [] };

const { types: examples, refusals } = await loadFolders([EXAMPLES]);
const exampleOf = (name: string): DeclaredType =>
  assertDefined(
    examples.find(({ definition }) => definition.name === name),
    name,
  );
const canRun = async (name: string) => (await missingFor(exampleOf(name), HOST)).length === 0;

let types: DeclaredTypes;
beforeAll(async () => {
  types = await createDeclaredTypes();
});
afterAll(() => types.remove());

/** Runs an example as a runner does. */
function runExample(name: string, payload: Record<string, unknown>) {
  const type = exampleOf(name);
  expect(compileForeignSchema(type.definition.payload)(payload)).toEqual([]);
  return types.run(type, { attempt: { payload } });
}

test('all examples can be read', () => {
  expect(refusals).toEqual([]);
});

test('the example in bash measures a file system', async () => {
  const outcome = await runExample('example.disk-usage', { path: '/', limitPercent: 100 });
  expect(outcome).toMatchObject({
    result: { path: '/', usedPercent: expect.any(Number) },
    progress: [{ percent: 10 }, { percent: 60 }, { percent: 100 }],
    artifacts: [{ name: 'file-systems.txt' }],
  });
  expect((await runExample('example.disk-usage', { path: '/missing' })).error).toMatchObject({
    code: 'command_failed',
  });
});

const testPython = (await canRun('example.port-check')) ? test : test.skip;
testPython('the example in Python finds open ports', async () => {
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const outcome = await runExample('example.port-check', { host: '127.0.0.1', ports: [port, 1] });
  server.close();
  expect(outcome).toMatchObject({
    result: { open: [port], closed: [1] },
    progress: [{ percent: 50 }, { percent: 100 }],
    artifacts: [{ name: 'ports.csv' }],
  });
  expect(
    (await runExample('example.port-check', { host: 'no.such.host.invalid' })).error,
  ).toMatchObject({
    code: 'host_unknown',
    retryAfterMs: 30_000,
  });
});

// Continuous integration does not have Ansible, and takes a skipped test for a failure.
if (await canRun('example.host-facts'))
  test('the example with Ansible collects facts', async () => {
    expect(await runExample('example.host-facts', {})).toMatchObject({
      result: { hosts: ['localhost'] },
      artifacts: [{ name: 'localhost.json' }],
    });
  });

test('npm run job-type checks and tries a declaration without a server', async () => {
  const run = promisify(execFile);
  const command = [path.join(ROOT, 'processes/cli/jobType.ts')];
  const file = path.join(EXAMPLES, 'disk-usage.yaml');
  const { stdout } = await run(process.execPath, [...command, 'check', file]);
  expect(stdout).toMatch(
    /disk-usage\.yaml: example\.disk-usage, pool default, digest [0-9a-f]{12}\n$/,
  );
  const tryWith = (payload: string) =>
    run(process.execPath, [...command, 'try', file, '--payload', payload]);
  const tried = await tryWith('{"path": "/"}');
  expect(JSON.parse(tried.stdout)).toMatchObject({ path: '/' });
  expect(tried.stderr).toMatch(/^info {2}Measuring \//m);
  await expect(tryWith('{"path": "/", "n": 12345678901234567890}')).rejects.toMatchObject({
    stderr: expect.stringContaining('the payload /n is a number that a double'),
  });
});
