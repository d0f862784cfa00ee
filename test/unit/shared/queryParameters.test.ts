import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Type, type TSchema } from 'typebox';
import { decodeKey, encodeKey } from '../../../api/http/listCursor.ts';
import { declaredParameters } from '../../../api/http/queryParameters.ts';
import { parseDecimal } from '../../../domain/shared/decimals.ts';
import { COMMA_SEPARATED, compileCheck } from '../../../platform/schemaCheck.ts';

const isAccepted = (schema: TSchema, text: string): boolean => {
  const query = Type.Object({ p: schema }, { additionalProperties: false });
  return compileCheck(query)(declaredParameters({ p: text }, query.properties)).length === 0;
};

describe('numbers in queries', () => {
  const numbers = { integer: Type.Integer(), number: Type.Number() };

  test.each(Object.entries(numbers))('%s: what is no decimal number is refused', (_, schema) => {
    for (const text of [
      '0x10',
      '0b1',
      '1e3',
      '+5',
      ' 5',
      '5 ',
      '5.',
      '.5',
      '1_0',
      '',
      'Infinity',
      '٣',
    ])
      expect([text, isAccepted(schema, text)]).toEqual([text, false]);
    for (const text of ['0', '5', '-5', '007'])
      expect([text, isAccepted(schema, text)]).toEqual([text, true]);
    expect(isAccepted(schema, '1.5')).toBe(schema === numbers.number);
    expect(isAccepted(schema, '9'.repeat(400))).toBe(false);
  });

  test('every whole number that is exact is read', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (value) => {
        expect(parseDecimal(String(value), 'integer')).toBe(value);
      }),
    );
    expect(parseDecimal('9007199254740993', 'integer')).toBeUndefined();
  });

  test('every number of a record is read as a filter', () => {
    const number = fc.double({ noNaN: true, noDefaultInfinity: true });
    fc.assert(
      fc.property(number, (value) => {
        expect(parseDecimal(JSON.stringify(value))).toBe(value === 0 ? 0 : value);
      }),
    );
  });

  test('the items of a list and the alternatives of a union have their types', () => {
    const item = Type.Union([Type.Integer(), Type.Literal('none')]);
    const query = {
      p: Type.Array(item, { [COMMA_SEPARATED]: true }),
      cf: Type.Record(Type.String({ pattern: '^[a-z]+(?:\\.not)?$' }), Type.Array(Type.String())),
      flag: Type.Boolean(),
    };
    expect(
      declaredParameters(
        { p: ['1,none', 'x'], 'cf.a!': '1', 'cf[b]': '2', flag: null, other: '3' },
        query,
      ),
    ).toEqual({ p: [1, 'none', 'x'], cf: { 'a.not': ['1'], b: ['2'] }, flag: true, other: '3' });
  });
});

test('a flag is true without a value, and an empty value is none of a flag', () => {
  const flag = Type.Boolean();
  expect(declaredParameters({ flag: null }, { flag })).toEqual({ flag: true });
  for (const text of ['', ' ', '1', 'yes', 'TRUE'])
    expect([text, isAccepted(flag, text)]).toEqual([text, false]);
  expect(declaredParameters({ text: null }, { text: Type.String() })).toEqual({ text: '' });
});

describe('cursors of a list by a time', () => {
  const scope = ['records', 'hash'];
  const sort = { field: 'updatedAt', kind: 'time', nullable: false, descending: true } as const;
  const key = (value: string) => ({ value, id: 'rec_1' });
  const decode = (value: string) =>
    decodeKey(scope, encodeKey(scope, key(value)), /^rec_\d$/, sort);

  test.each([
    '2026-11-23 10:32:19.804+00',
    '2024-02-29 00:00:00-03:30',
    '9999-12-31 23:59:59.999999+14',
    '0001-01-01 00:00:00-12',
  ])('%s is one', (value) => expect(decode(value)).toEqual(key(value)));

  test.each([
    '2026-02-29 00:00:00+00',
    '2026-04-31 00:00:00+00',
    '2026-13-01 00:00:00+00',
    '0000-01-01 00:00:00+00',
    '2026-01-01 25:00:00+00',
    '2026-01-01 00:00:00+16',
    '2026-01-01 00:00:00+23:59',
    '2026-01-01 00:00:00+00:60',
    'infinity',
    '',
  ])('what PostgreSQL cannot read is none: %s', (value) =>
    expect(() => decode(value)).toThrow('is not a cursor of this list'),
  );
});
