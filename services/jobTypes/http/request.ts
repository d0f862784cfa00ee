import { Type, type Static } from 'typebox';
import { JobFailure, defineJobType, type JobType } from '../../../domain/jobs/jobType.ts';
import { MASK } from '../../../domain/shared/mask.ts';
import { OutboundError } from '../../../platform/addressGuard.ts';
import type { GuardedHttp, OutboundResponse } from '../../../platform/guardedHttp.ts';

const HEADER_NAME = "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$";

const Payload = Type.Object(
  {
    url: Type.String({
      format: 'uri',
      pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@\\\\]+([/?#]|$)',
      maxLength: 4_096,
      description: 'http or https, without credentials.',
    }),
    method: Type.Optional(
      Type.Enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'], { default: 'GET' }),
    ),
    headers: Type.Optional(
      Type.Record(
        Type.String({ pattern: HEADER_NAME, maxLength: 128 }),
        Type.String({ pattern: '^[\\t\\x20-\\x7e]*$', maxLength: 8_192 }),
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

/** Headers and query parameters with such names are masked: their values may be credentials. */
const SECRET_NAME = /auth|cookie|token|secret|key|passw|signature|credential/i;

const maskIfSecret = (name: string, value: string) => (SECRET_NAME.test(name) ? MASK : value);

const redactUrl = (url: string) =>
  url.replaceAll(
    /([?&])([^=&#]+)=([^&#]*)/g,
    (_, before: string, name: string, value: string) =>
      `${before}${name}=${maskIfSecret(name, value)}`,
  );

const redact = (payload: Payload): Payload => ({
  ...payload,
  url: redactUrl(payload.url),
  ...(payload.headers && {
    headers: Object.fromEntries(
      Object.entries(payload.headers).map(([name, value]) => [name, maskIfSecret(name, value)]),
    ),
  }),
});

/** HTTP statuses after which the same request may succeed. */
const RETRYABLE_STATUSES = new Set([408, 425, 429, 500, 502, 503, 504]);

function assertExpectedStatus(answer: OutboundResponse, { expectStatus }: Payload): void {
  const isExpected = expectStatus
    ? expectStatus.includes(answer.status)
    : answer.status >= 200 && answer.status < 300;
  if (isExpected) return;
  throw new JobFailure('http_status', `The server answered ${answer.status}`, {
    retryable: RETRYABLE_STATUSES.has(answer.status),
    ...(answer.retryAfterMs !== undefined && { retryAfterMs: answer.retryAfterMs }),
  });
}

/** Sends one HTTP request through the guarded client. Redirects are not followed. */
export const httpRequest = (http: GuardedHttp): JobType<Payload> =>
  defineJobType<Payload>({
    name: 'http.request',
    summary: 'Sends an HTTP request',
    payload: Payload,
    lane: 'activity',
    timeoutMs: 130_000,
    redact,
    run: async (payload, { jobId, signal, log }) => {
      const { url, method = 'GET', headers = {}, body, timeoutMs = 15_000 } = payload;
      try {
        const answer = await http.request({
          url,
          method,
          timeoutMs,
          signal,
          // The key is the same in every attempt, so that the receiver can detect a repetition.
          headers: { 'idempotency-key': jobId, ...headers },
          ...(body !== undefined && { body }),
        });
        log('info', `${method} answered ${answer.status}`, {
          status: answer.status,
          durationMs: answer.durationMs,
        });
        assertExpectedStatus(answer, payload);
        const { retryAfterMs: _, ...result } = answer;
        return result;
      } catch (error) {
        if (!(error instanceof OutboundError)) throw error;
        throw new JobFailure(error.code, error.message, { retryable: error.transient });
      }
    },
  });
