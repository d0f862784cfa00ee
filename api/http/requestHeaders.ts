import type { IncomingMessage } from 'node:http';
import { invalidFields } from '../../domain/shared/errors.ts';
import { isConditionalRead } from './openapiHeaders.ts';
import type { RequestHeader, Route } from './route.ts';

/** The name of a request header that operations declare. */
export type HeaderName = RequestHeader | 'Idempotency-Key';

/** The request headers that a route reads, besides those of every request. */
export function headersReadBy(route: Route): HeaderName[] {
  const { headers = [], replayResponse } = route;
  return [
    ...headers,
    ...(isConditionalRead(route) && !headers.includes('If-None-Match')
      ? (['If-None-Match'] as const)
      : []),
    ...(replayResponse ? (['Idempotency-Key'] as const) : []),
  ];
}

/** Headers whose empty value has a meaning: a client of an event stream that has received no id yet. */
const MAY_BE_EMPTY: ReadonlySet<HeaderName> = new Set<HeaderName>(['Last-Event-ID']);

/**
 * Error: `invalid_request` for headers that were sent without a value. They do not count as absent: the variable with
 * the tag or the key was empty, and the client believes that the request is protected.
 */
export function requireValues(
  names: readonly HeaderName[],
  { headers }: Pick<IncomingMessage, 'headers'>,
): void {
  const empty = names.filter(
    (name) => !MAY_BE_EMPTY.has(name) && headers[name.toLowerCase()] === '',
  );
  if (empty.length === 0) return;
  const message = 'must have a value, or not be sent';
  throw invalidFields(
    empty.map((name) => ({ in: 'header', pointer: `/${name}`, code: 'empty', message })),
  );
}
