import { AsyncResource } from 'node:async_hooks';
import { finished } from 'node:stream/promises';
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import type { Access } from '../../services/access/access.ts';
import type { WatchAccess } from '../../services/access/watchAccess.ts';
import { requireSessionId } from '../../services/auth/sessions.ts';
import { mismatchError, type Idempotency } from '../../services/shared/idempotency.ts';
import { shareTenantOf } from '../../domain/access/scope.ts';
import { isBusyError } from '../../domain/shared/busy.ts';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import { anonymousCaller, type Caller } from '../../domain/shared/caller.ts';
import { connectionsAreFor } from '../../platform/connectionUser.ts';
import type { Slots } from '../../platform/slots.ts';
import type { HttpResponse } from './response.ts';
import { preferencesIn, readPrefer } from './prefer.ts';
import { encodeError, EVENT_STREAM } from './eventStream.ts';
import { compileInclude, takeInclude, type FindNames } from './include.ts';
import { changedProperties, readOnlyProperties } from './presentedRecord.ts';
import { toAppError } from './problem.ts';
import { send } from './send.ts';
import { compileInput, type RawInput } from './requestInput.ts';
import type { ExpensiveReads } from './expensiveReads.ts';
import type { ClientAddress } from '../middleware/clientAddress.ts';
import type { Strangers } from '../middleware/strangers.ts';
import { checkContentLength } from './requestBody.ts';
import { allowSlowBody } from './slowBodies.ts';
import { permissionsOf, type Route, type StrangerLimits } from './route.ts';

export type MountDeps = {
  access: Access;
  watchAccess: WatchAccess;
  idempotency: Idempotency;
  findNames: FindNames;
  authenticate(ctx: Context, options: { requiresTenantHeader: boolean }): Promise<Caller>;
  clientAddress: ClientAddress;
  strangers: Strangers;
  expensiveReads: ExpensiveReads;
  /** Bytes of large responses that their callers have not read yet. */
  unreadBytes: Slots;
  /** Aborted when the server stops. */
  shutdownSignal: AbortSignal;
  /**
   * Interval of the access check while a stream is open, in milliseconds; 10 s by default. Changes that a
   * process commits are checked immediately; what has expired, and lost notifications, are not.
   */
  accessRecheckMs?: number;
  /** Called with each response before it is sent; tests compare it with the declared schema. */
  onResponse?(route: Route, response: HttpResponse): void;
  /** Called with each error of a route before it is sent. */
  onError?(route: Route, error: AppError): void;
};

/**
 * Returns the middleware that serves `routes`. A request passes authentication, permission check,
 * input check, idempotency and handler, in this order: a caller without the permission learns
 * nothing about what a valid request is.
 */
export function mount(routes: readonly Route[], deps: MountDeps): Middleware[] {
  const routers = new Map<string, Router>();
  // Specific paths first: /api/schedules/logs is not the schedule with the id "logs".
  const ordered = [...routes].sort((a, b) => a.path.split('{').length - b.path.split('{').length);
  for (const route of ordered) {
    const start = fixedStart(route.path.split('/')).join('/');
    const router = routers.get(start) ?? new Router({ strict: false, sensitive: true });
    routers.set(start, router);
    const register = { GET: router.get, POST: router.post, PUT: router.put, DELETE: router.delete };
    register[route.method].call(
      router,
      route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      createHandler(route, routes, deps),
    );
  }
  return [
    rejectMethodOfFixedPath(routes),
    chooseRouter(routers),
    rejectUnmatched([...routers.values()]),
  ];
}

/** The segments before the first parameter, at most those of `/api/<area>/<collection>`. */
const fixedStart = (segments: readonly string[]): string[] => {
  const parameter = segments.findIndex((segment) => segment.startsWith('{'));
  return segments.slice(0, Math.min(parameter === -1 ? Infinity : parameter, MAX_FIXED));
};
const MAX_FIXED = 4;

/**
 * Asks the router of the longest start of the path, then those of shorter ones: a router compares a path
 * with all of its routes, and there are some hundreds.
 */
function chooseRouter(routers: ReadonlyMap<string, Router>): Middleware {
  const handlers = new Map(
    [...routers].map(([start, router]) => [start, router.routes() as unknown as Middleware]),
  );
  return (ctx, next) => {
    const segments = ((ctx.path as string | null) ?? '/').split('/', MAX_FIXED);
    const tryFrom = async (length: number): Promise<void> => {
      if (length === 0) return void (await next());
      const handler = handlers.get(segments.slice(0, length).join('/'));
      const tryShorter = () => tryFrom(length - 1);
      await (handler ? handler(ctx, tryShorter) : tryShorter());
    };
    return tryFrom(segments.length);
  };
}

type RouteContext = Context & { params: Record<string, string> };

function createHandler(route: Route, routes: readonly Route[], deps: MountDeps) {
  const readOnly = readOnlyProperties(route, routes);
  const { read, check } = compileInput(route, readOnly);
  const include = compileInclude(route, deps.findNames);

  async function handle(ctx: RouteContext): Promise<void> {
    const startedAt = performance.now();
    const initialCaller = await authorizeCaller(route, deps, ctx);
    if (route.upload?.maxSeconds) allowSlowBody(ctx.req, route.upload.maxSeconds * 1_000);
    // What is written is answered, however much its caller has not read: such a caller writes nothing more.
    if (mayAnswerMuch(route)) deps.unreadBytes.requireShare(initialCaller);
    // A client that sends its body slowly must not keep a permission that was revoked since. Bound, so that the end of
    // an upload, too, uses the connections of its caller.
    const presentCaller = AsyncResource.bind(async () =>
      performance.now() - startedAt > CALLER_MAX_AGE_MS
        ? authorizeCaller(route, deps, ctx)
        : initialCaller,
    );
    const input = await read(ctx, ctx.params, presentCaller);
    try {
      const caller = await presentCaller();
      const ifMatch = ctx.get('if-match') || undefined;
      const { params } = input;
      input.body = await changedProperties(
        route,
        readOnly,
        { caller, params: params, ifMatch },
        input.body,
      );
      check(input);
      const included = takeInclude(route, input.query);
      if (included.size > 0) requireOwnPassword(caller);
      await respond(route, deps, ctx, { ...input, caller }, (request, response) =>
        included.size > 0 ? include(request, included, response) : response,
      );
    } finally {
      // What the handler has not read is discarded, so that the connection stays usable.
      input.upload?.source.destroy();
    }
  }

  return async (ctx: RouteContext) => {
    ctx.state.route = route.path;
    ctx.state.waits = takesPrefer(route) && asksToWait(ctx.get('prefer'));
    if (route.public === undefined) ctx.set('cache-control', 'no-store');
    try {
      if (route.public === undefined) await handle(ctx);
      else await admitStranger(route.strangers, deps, ctx, () => handle(ctx));
    } catch (error) {
      ctx.state.errorsLeadTo = route.errorsLeadTo?.(error);
      deps.onError?.(route, toAppError(error));
      throw error;
    }
  };
}

/**
 * Handles a request at a public route if its address has not used up its budget. What is too large
 * is refused before it is read. Errors: `too_many_requests`, `body_too_large`; those of `handle`.
 */
const admitStranger = (
  limits: StrangerLimits,
  { clientAddress, strangers }: MountDeps,
  ctx: Context,
  handle: () => Promise<void>,
): Promise<void> =>
  strangers.admit(clientAddress.addressOf(ctx), limits, () => {
    checkContentLength(ctx, limits.bodyBytes);
    return handle();
  });

/** True for a request that waits for a result. */
const asksToWait = (prefer: string): boolean => (preferencesIn(prefer).waitMs ?? 0) > 0;

const takesPrefer = ({ headers }: Route): boolean => headers?.includes('Prefer') === true;

type HandlerRequest = Parameters<Route['handle']>[0];

/** Calls the handler and sends its response, with what `complete` adds to it. */
async function respond(
  route: Route,
  deps: MountDeps,
  ctx: Context,
  input: RawInput & { caller: Caller },
  complete: (
    request: HandlerRequest,
    response: HttpResponse,
  ) => HttpResponse | Promise<HttpResponse>,
): Promise<void> {
  const prefer = readPrefer(ctx.get('prefer'));
  const ended = endOfResponse(ctx);
  const request = {
    ...input,
    prefer,
    ifMatch: ctx.get('if-match') || undefined,
    header: (name: string) => ctx.get(name) || undefined,
    // Computed on demand: most routes never read it.
    get origin() {
      return deps.clientAddress.publicOriginOf(ctx);
    },
    isOwnOrigin: (origin: string) => deps.clientAddress.isOwnOrigin(ctx, origin),
    signal: AbortSignal.any([deps.shutdownSignal, ended.signal]),
  } as unknown as HandlerRequest;
  const handle = () => handleIdempotently(route, deps, ctx, request);
  const startedAt = performance.now();
  let handled = await (route.public === undefined
    ? deps.expensiveReads.run(route, request, handle)
    : handle());
  let reader = request;
  // Who has waited long gets what they may read now. What was changed is answered as it was.
  const isRepeatable = ctx.state.waits === true && route.method === 'GET';
  if (isRepeatable && performance.now() - startedAt > CALLER_MAX_AGE_MS) {
    const caller = await authorizeCaller(route, deps, ctx);
    reader = { ...request, caller, prefer: { ...prefer, waitMs: 0 } };
    handled = await route.handle(reader);
  }
  deps.onResponse?.(route, handled);
  const response = await complete(reader, handled);
  if (prefer.waitMs > 0 && takesPrefer(route))
    ctx.set('preference-applied', `wait=${prefer.waitMs / 1_000}`);
  if (response.stream && route.public === undefined)
    endStreamOnLostAccess(route, deps, ctx, request, response.stream, ended);
  ctx.compress = mayCompress(route, response);
  await send(ctx, response, (bytes) =>
    holdUnread(deps.unreadBytes, route, ctx, input.caller, bytes),
  );
}

/**
 * True for a write whose response can be large. A runner must report, and strangers get short texts and documents
 * that all share, whatever they have not read.
 */
const mayAnswerMuch = ({ method, runner, public: isPublic, responses }: Route): boolean =>
  method !== 'GET' &&
  runner === undefined &&
  isPublic === undefined &&
  Object.values(responses).some((schema) => schema !== null);

/**
 * Counts the bytes of a large response until its client has read it, or has closed the connection. Error:
 * `too_many_requests` if the client has not read too much already. The response of a write is not refused.
 */
function holdUnread(
  unreadBytes: Slots,
  { allowsReadOnly }: Route,
  ctx: Context,
  caller: Caller,
  bytes: number,
): void {
  if (ctx.res.closed || caller.kind === 'anonymous') return;
  const canRepeat = ctx.method === 'GET' || allowsReadOnly === true || ctx.res.hasHeader(REPLAYED);
  const take = canRepeat ? unreadBytes.takeNow : unreadBytes.takeAnyway;
  ctx.res.once('close', take(caller, bytes));
}

/**
 * The length of a compressed text reveals something about it, if a part of it is chosen by others
 * (BREACH). So what has a secret is sent as it is, and what strangers get, except documents.
 */
const mayCompress = (route: Route, { containsSecret, stream }: HttpResponse): boolean =>
  stream === undefined &&
  containsSecret !== true &&
  route.secretBody !== true &&
  route.public === undefined;

/** Authentication is repeated if reading the body, or waiting for a result, took longer than this. */
const CALLER_MAX_AGE_MS = 1_000;

const ACCESS_RECHECK_MS = 10_000;

/** Ends a stream, incompletely, when its caller loses the session or the permission. */
function endStreamOnLostAccess(
  route: Route,
  deps: MountDeps,
  ctx: Context,
  request: HandlerRequest,
  { contentType, source, recheck: onRechecked }: NonNullable<HttpResponse['stream']>,
  ended: AbortController,
): void {
  const end = (error: AppError) => {
    if (contentType === EVENT_STREAM && ctx.res.headersSent) {
      source.unpipe(ctx.res);
      ctx.res.end(encodeError(error, request.caller.requestId));
    }
    // Before the first byte the client can still get the status.
    source.destroy(ctx.res.headersSent ? undefined : error);
    // What the source waits for must not keep its slot.
    ended.abort();
  };
  const recheck = async () => {
    try {
      const caller = await authorizeCaller(route, deps, ctx);
      if (route.keepsScope)
        deps.access.assertSameScope(caller, request.caller, ...permissionsOf(route));
      await route.recheckAccess?.({ ...request, caller });
      onRechecked?.(caller);
    } catch (error) {
      // A busy server is no reason to end what it has allowed.
      if (error instanceof AppError && !isBusyError(error)) end(error);
    }
  };
  const timer = setInterval(() => void recheck(), deps.accessRecheckMs ?? ACCESS_RECHECK_MS);
  const unwatch = deps.watchAccess(request.caller, recheck);
  source.once('close', () => {
    clearInterval(timer);
    unwatch();
  });
}

/**
 * Authenticates the caller and checks the permission of the route. Errors: those of `authenticate`;
 * `session_invalid`, `token_not_accepted`, `password_change_required`, `permission_denied`.
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
  ctx.state.isAuthenticated = true;
  connectionsAreFor(shareTenantOf(caller));
  if (route.runner !== undefined) requireRunner(caller);
  else if (caller.runner && !route.allowsRunners)
    throw new AppError('token_not_accepted', 'The token of a runner is for `/api/runner` only.');
  if (caller.token) await authorizeToken(route, caller, caller.token, access);
  if (route.session !== undefined) requireSessionId(caller);
  if (route.session !== undefined || route.allowsOneTimePassword) return caller;
  requireOwnPassword(caller);
  const [permission, ...others] = permissionsOf(route);
  if (permission !== undefined && !route.permissionCheckedInHandler)
    await access.requireAnywhere(caller, permission, ...others);
  return caller;
}

/** The runner of a request. Error: `permission_denied` for another caller. */
export function requireRunner({ runner }: Caller): NonNullable<Caller['runner']> {
  if (!runner)
    throw new AppError('permission_denied', 'Only runners do this, with a token of their own.');
  return runner;
}

/** Error: `password_change_required` for a caller with a one-time password. */
function requireOwnPassword({ session }: Caller): void {
  if (session?.mustChangePassword)
    throw new AppError(
      'password_change_required',
      'A one-time password must be changed first, with POST /api/auth/password.',
    );
}

/** Errors: `token_not_accepted`, `permission_denied`. */
async function authorizeToken(
  { session, refusesTokens = session, tokenPermissions, allowsReadOnly, method }: Route,
  caller: Caller,
  { readOnly }: NonNullable<Caller['token']>,
  access: Access,
): Promise<void> {
  if (refusesTokens !== undefined)
    throw new AppError('token_not_accepted', `Not possible with an API token: ${refusesTokens}.`);
  if (readOnly && method !== 'GET' && !allowsReadOnly)
    throw new AppError('token_not_accepted', 'The token can only read.');
  if (tokenPermissions) await access.requireAnywhere(caller, ...tokenPermissions);
}

/** Aborts when the client closes the connection before the response is complete. */
function endOfResponse(ctx: Context): AbortController {
  const ended = new AbortController();
  if (ctx.res.closed) ended.abort();
  ctx.res.once('close', () => {
    if (!ctx.res.writableFinished) ended.abort();
  });
  return ended;
}

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * Calls the handler once for each `Idempotency-Key`, and replays the response of the first request.
 * Errors: those of the handler; `invalid_request`, `idempotency_mismatch`,
 * `idempotency_in_progress`; `conflict` if nothing has the response any more.
 */
async function handleIdempotently(
  route: Route,
  { access, idempotency }: MountDeps,
  ctx: Context,
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
    fingerprintParts(ctx, request),
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
 * Two requests are the same if these parts are equal. An upload is streamed: its length represents
 * it, until `assertSameFile` has read it.
 */
const fingerprintParts = (ctx: Context, { body, upload }: HandlerRequest): string[] => [
  ctx.method,
  ctx.path,
  upload ? `${ctx.querystring} ${ctx.get('content-length')}` : JSON.stringify(body ?? null),
];

/** Payloads of jobs may have fields that the schema of their type marks as secret. */
const mayHoldSecret = ({ secretBody }: Route, { body }: HandlerRequest): boolean =>
  secretBody === true || (typeof body === 'object' && body !== null && 'payload' in body);

const REPLAYED = 'idempotent-replayed';

const asReplay = (response: HttpResponse): HttpResponse => ({
  ...response,
  headers: { ...response.headers, [REPLAYED]: 'true' },
});

/** Answers a request with a method that its path does not have. */
export function rejectMethod(ctx: Context, methods: Iterable<string>): void {
  const allow = [...new Set([...methods, 'OPTIONS'])].sort();
  if (ctx.method !== 'OPTIONS')
    throw new AppError('method_not_allowed', `${ctx.method} is not supported at this path.`, {
      allow,
    });
  ctx.status = 204;
  ctx.set('allow', allow.join(', '));
}

/**
 * Answers requests at a path without parameters with a method that it does not have. They must not
 * reach the routes with a parameter at the same position: `DELETE /api/schedules/logs` is not about
 * the schedule with the id `logs`.
 */
export function rejectMethodOfFixedPath(
  routes: readonly Pick<Route, 'path' | 'method'>[],
): Middleware {
  const methods = new Map<string, Set<string>>();
  for (const { path, method } of routes.filter((route) => !route.path.includes('{'))) {
    const known = methods.get(path) ?? new Set();
    methods.set(path, known.add(method));
    if (method === 'GET') known.add('HEAD');
  }
  return async (ctx, next) => {
    const found = methods.get(((ctx.path as string | null) ?? '/').replace(/(.)\/$/, '$1'));
    if (found && !found.has(ctx.method)) rejectMethod(ctx, found);
    else await next();
  };
}

/** Answers requests that match no route: 405 if the path has other methods, else 404. */
export function rejectUnmatched(routers: readonly Router[]): Middleware {
  return (ctx) => {
    // A request line without a path, such as `GET http://`.
    const path = (ctx.path as string | null) ?? '/';
    const methods = routers
      .flatMap((router) => router.match(path, 'GET').path)
      .flatMap((layer) => layer.methods);
    if (methods.length === 0)
      throw new AppError('not_found', `No resource at ${path.slice(0, 200)}.`);
    rejectMethod(ctx, methods);
  };
}
