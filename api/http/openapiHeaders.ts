import type { Route } from './route.ts';

const text = (description: string) => ({ description, schema: { type: 'string' } });

/** The response headers to which operations refer. */
export const RESPONSE_HEADERS = {
  ETag: text(
    'Entity tag of the response, for `If-None-Match`. That of a record has its version, for `If-Match`.',
  ),
  Location: text('Path of the record that the request has created, or that shows its progress.'),
  RetryAfter: {
    description: 'Seconds after which the request may succeed.',
    schema: { type: 'integer', format: 'int32' },
  },
  IdempotentReplayed: text(
    '`true` in the response to a request that was repeated with its `Idempotency-Key`.',
  ),
} as const;

const NAMES: Readonly<Record<keyof typeof RESPONSE_HEADERS, string>> = {
  ETag: 'ETag',
  Location: 'Location',
  RetryAfter: 'Retry-After',
  IdempotentReplayed: 'Idempotent-Replayed',
};

/** References to these headers, as a property of a response. */
export const headersOf = (...keys: readonly (keyof typeof RESPONSE_HEADERS)[]): object =>
  keys.length === 0
    ? {}
    : {
        headers: Object.fromEntries(
          keys.map((key) => [NAMES[key], { $ref: `#/components/headers/${key}` }]),
        ),
      };

type AnySchema = { type?: string; anyOf?: AnySchema[]; properties?: Record<string, AnySchema> };

const isInteger = ({ type, anyOf = [] }: AnySchema): boolean =>
  type === 'integer' || anyOf.some(isInteger);

/** True for the schema of a body that `etagOfRecord` makes a tag for. */
const isRecord = ({ properties, anyOf }: AnySchema): boolean =>
  anyOf?.every(isRecord) ?? isInteger(properties?.version ?? {});

const answersRecord = ({ responses }: Route, status: number): boolean =>
  isRecord(responses[status] ?? {});

/** True for a read whose response has an entity tag. */
export const isConditionalRead = (route: Route): boolean =>
  route.method === 'GET' &&
  (route.headers?.includes('If-None-Match') === true || answersRecord(route, 200));

/** The headers of a response that is no problem. */
export function successHeaders(route: Route, status: number): object {
  const hasTag = answersRecord(route, status) || (status === 200 && isConditionalRead(route));
  return headersOf(
    ...(hasTag ? (['ETag'] as const) : []),
    ...([201, 202, 303].includes(status) ? (['Location'] as const) : []),
    ...(route.replayResponse && status < 300 ? (['IdempotentReplayed'] as const) : []),
  );
}
