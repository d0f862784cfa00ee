import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import vm from 'node:vm';
import { expect, test } from '@jest/globals';
import { withoutStackTraces, workflowBundle } from '../../../temporal/bundle.ts';
import { consoleFolder } from '../../../ui/build.ts';

const SOURCE_MAP = '//# sourceMappingURL=data:application/json;charset=utf-8;base64,';

test('workflow code runs without stack traces, which the SDK would record for every promise', () => {
  const map = Buffer.from('{"version":3,"mappings":"AAAA"}').toString('base64');
  const code = withoutStackTraces(`globalThis.answer = 42;\n${SOURCE_MAP}${map}`);
  const context = vm.createContext({});
  vm.runInContext(code, context);
  expect(vm.runInContext('answer', context)).toBe(42);
  expect(vm.runInContext(`new Error('x').stack`, context)).toBeUndefined();
  const [, kept = ''] = code.split(SOURCE_MAP);
  expect(JSON.parse(Buffer.from(kept, 'base64').toString())).toMatchObject({ mappings: '' });
});

test('a bundle without a source map, which the SDK needs, is refused', () => {
  expect(() => withoutStackTraces('globalThis.answer = 42;')).toThrow('no source map');
});

test('another version of Node finds the bundles', async () => {
  const find = async () => [await workflowBundle(), await consoleFolder()];
  const found = await find();
  const { version } = process;
  Object.defineProperty(process, 'version', { value: 'v99.0.0' });
  try {
    expect(await find()).toEqual(found);
  } finally {
    Object.defineProperty(process, 'version', { value: version });
  }
});

test('a worker whose folder cannot be written has its bundle in memory', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'holdfast-bundle-'));
  try {
    // Also root cannot make a folder in a file.
    await writeFile(path.join(folder, 'file'), '');
    const bundle = await workflowBundle(path.join(folder, 'file', 'cache'));
    expect(bundle).toMatchObject({ writeError: { code: 'ENOTDIR' } });
    expect('code' in bundle && bundle.code).toContain('fireSchedule');
  } finally {
    await rm(folder, { recursive: true });
  }
});
