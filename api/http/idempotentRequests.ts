import { finished } from 'node:stream/promises';
import type { Context } from 'koa';
import type { Access } from '../../services/access/access.ts';
import {
  mismatchError,
  type Idempotency,
  type RequestForms,
} from '../../services/shared/idempotency.ts';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import { sortedJson } from '../../domain/shared/sortedJson.ts';
import type { HttpResponse } from './response.ts';
import { permissionsOf, type Exchange, type HandlerRequest, type Route } from './route.ts';

export type IdempotencyDeps = { access: Access; idempotency: Idempotency };

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * Calls the handler once for each `Idempotency-Key`, and replays the response of the first request.
 * Errors: those of the handler; `invalid_request`, `idempotency_mismatch`,
 * `idempotency_in_progress`; `conflict` if nothing has the response any more.
 */
export async function handleIdempotently(
  { route, deps: { access, idempotency }, ctx }: Exchange<IdempotencyDeps>,
  request: HandlerRequest,
): Promise<HttpResponse> {
  const key = ctx.get('idempotency-key');
  if (key === '' || !route.replayResponse) return route.handle(request);
  if (!IDEMPOTENCY_KEY.test(key)) {
    throw invalidField(
      'header',
      '/Idempotency-Key',
      'format',
      'must be 1 to 255 visible ASCII characters',
    );
  }
  const claimed = await idempotency.claim(
    request.caller,
    key,
    formsOf(ctx, request),
    mayHoldSecret(route, request),
  );
  if (claimed.kind === 'committed') {
    const [permission, ...others] = permissionsOf(route);
    if (permission !== undefined && route.permissionCheckedInHandler)
      await access.requireAnywhere(request.caller, permission, ...others);
    // Also checks that the caller may see the record today.
    const present = await route.replayResponse(request.caller, claimed.subjectId);
    if (request.upload) await assertSameFile(request.upload, claimed.digest);
    const answer = claimed.answer ?? present;
    if (answer) return asReplay(answer);
    throw new AppError('conflict', 'The request was carried out. Its response is not kept.');
  }
  try {
    const response = await route.handle({
      ...request,
      caller: { ...request.caller, idempotency: claimed.claim },
    });
    const { status, headers, body, containsSecret } = response;
    // A failure that the handler returns instead of throwing is not kept: a retry is handled again.
    if (status >= 400) await idempotency.release(claimed.claim);
    else if (containsSecret !== true)
      await idempotency.storeResponse(request.caller, claimed.claim, {
        status,
        headers,
        body,
        ...(request.upload && { digest: request.upload.digest() }),
      });
    return response;
  } catch (error) {
    // A failed release is harmless: the claim expires.
    await idempotency.release(claimed.claim).catch(() => undefined);
    throw error;
  }
}

/** Reads a file to its end. Error: `idempotency_mismatch` if it is not the one with this digest. */
async function assertSameFile(
  { source, digest }: NonNullable<HandlerRequest['upload']>,
  expected: string | undefined,
): Promise<void> {
  if (expected === undefined) return;
  await finished(source.resume());
  if (digest() !== expected) throw mismatchError();
}

/**
 * What identifies a request. JSON is the same in any order of its names. An
 * upload is streamed: its length represents it, until `assertSameFile` has read it.
 */
function formsOf(ctx: Context, { body, upload }: HandlerRequest): RequestForms {
  const form = (content: string) => JSON.stringify([ctx.method, ctx.path, content]);
  if (upload) return { current: form(`${ctx.querystring} ${ctx.get('content-length')}`) };
  // until 0.4: remove `older`. Version 0.2.0 remembers the names as they were sent, and `{}` where there is no body.
  const older = form(body === undefined ? '{}' : JSON.stringify(body));
  return { current: form(sortedJson(body ?? null)), older };
}

/** Payloads of jobs may have fields that the schema of their type marks as secret. */
const mayHoldSecret = ({ secretBody }: Route, { body }: HandlerRequest): boolean =>
  secretBody === true || (typeof body === 'object' && body !== null && 'payload' in body);

export const REPLAYED = 'idempotent-replayed';

const asReplay = (response: HttpResponse): HttpResponse => ({
  ...response,
  headers: { ...response.headers, [REPLAYED]: 'true' },
});
