import vm from 'node:vm';
import { expect, test } from '@jest/globals';
import { withoutStackTraces } from '../../../temporal/bundle.ts';

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
