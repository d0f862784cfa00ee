import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { TObject } from 'typebox';
import openapiTS, { astToString } from 'openapi-typescript';
import { nameOf } from '../../api/http/components.ts';
import { COMMON_PROBLEMS, problemStatuses } from '../../api/http/openapi.ts';
import { PROBLEMS } from '../../api/http/problem.ts';
import { permissionsOf, type Route } from '../../api/http/route.ts';
import { allRoutes } from '../../api/app.ts';
import { EVENT_DATA } from '../../domain/events/events.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { compileCheck } from '../../platform/schemaCheck.ts';
import { startApp, type TestApp } from '../support/app.ts';
import type { ProblemBody } from '../support/client.ts';
import { typeErrors } from '../support/contract/typeErrors.ts';
import { OPERATIONS, SESSION_OPERATIONS } from '../support/contract/operations.ts';

type Schema = { $ref?: string };
type Content = Record<string, { schema: Schema } | undefined>;
type Operation = {
  operationId: string;
  description: string;
  security?: Record<string, string[]>[];
  parameters: { $ref?: string; name?: string }[];
  'x-permission': string[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, { $ref?: string; headers?: object; content?: Content }>;
};
type Message = { properties: { type: { enum: string[] }; data: { $ref: string } } };
type OpenApiDocument = {
  paths: Record<string, Record<string, Operation | undefined> | undefined>;
  webhooks: Record<string, { $ref: string } | undefined>;
  components: {
    responses: Record<string, { content?: object } | undefined>;
    parameters: Record<string, { name: string; in: string; required?: boolean } | undefined>;
    schemas: Record<string, object | undefined>;
    pathItems: Record<string, WebhookItem | undefined>;
  };
};
type WebhookItem = {
  post: { requestBody: { content: { 'application/json': { schema: { $ref: string } } } } };
};

let app: TestApp;
let document: OpenApiDocument;
let routes: Route[];
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  document = await app.client.get<OpenApiDocument>('/api/openapi.json').expect(200);
  routes = allRoutes(app.deps, 'test');
});
afterAll(() => app.stop());

test('the example for nginx collects no file before it passes it on', async () => {
  const example = await readFile(path.resolve('ops/proxy/nginx.conf'), 'utf8');
  const locations = [...example.matchAll(/location ~ (\S+) \{([^}]*)\}/g)].map(
    ([, pattern = '', block = '']) => ({ pattern: new RegExp(pattern), block }),
  );
  const blockOf = (url: string) => locations.find(({ pattern }) => pattern.test(url))?.block ?? '';
  const urlOf = ({ path: template }: Route) => template.replaceAll(/\{\w+\}/g, 'x');
  // Pages and their scripts are small.
  const isFile = (type: string) => /csv|ndjson|octet-stream/.test(type);
  const files = routes.filter(({ produces = [], upload }) => upload ?? produces.some(isFile));
  expect(files.length).toBeGreaterThan(10);
  const buffered = files
    .map(urlOf)
    .filter((url) => !/^ *proxy_buffering off;$/m.test(blockOf(url)));
  expect(buffered).toEqual([]);
  const uploads = files.filter(({ upload }) => upload).map(urlOf);
  expect(uploads.filter((url) => !blockOf(url).includes('proxy_request_buffering off'))).toEqual(
    [],
  );
});

/** Identity providers add parameters of their own to these requests; they are ignored. */
const UNCHECKED_INPUT = [
  '/api/auth/oidc/callback',
  '/api/auth/oidc/callback/{id}',
  '/api/auth/saml/callback',
];

const REQUIRED_OPERATIONS = [...OPERATIONS.map(({ name }) => name), ...SESSION_OPERATIONS];

test.each(REQUIRED_OPERATIONS)('%s of the published interface exists', (operation) => {
  const [method = '', path = ''] = operation.split(' ');
  expect(document.paths[path]?.[method.toLowerCase()]).toBeDefined();
});

/** The schemas inside a part of the document, at any depth. */
function schemasIn(node: unknown): Schema[] {
  if (typeof node !== 'object' || node === null) return [];
  const inner = Object.entries(node).flatMap(([key, value]) =>
    key === 'example' || key === 'examples' ? [] : schemasIn(value),
  );
  const { type, anyOf, enum: values } = node as Record<string, unknown>;
  const isSchema = typeof type === 'string' || [type, anyOf, values].some(Array.isArray);
  return isSchema ? [node, ...inner] : inner;
}

const lastStep = (reference: string): string => reference.split('/').at(-1) ?? '';

const operationOf = ({ path, method }: Route): Operation =>
  assertDefined(document.paths[path]?.[method.toLowerCase()], `${method} ${path}`);

test('an operation has one verb: Get reads a record, Update changes one', () => {
  const summaries = routes.map(({ summary }) => summary);
  const others = /^(?:Read|Show|Change|Edit|Set|Rename|Modify)\b/;
  expect(summaries.filter((each) => others.test(each))).toEqual([]);
  expect(summaries.filter((each) => /login|log in/i.test(each))).toEqual([]);
});

test('every route is documented with an operation id, its access and its errors', () => {
  const documented = routes.filter((route) => !route.path.startsWith('/api/docs'));
  const ids = new Set(documented.map((route) => operationOf(route).operationId));
  expect(ids.size).toBe(documented.length);
  for (const route of documented) {
    const { description, responses } = operationOf(route);
    expect(description).toContain(
      permissionsOf(route)[0] ?? route.signedIn ?? route.session ?? route.runner ?? route.public,
    );
    expect(operationOf(route)['x-permission']).toEqual(permissionsOf(route));
    const described = new Set(
      ['default', ...COMMON_PROBLEMS, ...Object.keys(responses)].map(String),
    );
    expect(problemStatuses(route).filter((status) => !described.has(String(status)))).toEqual([]);
  }
});

test('operation ids are unique, a verb and a noun', () => {
  const ids = routes.map(({ operationId }) => operationId);
  expect(ids.filter((id) => !/^[a-z]+[A-Z][A-Za-z]*$/.test(id))).toEqual([]);
  expect(new Set(ids).size).toBe(ids.length);
});

test('every request body and every upload has an example', () => {
  const unexplained = routes.filter(
    ({ body, upload, example }) =>
      (body !== undefined && example === undefined) ||
      Object.values(upload?.examples ?? {}).includes(''),
  );
  expect(unexplained.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
});

test('the example of a request body matches its schema', () => {
  const errors = routes.flatMap(({ method, path, body, example }) =>
    body === undefined || example === undefined
      ? []
      : compileCheck(body)(structuredClone(example)).map((error) => ({ method, path, ...error })),
  );
  expect(errors).toEqual([]);
});

test('a body is required where an empty one is refused', () => {
  for (const route of routes.filter(({ body }) => body !== undefined)) {
    const { requestBody } = operationOf(route);
    const isRefused = compileCheck(assertDefined(route.body, route.path))({}).length > 0;
    expect([route.method, route.path, requestBody?.required]).toEqual([
      route.method,
      route.path,
      isRefused,
    ]);
  }
});

test('what a handler can answer has its content types', () => {
  for (const route of routes.filter(({ path }) => !path.startsWith('/api/docs')))
    for (const [status, declared] of Object.entries(operationOf(route).responses)) {
      const name = declared.$ref && lastStep(declared.$ref);
      const { content = {} } = name
        ? assertDefined(document.components.responses[name], name)
        : declared;
      const types = Object.keys(content);
      const expected = [
        ...(route.responses[Number(status)] ? ['application/json'] : []),
        ...(status === '200' ? (route.produces ?? []) : []),
        ...(status === 'default' || Number(status) >= 400 ? ['application/problem+json'] : []),
      ];
      expect([route.path, status, types]).toEqual([
        route.path,
        status,
        expect.arrayContaining(expected),
      ]);
    }
});

/** The parameters of an operation that are headers, and whether they are required. */
const headersOf = (route: Route): Record<string, boolean> =>
  Object.fromEntries(
    operationOf(route).parameters.flatMap(({ $ref }) => {
      const parameter =
        $ref === undefined ? undefined : document.components.parameters[lastStep($ref)];
      return parameter?.in === 'header' ? [[parameter.name, parameter.required ?? false]] : [];
    }),
  );

/** True for a route that callers with an identity reach. */
const hasGatewayCallers = ({ permission, signedIn }: Route) =>
  (permission ?? signedIn) !== undefined;

describe('what an operation needs and returns beside its body is described', () => {
  test('runners have a token of their own, and attempts another', () => {
    const ofRunners = routes.filter(({ runner }) => runner !== undefined);
    expect(ofRunners.length).toBeGreaterThan(5);
    for (const route of ofRunners) {
      expect(operationOf(route).security).toEqual([{ runnerToken: [] }]);
      const ofAttempt = route.runner?.includes('Attempt-Token') ?? false;
      expect([route.path, headersOf(route)['Attempt-Token']]).toEqual([
        route.path,
        ofAttempt ? true : undefined,
      ]);
    }
  });

  test('every header of ours that handlers read', async () => {
    const files = (await readdir('api', { recursive: true })).filter((file) =>
      file.endsWith('.ts'),
    );
    const sources = await Promise.all(files.map((file) => readFile(`api/${file}`, 'utf8')));
    const read = sources.flatMap((text) =>
      [...text.matchAll(/\bheader\('([a-z-]+)'\)/g)].map(([, name = '']) => name),
    );
    // Browsers and HTTP clients send these.
    const standard = ['authorization', 'content-length', 'cookie', 'origin', 'user-agent'];
    const described = new Set(
      routes
        .filter(({ path: at }) => !at.startsWith('/api/docs'))
        .flatMap((route) => Object.keys(headersOf(route)).map((name) => name.toLowerCase())),
    );
    expect(read).toContain('attempt-token');
    expect(read.filter((name) => !described.has(name) && !standard.includes(name))).toEqual([]);
  });

  test('every header of ours must have a value where it is sent', async () => {
    const root = app.client.as({ roles: 'platform-admin', tenant: 'platform' });
    const called = routes.filter(
      (route) => !route.path.startsWith('/api/docs') && hasGatewayCallers(route),
    );
    const requests = called.flatMap((route) =>
      Object.keys(headersOf(route))
        .filter((name) => name !== 'Last-Event-ID')
        .map((name) => ({ name, method: route.method, path: route.path })),
    );
    expect(new Set(requests.map(({ name }) => name)).size).toBe(4);
    for (const { name, method, path: at } of requests) {
      const sent = root.send<ProblemBody>(method, at, undefined, { [name]: '' });
      const { status, body } = await sent;
      expect([method, at, status, body.errors]).toEqual([
        method,
        at,
        400,
        [expect.objectContaining({ in: 'header', pointer: `/${name}`, code: 'empty' })],
      ]);
    }
  });

  test('a record has an ETag, which a read of it can be conditional on', () => {
    const paths = new Set(routes.filter(({ current }) => current).map(({ path: at }) => at));
    const reads = routes.filter(({ method, path: at }) => method === 'GET' && paths.has(at));
    expect(reads.length).toBeGreaterThan(30);
    for (const route of reads.filter(({ path: at }) => at !== '/api/auth/session')) {
      const { responses } = operationOf(route);
      expect([route.path, Object.keys(responses['200']?.headers ?? {})]).toEqual([
        route.path,
        ['ETag'],
      ]);
      expect(headersOf(route)).toHaveProperty(['If-None-Match']);
    }
  });

  test('the path of what is created, and whether a response is repeated', () => {
    const { responses } = operationOf(
      assertDefined(
        routes.find(({ operationId }) => operationId === 'createJob'),
        'createJob',
      ),
    );
    expect(Object.keys(responses['201']?.headers ?? {})).toEqual([
      'ETag',
      'Location',
      'Idempotent-Replayed',
    ]);
    expect(document.components.responses.Problem).toHaveProperty(['headers', 'Retry-After']);
  });
});

test('every reference in the document resolves', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(
    (match) => match[1] ?? '',
  );
  expect(references.length).toBeGreaterThan(10);
  for (const reference of references) {
    const steps = reference.split('/');
    const target = steps.reduce<unknown>(
      (node, step) => (node as Record<string, unknown> | undefined)?.[step],
      document,
    );
    expect(target).toBeDefined();
  }
});

test('every body in JSON is a named schema', () => {
  const unnamed = routes
    .filter(({ path }) => !path.startsWith('/api/docs'))
    .flatMap((route) => {
      const { operationId, requestBody, responses } = operationOf(route);
      const contents = [requestBody?.content, ...Object.values(responses).map((r) => r.content)];
      const schemas = contents.flatMap((content) => content?.['application/json']?.schema ?? []);
      return schemas.filter(({ $ref }) => $ref === undefined).map(() => operationId);
    });
  expect(unnamed).toEqual([]);
});

test('no large part of a schema is written several times: it has a title', () => {
  const textOf = (schema: Schema) =>
    JSON.stringify(schema, (key, value: unknown) => (key === 'description' ? undefined : value));
  const named = new Set<object | undefined>(Object.values(document.components.schemas));
  const parts = schemasIn(document).filter((schema) => !named.has(schema));
  const copies = Map.groupBy(parts.map(textOf), (text) => text);
  const wasteful = [...copies].filter(
    ([text, { length }]) => text.length >= 100 && text.length * (length - 1) > 1_000,
  );
  expect(wasteful.map(([text]) => text)).toEqual([]);
});

/** Objects and choices without a name whose type a generator would name by a position. */
function namedByPosition(node: unknown, path: string, isPart = false): string[] {
  if (typeof node !== 'object' || node === null) return [];
  const schema = node as Record<string, unknown>;
  const isType = [schema.type].flat().includes('object') || Array.isArray(schema.enum);
  const inner = Object.entries(schema).flatMap(([key, each]) => {
    if (['enum', 'default', 'example', 'examples'].includes(key)) return [];
    const parts = ['items', 'additionalProperties'].includes(key);
    return ['anyOf', 'oneOf', 'allOf'].includes(key)
      ? (each as unknown[]).flatMap((one, i) => namedByPosition(one, `${path}/${key}/${i}`, true))
      : namedByPosition(each, `${path}/${key}`, parts);
  });
  const isUnion = Array.isArray(schema.type) && schema.type.length > 1;
  return (isPart || isUnion) && isType && !('$ref' in schema) ? [path, ...inner] : inner;
}

test('what is in a list or a union has a name, not a position', () => {
  const { paths, components } = document;
  expect([...namedByPosition(components, ''), ...namedByPosition(paths, '')]).toEqual([]);
});

test('every choice has a type, and every number says what type holds it', () => {
  const incomplete = schemasIn(document).filter((schema) => {
    const { type, enum: values, format, maximum = Infinity } = schema as Record<string, unknown>;
    const types: unknown[] = [type].flat();
    const isLong =
      types.includes('number') || (types.includes('integer') && (maximum as number) > 2 ** 31 - 1);
    return Array.isArray(values) ? type === undefined : isLong && format === undefined;
  });
  expect(incomplete).toEqual([]);
});

test('a choice that may be null has the type of its values', () => {
  const nullable = schemasIn(document).filter(
    (schema) => Array.isArray((schema as { type?: unknown }).type) && 'enum' in schema,
  ) as { type: string[]; enum: unknown[] }[];
  // A validator accepts of a choice what is in its list, whatever its type is.
  for (const { type, enum: values } of nullable)
    expect(values.includes(null)).toBe(type.includes('null'));
});

test('names of schemas are names of types in generated clients', () => {
  const names = Object.keys(document.components.schemas);
  expect(names.filter((name) => !/^[A-Z][A-Za-z0-9]*$/.test(name))).toEqual([]);
  expect(names).toEqual(
    expect.arrayContaining(['Device', 'DeviceRequest', 'DeviceChange', 'DeviceList', 'Problem']),
  );
  expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(names.length);
});

test('the document is small', () => {
  const text = JSON.stringify(document);
  expect(gzipSync(text, { level: 4 }).length).toBeLessThan(100_000);
  expect(text.length).toBeLessThan(900_000);
});

/** A program against types that are generated from the document. */
const CLIENT = `
import type { components, paths } from './holdfast.ts';
type Schemas = components['schemas'];

export const wanted: Schemas['DeviceRequest'] = {
  name: 'leaf1',
  siteId: { name: 'ams1' },
  deviceTypeId: 'dty_01jd0cmxk5e5v8kyzwq0q8s3rt',
  tags: null,
};
type Listed = paths['/api/inventory/devices']['get']['responses'][200]['content']['application/json'];
export const namesOf = ({ items, nextCursor }: Listed): Record<string, Schemas['DeviceStatus']> =>
  nextCursor === null ? {} : Object.fromEntries(items.map(({ name, status }) => [name, status]));
export const read = (device: Schemas['Device']): Schemas['DeviceChange'] => device;
export const subjectOf = (message: Schemas['JobMessage'] | Schemas['BackupMessage']): string =>
  message.type === 'job.failed' ? message.data.jobId : message.type;
export const codeOf = ({ code }: Schemas['Problem']): Schemas['ErrorCode'] => code;

// @ts-expect-error a name is required
export const nameless: Schemas['DeviceRequest'] = { siteId: 'x', deviceTypeId: 'y' };
// @ts-expect-error no device has this status
export const lost: Schemas['DeviceStatus'] = 'lost';
`;

/** The snippets of the guide in one language, as one program. */
async function snippetsOf(guide: string, language: string): Promise<string> {
  const text = await readFile(path.resolve('docs', guide), 'utf8');
  const fence = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms');
  return [...text.matchAll(fence)].map(([, snippet = '']) => snippet).join('\n');
}

test('the snippets of the guide to generated clients compile', async () => {
  const holdfast = astToString(await openapiTS(JSON.stringify(document)));
  const guide = await snippetsOf('clients.md', 'ts');
  expect(guide).toContain('createClient<paths>');
  const program = `declare const token: string;\n${guide}`;
  expect(typeErrors({ 'guide.ts': program, 'holdfast.ts': holdfast })).toEqual([]);
});

test('types for TypeScript are generated, and a program against them compiles', async () => {
  const holdfast = astToString(await openapiTS(JSON.stringify(document)));
  expect(typeErrors({ 'client.ts': CLIENT, 'holdfast.ts': holdfast })).toEqual([]);
  const wrong = CLIENT.replace("name: 'leaf1'", 'name: 1');
  expect(typeErrors({ 'client.ts': wrong, 'holdfast.ts': holdfast })).toEqual([
    "client.ts: Type 'number' is not assignable to type 'string'.",
  ]);
});

test('every event type is documented as a webhook with the schema of its data', () => {
  expect(Object.keys(document.webhooks).sort()).toEqual(Object.keys(EVENT_DATA).sort());
  for (const [type, data] of Object.entries(EVENT_DATA)) {
    const { pathItems, schemas } = document.components;
    const { $ref } = assertDefined(document.webhooks[type], type);
    const { post } = assertDefined(pathItems[lastStep($ref)], $ref);
    const { schema } = post.requestBody.content['application/json'];
    const { properties } = schemas[lastStep(schema.$ref)] as Message;
    expect(properties.type.enum).toContain(type);
    expect(lastStep(properties.data.$ref)).toBe(nameOf(data));
  }
});

test('routes of webhooks and events require the tenant header', () => {
  const areas = (named: boolean) =>
    new Set(
      routes
        .filter((route) => (route.requiresTenantHeader ?? false) === named)
        .map((route) => route.tag),
    );
  expect(areas(true)).toEqual(new Set(['Webhooks', 'Events']));
  expect(areas(false)).not.toContain('Webhooks');
  expect(areas(false)).not.toContain('Events');
});

/** What is read in the order of its source, or by tenant. */
const IN_AN_OWN_ORDER =
  /^\/api\/jobs\/\{jobId\}\/logs$|\/(?:rows|changes|tree)$|^\/api\/(?:quotas|retention)$/;

test('every list has the features of lists', () => {
  const lists = routes.filter(
    ({ query, responses, path }) =>
      query?.properties.cursor !== undefined &&
      (responses[200] as TObject | null)?.properties.items !== undefined &&
      !IN_AN_OWN_ORDER.test(path),
  );
  expect(lists.length).toBeGreaterThan(40);
  const missing = lists.flatMap(({ path, query }) =>
    ['limit', 'sort', 'fields', 'count']
      .filter((name) => query?.properties[name] === undefined)
      .map((name) => `${path} ${name}`),
  );
  expect(missing).toEqual([]);
});

test('every POST that creates a record accepts an Idempotency-Key', () => {
  const creating = routes.filter((route) => route.method === 'POST' && '201' in route.responses);
  expect(creating.length).toBeGreaterThan(0);
  expect(creating.filter((route) => route.replayResponse === undefined)).toEqual([]);
});

test('every route rejects unknown fields of body, query and path', () => {
  for (const { method, path, body, query, params } of routes.filter(
    (route) => !UNCHECKED_INPUT.includes(route.path),
  )) {
    for (const schema of [body, query, params]) {
      expect([
        method,
        path,
        schema && (schema as { additionalProperties?: boolean }).additionalProperties,
      ]).toEqual([method, path, schema && false]);
    }
  }
});

describe('ids in responses', () => {
  type Node = { [keyword: string]: unknown; properties?: Record<string, Node> };

  /** Ids of what has no label: runs in Temporal, requests, events, tokens, imports; and an operation. */
  const WITHOUT_LABEL =
    /^(workflowId|requestId|temporalScheduleId|eventId|tokenId|dryRunId|createdOnlyBy)$/;
  const NAMES_SOMETHING = /(Id|Ids|By|owner)$/;
  const ANNOTATIONS = ['x-reference', 'x-person'];

  const isAnnotated = (node: Node): boolean =>
    ANNOTATIONS.some((keyword) => keyword in node) ||
    [node.anyOf ?? [], node.items ?? []].flat().some((each) => isAnnotated(each as Node));

  const isTyped = (properties: object) => 'type' in properties || 'kind' in properties;

  function findUnannotated(node: unknown, path: string): string[] {
    if (typeof node !== 'object' || node === null) return [];
    const { properties = {}, 'x-subject': subject } = node as Node;
    const own = Object.entries(properties)
      .filter(([name, schema]) => {
        // `{ type, id }` names a record of that type.
        if (name === 'id')
          return (
            Object.keys(properties).length === 2 && isTyped(properties) && subject === undefined
          );
        return NAMES_SOMETHING.test(name) && !WITHOUT_LABEL.test(name) && !isAnnotated(schema);
      })
      .map(([name]) => `${path}/${name}`);
    const inner = Object.entries(node).flatMap(([key, each]) =>
      findUnannotated(each, key === 'properties' ? path : `${path}/${key}`),
    );
    return [...own, ...inner];
  }

  test('say what they are of, so that include finds the names', () => {
    const found = routes
      .filter(({ includes }) => includes)
      .flatMap((route) => findUnannotated(route.responses[200], route.operationId));
    expect([...new Set(found)]).toEqual([]);
  });

  test('every list and read of JSON accepts include', () => {
    const without = routes.filter(
      ({ method, responses, public: isPublic, includes }) =>
        method === 'GET' && responses[200] && isPublic === undefined && !includes,
    );
    expect(without.map(({ path }) => path)).toEqual([]);
    expect(JSON.stringify(document.components)).toContain('"Included":');
  });
});

describe('error codes', () => {
  test('every error code is used', async () => {
    const folders = ['api', 'services', 'domain', 'db', 'platform'];
    const sources = await Promise.all(
      folders.map(async (folder) => {
        const root = path.join(import.meta.dirname, '../..', folder);
        const files = (await readdir(root, { recursive: true })).filter((file) =>
          file.endsWith('.ts'),
        );
        return Promise.all(
          files
            .filter((f) => !/errors\.ts|problem\.ts/.test(f))
            .map((file) => readFile(path.join(root, file), 'utf8')),
        );
      }),
    );
    const code = sources.flat().join('\n');
    const throwable = Object.keys(PROBLEMS).filter(
      (name) => !['internal', 'unavailable', 'invalid_request', 'not_found'].includes(name),
    );
    expect(throwable.filter((name) => !code.includes(`'${name}'`))).toEqual([]);
  });
});
