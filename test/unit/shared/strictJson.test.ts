import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseStrictJson } from '../../../platform/strictJson.ts';

const codesOf = (text: string) => {
  return parseStrictJson(text).errors.map(({ pointer, code }) => `${pointer} ${code}`);
};

/** Values that JSON holds without loss and PostgreSQL stores. */
const storable = fc.jsonValue({ stringUnit: 'grapheme', maxDepth: 5 }).filter((value) => {
  const text = JSON.stringify(value);
  return !text.includes('\\u0000') && !text.includes('e-');
});

test('parses what JSON.parse parses, however it is written', () => {
  fc.assert(
    fc.property(storable, fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      expect(parseStrictJson(text)).toEqual({
        value: JSON.parse(text) as unknown,
        errors: [],
      });
    }),
  );
});

test('any text is parsed or refused, and refused when JSON.parse refuses it', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(...'{}[]",:\\u0d8e-1. \n'.split('')) }),
      (text) => {
        let isValid = true;
        try {
          JSON.parse(text);
        } catch {
          isValid = false;
        }
        const { errors } = parseStrictJson(text);
        if (!isValid) expect(errors.map(({ code }) => code)).toEqual(['json']);
        else expect(errors.map(({ code }) => code)).not.toContain('json');
      },
    ),
    { numRuns: 2_000 },
  );
});

test('a repeated key is found at any depth and in any spelling', () => {
  fc.assert(
    fc.property(storable, storable, fc.string({ minLength: 1 }), (first, second, key) => {
      const name = JSON.stringify(key);
      const text = `[{"outer":{${name}:${JSON.stringify(first)},${name}:${JSON.stringify(second)}}}]`;
      expect(parseStrictJson(text).errors.map(({ code }) => code)).toContain('repeated_key');
    }),
  );
  expect(codesOf('{"a":1,"\\u0061":1}')).toEqual(['/a repeated_key']);
  expect(codesOf('{"a":[{"b/c":1,"b/c":1}],"b":{"a":1}}')).toEqual(['/a/0/b~1c repeated_key']);
});

test.each<[string, string[]]>([
  ['{"n":9007199254740993}', ['/n precision']],
  ['[1e400,-1e400,1e-400]', ['/0 precision', '/1 precision', '/2 precision']],
  ['[9007199254740991,-9007199254740992,1e22,0.1,0e-500,12345678901234567890]', ['/5 precision']],
  ['{"s":"a\\u0000b","t":"\\ud800","u":"\\ud83d\\ude00"}', ['/s characters', '/t characters']],
  ['{"\\u0000":1}', ['/\u0000 characters']],
  ['"\\\\u0000"', []],
  [`${'['.repeat(101)}${']'.repeat(101)}`, [' depth']],
  [`${'['.repeat(100)}${']'.repeat(100)}`, []],
  ['['.repeat(1_000_000), [' json']],
  [`${'{"a":'.repeat(150_000)}1${'}'.repeat(150_000)}`, [' depth']],
  ['{"__proto__":{"a":1},"__proto__":{"a":1}}', ['/__proto__ repeated_key']],
])('problems of a text, by pointer', (text, codes) => {
  expect(codesOf(text)).toEqual(codes);
});

test('however many errors, and however long their pointers, the work and the answer stay small', () => {
  const key = '~'.repeat(300_000);
  const { errors } = parseStrictJson(`{"${key}":{${'"a":"\\u0000",'.repeat(50_000)}"b":1}}`);
  expect(errors).toHaveLength(50);
  expect(JSON.stringify(errors).length).toBeLessThan(100_000);
});

test('any text can be in some properties, which do not hide the errors of others', () => {
  const free = '"\\u0000",'.repeat(60);
  const text = `{"payload":{"list":[${free}1]},"title":"\\u0000","other":{"payload":"\\u0000"}}`;
  expect(parseStrictJson(text, (name) => name === 'payload').errors).toMatchObject([
    { pointer: '/title', code: 'characters' },
    { pointer: '/other/payload', code: 'characters' },
  ]);
});
