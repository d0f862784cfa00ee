import { expect, test } from '@jest/globals';
import { Type } from 'typebox';
import { compileCheck, rulesOf } from '../../../platform/schemaCheck.ts';

const idOrNone = Type.Union([Type.String({ pattern: '^sit_' }), Type.Literal('none')]);
const checkIds = compileCheck(Type.Object({ ids: Type.Array(idOrNone, { maxItems: 50 }) }));
const emptyIds = (length: number) => ({ ids: Array.from({ length }, () => '') });

test('a list of many wrong values is refused in a moment, with at most 50 errors', () => {
  const errors = checkIds(emptyIds(15_000));
  expect(errors).toHaveLength(50);
  expect(errors.slice(0, 2)).toMatchObject([
    { pointer: '/ids', code: 'maxItems' },
    { pointer: '/ids/0', code: 'pattern' },
  ]);
});

test('a larger value is checked to its first error', () => {
  expect(checkIds(emptyIds(400_000))).toMatchObject([{ pointer: '/ids', code: 'maxItems' }]);
});

test('the error of a union is that of the alternative that is meant', () => {
  const rule = Type.Union([
    Type.Null(),
    Type.Object({ kind: Type.Literal('list'), of: Type.Union([Type.Integer(), Type.Null()]) }),
    Type.Object({ kind: Type.Literal('text'), length: Type.Integer({ minimum: 1 }) }),
  ]);
  const check = compileCheck(Type.Object({ rules: Type.Array(rule), name: Type.String() }));
  const errorsOf = (...rules: unknown[]) =>
    check({ rules, name: 1 }).map(({ pointer, message }) => `${pointer} ${message}`);
  expect(errorsOf({ kind: 'list', of: 'x' }, 7, { kind: 'text', length: 0 })).toEqual([
    '/rules/0/of must be an integer or null',
    '/rules/1 must be null or an object',
    '/rules/2/length must be at least 1',
    '/name must be a string',
  ]);
});

test('an error inside of an item whose path another one begins with belongs to it alone', () => {
  const check = compileCheck(Type.Array(idOrNone));
  const wrong = Array.from({ length: 12 }, (_, i) => (i === 1 || i === 11 ? '' : 'none'));
  expect(check(wrong).map(({ pointer }) => pointer)).toEqual(['/1', '/11']);
});

test('a multiple is one of the numbers as they are written', () => {
  const tenths = Type.Number({ multipleOf: 0.1 });
  expect(compileCheck(tenths)(0.7)).toEqual([]);
  expect(compileCheck(tenths)(0.75)).toMatchObject([{ message: 'must be a multiple of 0.1' }]);
  expect(rulesOf(tenths)).toEqual(['must be a multiple of 0.1']);
});
