import { expect, test } from '@jest/globals';
import { compileForeignSchema, SchemaError } from '../../../platform/foreignSchema.ts';

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
  expect(() => compileForeignSchema(schema)).toThrow(SchemaError);
});
