import { Type, type TObject, type TSchema } from 'typebox';
import { EVENT_DATA } from '../../domain/events/events.ts';
import { messageOf } from '../../domain/webhooks/webhooks.ts';
import { Problem, PROBLEMS, PROBLEM_TYPE } from '../kit/problem.ts';
import type { Route } from '../kit/route.ts';

const REASONS: Readonly<Record<number, string>> = {
  200: 'Done',
  201: 'Made',
  202: 'Accepted, the work goes on',
  204: 'Done, nothing to say',
  303: 'Go on elsewhere',
};

const HEADER_DOCS: Readonly<Record<string, string>> = {
  Prefer:
    '`wait=N` (seconds, at most 60) answers when the work has ended; `timing` adds Server-Timing.',
  'If-Match': 'The ETag that was read; another version is answered with 412.',
  'Last-Event-ID': 'Number of the last log line that was received.',
  'Idempotency-Key': 'Sent again within 24 hours with the same body, the first answer comes again.',
};

const header = (name: string) => ({
  name,
  in: 'header',
  required: false,
  description: HEADER_DOCS[name],
  schema: { type: 'string' },
});

function parameters(place: 'path' | 'query', schema: TObject | undefined) {
  const required = new Set(schema?.required ?? []);
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const { description, ...rest } = property as { description?: string };
    return {
      name,
      in: place,
      required: place === 'path' || (required.has(name) && !('default' in rest)),
      description,
      schema: rest,
    };
  });
}

/** Failures that a route can answer by its shape alone; the handler's own are among the 409s and 404s. */
function failures(route: Route): number[] {
  const statuses = [400, 401, 429, 500, 503];
  if (route.permission || (route.signedIn && route.method !== 'GET')) statuses.push(403);
  if (route.params) statuses.push(404);
  if (route.method !== 'GET') statuses.push(409, 413, 415);
  // Somebody else's server stands behind these.
  if (route.page || route.path.startsWith('/api/auth/login/')) statuses.push(409, 502);
  if (route.recover) statuses.push(422);
  if (route.headers?.includes('If-Match')) statuses.push(412);
  if (route.matchable) statuses.push(428);
  return [...new Set(statuses)].sort((a, b) => a - b);
}

const BODY_TYPES = { json: 'application/json', form: 'application/x-www-form-urlencoded' } as const;

function contentOf({ produces }: Route, schema: TSchema | null) {
  if (schema) return { content: json(schema) };
  return produces === undefined ? {} : { content: { [produces]: { schema: { type: 'string' } } } };
}

/** Who may come in, in words and for tools. */
function guard({ permission, signedIn, session, public: reason, tenantNamed }: Route) {
  const withTenant = { gatewayActor: [], gatewayRoles: [], gatewayTenant: [] };
  const known = [
    withTenant,
    ...(tenantNamed ? [] : [{ gatewayActor: [], gatewayRoles: [] }]),
    { session: [] },
  ];
  if (session !== undefined)
    return { description: `A session: ${session}.`, security: [{ session: [] }] };
  if (permission !== undefined)
    return { description: `Permission: \`${permission}\`.`, security: known };
  if (signedIn !== undefined)
    return { description: `No permission: ${signedIn}.`, security: known };
  return { description: `Public: ${reason}.`, security: [] };
}

const json = (schema: TSchema) => ({ 'application/json': { schema } });

function operation(route: Route) {
  const success = Object.entries(route.answers).map(([status, schema]): [string, object] => [
    status,
    { description: REASONS[Number(status)] ?? 'Answer', ...contentOf(route, schema) },
  ]);
  const problems = failures(route)
    .filter((status) => !(status in route.answers))
    .map((status): [string, object] => [
      String(status),
      { $ref: `#/components/responses/Problem${status}` },
    ]);
  const headers = [...(route.headers ?? []), ...(route.recover ? ['Idempotency-Key'] : [])];
  const { method, path, area, summary } = route;
  return {
    operationId: `${method.toLowerCase()}${path.replaceAll(/[^A-Za-z0-9]+(\w)?/g, (_, letter: string | undefined) => letter?.toUpperCase() ?? '')}`,
    tags: [area],
    summary,
    ...guard(route),
    parameters: [
      ...parameters('path', route.params),
      ...parameters('query', route.query),
      ...headers.map(header),
    ],
    ...(route.upload && {
      requestBody: {
        required: true,
        content: Object.fromEntries(
          route.upload.types.map((type) => [type, { schema: { type: 'string' } }]),
        ),
      },
    }),
    ...(route.body && {
      requestBody: {
        required: true,
        content: { [BODY_TYPES[route.bodyType ?? 'json']]: { schema: route.body } },
      },
    }),
    responses: Object.fromEntries([...success, ...problems]),
  };
}

const problemResponses = () =>
  Object.fromEntries(
    [...new Set(Object.values(PROBLEMS).map(({ status }) => status))].map((status) => {
      const codes = Object.entries(PROBLEMS)
        .filter(([, problem]) => problem.status === status)
        .map(([code]) => code);
      const content = { [PROBLEM_TYPE]: { schema: { $ref: '#/components/schemas/Problem' } } };
      return [`Problem${status}`, { description: `code: ${codes.join(', ')}`, content }];
    }),
  );

/** What a webhook gets for an event of a type. */
const message = (type: string, data: TSchema) => ({
  tags: ['Webhooks'],
  summary: `Sent to webhooks that subscribe to ${type}`,
  parameters: ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => ({
    name,
    in: 'header',
    required: true,
    schema: { type: 'string' },
  })),
  requestBody: { required: true, content: json(messageOf(Type.Literal(type), data)) },
  responses: {
    '2XX': { description: 'Received' },
    410: { description: 'Gone: the webhook is disabled' },
    default: { description: 'Tried again later' },
  },
});

/** The OpenAPI 3.1 document of `routes`. */
export function openApi(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route) };
  }
  const gateway = 'Believed from a trusted gateway only.';
  return {
    openapi: '3.1.0',
    info: { title: 'Holdfast', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/' }],
    paths,
    webhooks: Object.fromEntries(
      Object.entries(EVENT_DATA).map(([type, data]) => [type, { post: message(type, data) }]),
    ),
    components: {
      schemas: { Problem },
      responses: problemResponses(),
      securitySchemes: {
        gatewayActor: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Service-Actor-Id',
          description: `Who asks. ${gateway}`,
        },
        gatewayRoles: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Service-Role-Ids',
          description: `Their roles, comma-separated. ${gateway}`,
        },
        gatewayTenant: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Service-Tenant-Id',
          description: `Where the roles count; platform unless given. ${gateway}`,
        },
        session: { type: 'http', scheme: 'bearer' },
      },
    },
  };
}
