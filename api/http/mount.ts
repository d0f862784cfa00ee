import type { Readable } from 'node:stream';
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import type { Access } from '../../services/access/access.ts';
import type { Idempotency } from '../../services/shared/idempotency.ts';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import { anonymousCaller, type Caller } from '../../domain/shared/caller.ts';
import type { HttpResponse } from './response.ts';
import { readPrefer } from './prefer.ts';
import { compileInput } from './requestInput.ts';
import type { ClientAddress } from '../middleware/clientAddress.ts';
import { permissionsOf, type Method, type Route } from './route.ts';

export type MountDeps = {
  access: Access;
  idempotency: Idempotency;
  authenticate(ctx: Context, options: { requiresTenantHeader: boolean }): Promise<Caller>;
  clientAddress: ClientAddress;
  /** Aborted when the server stops. */
  shutdownSignal: AbortSignal;
  /** Interval of the access check while a stream is open, in milliseconds; 10 s by default. */
  accessRecheckMs?: number;
  /** Called with each response before it is sent; tests compare it with the declared schema. */
  onResponse?(route: Route, response: HttpResponse): void;
};

/**
 * Returns the middleware that serves `routes`. A request passes authentication, permission check,
 * input check, idempotency and handler, in this order: a caller without the permission learns
 * nothing about what a valid request is.
 */
export function mount(routes: readonly Route[], deps: MountDeps): Middleware[] {
  const router = new Router({ strict: false, sensitive: true });
  const register = { GET: router.get, POST: router.post, PUT: router.put, DELETE: router.delete };
  // Specific paths first: /api/schedules/logs is not the schedule with the id "logs".
  const ordered = [...routes].sort((a, b) => a.path.split('{').length - b.path.split('{').length);
  for (const route of ordered) {
    register[route.method].call(
      router,
      route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      createHandler(route, deps),
    );
  }
  return [router.routes() as unknown as Middleware, rejectUnmatched(router)];
}

function createHandler(route: Route, deps: MountDeps) {
  const readInput = compileInput(route);

  return async (ctx: Context & { params: Record<string, string> }) => {
    ctx.state.route = route.path;
    ctx.state.page = route.htmlErrors ?? false;
    const startedAt = performance.now();
    const initialCaller = await authorizeCaller(route, deps, ctx);
    const input = await readInput(ctx, ctx.params);
    // A client that sends its body slowly must not keep a permission that was revoked since.
    const caller =
      performance.now() - startedAt > CALLER_MAX_AGE_MS
        ? await authorizeCaller(route, deps, ctx)
        : initialCaller;
    const prefer = readPrefer(ctx.get('prefer') || undefined);
    const request = {
      ...input,
      prefer,
      caller,
      ifMatch: ctx.get('if-match') || undefined,
      header: (name: string) => ctx.get(name) || undefined,
      // Computed on demand: most routes never read it.
      get origin() {
        return deps.clientAddress.publicOriginOf(ctx);
      },
      signal: AbortSignal.any([deps.shutdownSignal, disconnectSignal(ctx)]),
    } as unknown as Parameters<Route['handle']>[0];
    const response = await handleIdempotently(route, deps, ctx, request);
    deps.onResponse?.(route, response);
    if (prefer.waitMs > 0 && route.headers?.includes('Prefer'))
      ctx.set('preference-applied', `wait=${prefer.waitMs / 1_000}`);
    if (response.stream && route.public === undefined)
      endStreamOnLostAccess(route, deps, ctx, request, response.stream.source);
    send(ctx, response);
  };
}

/** Authentication is repeated if reading the body took longer than this. */
const CALLER_MAX_AGE_MS = 1_000;

const ACCESS_RECHECK_MS = 10_000;

/** Ends a stream when its caller loses the session or the permission. */
function endStreamOnLostAccess(
  route: Route,
  deps: MountDeps,
  ctx: Context,
  request: Parameters<Route['handle']>[0],
  source: Readable,
): void {
  const timer = setInterval(() => {
    const recheck = async () => {
      const caller = await authorizeCaller(route, deps, ctx);
      await route.recheckAccess?.({ ...request, caller }, request.caller);
    };
    recheck().catch((error: unknown) => {
      if (error instanceof AppError) source.destroy();
    });
  }, deps.accessRecheckMs ?? ACCESS_RECHECK_MS);
  source.once('close', () => clearInterval(timer));
}

/**
 * Authenticates the caller and checks the permission of the route. Errors: those of `authenticate`;
 * `session_invalid`, `password_change_required`, `permission_denied`.
 */
async function authorizeCaller(
  route: Route,
  { clientAddress, authenticate, access }: MountDeps,
  ctx: Context,
): Promise<Caller> {
  if (route.public !== undefined) {
    return anonymousCaller({
      requestId: ctx.state.requestId as string,
      address: clientAddress.addressOf(ctx),
    });
  }
  const caller = await authenticate(ctx, {
    requiresTenantHeader: route.requiresTenantHeader ?? false,
  });
  if (route.session !== undefined && !caller.session) {
    throw new AppError(
      'session_invalid',
      'This operation requires a session; identity headers do not have one.',
    );
  }
  if (route.session !== undefined || route.allowsOneTimePassword) return caller;
  if (caller.session?.mustChangePassword) {
    throw new AppError(
      'password_change_required',
      'A one-time password must be changed first, with POST /api/auth/password.',
    );
  }
  const [permission, ...others] = permissionsOf(route);
  if (permission !== undefined && !route.permissionCheckedInHandler)
    await access.requireAnywhere(caller, permission, ...others);
  return caller;
}

/** Aborted when the client closes the connection before the response is complete. */
function disconnectSignal(ctx: Context): AbortSignal {
  const disconnected = new AbortController();
  if (ctx.res.closed) disconnected.abort();
  ctx.res.once('close', () => {
    if (!ctx.res.writableFinished) disconnected.abort();
  });
  return disconnected.signal;
}

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * Calls the handler once for each `Idempotency-Key`, and replays the response of the first request.
 * Errors: those of the handler; `invalid_request`, `idempotency_mismatch`,
 * `idempotency_in_progress`.
 */
async function handleIdempotently(
  route: Route,
  { idempotency }: MountDeps,
  ctx: Context,
  request: Parameters<Route['handle']>[0],
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
    fingerprintParts(ctx, request),
    route.secretBody === true,
  );
  if (claimed.kind === 'answered') return asReplay({ ...claimed.answer });
  if (claimed.kind === 'committed')
    return asReplay(await route.replayResponse(request.caller, claimed.subjectId));
  try {
    const response = await route.handle({
      ...request,
      caller: { ...request.caller, idempotency: claimed.claim },
    });
    const { status, headers, body, containsSecret } = response;
    // A failure that the handler returns instead of throwing is not kept: a retry is handled again.
    if (status >= 400) await idempotency.release(claimed.claim);
    else if (containsSecret !== true)
      await idempotency.storeResponse(claimed.claim, { status, headers, body });
    return response;
  } catch (error) {
    // A failed release is harmless: the claim expires.
    await idempotency.release(claimed.claim).catch(() => undefined);
    throw error;
  }
}

/**
 * Two requests are the same if these parts are equal. An upload is streamed: its length represents
 * it.
 */
const fingerprintParts = (
  ctx: Context,
  { body, upload }: Parameters<Route['handle']>[0],
): string[] => [
  ctx.method,
  ctx.path,
  upload ? `${ctx.querystring} ${ctx.get('content-length')}` : JSON.stringify(body ?? null),
];

const asReplay = (response: HttpResponse): HttpResponse => ({
  ...response,
  headers: { ...response.headers, 'idempotent-replayed': 'true' },
});

function send(ctx: Context, { status, headers, body, stream }: HttpResponse): void {
  ctx.status = status;
  ctx.set(headers);
  if (stream) {
    ctx.type = stream.contentType;
    ctx.body = stream.source;
    return;
  }
  if (body === undefined) {
    ctx.body = null;
    ctx.status = status;
    return;
  }
  ctx.body = body;
  if (ctx.method === 'GET' && ctx.fresh) ctx.status = 304;
}

/** Answers requests that match no route: 405 if the path has other methods, else 404. */
function rejectUnmatched(router: Router): Middleware {
  return (ctx) => {
    // A request line without a path, such as `GET http://`.
    const path = (ctx.path as string | null) ?? '/';
    const methods = new Set(
      router.match(path, 'GET').path.flatMap((layer) => layer.methods),
    ) as Set<Method | 'HEAD'>;
    if (methods.size === 0)
      throw new AppError('not_found', `No resource at ${path.slice(0, 200)}.`);
    const allow = [...methods, 'OPTIONS'].sort();
    if (ctx.method === 'OPTIONS') {
      ctx.status = 204;
      ctx.set('allow', allow.join(', '));
      return;
    }
    throw new AppError('method_not_allowed', `${ctx.method} is not supported at this path.`, {
      allow,
    });
  };
}
