import { expect, test } from '@jest/globals';
import { compileForeignSchema, SchemaNotAccepted } from '../../../platform/foreignSchema.ts';

test('a schema of others is checked with defaults, and its patterns take linear time', () => {
  const check = compileForeignSchema({
    type: 'object',
    properties: {
      name: { type: 'string', pattern: '^(a+)+$', 'x-holdfast-secret': true },
      count: { type: 'integer', default: 2 },
    },
    required: ['name'],
  });
  const value = { name: 'aaa' };
  expect(check(value)).toEqual([]);
  expect(value).toEqual({ name: 'aaa', count: 2 });
  expect(check({ name: `${'a'.repeat(50_000)}!` })).toMatchObject([{ pointer: '/name' }]);
});

test.each([
  ['a reference to another document', { $ref: 'https://example.net/schema.json' }],
  ['a back reference', { type: 'string', pattern: '(a)\\1' }],
  ['an unknown type', { type: 'text' }],
])('%s is an error', (_, schema) => {
  expect(() => compileForeignSchema(schema)).toThrow(SchemaNotAccepted);
});

const TOO_COMPLEX = [expect.objectContaining({ pointer: '', code: 'too_complex' })];

/** A schema in which each definition leads to the next one twice. */
const doubling = (levels: number) => ({
  $ref: '#/$defs/level0',
  $defs: Object.fromEntries(
    Array.from({ length: levels + 1 }, (_, i) => {
      const next = { $ref: `#/$defs/level${i + 1}` };
      return [`level${i}`, i === levels ? { type: 'string' } : { anyOf: [next, next] }];
    }),
  ),
});

test('a check whose references multiply has an end', () => {
  expect(compileForeignSchema(doubling(4))(1)).toMatchObject([
    { pointer: '', message: 'must be a string' },
    { pointer: '', message: 'has none of the allowed forms' },
  ]);
  expect(compileForeignSchema(doubling(60))(1)).toEqual(TOO_COMPLEX);
});

test('dynamic references count, too', () => {
  const next = { $dynamicRef: '#node' };
  const check = compileForeignSchema({
    $dynamicAnchor: 'node',
    type: 'object',
    properties: { next: { anyOf: [next, next] } },
    required: ['end'],
  });
  const chain = (levels: number): object =>
    levels === 0 ? {} : { end: 1, next: chain(levels - 1) };
  expect(check(chain(60))).toEqual(TOO_COMPLEX);
});

test('a value that is too large for its schema is refused, a smaller one is checked to its first error', () => {
  const branches = Array.from({ length: 500 }, (_, i) => ({ const: i }));
  const check = compileForeignSchema({ type: 'array', items: { anyOf: branches } });
  const items = (length: number) => Array.from({ length }, () => 'x');
  expect(check(items(100_000))).toEqual(TOO_COMPLEX);
  expect(check(items(1_000))).toMatchObject([{ pointer: '/0' }]);
  expect(check(items(2))).toMatchObject([{ pointer: '/0' }, { pointer: '/1' }]);
});

test('items are unique whatever they are, also if there are many', () => {
  const check = compileForeignSchema({ type: 'array', uniqueItems: true });
  const lists = Array.from({ length: 150_000 }, (_, i) => [i]);
  expect(check(lists)).toEqual([]);
  expect(check([...lists, [7]])).toMatchObject([{ pointer: '', code: 'uniqueItems' }]);
  expect(
    check([
      { a: 1, b: [2] },
      { b: [2], a: 1 },
    ]),
  ).toMatchObject([{ code: 'uniqueItems' }]);
  expect(check([{ a: 1 }, { a: '1' }, [{ a: 1 }], 'a', null, 0, false, '0'])).toEqual([]);
});

test('a multiple is one of the numbers as they are written', () => {
  const check = compileForeignSchema({ properties: { price: { multipleOf: 0.01 } } });
  expect(check({ price: 0.07 })).toEqual([]);
  expect(check({ price: 0.075 })).toEqual([
    { pointer: '/price', code: 'multipleOf', message: 'must be a multiple of 0.01' },
  ]);
});

test('a text costs what its patterns do', () => {
  const check = compileForeignSchema({
    properties: {
      plain: { type: 'string', pattern: '^[a-z]+$' },
      long: { type: 'string', pattern: '[a-z]{0,500}[0-9]' },
    },
  });
  expect(check({ plain: 'a'.repeat(1_000_000) })).toEqual([]);
  expect(check({ long: `${'a'.repeat(1_000)}1` })).toEqual([]);
  expect(check({ long: 'a'.repeat(1_000_000) })).toEqual(TOO_COMPLEX);
});

test('pointers of errors are cut, however long a name is', () => {
  const check = compileForeignSchema({
    additionalProperties: { type: 'array', items: { type: 'string' } },
  });
  const errors = check({ ['k'.repeat(17_000)]: Array.from({ length: 20_000 }, () => 1) });
  expect(errors).toEqual([expect.objectContaining({ pointer: `/${'k'.repeat(999)}` })]);
});

test.each([
  [
    'names',
    { patternProperties: Object.fromEntries(Array.from({ length: 301 }, (_, i) => [`^${i}`, {}])) },
  ],
  [
    'long patterns',
    { allOf: Array.from({ length: 30 }, (_, i) => ({ pattern: `[a-z]{900}${i}` })) },
  ],
  ['parts', { enum: Array.from({ length: 20_001 }, (_, i) => i) }],
])('a schema with too many %s is refused', (_, schema) => {
  expect(() => compileForeignSchema(schema)).toThrow(SchemaNotAccepted);
});
