import { assertDefined } from '../../domain/shared/assert.ts';
import { Type, type TObject, type TSchema } from 'typebox';
import { canBeExpensive } from './expensiveReads.ts';
import { EVENT_DATA } from '../../domain/events/events.ts';
import { messageSchema } from '../../domain/webhooks/webhooks.ts';
import { withNulls } from '../../platform/nulls.ts';
import { createComponents, nameOf, withShortUnions, type Components } from './components.ts';
import { declareIncluded, includedSchema } from './include.ts';
import { collectParameters } from './openapiParameters.ts';
import { readOnlyProperties, withReadOnly } from './presentedRecord.ts';
import { Problem, PROBLEMS, PROBLEM_TYPE } from './problem.ts';
import { headersOf, RESPONSE_HEADERS, successHeaders } from './openapiHeaders.ts';
import { bodyLimitOf } from './requestBody.ts';
import { permissionsOf, type Route } from './route.ts';
import { counted } from '../../domain/shared/counted.ts';

const RESPONSE_DESCRIPTIONS: Readonly<Record<number, string>> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted: processing continues after the response',
  204: 'No content',
  303: 'See other',
};

/** Error statuses that a route can return, judging by its declaration. */
export function problemStatuses(route: Route): number[] {
  const statuses = [400, 401, 429, 500, 503, ...(route.problems ?? [])];
  // A caller with a one-time password may call few operations.
  if (route.public === undefined) statuses.push(403);
  if (route.params) statuses.push(404);
  if (route.method !== 'GET') statuses.push(409, 413, 415);
  // Their limit is checked for every method.
  if (route.public !== undefined) statuses.push(413);
  // These depend on an external identity provider.
  if (route.errorsLeadTo || route.path.startsWith('/api/auth/login/')) statuses.push(409, 502);
  // A repeated request whose record is deleted, or no longer visible to the caller.
  if (route.replayResponse) statuses.push(404, 422);
  if (route.headers?.includes('If-Match')) statuses.push(412);
  if (route.ifMatchConfigurable) statuses.push(428);
  return [...new Set(statuses)].sort((a, b) => a - b);
}

const LED_BACK =
  'After an error, a client that prefers HTML is redirected to the `failureTo` of the login, with `error` and `requestId` in the query.';

const BODY_TYPES = { json: 'application/json', form: 'application/x-www-form-urlencoded' } as const;

/** Statuses that follow from the kind of an operation: the response `default` describes them. */
export const COMMON_PROBLEMS: readonly number[] = [400, 401, 403, 413, 415, 429, 500, 503];

const COMMON_TEXT =
  'A problem. Every operation can answer 400, 401, 429, 500 and 503, those that need an identity 403, ' +
  'and those other than GET 413 and 415. Other statuses are listed with the operation.';

const EXPENSIVE_TEXT =
  'While other callers are active, the time that expensive reads use is limited for a caller and for a tenant. Beyond it they are 429 with `Retry-After`; lists without `q` leave out their counts instead.';

const PROBLEM_CONTENT = { [PROBLEM_TYPE]: { schema: { $ref: '#/components/schemas/Problem' } } };

/** Types of files that clients read and send as bytes. */
const FILE_TYPES: ReadonlySet<string> = new Set(['text/csv', 'application/x-ndjson']);

const textOf = (type: string) => ({
  type: 'string',
  ...(FILE_TYPES.has(type) && { format: 'binary' }),
});

/**
 * The content of a declared response: JSON with a schema, streams as text, and a problem where the
 * response is an error.
 */
function contentOf(
  { produces = [] }: Route,
  status: number,
  schema: TSchema | null,
  { refer }: Components,
) {
  const streams = status === 200 ? produces : [];
  const text = streams.map((type) => [type, { schema: textOf(type) }] as const);
  const content = {
    ...(schema && json(refer(schema, 'response'))),
    ...(status >= 400 && PROBLEM_CONTENT),
    ...Object.fromEntries(text),
  };
  return Object.keys(content).length > 0 ? { content } : {};
}

const GATEWAY = { gatewayActor: [], gatewayRoles: [] };
const GATEWAY_WITH_TENANT = { ...GATEWAY, gatewayTenant: [] };
const SESSION = { session: [] };
const TOKEN = { token: [] };
const RUNNER = { runnerToken: [] };

/** What an operation accepts that says nothing else. */
const AUTHENTICATED = [GATEWAY_WITH_TENANT, GATEWAY, SESSION, TOKEN];
const AUTHENTICATED_WITH_TENANT = [GATEWAY_WITH_TENANT, SESSION, TOKEN];
const WITHOUT_TOKEN = [GATEWAY_WITH_TENANT, GATEWAY, SESSION];

/** How callers authenticate, if not as for most operations. */
function securityOf({ requiresTenantHeader, refusesTokens, runner, allowsRunners }: Route): {
  security?: object[];
} {
  if (runner !== undefined) return { security: [RUNNER] };
  if (allowsRunners) return { security: [...AUTHENTICATED, RUNNER] };
  if (refusesTokens !== undefined) return { security: WITHOUT_TOKEN };
  return requiresTenantHeader ? { security: AUTHENTICATED_WITH_TENANT } : {};
}

/** Who may call an operation: as text, and as OpenAPI security requirements. */
function accessOf(route: Route): { description: string; security?: object[] } {
  const { signedIn, session, public: reason, refusesTokens } = route;
  const permissions = permissionsOf(route).map((permission) => `\`${permission}\``);
  const authenticated = securityOf(route);
  const refusal =
    refusesTokens === undefined ? '' : ` Not possible with an API token: ${refusesTokens}.`;
  if (session !== undefined)
    return { description: `Requires a session: ${session}.`, security: [SESSION] };
  if (permissions.length > 0)
    return {
      description: `Requires the permission ${permissions.join(' or ')}.${refusal}`,
      ...authenticated,
    };
  if (signedIn !== undefined)
    return {
      description: `Requires authentication, no permission: ${signedIn}.${refusal}`,
      ...authenticated,
    };
  if (route.runner !== undefined)
    return { description: `Requires the token of a runner: ${route.runner}.`, ...authenticated };
  const limit = route.body ? ` A body has at most ${bodyLimitOf(route)} bytes.` : '';
  return { description: `Public: ${reason}.${limit}`, security: [] };
}

const json = (schema: object) => ({ 'application/json': { schema } });

/** True if the schema refuses an empty object, which an empty body counts as. */
const isRequired = (body: TSchema): boolean => {
  const { required = [], minProperties = 0 } = body as {
    required?: string[];
    minProperties?: number;
  };
  return required.length > 0 || minProperties > 0;
};

function requestBody(route: Route, routes: readonly Route[], { refer }: Components) {
  const { body, bodyType = 'json', upload, example } = route;
  if (upload) {
    const content = Object.entries(upload.examples).map(
      ([type, text]) => [type, { schema: textOf(type), example: text }] as const,
    );
    return { requestBody: { required: true, content: Object.fromEntries(content) } };
  }
  if (!body) return {};
  const schema = withNulls(
    route.current ? withReadOnly(body as TObject, readOnlyProperties(route, routes)) : body,
  );
  const content = {
    [BODY_TYPES[bodyType]]: {
      schema: refer(schema, 'request'),
      ...(example !== undefined && { example }),
    },
  };
  return { requestBody: { required: isRequired(schema), content } };
}

function responses(route: Route, components: Components) {
  const success = Object.entries(route.responses).map(([status, schema]): [string, object] => [
    status,
    {
      description: RESPONSE_DESCRIPTIONS[Number(status)] ?? 'Response',
      ...successHeaders(route, Number(status)),
      ...contentOf(route, Number(status), schema, components),
    },
  ]);
  const problems = problemStatuses(route)
    .filter((status) => !(status in route.responses) && !COMMON_PROBLEMS.includes(status))
    .map((status): [string, object] => [
      String(status),
      { $ref: `#/components/responses/Problem${status}` },
    ]);
  if (canBeExpensive(route)) problems.push(['429', { $ref: '#/components/responses/Problem429' }]);
  problems.push(['default', { $ref: '#/components/responses/Problem' }]);
  const isConditional = route.method === 'GET' && 200 in route.responses;
  const unchanged: [string, object][] = isConditional
    ? [['304', { $ref: '#/components/responses/NotModified' }]]
    : [];
  return Object.fromEntries([...success, ...unchanged, ...problems]);
}

type Parts = { parameters: object[]; requestBody?: object; responses: object };

function operation(route: Route, parts: Parts) {
  const { description: access, ...security } = accessOf(route);
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    description: [
      route.description,
      route.errorsLeadTo && LED_BACK,
      access,
      canBeExpensive(route) ? 'Expensive, see the response 429.' : undefined,
    ]
      .filter((text) => text !== undefined)
      .join('\n\n'),
    'x-permission': permissionsOf(route),
    ...security,
    ...parts,
  };
}

const problemResponse = (text: string, statuses: readonly number[]) => {
  const codes = Object.entries(PROBLEMS)
    .filter(([, { status }]) => statuses.includes(status))
    .map(([code, { status, title }]) => `- ${status} \`${code}\`: ${title}`);
  return {
    description: `${text}\n\n${codes.join('\n')}`,
    ...headersOf('RetryAfter'),
    content: PROBLEM_CONTENT,
  };
};

/** The responses to which operations refer: one for each status that is not common, and the others. */
function problemResponses() {
  const statuses = new Set(Object.values(PROBLEMS).map(({ status }) => status));
  const listed = [...statuses].filter((status) => !COMMON_PROBLEMS.includes(status));
  const named = listed.map((status) => [
    `Problem${status}`,
    problemResponse('Problem with one of these codes:', [status]),
  ]);
  return {
    ...(Object.fromEntries(named) as Record<string, object>),
    Problem429: problemResponse(EXPENSIVE_TEXT, [429]),
    Problem: problemResponse(COMMON_TEXT, COMMON_PROBLEMS),
  };
}

const NOT_MODIFIED = {
  description: 'Not modified: `If-None-Match` has the current ETag, or `*`',
  ...headersOf('ETag'),
};

const MESSAGE_HEADERS = {
  MessageId: 'webhook-id',
  MessageTimestamp: 'webhook-timestamp',
  MessageSignature: 'webhook-signature',
} as const;

const messageHeaders = () =>
  Object.fromEntries(
    Object.entries(MESSAGE_HEADERS).map(([component, name]) => [
      component,
      { name, in: 'header', required: true, schema: { type: 'string' } },
    ]),
  );

/** The request that subscribed webhooks receive for events of `types`, which have the same data. */
const messageOperation = (
  name: string,
  types: readonly string[],
  data: TSchema,
  { refer }: Components,
) => ({
  tags: ['Webhooks'],
  summary: `Sent to webhooks subscribed to ${types.length > 3 ? `${types.slice(0, 2).join(', ')} or one of ${counted(types.length - 2, 'other type')}` : types.join(' or ')}`,
  parameters: Object.keys(MESSAGE_HEADERS).map((header) => ({
    $ref: `#/components/parameters/${header}`,
  })),
  requestBody: {
    required: true,
    content: json(
      refer({ ...messageSchema(Type.Enum([...types]), data), title: name }, 'response'),
    ),
  },
  responses: {
    '2XX': { description: 'Received' },
    410: { description: 'Holdfast disables the webhook' },
    default: { description: 'Any other response: the delivery is retried' },
  },
});

/**
 * The messages that webhooks receive, by event type. Types with the same data share a message, such
 * as `JobMessage`.
 */
function messages(components: Components) {
  const typesByName = Map.groupBy(Object.entries(EVENT_DATA), ([type, data]) =>
    assertDefined(nameOf(data), `name of the data of ${type}`).replace(/EventData$/, 'Message'),
  );
  const webhooks = [...typesByName].flatMap(([name, entries]) =>
    entries.map(([type]) => [type, { $ref: `#/components/pathItems/${name}` }]),
  );
  const pathItems = [...typesByName].map(([name, entries]) => {
    const types = entries.map(([type]) => type);
    const [, data] = assertDefined(entries[0], name);
    return [name, { post: messageOperation(name, types, data, components) }];
  });
  return {
    webhooks: Object.fromEntries(webhooks) as object,
    pathItems: Object.fromEntries(pathItems) as object,
  };
}

const gatewayHeader = (name: string, text: string) => ({
  type: 'apiKey',
  in: 'header',
  name,
  description: `${text} Accepted from a trusted gateway; with an access token, from everyone, see \`docs/access.md\`.`,
});

const SECURITY_SCHEMES = {
  gatewayActor: gatewayHeader('X-Service-Actor-Id', 'ID of the caller.'),
  gatewayRoles: gatewayHeader('X-Service-Role-Ids', 'Role IDs of the caller, comma-separated.'),
  gatewayTenant: gatewayHeader(
    'X-Service-Tenant-Id',
    'Tenant in which the roles apply; `platform` by default.',
  ),
  session: { type: 'http', scheme: 'bearer', description: 'Access token of a session.' },
  token: {
    type: 'http',
    scheme: 'bearer',
    description: 'API token (`hft_…` or `hfv_…`), see `docs/tokens.md`.',
  },
  runnerToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'Token of a runner (`hfw_…`), see `docs/job-types.md`.',
  },
};

/** Builds the OpenAPI 3.1 document of `routes`. */
export function buildOpenApi(routes: readonly Route[], version: string): object {
  const components = createComponents(declareIncluded(routes));
  components.refer(Problem, 'response');
  components.refer(includedSchema(routes), 'response');
  // Responses come first: their schemas get the names.
  const responsesOf = new Map(routes.map((route) => [route, responses(route, components)]));
  const { webhooks, pathItems } = messages(components);
  const parameters = collectParameters(routes, components);
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const described = operation(route, {
      parameters: parameters.of(route),
      ...requestBody(route, routes, components),
      responses: responsesOf.get(route) ?? {},
    });
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: described };
  }
  return withShortUnions({
    openapi: '3.1.0',
    info: { title: 'Holdfast', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/' }],
    security: AUTHENTICATED,
    paths,
    webhooks,
    components: {
      schemas: components.all(),
      parameters: { ...parameters.shared, ...messageHeaders() },
      responses: { ...problemResponses(), NotModified: NOT_MODIFIED },
      headers: RESPONSE_HEADERS,
      pathItems,
      securitySchemes: SECURITY_SCHEMES,
    },
  });
}
