import { Type, type Static } from 'typebox';
import { JobFailure, defineJobType, type JobType } from '../../../domain/jobs/jobType.ts';
import {
  credentialsIn,
  isCredentialName,
  isCredentialParameter,
  maskText,
  repeatedForms,
} from '../../../domain/shared/credentials.ts';
import { invalidFields } from '../../../domain/shared/errors.ts';
import { pointerTo } from '../../../domain/shared/jsonPointer.ts';
import { MASK } from '../../../domain/shared/mask.ts';
import {
  responseExcerpt,
  withoutRequestCredentials,
} from '../../../domain/shared/responseExcerpt.ts';
import { OutboundError } from '../../../platform/addressGuard.ts';
import { checkUrlField } from '../../shared/checkUrlField.ts';
import {
  isReservedHeader,
  type GuardedHttp,
  type OutboundResponse,
} from '../../../platform/guardedHttp.ts';

const HEADER_NAME = "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$";

const Payload = Type.Object(
  {
    url: Type.String({
      format: 'uri',
      pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@\\\\]+([/?#]|$)',
      'x-rule': 'must be an http or https URL without credentials',
      maxLength: 4_096,
      description: 'http or https, without credentials.',
    }),
    method: Type.Optional(
      Type.Enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'], {
        default: 'GET',
        description:
          'POST and PATCH are sent once, unless the retryPolicy of the job has maxAttempts.',
      }),
    ),
    headers: Type.Optional(
      Type.Record(
        Type.String({
          pattern: HEADER_NAME,
          'x-rule': 'must be the name of an HTTP header',
          maxLength: 128,
        }),
        Type.String({
          pattern: '^[\\t\\x20-\\x7e]*$',
          'x-rule': 'must be printable ASCII',
          maxLength: 8_192,
        }),
        {
          maxProperties: 50,
          additionalProperties: false,
        },
      ),
    ),
    body: Type.Optional(
      Type.String({ maxLength: 524_288, description: 'Sent as it is; set content-type yourself.' }),
    ),
    timeoutMs: Type.Optional(Type.Integer({ minimum: 100, maximum: 120_000, default: 15_000 })),
    expectStatus: Type.Optional(
      Type.Array(Type.Integer({ minimum: 100, maximum: 599 }), {
        minItems: 1,
        maxItems: 20,
        description: 'Statuses that mean success; 200 to 299 if not given.',
      }),
    ),
  },
  { additionalProperties: false },
);
type Payload = Static<typeof Payload>;

/** Methods that a server may execute twice when they are sent twice (RFC 9110, 9.2.2). */
const NOT_IDEMPOTENT: ReadonlySet<string> = new Set(['POST', 'PATCH']);

const isIdempotent = ({ method = 'GET' }: Payload): boolean => !NOT_IDEMPOTENT.has(method);

const redact = (payload: Payload): Payload => ({
  ...payload,
  url: maskText(payload.url),
  ...(payload.headers && {
    headers: Object.fromEntries(
      Object.entries(payload.headers).map(([name, value]) => [
        name,
        isCredentialParameter(name) ? MASK : value,
      ]),
    ),
  }),
});

/** Shorter values of cookies are rather settings, such as `true`. */
const MIN_COOKIE_CHARS = 8;

/** The credentials in a header that has some, which servers may repeat one by one. */
function credentialsInHeader(name: string, value: string): string[] {
  // `Bearer` and `Basic` are followed by the credential.
  const token = value.slice(value.indexOf(' ') + 1);
  const cookies = /^cookie$/i.test(name)
    ? value.split(';').map((each) => each.slice(each.indexOf('=') + 1).trim())
    : [];
  const basic = /^basic /i.test(value) ? Buffer.from(token, 'base64').toString() : '';
  return [
    value,
    token,
    basic,
    basic.slice(basic.indexOf(':') + 1),
    ...cookies.filter(({ length }) => length >= MIN_COOKIE_CHARS),
  ];
}

/** The credentials in a request, in the forms in which the server may repeat them. */
function credentialsOf(
  { url, headers = {}, body }: Payload,
  isCredential: (name: string) => boolean = isCredentialParameter,
): string[] {
  const ofHeaders = Object.entries(headers)
    .filter(([name]) => isCredential(name))
    .flatMap(([name, value]) => credentialsInHeader(name, value));
  return repeatedForms([...ofHeaders, ...credentialsIn({ url, body })]);
}

/** Names that mean a credential and nothing else: `keyword`, `author` and `X-Key-Format` are none of them. */
const isCertainCredential = (name: string): boolean =>
  isCredentialName(name) || /^(?:x-)?(?:auth|key|sig|signature)$/i.test(name);

/** Shorter values are in ordinary words. */
const MIN_RESULT_CREDENTIAL_CHARS = 8;

/** The URL without the query parameters that may be something else than credentials. */
function withCertainParameters(text: string): string {
  const url = new URL(text);
  for (const name of new Set(url.searchParams.keys()))
    if (!isCertainCredential(name)) url.searchParams.delete(name);
  return url.href;
}

/**
 * What is masked in a result, which jobs and people use: only what certainly is a credential. A failure shows
 * an excerpt for people, where too much is masked rather than too little.
 */
const credentialsInResult = (payload: Payload): string[] =>
  credentialsOf(
    { ...payload, url: withCertainParameters(payload.url) },
    isCertainCredential,
  ).filter(({ length }) => length >= MIN_RESULT_CREDENTIAL_CHARS);

/** HTTP statuses after which the same request may succeed. */
const RETRYABLE_STATUSES = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Error: `JobFailure` with the start of the response for a status that means failure. */
function assertExpectedStatus(answer: OutboundResponse, payload: Payload): void {
  const { expectStatus } = payload;
  const isExpected = expectStatus
    ? expectStatus.includes(answer.status)
    : answer.status >= 200 && answer.status < 300;
  if (isExpected) return;
  const credentials = credentialsOf(payload);
  const contentType = answer.headers['content-type']?.slice(0, 200);
  throw new JobFailure('http_status', `The server answered ${answer.status}`, {
    retryable: RETRYABLE_STATUSES.has(answer.status),
    ...(answer.retryAfterMs !== undefined && { retryAfterMs: answer.retryAfterMs }),
    response: {
      status: answer.status,
      contentType:
        contentType === undefined
          ? null
          : responseExcerpt({ body: contentType, truncated: false }, credentials).body,
      ...responseExcerpt(answer, credentials),
    },
  });
}

/** Errors after which the server may have received the request. */
const MAYBE_SENT: ReadonlySet<string> = new Set([
  'connection_failed',
  'timed_out',
  'invalid_response',
]);

/** Headers whose names differ in letter case only are the same one: the last counts. */
const inLowerCase = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

/** The failure of a request without a response. */
function noResponseFailure({ code, message, transient }: OutboundError, payload: Payload) {
  const { method = 'GET' } = payload;
  const isUnknown = MAYBE_SENT.has(code) && !isIdempotent(payload);
  const hint = isUnknown ? `; whether the server has executed the ${method} is unknown` : '';
  return new JobFailure(code, `${message}${hint}`, { retryable: transient });
}

/**
 * Refuses requests that are never sent. Error: `invalid_request`.
 */
function checkRequest(http: GuardedHttp, { url, headers = {} }: Payload): [] {
  const reserved = Object.keys(headers).filter(isReservedHeader);
  if (reserved.length > 0)
    throw invalidFields(
      reserved.map((name) => ({
        in: 'body',
        pointer: pointerTo(['headers', name]),
        code: 'header_not_allowed',
        message: 'cannot be set',
      })),
    );
  checkUrlField(http, url, '/url');
  return [];
}

/** Sends one HTTP request through the guarded client. Redirects are not followed. */
export const httpRequest = (http: GuardedHttp): JobType<Payload> =>
  defineJobType<Payload>({
    name: 'http.request',
    summary: 'Sends an HTTP request',
    payload: Payload,
    lane: 'activity',
    timeoutMs: 130_000,
    isRepeatable: isIdempotent,
    redact,
    check: (payload) => checkRequest(http, payload),
    run: async (payload, { jobId, attempt, signal, log }) => {
      const { url, method = 'GET', headers = {}, body, timeoutMs = 15_000 } = payload;
      if (attempt > 1 && !isIdempotent(payload))
        log('warn', `The ${method} is sent again, as the retry policy of the job says`);
      try {
        const received = await http.request({
          url,
          method,
          timeoutMs,
          signal,
          // The key is the same in every attempt, so that the receiver can detect a repetition.
          headers: { 'idempotency-key': jobId, ...inLowerCase(headers) },
          ...(body !== undefined && { body }),
        });
        log('info', `${method} answered ${received.status}`, {
          status: received.status,
          durationMs: received.durationMs,
        });
        assertExpectedStatus(received, payload);
        const { retryAfterMs, ...result } = received;
        return withoutRequestCredentials(result, credentialsInResult(payload));
      } catch (error) {
        if (!(error instanceof OutboundError)) throw error;
        throw noResponseFailure(error, payload);
      }
    },
  });
