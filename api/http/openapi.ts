import { Type, type TObject, type TSchema } from 'typebox';
import { EVENT_DATA } from '../../domain/events/events.ts';
import { messageSchema } from '../../domain/webhooks/webhooks.ts';
import { withNulls } from '../../platform/nulls.ts';
import { readOnlyProperties, withReadOnly } from './presentedRecord.ts';
import { Problem, PROBLEMS, PROBLEM_TYPE } from './problem.ts';
import { bodyLimitOf } from './requestBody.ts';
import { permissionsOf, type Route } from './route.ts';

const RESPONSE_DESCRIPTIONS: Readonly<Record<number, string>> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted: processing continues after the response',
  204: 'No content',
  303: 'See other',
};

const HEADER_DOCS: Readonly<Record<string, string>> = {
  Prefer:
    '`wait=N` waits up to N seconds (60 at most) for the job to finish; `timing` adds a `Server-Timing` header.',
  'If-Match':
    'ETag of the version that was read. The response is 412 if the record has changed since.',
  'Last-Event-ID': 'Number of the last log line received.',
  'Idempotency-Key':
    'Repeating the request with the same key and body within 24 hours returns the original response, ' +
    'or the record as it is now if the rights of the caller have changed. The response is 404 if the ' +
    'record is deleted or no longer visible to the caller.',
};

const headerParameter = (name: string) => ({
  name,
  in: 'header',
  required: false,
  description: HEADER_DOCS[name],
  schema: { type: 'string' },
});

function parameters(location: 'path' | 'query', schema: TObject | undefined) {
  const required = new Set(schema?.required ?? []);
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const { description, ...rest } = property as { description?: string };
    return {
      name,
      in: location,
      required: location === 'path' || (required.has(name) && !('default' in rest)),
      description,
      schema: rest,
    };
  });
}

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
  if (route.htmlErrors || route.path.startsWith('/api/auth/login/')) statuses.push(409, 502);
  // A repeated request whose record is deleted, or no longer visible to the caller.
  if (route.replayResponse) statuses.push(404, 422);
  if (route.headers?.includes('If-Match')) statuses.push(412);
  if (route.ifMatchConfigurable) statuses.push(428);
  return [...new Set(statuses)].sort((a, b) => a - b);
}

const BODY_TYPES = { json: 'application/json', form: 'application/x-www-form-urlencoded' } as const;

const PROBLEM_CONTENT = { [PROBLEM_TYPE]: { schema: { $ref: '#/components/schemas/Problem' } } };
const PAGE_CONTENT = { 'text/html': { schema: { type: 'string' } } };

/**
 * The content of a declared response: JSON with a schema, streams as text, and a problem where the
 * response is an error.
 */
function contentOf({ produces = [] }: Route, status: number, schema: TSchema | null) {
  const streams = status === 200 ? produces : [];
  const text = streams.map((type) => [type, { schema: { type: 'string' } }] as const);
  const content = {
    ...(schema && json(schema)),
    ...(status >= 400 && PROBLEM_CONTENT),
    ...Object.fromEntries(text),
  };
  return Object.keys(content).length > 0 ? { content } : {};
}

/** Who may call an operation: as text, and as OpenAPI security requirements. */
function accessOf(route: Route) {
  const { signedIn, session, public: reason, requiresTenantHeader } = route;
  const permissions = permissionsOf(route).map((permission) => `\`${permission}\``);
  const gatewayWithTenant = { gatewayActor: [], gatewayRoles: [], gatewayTenant: [] };
  const authenticated = [
    gatewayWithTenant,
    ...(requiresTenantHeader ? [] : [{ gatewayActor: [], gatewayRoles: [] }]),
    { session: [] },
  ];
  if (session !== undefined)
    return { description: `Requires a session: ${session}.`, security: [{ session: [] }] };
  if (permissions.length > 0)
    return {
      description: `Requires the permission ${permissions.join(' or ')}.`,
      security: authenticated,
    };
  if (signedIn !== undefined)
    return {
      description: `Requires authentication, no permission: ${signedIn}.`,
      security: authenticated,
    };
  const limit = route.body ? ` A body has at most ${bodyLimitOf(route)} bytes.` : '';
  return { description: `Public: ${reason}.${limit}`, security: [] };
}

const json = (schema: TSchema) => ({ 'application/json': { schema } });

/** True if the schema refuses an empty object, which an empty body counts as. */
const isRequired = (body: TSchema): boolean => {
  const { required = [], minProperties = 0 } = body as {
    required?: string[];
    minProperties?: number;
  };
  return required.length > 0 || minProperties > 0;
};

function requestBody(route: Route, routes: readonly Route[]) {
  const { body, bodyType = 'json', upload, example } = route;
  const media = (schema: object) => ({ schema, ...(example !== undefined && { example }) });
  if (upload) {
    const content = upload.types.map((type) => [type, media({ type: 'string' })] as const);
    return { requestBody: { required: true, content: Object.fromEntries(content) } };
  }
  if (!body) return {};
  const schema = withNulls(
    route.current ? withReadOnly(body as TObject, readOnlyProperties(route, routes)) : body,
  );
  const content = { [BODY_TYPES[bodyType]]: media(schema) };
  return { requestBody: { required: isRequired(schema), content } };
}

function responses(route: Route) {
  const success = Object.entries(route.responses).map(([status, schema]): [string, object] => [
    status,
    {
      description: RESPONSE_DESCRIPTIONS[Number(status)] ?? 'Response',
      ...contentOf(route, Number(status), schema),
    },
  ]);
  const problems = problemStatuses(route)
    .filter((status) => !(status in route.responses))
    .map((status): [string, object] => [
      String(status),
      route.htmlErrors
        ? {
            description: 'Problem; as a page for a client that prefers HTML',
            content: { ...PROBLEM_CONTENT, ...PAGE_CONTENT },
          }
        : { $ref: `#/components/responses/Problem${status}` },
    ]);
  const isConditional = route.method === 'GET' && 200 in route.responses;
  const unchanged: [string, object][] = isConditional
    ? [['304', { description: 'Not modified: `If-None-Match` has the current ETag, or `*`' }]]
    : [];
  return Object.fromEntries([...success, ...unchanged, ...problems]);
}

function operation(route: Route, routes: readonly Route[]) {
  const headers = [...(route.headers ?? []), ...(route.replayResponse ? ['Idempotency-Key'] : [])];
  const { description: access, security } = accessOf(route);
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    description: route.description === undefined ? access : `${route.description}\n\n${access}`,
    security,
    parameters: [
      ...parameters('path', route.params),
      ...parameters('query', route.query),
      ...headers.map(headerParameter),
    ],
    ...requestBody(route, routes),
    responses: responses(route),
  };
}

const problemResponses = () =>
  Object.fromEntries(
    [...new Set(Object.values(PROBLEMS).map(({ status }) => status))].map((status) => {
      const codes = Object.entries(PROBLEMS)
        .filter(([, problem]) => problem.status === status)
        .map(([code, { title }]) => `- \`${code}\`: ${title}`);
      return [
        `Problem${status}`,
        {
          description: `Problem with one of these codes:\n\n${codes.join('\n')}`,
          content: PROBLEM_CONTENT,
        },
      ];
    }),
  );

/** The request that a subscribed webhook receives for an event of `type`. */
const webhookOperation = (type: string, data: TSchema) => ({
  tags: ['Webhooks'],
  summary: `Sent to webhooks subscribed to ${type}`,
  parameters: ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => ({
    name,
    in: 'header',
    required: true,
    schema: { type: 'string' },
  })),
  requestBody: { required: true, content: json(messageSchema(Type.Literal(type), data)) },
  responses: {
    '2XX': { description: 'Received' },
    410: { description: 'Holdfast disables the webhook' },
    default: { description: 'Any other response: the delivery is retried' },
  },
});

/** Builds the OpenAPI 3.1 document of `routes`. */
export function buildOpenApi(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    paths[route.path] = {
      ...paths[route.path],
      [route.method.toLowerCase()]: operation(route, routes),
    };
  }
  const gatewayNote =
    'Accepted from a trusted gateway; with an access token, from everyone, see `docs/access.md`.';
  return {
    openapi: '3.1.0',
    info: { title: 'Holdfast', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/' }],
    paths,
    webhooks: Object.fromEntries(
      Object.entries(EVENT_DATA).map(([type, data]) => [
        type,
        { post: webhookOperation(type, data) },
      ]),
    ),
    components: {
      schemas: { Problem },
      responses: problemResponses(),
      securitySchemes: {
        gatewayActor: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Service-Actor-Id',
          description: `ID of the caller. ${gatewayNote}`,
        },
        gatewayRoles: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Service-Role-Ids',
          description: `Role IDs of the caller, comma-separated. ${gatewayNote}`,
        },
        gatewayTenant: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Service-Tenant-Id',
          description: `Tenant in which the roles apply; \`platform\` by default. ${gatewayNote}`,
        },
        session: { type: 'http', scheme: 'bearer' },
      },
    },
  };
}
