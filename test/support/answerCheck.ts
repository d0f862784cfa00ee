import type { TObject, TSchema } from 'typebox';
import { problemStatuses } from '../../api/http/openapi.ts';
import { successHeaders } from '../../api/http/openapiHeaders.ts';
import { PROBLEMS } from '../../api/http/problem.ts';
import type { HttpResponse } from '../../api/http/response.ts';
import type { Route } from '../../api/http/route.ts';
import type { AppError } from '../../domain/shared/errors.ts';
import { compileCheck, type SchemaCheck } from '../../platform/schemaCheck.ts';

/** Fails a request whose error has a status that its operation does not declare. */
export function errorCheck(route: Route, { code }: AppError): void {
  const { status } = PROBLEMS[code];
  if (status in route.responses || problemStatuses(route).includes(status)) return;
  const message = `${route.method} ${route.path} does not declare ${status}`;
  process.stderr.write(`${message}\n`);
  throw new Error(message);
}

const checks = new WeakMap<TSchema, SchemaCheck>();

function checkOf(schema: TSchema): SchemaCheck {
  const check = checks.get(schema) ?? compileCheck(schema);
  checks.set(schema, check);
  return check;
}

const partial = new WeakMap<TSchema, TSchema>();

/** The schema of a list of which a query has chosen the fields: those that it lacks are not missing. */
function withAnyFields(schema: TSchema): TSchema {
  const known = partial.get(schema);
  if (known) return known;
  const { properties } = schema as TObject;
  const { items: item } = properties.items as unknown as { items: TObject };
  const made = {
    ...schema,
    properties: { ...properties, items: { type: 'array', items: { ...item, required: ['id'] } } },
  };
  partial.set(schema, made);
  return made;
}

/** Headers that are part of an answer as its body is. */
const HEADERS = ['location', 'etag', 'idempotent-replayed'];

function checkHeaders(key: string, route: Route, { status, headers }: HttpResponse): void {
  const { headers: declared = {} } = successHeaders(route, status) as { headers?: object };
  const known = new Set(Object.keys(declared).map((name) => name.toLowerCase()));
  const unknown = HEADERS.filter((name) => name in headers && !known.has(name));
  if (unknown.length > 0) throw new Error(`${key} does not declare the headers ${unknown.join()}`);
}

/** Fails a request whose answer is not what its route declares: the test sees a 500. */
export function responseCheck(
  routes: readonly Route[],
): (route: Route, response: HttpResponse) => void {
  const keyOf = (route: Route, status: number) => `${route.method} ${route.path} ${status}`;
  const declared = new Map(
    routes.flatMap((route) =>
      Object.entries(route.responses).map(
        ([status, schema]) => [keyOf(route, Number(status)), schema] as const,
      ),
    ),
  );
  return (route, response) => {
    const key = keyOf(route, response.status);
    const schema = declared.get(key);
    if (schema === undefined) throw new Error(`${key} is not declared`);
    if (response.stream && !route.produces?.includes(response.stream.contentType))
      throw new Error(`${key} does not declare ${response.stream.contentType}`);
    if (response.status < 400) checkHeaders(key, route, response);
    if (schema === null || response.stream) return;
    const errors = checkOf(response.choosesFields ? withAnyFields(schema) : schema)(
      JSON.parse(
        response.json ?? response.document?.identity?.toString() ?? JSON.stringify(response.body),
      ),
    );
    if (errors.length > 0)
      throw new Error(`${key} answers against its schema: ${JSON.stringify(errors)}`);
  };
}
