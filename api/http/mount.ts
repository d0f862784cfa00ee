import { AsyncResource } from 'node:async_hooks';
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import type { AppError } from '../../domain/shared/errors.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Strangers } from '../middleware/strangers.ts';
import { authorizeCaller, requireOwnPassword, type AuthorizeDeps } from './authorize.ts';
import type { ExpensiveReads } from './expensiveReads.ts';
import { handleIdempotently, type IdempotencyDeps } from './idempotentRequests.ts';
import { compileInclude, takeInclude, type FindNames } from './include.ts';
import { endStreamOnLostAccess, type LostAccessDeps } from './lostAccess.ts';
import { preferencesIn, readPrefer } from './prefer.ts';
import { changedProperties, readOnlyProperties } from './presentedRecord.ts';
import { toAppError } from './problem.ts';
import { checkContentLength } from './requestBody.ts';
import { compileInput, type RawInput } from './requestInput.ts';
import type { HttpResponse } from './response.ts';
import type { Exchange, HandlerRequest, Route, StrangerLimits } from './route.ts';
import { chooseRouter, fixedStart, rejectMethodOfFixedPath, rejectUnmatched } from './routing.ts';
import { send } from './send.ts';
import { allowSlowBody } from './slowBodies.ts';
import { holdUnread, mayAnswerMuch, type UnreadDeps } from './unread.ts';

export type MountDeps = AuthorizeDeps &
  LostAccessDeps &
  IdempotencyDeps &
  UnreadDeps & {
    findNames: FindNames;
    strangers: Strangers;
    expensiveReads: ExpensiveReads;
    /** Aborted when the server stops. */
    shutdownSignal: AbortSignal;
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

type RouteContext = Context & { params: Record<string, string> };

function createHandler(route: Route, routes: readonly Route[], deps: MountDeps) {
  const readOnly = readOnlyProperties(route, routes);
  const { read, check } = compileInput(route, readOnly);
  const include = compileInclude(route, deps.findNames);

  async function handle(ctx: RouteContext): Promise<void> {
    const startedAt = performance.now();
    const exchange = { route, deps, ctx };
    const initialCaller = await authorizeCaller(exchange);
    if (route.upload?.maxSeconds) allowSlowBody(ctx.req, route.upload.maxSeconds * 1_000);
    // What is written is answered, however much its caller has not read: such a caller writes nothing more.
    if (mayAnswerMuch(route)) deps.unreadBytes.requireShare(initialCaller);
    // A client that sends its body slowly must not keep a permission that was revoked since. Bound, so that the end of
    // an upload, too, uses the connections of its caller.
    const presentCaller = AsyncResource.bind(async () =>
      performance.now() - startedAt > CALLER_MAX_AGE_MS ? authorizeCaller(exchange) : initialCaller,
    );
    const input = await read(ctx, ctx.params, presentCaller);
    try {
      const caller = await presentCaller();
      const ifMatch = ctx.get('if-match') || undefined;
      const put = { caller, params: input.params, ifMatch };
      input.body = await changedProperties(route, readOnly, put, input.body);
      check(input);
      const included = takeInclude(route, input.query);
      if (included.size > 0) requireOwnPassword(caller);
      await respond(exchange, { ...input, caller, ifMatch }, (request, response) =>
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

/** Calls the handler and sends its response, with what `complete` adds to it. */
async function respond(
  exchange: Exchange<MountDeps>,
  input: RawInput & { caller: Caller; ifMatch: string | undefined },
  complete: (
    request: HandlerRequest,
    response: HttpResponse,
  ) => HttpResponse | Promise<HttpResponse>,
): Promise<void> {
  const { route, deps, ctx } = exchange;
  const prefer = readPrefer(ctx.get('prefer'));
  const ended = endOfResponse(ctx);
  const request = {
    ...input,
    prefer,
    header: (name: string) => ctx.get(name) || undefined,
    // Computed on demand: most routes never read it.
    get origin() {
      return deps.clientAddress.publicOriginOf(ctx);
    },
    isOwnOrigin: (origin: string) => deps.clientAddress.isOwnOrigin(ctx, origin),
    signal: AbortSignal.any([deps.shutdownSignal, ended.signal]),
  } as unknown as HandlerRequest;
  const handle = () => handleIdempotently(exchange, request);
  const startedAt = performance.now();
  let handled = await (route.public === undefined
    ? deps.expensiveReads.run(route, request, handle)
    : handle());
  let reader = request;
  // Who has waited long gets what they may read now. What was changed is answered as it was.
  const isRepeatable = ctx.state.waits === true && route.method === 'GET';
  if (isRepeatable && performance.now() - startedAt > CALLER_MAX_AGE_MS) {
    const caller = await authorizeCaller(exchange);
    reader = { ...request, caller, prefer: { ...prefer, waitMs: 0 } };
    handled = await route.handle(reader);
  }
  deps.onResponse?.(route, handled);
  const response = await complete(reader, handled);
  if (prefer.waitMs > 0 && takesPrefer(route))
    ctx.set('preference-applied', `wait=${prefer.waitMs / 1_000}`);
  if (response.stream && route.public === undefined)
    endStreamOnLostAccess(exchange, request, response.stream, ended);
  ctx.compress = mayCompress(route, response);
  await send(ctx, response, (bytes) => holdUnread(exchange, input.caller, bytes));
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

/** Aborts when the client closes the connection before the response is complete. */
function endOfResponse(ctx: Context): AbortController {
  const ended = new AbortController();
  if (ctx.res.closed) ended.abort();
  ctx.res.once('close', () => {
    if (!ctx.res.writableFinished) ended.abort();
  });
  return ended;
}
