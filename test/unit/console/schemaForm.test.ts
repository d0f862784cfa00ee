import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { BackupPayload } from '../../../services/jobTypes/backups/create.ts';
import { coreEcho } from '../../../services/jobTypes/core/echo.ts';
import { coreSleep } from '../../../services/jobTypes/core/sleep.ts';
import { httpRequest } from '../../../services/jobTypes/http/request.ts';
import { oidcKind } from '../../../services/auth/providers/kinds/oidc.ts';
import type { GuardedHttp } from '../../../platform/guardedHttp.ts';
import {
  canShow,
  checkValue,
  fieldPointers,
  initialValue,
  parseJson,
  parseJsonObject,
  parseNumber,
} from '../../../ui/parts/schemaForm/check.ts';
import { moved } from '../../../ui/parts/schemaForm/moved.ts';
import { cellText } from '../../../ui/parts/schemaForm/pasted.ts';
import {
  childPointer,
  keysOf,
  nearestPointer,
  pointerBelow,
  withKey,
} from '../../../ui/parts/schemaForm/pointer.ts';
import { recordLabel } from '../../../ui/parts/records/recordLabel.ts';
import { shapeOf, type JsonSchema, type Shape } from '../../../ui/parts/schemaForm/shape.ts';

/** A schema as clients get it: without what only the library of the service knows. */
const published = (schema: object): JsonSchema => JSON.parse(JSON.stringify(schema)) as JsonSchema;

const requestSchema = published(httpRequest({} as GuardedHttp).payload);

function fieldsOf(shape: Shape): Record<string, string> {
  if (shape.kind !== 'object') throw new Error(`The shape is ${shape.kind}`);
  return Object.fromEntries(
    shape.properties.map(({ name, shape: own }) => [
      name,
      own.kind === 'text' ? own.input : own.kind === 'list' ? `list of ${own.item.kind}` : own.kind,
    ]),
  );
}

describe('the fields of schemas that the service publishes', () => {
  test('of a request', () => {
    expect(fieldsOf(shapeOf(requestSchema))).toEqual({
      url: 'url',
      method: 'choice',
      headers: 'map',
      body: 'lines',
      timeoutMs: 'number',
      expectStatus: 'list of number',
    });
  });

  test('of a backup', () => {
    expect(fieldsOf(shapeOf(published(BackupPayload)))).toEqual({
      mode: 'choice',
      sections: 'choices',
      engine: 'choice',
      label: 'line',
      retention: 'object',
    });
  });

  test('of a provider, and of payloads without a form', () => {
    expect(fieldsOf(shapeOf(published(oidcKind.config)))).toMatchObject({
      issuer: 'line',
      scopes: 'list of text',
      userInfo: 'flag',
    });
    expect(fieldsOf(shapeOf(published(coreSleep.payload)))).toEqual({
      durationMs: 'number',
      failAttempts: 'number',
    });
    expect(shapeOf(published(coreEcho.payload))).toMatchObject({ kind: 'json', isObject: true });
  });
});

describe('schemas', () => {
  test('with references, null and unions', () => {
    const root: JsonSchema = {
      type: 'object',
      $defs: { name: { type: 'string', maxLength: 20, description: 'A name.' } },
      properties: {
        name: { $ref: '#/$defs/name' },
        site: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        count: { type: ['integer', 'null'] },
        size: { oneOf: [{ const: 'small', title: 'Small' }, { const: 'large' }] },
        address: { type: 'string', format: 'ipv4' },
        secret: { type: 'string', writeOnly: true },
        code: { type: 'string', maxLength: 64 },
        host: { type: 'string', pattern: '^[a-z.]+$' },
        mail: { type: 'string', format: 'email' },
        note: { type: 'string', maxLength: 4_000 },
        at: { type: 'string', format: 'date-time' },
        fixed: { const: 3 },
        either: { anyOf: [{ type: 'string' }, { type: 'object' }] },
        missing: { $ref: '#/$defs/unknown' },
        anything: {},
      },
    };
    const shape = shapeOf(root);
    expect(fieldsOf(shape)).toEqual({
      name: 'line',
      site: 'lines',
      count: 'number',
      size: 'choice',
      address: 'address',
      secret: 'secret',
      code: 'line',
      host: 'line',
      mail: 'line',
      note: 'lines',
      at: 'time',
      fixed: 'constant',
      either: 'json',
      missing: 'json',
      anything: 'json',
    });
    if (shape.kind !== 'object') throw new Error('not an object');
    const own = (name: string) => shape.properties.find((property) => property.name === name);
    expect(own('name')?.description).toBe('A name.');
    expect(own('site')?.shape.nullable).toBe(true);
    expect(own('count')?.shape).toMatchObject({ nullable: true, isInteger: true });
    expect(own('size')?.shape).toMatchObject({
      choices: [
        { value: 'small', label: 'Small' },
        { value: 'large', label: 'large' },
      ],
    });
  });

  test('with variants that a constant distinguishes', () => {
    const shape = shapeOf({
      oneOf: [
        {
          type: 'object',
          title: 'Every day',
          properties: { kind: { const: 'daily' }, hour: { type: 'integer' } },
          required: ['kind', 'hour'],
        },
        { type: 'object', properties: { kind: { const: 'cron' }, text: { type: 'string' } } },
      ],
    });
    expect(shape).toMatchObject({ kind: 'variants', tag: 'kind' });
    if (shape.kind !== 'variants') return;
    expect(shape.variants.map(({ label }) => label)).toEqual(['Every day', 'cron']);
    expect(initialValue(shape)).toEqual({ kind: 'daily' });
    expect(checkValue(shape, { kind: 'daily' })).toEqual([
      { pointer: '/hour', detail: 'is required' },
    ]);
    expect(fieldPointers(shape, { kind: 'cron' })).toEqual(['', '/kind', '/text']);
  });

  test('without an end become JSON', () => {
    const tree: JsonSchema = {
      type: 'object',
      properties: { children: { type: 'array', items: { $ref: '#' } } },
    };
    expect(JSON.stringify(shapeOf(tree))).toContain('"kind":"json"');
  });

  test('of any kind have a shape, and an initial value that shows no error but missing ones', () => {
    const schema: fc.Arbitrary<JsonSchema> = fc.letrec<{ schema: JsonSchema }>((tie) => ({
      schema: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom<JsonSchema>(
          { type: 'string' },
          { type: 'integer', minimum: 1 },
          { type: 'boolean' },
          { enum: ['a', 'b'] },
          { const: 1 },
          { type: ['string', 'null'] },
          {},
          { allOf: [{ type: 'string' }] },
        ),
        tie('schema').map((items): JsonSchema => ({ type: 'array', items, uniqueItems: true })),
        fc
          .dictionary(fc.constantFrom('x', 'y', 'z/~'), tie('schema'))
          .map((properties): JsonSchema => ({
            type: 'object',
            properties,
            required: Object.keys(properties),
            additionalProperties: false,
          })),
        tie('schema').map((additionalProperties): JsonSchema => ({
          type: 'object',
          additionalProperties,
        })),
        fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
      ),
    })).schema;
    fc.assert(
      fc.property(schema, (each) => {
        const shape = shapeOf(each);
        const value = initialValue(shape);
        const pointers = new Set(fieldPointers(shape, value));
        for (const { pointer, detail } of value === undefined ? [] : checkValue(shape, value)) {
          expect(detail).toBe('is required');
          expect(pointers.has(pointer)).toBe(true);
        }
      }),
    );
  });
});

describe('what is wrong with a value', () => {
  const errors = (value: unknown) =>
    checkValue(shapeOf(requestSchema), value).map(({ pointer, detail }) => `${pointer} ${detail}`);

  test('is said in the words of the service', () => {
    expect(errors({})).toEqual(['/url is required']);
    expect(errors({ url: 'ftp://x' })).toEqual([
      '/url must be an http or https URL without credentials',
    ]);
    expect(errors({ url: 'https://x/', timeoutMs: 5 })).toEqual([
      '/timeoutMs must be from 100 to 120,000',
    ]);
    expect(errors({ url: 'https://x/', expectStatus: [] })).toEqual([
      '/expectStatus must have at least 1 entry',
    ]);
    expect(errors({ url: 'https://x/', expectStatus: [200.5, 700] })).toEqual([
      '/expectStatus/0 must be a whole number',
      '/expectStatus/1 must be from 100 to 599',
    ]);
    expect(errors({ url: 'https://x/', headers: { 'a b': 'c' } })[0]).toContain(
      '/headers/a b the name',
    );
  });

  test('is nothing for a good value', () => {
    expect(
      errors({ url: 'https://x/', method: 'PUT', headers: { accept: 'x' }, expectStatus: [204] }),
    ).toEqual([]);
  });

  test('counts characters, not halves of them', () => {
    const shape = shapeOf({ type: 'string', maxLength: 2 });
    expect(checkValue(shape, '😀😀')).toEqual([]);
    expect(checkValue(shape, '😀😀😀')[0]?.detail).toBe('must have at most 2 characters; it has 3');
  });

  test('names limits with all their digits', () => {
    const detail = (schema: JsonSchema, value: number) =>
      checkValue(shapeOf({ type: 'number', ...schema }), value)[0]?.detail;
    expect(detail({ minimum: 0.0001, maximum: 12_345.0005 }, 0)).toBe(
      'must be from 0.0001 to 12,345.0005',
    );
    expect(detail({ minimum: -0.5 }, -1)).toBe('must be at least -0.5');
    expect(detail({ exclusiveMinimum: 1e-7 }, 0)).toBe('must be more than 1e-7');
    expect(detail({ exclusiveMaximum: 1e21 }, 2e21)).toBe('must be less than 1e+21');
  });

  test('is nothing for a multiple of a step as both are written', () => {
    const shape = shapeOf({ type: 'number', multipleOf: 0.01 });
    expect(checkValue(shape, 0.07)).toEqual([]);
    expect(checkValue(shape, 0.075)[0]?.detail).toBe('must be a multiple of 0.01');
  });

  test('is nothing where the pattern is not one that browsers know', () => {
    expect(checkValue(shapeOf({ type: 'string', pattern: '(?<' }), 'x')).toEqual([]);
  });
});

describe('JSON that is typed', () => {
  test('is read, and an error says where it is', () => {
    expect(parseJson(' {"a": 1} ')).toEqual({ value: { a: 1 } });
    expect(parseJson('  ')).toEqual({ value: undefined });
    const outcome = parseJson('{\n  "a": 1,\n  b\n}');
    expect('error' in outcome && outcome.error).toMatch(/^is not JSON: .* in line 3, column 3$/);
    expect(parseJson('{"a":')).toHaveProperty('error');
    expect(parseJsonObject('{"a": 1}')).toEqual({ value: { a: 1 } });
    for (const text of ['', '12', '[1]', 'null', '{"a":'])
      expect(parseJsonObject(text)).toHaveProperty('error');
  });

  test.each([
    ['{"a": {"b": 9007199254740993}}', /^\/a\/b is a number that a double/],
    ['1e400', /^is a number that a double/],
    ['[{"a": 1, "a": 2}]', /^\/0\/a is repeated/],
    [`${'['.repeat(101)}${']'.repeat(101)}`, /^is nested deeper/],
  ])('is an error where a value would lose something: %s', (text, error) => {
    const outcome = parseJson(text);
    expect('error' in outcome && outcome.error).toMatch(error);
  });

  test('may have any text, of which the service knows where it is allowed', () => {
    expect(parseJson('["\\u0000"]')).toEqual({ value: ['\0'] });
  });
});

describe('a number that is typed', () => {
  test.each([
    ['12', 12],
    [' -7 ', -7],
    ['0.5', 0.5],
    ['.25', 0.25],
    ['3.', 3],
    ['007', 7],
    ['1.50', 1.5],
    ['9007199254740992', 9_007_199_254_740_992],
    // What a client that has read the number sends back.
    ['12345678901234567000', 12_345_678_901_234_567_000],
  ])('%s is read', (text, value) => {
    expect(parseNumber(text)).toEqual({ value });
  });

  test.each(['0x10', '1e3', '0b1', 'Infinity', '1,5', '1 000', '.', '-', '--1'])(
    '%s is no decimal number',
    (text) => {
      expect(parseNumber(text)).toEqual({ error: 'must be a decimal number' });
    },
  );

  test.each([
    ['one more than a double has', '9007199254740993'],
    ['20 digits', '12345678901234567890'],
    ['a long fraction', '0.12345678901234567890'],
    ['infinite', `1${'0'.repeat(400)}`],
    ['nearly nothing', `0.${'0'.repeat(400)}1`],
  ])('would lose digits: %s', (_what, text) => {
    expect(parseNumber(text)).toEqual({ error: 'has more digits than a number can keep' });
  });

  test('is what is shown of each number, also with an exponent', () => {
    const finite = fc.double({ noNaN: true, noDefaultInfinity: true });
    fc.assert(
      fc.property(finite, (number) => {
        fc.pre(!Object.is(number, -0));
        expect(parseNumber(String(number))).toEqual({ value: number });
      }),
    );
  });
});

test.each([
  ['sw-01\n', 'sw-01'],
  ['sw-01\r\n', 'sw-01'],
  ['sw-01', undefined],
  ['one\ntwo\n', undefined],
])('of %j, the text of a cell is %j', (pasted, text) => {
  expect(cellText(pasted)).toBe(text);
});

describe('pointers', () => {
  test('are read as they are written', () => {
    const key = fc.string({ unit: fc.constantFrom('a', '/', '~', '0', '1', '') });
    fc.assert(
      fc.property(fc.array(key), (keys) => {
        const pointer = keys.reduce((at, each) => childPointer(at, each), '');
        expect(keysOf(pointer)).toEqual(keys);
      }),
    );
  });

  test('are found below another one, and show at the nearest field', () => {
    expect(pointerBelow('/payload', '/payload/url')).toBe('/url');
    expect(pointerBelow('/payload', '/payload')).toBe('');
    expect(pointerBelow('/payload', '/payloads')).toBeUndefined();
    const shown = new Set(['', '/a', '/a/b']);
    expect(nearestPointer('/a/b/0', shown)).toBe('/a/b');
    expect(nearestPointer('/c', shown)).toBe('');
    expect(nearestPointer('/c', new Set(['/a']))).toBeUndefined();
  });

  test('a field that is emptied leaves its object, one that changes keeps its position', () => {
    expect(withKey({ a: 1, b: 2 }, 'a', undefined)).toEqual({ b: 2 });
    expect(Object.keys(withKey({ a: 1, b: 2 }, 'a', 3))).toEqual(['a', 'b']);
    expect(withKey(undefined, 'a', 1)).toEqual({ a: 1 });
  });
});

test('an entry of a list is moved, and the others keep their order', () => {
  expect(moved(['a', 'b', 'c', 'd'], 0, 2)).toEqual(['b', 'c', 'a', 'd']);
  expect(moved(['a', 'b', 'c', 'd'], 3, 1)).toEqual(['a', 'd', 'b', 'c']);
  expect(moved(['a', 'b'], 1, 1)).toEqual(['a', 'b']);
});

describe('ids of records', () => {
  const schema: JsonSchema = {
    type: 'object',
    properties: {
      device: { type: 'string', 'x-holdfast-ref': 'devices' },
      backup: { anyOf: [{ type: 'string', 'x-holdfast-ref': 'devices' }, { type: 'null' }] },
      sites: { type: 'array', 'x-holdfast-ref': 'sites', items: { type: 'string' } },
      vlans: { type: 'array', items: { type: 'string', 'x-holdfast-ref': 'vlans' } },
    },
    required: ['device'],
  };

  test('are chosen by name, one or a list of them', () => {
    const shape = shapeOf(schema);
    if (shape.kind !== 'object') throw new Error('not an object');
    expect(shape.properties.map(({ shape: own }) => own)).toMatchObject([
      { kind: 'reference', resource: 'devices' },
      { kind: 'reference', resource: 'devices', nullable: true },
      { kind: 'list', item: { kind: 'reference', resource: 'sites' } },
      { kind: 'list', item: { kind: 'reference', resource: 'vlans' } },
    ]);
    expect(checkValue(shape, {})).toEqual([{ pointer: '/device', detail: 'is required' }]);
    expect(checkValue(shape, { device: 3 })).toMatchObject([{ pointer: '/device' }]);
    expect(checkValue(shape, { device: 'dev_1', backup: null, sites: ['sit_1'] })).toEqual([]);
  });

  test('have the label of their record', () => {
    expect(recordLabel({ id: 'dev_1', ...{ name: 'core-1' } })).toBe('core-1');
    expect(recordLabel({ id: 'pfx_1', ...{ name: '', cidr: '10.0.0.0/8' } })).toBe('10.0.0.0/8');
    expect(recordLabel({ id: 'cab_1' })).toBe('cab_1');
  });
});

test.each([
  [{ type: 'number' }, 'ten', 10],
  [{ type: 'string' }, 10, 'ten'],
  [{ type: 'boolean' }, 'yes', false],
  [{ type: 'array', items: { type: 'string' } }, 'red', ['red']],
  [{ type: 'array', items: { enum: ['red'] } }, 'red', ['blue']],
  [{ type: 'object', properties: { a: {} } }, 'a', { a: 1 }],
])('a field of %j shows what fits, and %j as JSON, with an error', (schema, misfit, value) => {
  const shape = shapeOf(schema);
  expect(canShow(shape, value)).toBe(true);
  expect(canShow(shape, undefined)).toBe(true);
  expect(canShow(shape, misfit)).toBe(false);
  expect(checkValue(shape, misfit)).toHaveLength(1);
});
