import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Type, type TObject } from 'typebox';
import { defineJobType } from '../../../domain/jobs/jobType.ts';
import { maskSecretFields, secretValuesIn } from '../../../domain/jobs/secretFields.ts';
import { createJobTypes } from '../../../services/jobTypes/registry.ts';
import { propertyRuns } from '../../support/effort.ts';

/** A part of a payload with its schema, and the texts in it. */
type Part = { schema: object; value: unknown; secrets: string[]; others: string[] };

/** The ways in which a schema says something about a value. */
const WRAPPERS: ((schema: object) => object)[] = [
  (schema) => schema,
  (schema) => ({ allOf: [{}, schema] }),
  (schema) => ({ anyOf: [{ type: 'null' }, schema] }),
  (schema) => ({ oneOf: [schema, { type: 'null' }] }),
  (schema) => ({ if: {}, then: schema }),
];
const wrapper = fc.constantFrom(...WRAPPERS);

let texts = 0;
const leaf: fc.Arbitrary<Part> = fc.boolean().map((isSecret) => {
  const text = `text-${(texts += 1)}.`;
  const schema = { type: 'string', ...(isSecret && { 'x-holdfast-secret': true }) };
  return {
    schema,
    value: text,
    secrets: isSecret ? [text] : [],
    others: isSecret ? [] : [text],
  };
});

const textsOf = (parts: readonly Part[]) => ({
  secrets: parts.flatMap(({ secrets }) => secrets),
  others: parts.flatMap(({ others }) => others),
});

/** How an object names the schemas of its properties. */
const OBJECTS: ((parts: readonly Part[]) => object)[] = [
  (parts) => ({ properties: Object.fromEntries(parts.map(({ schema }, i) => [`f${i}`, schema])) }),
  (parts) => ({
    patternProperties: Object.fromEntries(parts.map(({ schema }, i) => [`^f${i}$`, schema])),
  }),
  (parts) => ({
    $defs: Object.fromEntries(parts.map(({ schema }, i) => [`a/b ${i}`, schema])),
    dependentSchemas: {
      f0: { properties: Object.fromEntries(parts.map(({ schema }, i) => [`f${i}`, schema])) },
    },
  }),
];

const { part } = fc.letrec<{ part: Part }>((tie) => ({
  part: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    fc
      .tuple(fc.array(tie('part'), { maxLength: 4 }), wrapper, fc.constantFrom(...OBJECTS))
      .map(([parts, wrap, object]) => ({
        schema: wrap({ type: 'object', ...object(parts) }),
        value: Object.fromEntries(parts.map(({ value }, i) => [`f${i}`, value])),
        ...textsOf(parts),
      })),
    fc.tuple(fc.array(tie('part'), { maxLength: 3 }), wrapper).map(([parts, wrap]) => ({
      schema: wrap({ type: 'array', prefixItems: parts.map(({ schema }) => schema) }),
      value: parts.map(({ value }) => value),
      ...textsOf(parts),
    })),
    fc
      .tuple(fc.array(leaf, { minLength: 1, maxLength: 3 }), fc.boolean())
      .map(([parts, isSecret]) => {
        const all = parts.flatMap(({ secrets, others }) => [...secrets, ...others]);
        return {
          schema: {
            type: 'object',
            additionalProperties: { ...(isSecret && { 'x-holdfast-secret': true }) },
          },
          value: Object.fromEntries(parts.map(({ value }, i) => [`f${i}`, value])),
          secrets: isSecret ? all : [],
          others: isSecret ? [] : all,
        };
      }),
  ),
}));

function registryOf(payload: object) {
  const jobTypes = createJobTypes();
  jobTypes.register([
    defineJobType({
      name: 'test.secrets',
      summary: 'test',
      payload: payload as TObject,
      lane: 'inline',
      timeoutMs: 1_000,
      run: () => Promise.resolve({}),
    }),
  ]);
  return jobTypes;
}

test('what a schema marks as secret is seen by its author only, wherever it is', async () => {
  await fc.assert(
    fc.asyncProperty(part, async ({ schema, value, secrets, others }) => {
      const jobTypes = registryOf({ type: 'object', properties: { root: schema } });
      const shown = async (isAuthor: boolean) =>
        JSON.stringify(await jobTypes.show('test.secrets', { root: value }, { isAuthor }));
      const [own, foreign] = [await shown(true), await shown(false)];
      for (const text of [...secrets, ...others]) expect(own).toContain(text);
      for (const text of secrets) expect(foreign).not.toContain(text);
      for (const text of others) expect(foreign).toContain(text);
      expect(new Set(secretValuesIn(schema, value))).toEqual(new Set(secrets));
    }),
    { numRuns: propertyRuns(200) },
  );
});

describe('secret fields', () => {
  const SECRET = { 'x-holdfast-secret': true };

  test('are masked as a whole, whatever their type is', () => {
    const schema = Type.Object({
      pin: Type.Integer(SECRET),
      login: Type.Object({ user: Type.String() }, SECRET),
      none: Type.Null(SECRET),
      empty: Type.String(SECRET),
    });
    const payload = { pin: 4711, login: { user: 'mo' }, none: null, empty: '' };
    expect(maskSecretFields(schema, payload)).toEqual({
      pin: '********',
      login: '********',
      none: null,
      empty: '',
    });
    expect(secretValuesIn(schema, payload)).toEqual(['4711', 'mo', '']);
  });

  test('are found behind references, also of schemas that refer to themselves', () => {
    const schema = {
      type: 'object',
      $ref: '#/$defs/node~1x',
      $defs: {
        'node/x': {
          properties: {
            key: { type: 'string', ...SECRET },
            next: { allOf: [{ $ref: '#/$defs/node~1x' }, { $ref: '#' }] },
          },
        },
      },
    };
    const masked = maskSecretFields(schema, { key: 'one', next: { key: 'two', a: 'three' } });
    expect(masked).toEqual({ key: '********', next: { key: '********', a: 'three' } });
  });

  test.each<[string, object]>([
    ['an anchor', { $defs: { pw: { $anchor: 'pw', ...SECRET } }, ref: { $ref: '#pw' } }],
    [
      'the id of another schema',
      {
        $id: 'https://example.net/types/one',
        $defs: { pw: { $id: 'two', $defs: { inner: SECRET } } },
        ref: { $ref: 'two#/$defs/inner' },
      },
    ],
    [
      'its own id',
      {
        $id: 'https://example.net/types/one',
        $defs: { pw: SECRET },
        ref: { $ref: 'https://example.net/types/one#/$defs/pw' },
      },
    ],
    [
      'a pointer in a schema with an id, from inside of it',
      {
        $defs: { two: { $id: 'two', $defs: { pw: SECRET }, allOf: [{ $ref: '#/$defs/pw' }] } },
        ref: { $ref: '#/$defs/two' },
      },
    ],
    [
      'a dynamic reference',
      { $defs: { pw: { $dynamicAnchor: 'pw', ...SECRET } }, ref: { $dynamicRef: '#pw' } },
    ],
  ])('are found behind %s', (_, { ref, ...schema }: { ref?: object }) => {
    const whole = { ...schema, properties: { key: ref } };
    expect(maskSecretFields(whole, { key: 'one', a: 'two' })).toEqual({
      key: '********',
      a: 'two',
    });
    expect(secretValuesIn(whole, { key: 'one', a: 'two' })).toEqual(['one']);
  });

  test('are found by patterns of names that take for ever elsewhere', () => {
    const schema = { patternProperties: { '^(a+)+$': SECRET } };
    const name = `${'a'.repeat(100)}!`;
    expect(maskSecretFields(schema, { aa: 'one', [name]: 'two' })).toEqual({
      aa: '********',
      [name]: 'two',
    });
  });

  test('are masked in a payload that violates the schema', () => {
    const schema = Type.Object({
      key: Type.String({ ...SECRET, maxLength: 3 }),
      n: Type.Integer(),
    });
    expect(maskSecretFields(schema, { key: 'longer', n: 'text' })).toEqual({
      key: '********',
      n: 'text',
    });
  });

  test('leave a payload of a schema without them as it is', () => {
    const payload = { a: [1, { b: 'c' }] };
    expect(maskSecretFields(Type.Object({}), payload)).toBe(payload);
  });

  test('are accepted by the check of payloads', () => {
    const jobTypes = registryOf(Type.Object({ key: Type.String(SECRET) }));
    const type = jobTypes.get('test.secrets');
    expect(jobTypes.isValidPayload(type, { key: 'k' })).toBe(true);
    expect(jobTypes.isValidPayload(type, { key: 1 })).toBe(false);
  });
});
