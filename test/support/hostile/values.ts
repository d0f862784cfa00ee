import { RawJson } from './json.ts';
import type { Schema } from './document.ts';

/** A value, and the class of mistakes that it represents. */
export type Hostile<T> = { kind: string; value: T };

const LONG = 10_000;
const DEPTH = 200;

const entries = <T>(prefix: string, values: Readonly<Record<string, T>>): Hostile<T>[] =>
  Object.entries(values).map(([name, value]) => ({ kind: `${prefix}${name}`, value }));

/** Texts that any field of text may get. */
const TEXTS = entries('text: ', {
  empty: '',
  blanks: '   ',
  'NUL byte': 'a\0b',
  'control character': 'a\u0001b',
  'line breaks': 'a\r\nb\n',
  long: 'a'.repeat(LONG),
  'long, four-byte characters': '\u{1f600}'.repeat(255),
  'lone surrogate': 'a\ud800b',
  'right to left': '\u202eabc\u05d0\u0628',
  'combining characters': `e${'\u0301'.repeat(50)}`,
  'zero width': '\u200b\ufeff',
  __proto__: '__proto__',
  'SQL and LIKE': `%_\\'";--`,
  'path traversal': '../../etc/passwd',
  'template and markup': '${7*7}{{7*7}}<script>',
  formula: '=1+1',
  'id that does not exist': 'job_01jd0cmxk5e5v8kyzwq0q8s3rt',
  'number out of range': '1e400',
  comma: 'a,b,,c',
});

const TIMES = entries('time: ', {
  'year 0': '0000-01-01T00:00:00Z',
  'year 1': '0001-01-01T00:00:00.000Z',
  'year 9999': '9999-12-31T23:59:59.999Z',
  'year 9999, behind UTC': '9999-12-31T23:59:59-23:59',
  'year 10000': '+010000-01-01T00:00:00Z',
  'last of JavaScript': '+275760-09-13T00:00:00.000Z',
  'leap second': '2016-12-31T23:59:60Z',
  'no such day': '2026-02-30T00:00:00Z',
  'hour 24': '2026-01-01T24:00:00Z',
  nanoseconds: '2026-01-01T00:00:00.123456789Z',
  'lower case': '2026-01-01t00:00:00z',
  'without offset': '2026-01-01T00:00:00',
  'only a day': '2026-01-01',
  'negative year': '-000001-01-01T00:00:00Z',
});

const NETWORKS = entries('network: ', {
  everything: '0.0.0.0/0',
  'everything in IPv6': '::/0',
  host: '255.255.255.255/32',
  'host in IPv6': 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128',
  mapped: '::ffff:192.0.2.1/120',
  'too long': '10.0.0.0/33',
  'leading zero': '010.0.0.0/08',
  'host bits': '10.0.0.1/8',
  zone: 'fe80::1%eth0/64',
  short: '10/8',
  'negative length': '10.0.0.0/-1',
});

const ADDRESSES = entries('URL: ', {
  'without host': 'http://',
  script: 'javascript:alert(1)',
  'bad IPv6': 'http://[::1',
  'bad port': 'http://127.0.0.1:99999/',
  user: 'http://user:password@127.0.0.1/',
  IDN: 'http://\u0430\u0440\u0440le.example/',
  'bad escape': 'http://127.0.0.1:9/%zz',
});

/** JSON numbers, some of which no double can hold. */
const NUMBERS = entries(
  'number: ',
  Object.fromEntries(
    [
      '0',
      '-1',
      '-0',
      '1.5',
      '32768',
      '2147483647',
      '2147483648',
      '-2147483649',
      '9007199254740991',
      '9007199254740993',
      '-9007199254740993',
      '9223372036854775808',
      '1e21',
      '1.7976931348623157e308',
      '1e400',
      '-1e400',
      '1e-400',
    ].map((text) => [text, new RawJson(text)]),
  ),
).concat({ kind: 'number: 400 digits', value: new RawJson('9'.repeat(400)) });

const STRUCTURES: Hostile<unknown>[] = [
  { kind: 'null', value: null },
  { kind: 'missing', value: undefined },
  { kind: 'type: boolean', value: true },
  { kind: 'type: number', value: 1 },
  { kind: 'type: text', value: 'text' },
  { kind: 'type: empty array', value: [] },
  { kind: 'type: array', value: ['a', null, {}] },
  { kind: 'type: empty object', value: {} },
  { kind: 'type: object', value: { a: { b: [null] } } },
  { kind: 'key: __proto__', value: new RawJson('{"__proto__":{"a":1},"constructor":1}') },
  { kind: 'key: NUL byte', value: { 'a\0': 'a\0' } },
  { kind: 'key: empty', value: { '': '' } },
  { kind: 'key: lone surrogate', value: { 'a\udfff': 'a' } },
  { kind: 'key: long', value: { ['k'.repeat(LONG)]: 1 } },
  { kind: 'deep arrays', value: new RawJson('['.repeat(DEPTH) + ']'.repeat(DEPTH)) },
  { kind: 'deep objects', value: new RawJson(`${'{"a":'.repeat(DEPTH)}1${'}'.repeat(DEPTH)}`) },
  { kind: 'deep, allowed', value: new RawJson('['.repeat(90) + ']'.repeat(90)) },
  { kind: 'array of 10000 numbers', value: Array.from({ length: LONG }, () => 0) },
  { kind: 'array of 10000 texts', value: Array.from({ length: LONG }, (_, i) => `t${i}`) },
  {
    kind: 'object of 10000 keys',
    value: Object.fromEntries(Array.from({ length: LONG }, (_, i) => [`k${i}`, i])),
  },
];

const variantsOf = (schema: Schema): Schema[] =>
  schema.anyOf ? schema.anyOf.flatMap(variantsOf) : [schema];

const hasType = (schema: Schema, ...types: string[]): boolean =>
  variantsOf(schema).some(({ type, enum: values, const: constant }) => {
    const declared = type === undefined ? [] : [type].flat();
    if (values !== undefined || constant !== undefined) return types.includes('string');
    return declared.length === 0 || declared.some((each) => types.includes(each));
  });

/** Texts at the bounds of length, and one beyond; the longest ones of four-byte characters too. */
function lengthBounds({ minLength, maxLength }: Schema): Hostile<string>[] {
  const bounds: Hostile<string>[] = [];
  if (minLength !== undefined && minLength > 1)
    bounds.push({ kind: 'bound: too short', value: 'a'.repeat(minLength - 1) });
  if (maxLength !== undefined && maxLength < 100_000)
    bounds.push(
      { kind: 'bound: longest', value: 'a'.repeat(maxLength) },
      { kind: 'bound: longest, four-byte characters', value: '\u{1f600}'.repeat(maxLength) },
      { kind: 'bound: too long', value: 'a'.repeat(maxLength + 1) },
    );
  return bounds;
}

function numberBounds({ minimum, maximum }: Schema): Hostile<number>[] {
  const bounds: Hostile<number>[] = [];
  if (minimum !== undefined)
    bounds.push(
      { kind: 'bound: smallest', value: minimum },
      { kind: 'bound: too small', value: minimum - 1 },
    );
  if (maximum !== undefined)
    bounds.push(
      { kind: 'bound: largest', value: maximum },
      { kind: 'bound: too large', value: maximum + 1 },
    );
  return bounds;
}

function itemBounds({ minItems, maxItems, items }: Schema): Hostile<unknown>[] {
  const fill = (length: number) =>
    Array.from({ length }, (_, i) => (hasType(items ?? {}, 'string') ? `item-${i}` : i));
  const bounds: Hostile<unknown>[] = [
    { kind: 'items: null', value: [null] },
    { kind: 'items: repeated', value: [...fill(1), ...fill(1)] },
  ];
  if (minItems !== undefined && minItems > 1)
    bounds.push({ kind: 'bound: too few items', value: fill(minItems - 1) });
  if (maxItems !== undefined && maxItems <= LONG)
    bounds.push(
      { kind: 'bound: most items', value: fill(maxItems) },
      { kind: 'bound: too many items', value: fill(maxItems + 1) },
    );
  return bounds;
}

function otherChoices({ enum: values = [] }: Schema): Hostile<string>[] {
  const [first] = values.filter((value) => typeof value === 'string');
  if (first === undefined) return [];
  return [
    { kind: 'choice: unknown', value: 'unknown-choice' },
    { kind: 'choice: upper case', value: first.toUpperCase() },
    { kind: 'choice: blanks', value: ` ${first} ` },
    { kind: 'choice: prototype', value: 'constructor' },
  ];
}

const takesTime = (name: string, schema: Schema): boolean =>
  variantsOf(schema).some(({ format }) => format === 'date-time') ||
  /(At|After|Before|since|until|at|date)$/.test(name);

const NETWORK_NAME = /cidr|address|within|contains|network|prefix/i;
const URL_NAME = /url|issuer|entryPoint|returnTo|destination/i;

const textsFor = (name: string, schema: Schema): Hostile<string>[] => [
  ...TEXTS,
  ...(takesTime(name, schema) ? TIMES : []),
  ...(NETWORK_NAME.test(name) ? NETWORKS : []),
  ...(URL_NAME.test(name) ? ADDRESSES : []),
  ...variantsOf(schema).flatMap((each) => [...lengthBounds(each), ...otherChoices(each)]),
];

/** What a field of a JSON body gets. `name` is the field's name. */
export function hostileValues(name: string, schema: Schema): Hostile<unknown>[] {
  const variants = variantsOf(schema);
  return [
    ...STRUCTURES,
    ...(hasType(schema, 'string') ? textsFor(name, schema) : []),
    ...(hasType(schema, 'number', 'integer') ? NUMBERS : []),
    ...variants.flatMap(numberBounds),
    ...(hasType(schema, 'array') ? variants.flatMap(itemBounds) : []),
  ];
}

/** What a parameter gets, as text that is not yet percent-encoded. */
export const hostileTexts = (name: string, schema: Schema): Hostile<string>[] => [
  ...textsFor(name, schema),
  ...NUMBERS.map(({ kind, value }) => ({ kind, value: value.text })),
  ...variantsOf(schema)
    .flatMap(numberBounds)
    .map(({ kind, value }) => ({ kind, value: String(value) })),
];

/** A valid value of `schema`, as far as the schema says what is valid. */
export function sampleOf(schema: Schema): unknown {
  const [variant = {}] = variantsOf(schema).filter(({ type }) => type !== 'null');
  if (variant.const !== undefined) return variant.const;
  const listed = variant.examples?.[0] ?? variant.default ?? variant.enum?.[0];
  if (listed !== undefined) return listed;
  const type = [variant.type].flat()[0];
  if (type === 'boolean') return true;
  if (type === 'integer' || type === 'number') return variant.minimum ?? 1;
  if (type === 'array') return (variant.minItems ?? 0) > 0 ? [sampleOf(variant.items ?? {})] : [];
  if (type === 'string')
    return variant.format === 'date-time'
      ? '2026-11-21T09:30:00.000Z'
      : 'a'.repeat(variant.minLength ?? 1);
  const required = new Set(variant.required);
  return Object.fromEntries(
    Object.entries(variant.properties ?? {})
      .filter(([name]) => required.has(name))
      .map(([name, property]) => [name, sampleOf(property)]),
  );
}
