import { deflateRawSync, gzipSync } from 'node:zlib';
import type { Operation, Parameter, Schema } from './document.ts';
import { RepeatedKey, valueAt, withValue, writeJson, type Path } from './json.ts';
import { hostileTexts, hostileValues, sampleOf, type Hostile } from './values.ts';

/** A request as it goes over the wire; `path` includes the query. */
export type WireRequest = {
  method: string;
  path: string;
  headers: Readonly<Record<string, string | readonly string[]>>;
  body: Buffer | undefined;
};

/** The valid request that each hostile one differs from in one position. */
export type ValidRequest = {
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  headers: Readonly<Record<string, string>>;
  /** The JSON value of the body, the fields of a form, or the text of a file. */
  body: unknown;
};

/** A way to make a valid request hostile: where, and by which class of mistake. */
export type Mistake = {
  position: string;
  /** Positions that are sampled together. */
  group?: string;
  kind: string;
  apply(valid: ValidRequest): WireRequest;
};

type Change = {
  params?: Readonly<Record<string, string>>;
  /** Already encoded; takes the position of the parameter that it is about. */
  query?: { name?: string; text: string };
  headers?: Readonly<Record<string, string | readonly string[]>>;
  body?: Buffer | undefined;
};

/** Longer request lines and headers are refused by Node itself. */
const MAX_ENCODED = 12_000;

/** Each byte as it is percent-encoded. */
const ENCODED_BYTES = Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  return /[\w.~-]/.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`;
});

const encodeBytes = (bytes: Iterable<number>): string => {
  let encoded = '';
  for (const byte of bytes) encoded += ENCODED_BYTES[byte] ?? '';
  return encoded;
};

/** Percent-encodes all but unreserved characters; lone surrogates as the three bytes that UTF-8 forbids. */
const percentEncode = (text: string): string =>
  text.replaceAll(/[^\w.~-]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (code < 0xd800 || code > 0xdfff) return encodeBytes(Buffer.from(character));
    return encodeBytes([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)]);
  });

function bodyBytes({ body: declared }: Operation, body: unknown): Buffer | undefined {
  if (declared === undefined || body === undefined) return undefined;
  if (declared.contentType === 'application/json') return Buffer.from(writeJson(body));
  if (typeof body === 'string') return Buffer.from(body);
  return Buffer.from(
    Object.entries(body as object)
      .map(([name, value]) => `${percentEncode(name)}=${percentEncode(String(value))}`)
      .join('&'),
  );
}

/** Builds the valid request of an operation, with `change`. */
export function buildRequest(
  operation: Operation,
  valid: ValidRequest,
  change: Change = {},
): WireRequest {
  const body = 'body' in change ? change.body : bodyBytes(operation, valid.body);
  const encoded = Object.fromEntries(
    Object.entries(valid.params).map(([name, value]) => [name, percentEncode(value)]),
  );
  const params: Record<string, string> = { ...encoded, ...change.params };
  const path = operation.path.replaceAll(
    /\{(\w+)\}/g,
    (_, name: string) => params[name] ?? 'other',
  );
  const query = [
    ...Object.entries(valid.query)
      .filter(([name]) => name !== change.query?.name)
      .map(([name, value]) => `${name}=${percentEncode(value)}`),
    ...(change.query ? [change.query.text] : []),
  ];
  return {
    method: operation.method,
    path: query.length === 0 ? path : `${path}?${query.join('&')}`,
    headers: {
      ...valid.headers,
      ...(operation.body && body && { 'content-type': operation.body.contentType }),
      ...change.headers,
    },
    body,
  };
}

/** Every mistake that can be made in a request of `operation`. */
export const mistakesOf = (operation: Operation): Mistake[] => [
  ...operation.parameters.flatMap((parameter) => parameterMistakes(operation, parameter)),
  ...headerMistakes(operation),
  ...queryMistakes(operation),
  ...(operation.body ? bodyMistakes(operation, operation.body) : []),
];

const ENCODED_TEXTS: Hostile<string>[] = [
  { kind: 'encoding: invalid UTF-8', value: '%ff%fe' },
  { kind: 'encoding: bad escape', value: '%zz' },
  { kind: 'encoding: cut escape', value: 'a%' },
  { kind: 'encoding: plus', value: 'a+b' },
];

function parameterMistakes(
  operation: Operation,
  { name, in: position, schema }: Parameter,
): Mistake[] {
  const mistake = ({ kind, value }: Hostile<Change>): Mistake => ({
    position: `${position} ${name}`,
    kind,
    apply: (valid) => buildRequest(operation, valid, value),
  });
  if (position === 'header')
    return headerValues(name).map(({ kind, value }) =>
      mistake({ kind, value: { headers: { [name.toLowerCase()]: value } } }),
    );
  const texts = [
    ...hostileTexts(name, schema)
      .filter(({ value }) => value.length <= MAX_ENCODED)
      .map(({ kind, value }) => ({ kind, value: percentEncode(value) })),
    ...ENCODED_TEXTS,
  ].filter(({ value }) => value.length <= MAX_ENCODED);
  if (position === 'path')
    return [
      // Without an id it is another path.
      ...texts.filter(({ value }) => value !== ''),
      { kind: 'path: encoded slash', value: 'a%2fb' },
      { kind: 'path: dots', value: '%2e%2e' },
    ].map(({ kind, value }) => mistake({ kind, value: { params: { [name]: value } } }));
  const sample = percentEncode(String(sampleOf(schema)));
  const queries = [
    ...texts.map(({ kind, value }) => ({ kind, value: `${name}=${value}` })),
    { kind: 'query: valid', value: `${name}=${sample}` },
    { kind: 'query: repeated', value: `${name}=${sample}&${name}=${sample}` },
    { kind: 'query: repeated, other value', value: `${name}=${sample}&${name}=%00` },
    { kind: 'query: brackets', value: `${name}[]=${sample}` },
    { kind: 'query: key in brackets', value: `${name}[a]=${sample}` },
    { kind: 'query: name alone', value: name },
  ];
  if (name === 'cursor')
    for (const [kind, text] of CURSORS)
      queries.push({
        kind: `cursor: ${kind}`,
        value: `cursor=${Buffer.from(text).toString('base64url')}`,
      });
  return queries.map(({ kind, value }) =>
    mistake({ kind, value: { query: { name, text: value } } }),
  );
}

const CURSORS = [
  ['null', 'null'],
  ['object', '{}'],
  ['other list', '["other","job_01jd0cmxk5e5v8kyzwq0q8s3rt"]'],
  ['nested', '[[["a"]]]'],
  ['NUL byte', '["jobs","\\u0000"]'],
  ['number', '["jobs",1e400]'],
] as const;

const SHARED_HEADER_VALUES: Hostile<string | readonly string[]>[] = [
  { kind: 'header: empty', value: '' },
  { kind: 'header: blanks', value: '   ' },
  { kind: 'header: long', value: 'a'.repeat(8_000) },
  { kind: 'header: Latin-1', value: 'a\u00e9\u00ff' },
  { kind: 'header: repeated', value: ['"1"', '"2"'] },
  { kind: 'header: commas', value: ',,,;=,' },
  { kind: 'header: star', value: '*' },
  { kind: 'header: quote', value: '"' },
  { kind: 'header: version beyond bigint', value: '"99999999999999999999"' },
  { kind: 'header: negative', value: '"-1"' },
  { kind: 'header: fraction', value: '"1.5"' },
  { kind: 'header: weak', value: 'W/"1"' },
  { kind: 'header: number', value: '99999999999999999999' },
  { kind: 'header: __proto__', value: '__proto__' },
];

/** A preference to wait that is well formed would be heeded. */
const headerValues = (name: string): Hostile<string | readonly string[]>[] =>
  name === 'Prefer'
    ? [
        ...SHARED_HEADER_VALUES,
        ...[
          'wait',
          'wait=',
          'wait=-1',
          'wait=1.5',
          'wait="',
          'wait=1e9',
          'wait=0; =',
          'timing',
        ].map((value) => ({ kind: `header: ${value}`, value })),
      ]
    : SHARED_HEADER_VALUES;

/** Headers that every request may have. */
const COMMON_HEADERS = [
  'Accept',
  'Accept-Encoding',
  'Authorization',
  'Cookie',
  'If-None-Match',
  'Origin',
  'Range',
  'X-Forwarded-For',
  'X-Request-Id',
  'X-Service-Actor-Id',
  'X-Service-Role-Ids',
  'X-Service-Tenant-Id',
];

const headerMistakes = (operation: Operation): Mistake[] =>
  COMMON_HEADERS.flatMap((name) =>
    SHARED_HEADER_VALUES.map(({ kind, value }) => ({
      position: `header ${name}`,
      group: 'headers',
      kind,
      apply: (valid) =>
        buildRequest(operation, valid, { headers: { [name.toLowerCase()]: value } }),
    })),
  );

const queryMistakes = (operation: Operation): Mistake[] =>
  Object.entries({
    'unknown name': 'unknown=1',
    __proto__: '__proto__=1&constructor=2',
    '__proto__ in brackets': '__proto__[a]=1',
    'NUL byte in name': 'a%00=1',
    'only separators': '&&=&',
    '1000 names': Array.from({ length: 1_000 }, (_, i) => `p${i}=1`).join('&'),
  }).map(([kind, query]) => ({
    position: 'query',
    group: 'headers',
    kind: `query: ${kind}`,
    apply: (valid) => buildRequest(operation, valid, { query: { text: query } }),
  }));

type Field = { path: Path; name: string; schema: Schema; containers: readonly Schema[] };

/** All fields of a body, however deep; an item of an array is its first one. */
function fieldsOf(schema: Schema, path: Path = [], containers: readonly Schema[] = []): Field[] {
  const inside = [...containers, schema];
  const field = (step: string | number, inner: Schema): Field[] => [
    {
      path: [...path, step],
      name: [...path, step].findLast((each) => typeof each === 'string') ?? '',
      schema: inner,
      containers: inside,
    },
    ...fieldsOf(inner, [...path, step], inside),
  ];
  return [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => field(name, inner)),
    ...(schema.items ? field(0, schema.items) : []),
    ...(schema.anyOf ?? []).flatMap((variant) => fieldsOf(variant, path, containers)),
  ];
}

/** `body` with everything around `field` present. */
const withContainers = (body: unknown, { path, containers }: Field): unknown =>
  containers.reduce((whole, container, depth) => {
    const way = path.slice(0, depth);
    const present = valueAt(whole, way);
    const fits = typeof path[depth] === 'number' ? Array.isArray(present) : isObject(present);
    return fits ? whole : withValue(whole, way, sampleOf(container));
  }, body);

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function bodyMistakes(operation: Operation, body: NonNullable<Operation['body']>): Mistake[] {
  const asBody = (position: string, kind: string, change: (body: unknown) => unknown): Mistake => ({
    position,
    kind,
    apply: (valid) =>
      buildRequest(operation, valid, { body: bodyBytes(operation, change(valid.body)) }),
  });
  const fields = fieldsOf(body.schema).flatMap((field) => {
    const position = `body /${field.path.join('/')}`;
    const values = hostileValues(field.name, field.schema);
    return [
      ...values.map(({ kind, value }) =>
        asBody(position, kind, (whole) =>
          withValue(withContainers(whole, field), field.path, value),
        ),
      ),
      asBody(position, 'repeated key', (whole) => {
        const complete = withContainers(whole, field);
        const present = valueAt(complete, field.path) ?? sampleOf(field.schema);
        return withValue(complete, field.path, new RepeatedKey(present, null));
      }),
      asBody(position, 'valid', (whole) => {
        const complete = withContainers(whole, field);
        return withValue(complete, field.path, sampleOf(field.schema));
      }),
    ];
  });
  const whole =
    body.contentType === 'application/json'
      ? hostileValues('', {}).map(({ kind, value }) => asBody('body', kind, () => value))
      : [];
  const unknown = asBody('body', 'unknown field', (each) => withValue(each, ['unknown'], 1));
  return [
    ...fields,
    ...whole,
    ...(body.contentType === 'text/csv' ? [] : [unknown]),
    ...byteMistakes(operation, body.contentType),
  ];
}

/** What goes wrong below the format: bytes, encodings, declared types and lengths. */
function byteMistakes(operation: Operation, contentType: string): Mistake[] {
  const mistake = (kind: string, change: (bytes: Buffer) => Change): Mistake => ({
    position: 'body',
    kind: `bytes: ${kind}`,
    apply: (valid) =>
      buildRequest(operation, valid, change(bodyBytes(operation, valid.body) ?? Buffer.alloc(0))),
  });
  const bytes = (kind: string, change: (bytes: Buffer) => Buffer): Mistake =>
    mistake(kind, (valid) => ({ body: change(valid) }));
  const encoded = (kind: string, encoding: string, change: (bytes: Buffer) => Buffer): Mistake =>
    mistake(kind, (valid) => ({
      body: change(valid),
      headers: { 'content-encoding': encoding },
    }));
  const typed = (kind: string, type: string): Mistake =>
    mistake(kind, (body) => ({ body, headers: { 'content-type': type } }));
  return [
    bytes('truncated', (body) => body.subarray(0, -1)),
    bytes('truncated half way', (body) => body.subarray(0, body.length / 2)),
    bytes('invalid UTF-8', (body) => Buffer.concat([body, Buffer.from([0xc3, 0x28, 0xff])])),
    bytes('invalid UTF-8 in a text', () => Buffer.from('7b2261ff223a22c328227d', 'hex')),
    bytes('UTF-16', (body) => Buffer.from(body.toString(), 'utf16le')),
    bytes('byte order mark', (body) => Buffer.concat([Buffer.from('\ufeff'), body])),
    bytes('trailing text', (body) => Buffer.concat([body, Buffer.from(' x')])),
    bytes('trailing NUL byte', (body) => Buffer.concat([body, Buffer.from([0])])),
    bytes('only blanks', () => Buffer.from('  \n ')),
    bytes('only NUL bytes', () => Buffer.alloc(100)),
    bytes('comment', (body) => Buffer.concat([Buffer.from('/* a */'), body])),
    bytes('NaN', () => Buffer.from('{"a":NaN}')),
    bytes('too large', () => Buffer.from(`{"a":"${'a'.repeat(1_100_000)}"}`)),
    mistake('none', () => ({ body: undefined })),
    mistake('none, with a type', () => ({
      body: undefined,
      headers: { 'content-type': contentType, 'content-length': '0' },
    })),
    mistake('none, chunked', () => ({
      body: Buffer.alloc(0),
      headers: { 'transfer-encoding': 'chunked' },
    })),
    mistake('chunked', (body) => ({ body, headers: { 'transfer-encoding': 'chunked' } })),
    mistake('without a type', (body) => ({ body, headers: { 'content-type': [] } })),
    typed('empty type', ' '),
    typed('wrong type', 'text/plain'),
    typed('malformed type', 'application/json; charset'),
    typed('other charset', `${contentType}; charset=iso-8859-1`),
    typed('unknown charset', `${contentType}; charset=unknown`),
    typed('form', 'application/x-www-form-urlencoded'),
    typed('multipart', 'multipart/form-data; boundary=a'),
    encoded('gzip', 'gzip', gzipSync),
    encoded('gzip, cut', 'gzip', (body) => gzipSync(body).subarray(0, -6)),
    encoded('gzip, damaged', 'gzip', (body) => body),
    encoded('gzip, too large', 'gzip', () => gzipSync(`{"a":"${'a'.repeat(2_000_000)}"}`)),
    encoded('deflate, raw', 'deflate', deflateRawSync),
    encoded('brotli', 'br', (body) => body),
    encoded('unknown encoding', 'unknown', (body) => body),
  ];
}
