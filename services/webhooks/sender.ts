import type { AttemptOutcome } from '../../db/webhooks/deliveryAttempts.ts';
import { credentialsIn, repeatedForms } from '../../domain/shared/credentials.ts';
import { responseExcerpt } from '../../domain/shared/responseExcerpt.ts';
import { signatureHeader } from '../../domain/webhooks/signing.ts';
import {
  EXCHANGE_TIMEOUT_MS,
  isSuccess,
  MAX_RESPONSE_BYTES,
  RETRY_AFTER_STATUSES,
} from '../../domain/webhooks/webhooks.ts';
import { OutboundError } from '../../platform/addressGuard.ts';
import type { GuardedHttp } from '../../platform/guardedHttp.ts';

export type WebhookSender = ReturnType<typeof createWebhookSender>;

/** A message to a webhook. `sequence` is null for a test, which is not an event of the log. */
export type WebhookMessage = {
  id: string;
  type: string;
  timestamp: Date;
  sequence: number | null;
  tenantId: string;
  subject: { type: string; id: string };
  actorId: string;
  data: object;
};

/** The outcome of sending a message, with the `Retry-After` of the response in milliseconds. */
export type SendResult = AttemptOutcome & { retryAfterMs?: number };

/** The outcome when no response was received, or nothing was sent. */
export const noResponse = (
  { code, message }: { code: string; message: string },
  durationMs = 0,
  requestHeaders: Record<string, string> = {},
): SendResult => ({
  durationMs,
  httpStatus: null,
  requestHeaders,
  responseBody: null,
  responseTruncated: false,
  error: { code, message },
});

/** The outcome when nothing was sent because the message cannot be signed. */
export const cannotSign = (): SendResult =>
  noResponse({
    code: 'secret_unreadable',
    message: 'The secret of the webhook cannot be decrypted',
  });

/** Shorter parts of a URL are rather words than credentials. */
const MIN_SECRET_PART_CHARS = 16;

/**
 * What the endpoint must not show to readers of the response: it may repeat the request. Path and
 * query are credentials as a whole, since many services accept any caller that knows the URL.
 */
function credentialsOf(endpointUrl: string, signature: string): string[] {
  const { pathname, search, searchParams } = new URL(endpointUrl);
  const parts = [...pathname.split('/'), ...searchParams.values()].filter(
    ({ length }) => length >= MIN_SECRET_PART_CHARS,
  );
  const signatures = signature.split(' ').flatMap((each) => [each, each.replace(/^v1,/, '')]);
  return repeatedForms([
    pathname + search,
    pathname,
    search,
    search.slice(1),
    ...parts,
    ...credentialsIn(endpointUrl),
    signature,
    ...signatures,
  ]);
}

/** Sends messages as the specification Standard Webhooks defines them. */
export function createWebhookSender({ http }: { http: GuardedHttp }) {
  /**
   * Sends one message, signed with each of `secrets`, and returns the outcome; any failure of the
   * request is an outcome too. Throws the reason of `signal` when that is aborted.
   */
  return async (
    endpointUrl: string,
    secrets: readonly string[],
    message: WebhookMessage,
    signal?: AbortSignal,
  ): Promise<SendResult> => {
    const { id, timestamp: occurredAt, type, sequence, tenantId, subject, actorId, data } = message;
    const body = JSON.stringify({
      type,
      timestamp: occurredAt.toISOString(),
      sequence,
      tenantId,
      subject,
      actorId,
      data,
    });
    const timestamp = Math.floor(Date.now() / 1_000);
    const requestHeaders = {
      'content-type': 'application/json',
      'user-agent': 'Holdfast-Webhooks',
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
    };
    const signature = signatureHeader(secrets, { id, timestamp, body });
    const headers = { ...requestHeaders, 'webhook-signature': signature };
    const startedAt = performance.now();
    try {
      const response = await http.request({
        url: endpointUrl,
        method: 'POST',
        headers,
        body,
        timeoutMs: EXCHANGE_TIMEOUT_MS,
        maxBodyBytes: MAX_RESPONSE_BYTES,
        ...(signal && { signal }),
      });
      const { status, durationMs, retryAfterMs } = response;
      const excerpt = responseExcerpt(response, credentialsOf(endpointUrl, signature));
      return {
        durationMs,
        httpStatus: status,
        requestHeaders,
        responseBody: excerpt.body,
        responseTruncated: excerpt.truncated,
        error: isSuccess(status)
          ? null
          : { code: 'http_status', message: `The endpoint answered ${status}` },
        ...(retryAfterMs !== undefined && RETRY_AFTER_STATUSES.has(status) && { retryAfterMs }),
      };
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error;
      return noResponse(error, Math.round(performance.now() - startedAt), requestHeaders);
    }
  };
}
