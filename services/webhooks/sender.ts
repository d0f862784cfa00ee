import type { AttemptOutcome } from '../../db/webhooks/deliveryAttempts.ts';
import { signatureOf } from '../../domain/signing.ts';
import {
  EXCHANGE_MS,
  isSuccess,
  MAX_ANSWER_BYTES,
  RETRY_AFTER_STATUSES,
} from '../../domain/webhooks/webhooks.ts';
import { OutboundError } from '../../platform/addressGuard.ts';
import type { Clock } from '../../platform/clock.ts';
import type { GuardedHttp } from '../../platform/guardedHttp.ts';

export type WebhookSend = ReturnType<typeof createWebhookSend>;

/** What a webhook is told: one event. `sequence` is null for what is no event of the log, such as a test. */
export type WebhookMessage = {
  id: string;
  type: string;
  timestamp: Date;
  sequence: number | null;
  tenantId: string;
  data: object;
};

export type Exchange = AttemptOutcome & { retryAfterMs?: number };

/** An exchange without an answer. */
export const unanswered = (
  { code, message }: { code: string; message: string },
  durationMs = 0,
  requestHeaders: Record<string, string> = {},
): Exchange => ({
  durationMs,
  httpStatus: null,
  requestHeaders,
  answer: null,
  answerTruncated: false,
  error: { code, message },
});

/** Control characters, which would do something to a terminal that shows them. */
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

const escaped = (text: string) =>
  text.replaceAll(
    CONTROLS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** Sends messages as Standard Webhooks has them. */
export function createWebhookSend({ http, clock }: { http: GuardedHttp; clock: Clock }) {
  /**
   * Sends one message, signed with each of `secrets`, and tells what came of it. Throws only the reason of `signal`.
   */
  return async (
    endpointUrl: string,
    secrets: readonly string[],
    message: WebhookMessage,
    signal?: AbortSignal,
  ): Promise<Exchange> => {
    const { id, type, timestamp: at, sequence, tenantId, data } = message;
    const body = JSON.stringify({ type, timestamp: at.toISOString(), sequence, tenantId, data });
    const timestamp = Math.floor(clock.now().getTime() / 1_000);
    const requestHeaders = {
      'content-type': 'application/json',
      'user-agent': 'Holdfast-Webhooks',
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
    };
    const headers = {
      ...requestHeaders,
      'webhook-signature': signatureOf(secrets, { id, timestamp, body }),
    };
    const began = performance.now();
    try {
      const answer = await http.request({
        url: endpointUrl,
        method: 'POST',
        headers,
        body,
        timeoutMs: EXCHANGE_MS,
        maxBodyBytes: MAX_ANSWER_BYTES,
        ...(signal && { signal }),
      });
      const { status, durationMs, truncated, retryAfterMs } = answer;
      const text = escaped(answer.body);
      return {
        durationMs,
        httpStatus: status,
        requestHeaders,
        answer: text.slice(0, MAX_ANSWER_BYTES),
        answerTruncated: truncated || text.length > MAX_ANSWER_BYTES,
        error: isSuccess(status)
          ? null
          : { code: 'http_status', message: `The endpoint answered ${status}` },
        ...(retryAfterMs !== undefined && RETRY_AFTER_STATUSES.has(status) && { retryAfterMs }),
      };
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error;
      return unanswered(error, Math.round(performance.now() - began), requestHeaders);
    }
  };
}
