import { glob, readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Type, type TObject, type TSchema } from 'typebox';
import { allRoutes } from '../../api/app.ts';
import { idFilter } from '../../api/inventory/lists.ts';
import { readOnlyProperties } from '../../api/http/presentedRecord.ts';
import type { Route } from '../../api/http/route.ts';
import { FIXED_PATHS, RESERVED_IDS } from '../../domain/shared/reservedIds.ts';
import { LINE_WITH_TEXT, STORED_LINE } from '../../domain/shared/oneLine.ts';
import { Name } from '../../api/http/schemas.ts';
import { isCredentialName } from '../../domain/shared/credentials.ts';
import { createSchema, updateSchema } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { compileNullDrop, withNulls } from '../../platform/nulls.ts';
import { compileCheck, FORMAT_RULES, KEYWORD_RULES } from '../../platform/schemaCheck.ts';
import { KIND_DEFINITIONS } from '../../services/auth/providers/kinds/index.ts';
import { recordPath } from '../../ui/parts/recordIds.ts';
import { startApp, type TestApp } from '../support/app.ts';

type Schema = TSchema & Record<string, unknown>;

let app: TestApp;
let routes: Route[];
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  routes = allRoutes(app.deps, 'test');
});
afterAll(() => app.stop());

/** Every schema that checks what clients send, with a name for messages. */
const requestSchemas = (): [string, TSchema][] => [
  ...routes.flatMap(({ method, path, params, query, body }) =>
    [params, query, body].flatMap((schema): [string, TSchema][] =>
      schema ? [[`${method} ${path}`, schema]] : [],
    ),
  ),
  ...Object.values(RESOURCES).flatMap((resource): [string, TSchema][] => [
    [`create ${resource.name}`, createSchema(resource)],
    [`update ${resource.name}`, updateSchema(resource)],
  ]),
  ...app.deps.jobTypes
    .all()
    .filter(({ createdOnlyBy }) => createdOnlyBy === null)
    .map(({ name, payload }): [string, TSchema] => [name, payload]),
  ...Object.values(KIND_DEFINITIONS).map(({ kind, config }): [string, TSchema] => [kind, config]),
];

/** A schema and all schemas inside it. */
function nodesOf(schema: Schema): Schema[] {
  const maps = ['properties', 'patternProperties'].flatMap((name) =>
    Object.values((schema[name] ?? {}) as Record<string, Schema>),
  );
  const lists = ['anyOf', 'allOf', 'oneOf'].flatMap((name) => (schema[name] ?? []) as Schema[]);
  const single = ['items', 'additionalProperties', 'propertyNames'].flatMap((name) =>
    typeof schema[name] === 'object' ? [schema[name] as Schema] : [],
  );
  return [schema, ...[...maps, ...lists, ...single].flatMap(nodesOf)];
}

const allNodes = () =>
  requestSchemas().flatMap(([name, schema]) =>
    nodesOf(schema as Schema).map((node) => ({ name, node })),
  );

test('what is remembered of a request with a secret is as hard to guess as a password', () => {
  const hasSecret = (schema: Schema) =>
    nodesOf(schema).some(
      ({ writeOnly, properties = {} }) =>
        writeOnly === true || Object.keys(properties as object).some(isCredentialName),
    );
  const fast = routes.filter(
    ({ body, replayResponse, secretBody }) =>
      body && replayResponse && secretBody !== true && hasSecret(body as Schema),
  );
  expect(fast.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
});

/** Why a POST needs no `Idempotency-Key`: what else happens if it is repeated. */
const REPEATABLE: Readonly<Record<string, string>> = {
  'POST /api/auth/login/ldap': 'nobody is known who could have sent a key',
  'POST /api/auth/login/local': 'nobody is known who could have sent a key',
  'POST /api/auth/login/oidc/start': 'nobody is known who could have sent a key',
  'POST /api/auth/login/saml/start': 'nobody is known who could have sent a key',
  'POST /api/auth/logout': 'the session has ended',
  'POST /api/auth/password': 'the former password is refused',
  'POST /api/auth/providers/{id}/test': 'it connects once more and changes nothing',
  'POST /api/auth/refresh': 'the spent token is refused, or answered within its grace',
  'POST /api/auth/saml/callback': 'the response of the provider is valid once',
  'POST /api/job-types/{name}/accept': 'the version is accepted',
  'POST /api/job-types/{name}/disable': 'the type is disabled',
  'POST /api/jobs/{jobId}/cancel': 'the job is cancelled',
  'POST /api/legal-holds/{id}/release': 'the hold is released',
  'POST /api/retention/preview': 'it computes',
  'POST /api/runner/alive': 'it reports the present',
  'POST /api/runner/announce': 'it reports the present',
  'POST /api/runner/jobs/{jobId}/begin': 'the attempt has started',
  'POST /api/runner/jobs/{jobId}/end': 'the attempt has ended',
  'POST /api/runner/jobs/{jobId}/lines': 'lines have numbers',
  'POST /api/runner/leave': 'the runner is removed',
  'POST /api/schedules/preview': 'it computes',
  'POST /api/schedules/{id}/backfill/preview': 'it computes',
  'POST /api/schedules/{id}/pause': 'the schedule is paused',
  'POST /api/schedules/{id}/resume': 'the schedule is active',
  'POST /api/validation/inventory': 'it computes',
  'POST /api/views/{id}/default': 'the view is the default',
};

test('every POST that would do more if it was repeated takes an Idempotency-Key', () => {
  const without = routes
    .filter(({ method, replayResponse }) => method === 'POST' && !replayResponse)
    .map(({ method, path }) => `${method} ${path}`);
  expect(without.sort()).toEqual(Object.keys(REPEATABLE).sort());
});

/** The paths of the console. `$name` is a parameter. */
async function consolePaths(): Promise<string[]> {
  const paths: string[] = [];
  for await (const file of glob('ui/{app,areas}/**/*[rR]oute*.{ts,tsx}'))
    for (const [, each = ''] of (await readFile(file, 'utf8')).matchAll(/path: '([^']+)'/g))
      paths.push(each);
  return paths;
}

/** Fixed paths of the console beside the page of a record. */
function fixedBeside(page: string, paths: readonly string[]): string[] {
  const segments = page.split('/');
  const isBeside = (path: string[]) =>
    path.length === segments.length &&
    path.every(
      (each, index) =>
        each === segments[index] || (each.startsWith('$') ? true : index === path.length - 1),
    );
  return paths
    .map((path) => path.split('/'))
    .filter(isBeside)
    .map((path) => path.at(-1) ?? '')
    .filter((word) => !word.startsWith('$'));
}

/** Fixed paths of the API where another route has a parameter that may have the same text. */
const fixedBesideParameters = (): string[] =>
  routes.flatMap(({ path, params }) => {
    const segments = path.split('/');
    return segments.flatMap((segment, index) => {
      const [, name] = /^\{(\w+)\}$/.exec(segment) ?? [];
      if (name === undefined || params === undefined) return [];
      const accepts = compileCheck(Type.Object({ value: params.properties[name] as TSchema }));
      return routes
        .map((other) => other.path.split('/'))
        .filter((other) => other.slice(0, index).join() === segments.slice(0, index).join())
        .map((other) => other[index] ?? '')
        .filter((word) => /^[a-z]/.test(word) && accepts({ value: word }).length === 0);
    });
  });

describe('an id that people choose', () => {
  test('cannot be a fixed path', async () => {
    const paths = await consolePaths();
    expect(paths.length).toBeGreaterThan(60);
    const pages = ['tenants', 'tags', 'roles'].map((kind) => recordPath('any', kind));
    const words = [
      ...[...pages, '/runners/pools/any'].flatMap((page) => fixedBeside(page, paths)),
      ...fixedBesideParameters(),
    ];
    expect([...new Set(words)].sort()).toEqual([...FIXED_PATHS].sort());
  });

  test.each(RESERVED_IDS)('%s is refused for a new record, and read of an older one', (id) => {
    const bodyOf = (path: string) =>
      routes.find((route) => route.method === 'POST' && route.path === path)?.body;
    for (const path of ['/api/inventory/tenants', '/api/inventory/tags']) {
      const { properties } = bodyOf(path) as TObject;
      const check = compileCheck(Type.Object({ id: properties.id as TSchema }));
      expect(check({ id })).toHaveLength(1);
      expect(check({ id: `${id}s` })).toEqual([]);
    }
    const filter = compileCheck(Type.Object({ id: idFilter(RESOURCES.tenants, []) }));
    expect(filter({ id })).toEqual([]);
  });
});

const ANNOTATIONS =
  /^(title|description|default|examples|readOnly|writeOnly|x-.*|properties|patternProperties|items|anyOf)$/;

describe('messages', () => {
  test('every pattern and every format has a rule in words', () => {
    const nodes = allNodes();
    const silent = nodes.filter(
      ({ node: { pattern, format, 'x-rule': rule } }) =>
        (pattern !== undefined && typeof rule !== 'string') ||
        (typeof format === 'string' && !(format in FORMAT_RULES)),
    );
    expect(silent.map(({ name, node }) => [name, node.pattern ?? node.format])).toEqual([]);
    expect(nodes.filter(({ node }) => node.pattern !== undefined).length).toBeGreaterThan(50);
  });

  test('every keyword has a message', () => {
    const keywords = new Set(allNodes().flatMap(({ node }) => Object.keys(node)));
    const silent = [...keywords].filter(
      (keyword) => !ANNOTATIONS.test(keyword) && !(keyword in KEYWORD_RULES),
    );
    expect(silent).toEqual([]);
  });

  test('an empty text has one message', () => {
    const nodes = allNodes().filter(
      ({ node }) => node.minLength === 1 && typeof node.pattern === 'string',
    );
    const twice = nodes.filter(({ node }) => compileCheck(node)('').length > 1);
    expect(nodes.length).toBeGreaterThan(10);
    expect([...new Set(twice.map(({ node }) => node.pattern))]).toEqual([]);
  });

  test.each<[object, unknown, string]>([
    [{ type: ['string', 'array'] }, 1, ': must be a string or an array'],
    [
      { anyOf: [{ type: 'string', pattern: '^a$' }, { type: 'null' }] },
      1,
      ': must be a string or null',
    ],
    [
      { anyOf: [{ type: 'string', pattern: '^a$', 'x-rule': 'must be a' }, { type: 'null' }] },
      'b',
      ': must be a',
    ],
    [
      {
        type: 'array',
        items: {
          anyOf: [{ type: 'object', required: ['a'], properties: { a: {} } }, { type: 'null' }],
        },
      },
      [null, {}, 3],
      '/1/a: is required; /2: must be an object or null',
    ],
    [{ anyOf: [{ const: 1 }, { const: 'x' }] }, 2, ': must be 1 or "x"'],
    [{ type: 'string', minLength: 1 }, '', ': must not be empty'],
    [Name(), '', ': must not be empty'],
    [{ type: 'string', minLength: 1, ...LINE_WITH_TEXT }, '', ': must not be empty'],
    [Name(), ' a', `: ${STORED_LINE['x-rule']}`],
    [{ type: 'string', ...LINE_WITH_TEXT }, ' ', `: ${LINE_WITH_TEXT['x-rule']}`],
    [{ type: 'string', minLength: 2 }, '', ': must have at least 2 characters'],
    [{ type: 'string', pattern: '^\\S+$' }, ' ', ': does not have the required form'],
    [
      { type: 'object', propertyNames: { pattern: '^a$', 'x-rule': 'must be a' } },
      { b: 1 },
      '/b: must be a; /b: has an invalid name',
    ],
  ])('%j refuses %j', (schema, value, expected) => {
    const errors = compileCheck(schema)(value);
    expect(errors.map(({ pointer, message }) => `${pointer}: ${message}`).join('; ')).toBe(
      expected,
    );
  });
});

test('every number has bounds that PostgreSQL and JSON hold', () => {
  const unbounded = allNodes().filter(({ node: { type, minimum, exclusiveMinimum, maximum } }) => {
    const lowest = Number(minimum ?? exclusiveMinimum ?? Number.NaN);
    const isNumber = type === 'integer' || type === 'number';
    return (
      isNumber &&
      !(Number.isSafeInteger(Math.trunc(lowest)) && Number(maximum) <= Number.MAX_SAFE_INTEGER)
    );
  });
  expect(unbounded.map(({ name, node }) => [name, node.description])).toEqual([]);
});

test('every text has a maximum length, a pattern, a format or values', () => {
  const unbounded = allNodes().filter(
    ({ node: { type, maxLength, pattern, format, enum: values, const: value } }) =>
      type === 'string' && (maxLength ?? pattern ?? format ?? values ?? value) === undefined,
  );
  expect(unbounded.map(({ name, node }) => [name, node.description])).toEqual([]);
});

describe('null in an optional property', () => {
  /** The values that have null in one optional property more than `value`, at any depth. */
  function* withOneNull(schema: Schema, value: Record<string, unknown>): Generator<object> {
    const { properties = {}, required = [] } = schema as {
      properties?: Record<string, Schema>;
      required?: string[];
    };
    for (const [name, property] of Object.entries(properties)) {
      // What a client sends back is as it was in a response.
      if ((property as { readOnly?: boolean }).readOnly) continue;
      const inner = value[name];
      if (inner === undefined && (!required.includes(name) || 'default' in property))
        yield { ...value, [name]: null };
      if (typeof inner === 'object' && inner !== null && !Array.isArray(inner))
        for (const changed of withOneNull(property, inner as Record<string, unknown>))
          yield { ...value, [name]: changed };
    }
  }

  test('is not given, in the body of every operation', () => {
    let tried = 0;
    for (const { method, path, body, example } of routes) {
      if (!body || typeof example !== 'object') continue;
      const check = compileCheck(body);
      const documented = compileCheck(withNulls(body));
      const drop = compileNullDrop(body);
      for (const request of withOneNull(body as Schema, example as Record<string, unknown>)) {
        tried++;
        const sent = structuredClone(request);
        expect([method, path, documented(structuredClone(request))]).toEqual([method, path, []]);
        drop?.(sent);
        expect([method, path, request, check(sent)]).toEqual([method, path, request, []]);
      }
    }
    expect(tried).toBeGreaterThan(100);
  });

  test('remains where null has a meaning, and in payloads', () => {
    const schema = {
      type: 'object',
      properties: {
        ends: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        payload: { type: 'object', patternProperties: { '^.*$': {} } },
        list: { type: 'array', items: { type: 'object', properties: { a: { type: 'string' } } } },
      },
    } as unknown as TSchema;
    const value = { ends: null, payload: { a: null }, list: [{ a: null }, null, 1] };
    compileNullDrop(schema)?.(value);
    expect(value).toEqual({ ends: null, payload: { a: null }, list: [{}, null, 1] });
  });
});

test('every PUT knows the record that it changes', () => {
  for (const route of routes.filter(({ method, upload }) => method === 'PUT' && !upload)) {
    const readOnly = Object.keys(readOnlyProperties(route, routes));
    const named = [...(route.volatile ?? []), ...(route.passUnchanged ?? [])];
    const writable = Object.keys((route.body as TObject).properties);
    expect([route.path, route.current]).toEqual([route.path, expect.any(Function)]);
    expect(readOnly).toContain(/\{(\w+)\}$/.exec(route.path)?.[1] ?? 'id');
    expect([...readOnly, ...writable]).toEqual(expect.arrayContaining(named));
  }
});
