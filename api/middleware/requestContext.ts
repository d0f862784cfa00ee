import type { IncomingMessage } from 'node:http';
import type { Context, Middleware } from 'koa';
import { invalidField, type AppError, type ErrorCode } from '../../domain/shared/errors.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Log } from '../../platform/log.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { prefersPage } from '../http/page.ts';
import { preferencesIn } from '../http/prefer.ts';
import { PROBLEMS, PROBLEM_TYPE, toAppError, toProblem, type Problem } from '../http/problem.ts';

type RequestContextDeps = { ids: Ids; log: Log; metrics: Metrics };

export const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** True for the address of a trusted gateway. */
type IsTrusted = (address: string | undefined) => boolean;

/**
 * True for a request that a gateway authenticates. A gateway may pass on the headers of browsers and
 * scripts with a token, or without one, so those do not choose their request id.
 */
const isFromGateway = (ctx: Context, isTrusted: IsTrusted): boolean =>
  ctx.req.headers['x-service-actor-id'] !== undefined &&
  ctx.req.headers.authorization === undefined &&
  isTrusted(ctx.req.socket.remoteAddress);

function requestIdOf(
  ctx: Context,
  ids: Ids,
  isTrusted: IsTrusted,
): { requestId: string; clientRequestId?: string } {
  const sentId = ctx.get('x-request-id');
  if (!REQUEST_ID.test(sentId)) return { requestId: ids.next('req') };
  return isFromGateway(ctx, isTrusted)
    ? { requestId: sentId }
    : { requestId: ids.next('req'), clientRequestId: sentId };
}

/**
 * Assigns a request id, or accepts the `X-Request-Id` of a trusted gateway: audit entries name it,
 * so callers must not choose that of others. Converts errors to problems; records metrics; logs each
 * request. `ctx.state.log` is a logger that adds the request id to its lines, and the id that another
 * caller has sent as `clientRequestId`.
 */
export function requestContext(
  { ids, log, metrics }: RequestContextDeps,
  isTrusted: IsTrusted,
): Middleware {
  return async (ctx, next) => {
    const startedAt = performance.now();
    const { requestId, ...sent } = requestIdOf(ctx, ids, isTrusted);
    const requestLog = log.child({ requestId, ...sent });
    ctx.state.requestId = requestId;
    ctx.state.log = requestLog;
    ctx.set('x-request-id', requestId);
    try {
      requireHost(ctx.req);
      await next();
    } catch (error) {
      const appError = toAppError(error);
      logFailure(ctx, requestLog, appError, error);
      const { extra } = appError;
      if (extra.retryAfterSeconds !== undefined)
        ctx.set('retry-after', String(extra.retryAfterSeconds));
      if (extra.allow) ctx.set('allow', extra.allow.join(', '));
      const problem = toProblem(appError, requestId);
      // RFC 9110, 15.5.2, and RFC 6750, 3.
      if (problem.status === 401)
        ctx.set(
          'www-authenticate',
          REFUSED_TOKEN.has(appError.code) ? 'Bearer error="invalid_token"' : 'Bearer',
        );
      sendProblem(ctx, problem);
    }
    skipRestOfBody(ctx.req, ctx.state.isAuthenticated === true ? Infinity : MAX_SKIPPED_BYTES);
    const elapsedMs = performance.now() - startedAt;
    if (preferencesIn(ctx.get('prefer')).timing)
      ctx.set('server-timing', `total;dur=${elapsedMs.toFixed(1)}`);
    ctx.res.once('close', () => {
      const route = (ctx.state.route as string | undefined) ?? 'none';
      metrics.observeHttp({
        method: ctx.method,
        route,
        status: ctx.status,
        waits: ctx.state.waits === true,
        seconds: elapsedMs / 1_000,
      });
      requestLog.debug(
        {
          method: ctx.method,
          path: ctx.path,
          status: ctx.status,
          ms: Math.round(elapsedMs),
        },
        'request',
      );
    });
  };
}

/**
 * Error: `invalid_request` without a `Host`, which HTTP/1.1 requires, and with several (RFC 9112, 3.2): Node reads the
 * first one, and a proxy may have read another.
 */
function requireHost({ httpVersion, headersDistinct: { host = [] } }: IncomingMessage): void {
  if (httpVersion === '1.1' && host.length === 0)
    throw invalidField('header', '/Host', 'required', 'is required');
  if (host.length > 1) throw invalidField('header', '/Host', 'repeated', 'must not be repeated');
}

/** Errors of a token that was sent, for which clients get a new one. */
const REFUSED_TOKEN: ReadonlySet<ErrorCode> = new Set(['session_invalid', 'token_invalid']);

/** Logs the failures that are not the client's. */
function logFailure(ctx: Context, log: Log, { code }: AppError, error: unknown): void {
  if (PROBLEMS[code].status < 500) return;
  if (code !== 'internal') {
    const route = ctx.state.route as string | undefined;
    log.warn({ code, route, err: error }, 'a request cannot be served');
    return;
  }
  // A client that has disconnected aborts what its request waits for.
  if (ctx.res.closed) return;
  log.error({ err: error, method: ctx.method, path: ctx.path }, 'a request failed unexpectedly');
}

/** Sends a problem, or leads the browser back to the page that `errorsLeadTo` names. */
function sendProblem(ctx: Context, problem: Problem): void {
  const leadsTo = ctx.state.errorsLeadTo as string | undefined;
  if (leadsTo !== undefined && prefersPage(ctx)) {
    // First the body: Koa sets 204 for an empty one.
    ctx.body = null;
    ctx.status = 303;
    ctx.set({ location: withProblem(leadsTo, problem), 'cache-control': 'no-store' });
    return;
  }
  ctx.status = problem.status;
  // That of the record that is not sent.
  ctx.remove('etag');
  ctx.body = problem;
  ctx.type = PROBLEM_TYPE;
}

/** Any origin: only the path of the result is used. */
const BASE = 'http://localhost';

/** A path with the code and the request of a problem in its query. */
function withProblem(path: string, { code, requestId }: Problem): string {
  const url = new URL(BASE + path);
  url.searchParams.set('error', code);
  url.searchParams.set('requestId', requestId);
  return url.pathname + url.search + url.hash;
}

/** What is read of the body of a stranger after the response; a larger one ends the connection. */
const MAX_SKIPPED_BYTES = 1_048_576;

/**
 * Reads the part of a request body that its handler left, such as the file of a refused import. The
 * next request on the connection comes after it. Begins before the response is sent: afterwards Node
 * reads the rest itself, without a limit.
 */
function skipRestOfBody(request: IncomingMessage, limitBytes: number): void {
  if (request.complete && request.readableLength === 0) return;
  request.unpipe();
  let skippedBytes = 0;
  request.on('data', (chunk: Buffer) => {
    skippedBytes += chunk.length;
    if (skippedBytes <= limitBytes) return;
    request.pause();
    request.socket.destroySoon();
  });
  request.resume();
}
