import type { Readable } from 'node:stream';
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import type { Access } from '../../services/access.ts';
import type { Idempotency } from '../../services/shared/idempotency.ts';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import { anonymousCaller, type Caller } from '../../domain/shared/caller.ts';
import type { Answer } from '../kit/answer.ts';
import { readPrefer } from './prefer.ts';
import { compileInput } from './requestInput.ts';
import type { Peer } from '../middleware/clientAddress.ts';
import type { Method, Route } from '../kit/route.ts';

export type MountDeps = {
  access: Access;
  idempotency: Idempotency;
  identify(ctx: Context, options: { tenantNamed: boolean }): Promise<Caller>;
  peer: Peer;
  /** Aborted when the server stops. */
  stopping: AbortSignal;
  /** How often the reader of a stream is looked at again. */
  watchMs?: number;
  /** Sees each answer before it is sent; tests compare it with the declared schema. */
  onAnswer?(route: Route, answer: Answer): void;
};

/**
 * Makes the routes answer: identity, permission, input, idempotency, handler, answer, in this order, so that
 * nobody without a permission learns what a valid request looks like.
 */
export function mount(routes: readonly Route[], deps: MountDeps): Middleware[] {
  const router = new Router({ strict: false, sensitive: true });
  const register = { GET: router.get, POST: router.post, PUT: router.put, DELETE: router.delete };
  // Specific paths first: /api/schedules/logs is not the schedule called "logs".
  const ordered = [...routes].sort((a, b) => a.path.split('{').length - b.path.split('{').length);
  for (const route of ordered) {
    register[route.method].call(
      router,
      route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      handler(route, deps),
    );
  }
  return [router.routes() as unknown as Middleware, unmatched(router)];
}

function handler(route: Route, deps: MountDeps) {
  const readInput = compileInput(route);

  return async (ctx: Context & { params: Record<string, string> }) => {
    ctx.state.route = route.path;
    ctx.state.page = route.page ?? false;
    const began = performance.now();
    const known = await callerOf(route, deps, ctx);
    const input = await readInput(ctx, ctx.params);
    // Who holds back the body must not keep a right that was taken meanwhile.
    const caller =
      performance.now() - began > MAX_KNOWN_MS ? await callerOf(route, deps, ctx) : known;
    const prefer = readPrefer(ctx.get('prefer') || undefined);
    const request = {
      ...input,
      prefer,
      caller,
      ifMatch: ctx.get('if-match') || undefined,
      header: (name: string) => ctx.get(name) || undefined,
      // Worked out where it is asked for: most routes never do.
      get origin() {
        return deps.peer.originOf(ctx);
      },
      signal: AbortSignal.any([deps.stopping, goneSignal(ctx)]),
    } as unknown as Parameters<Route['handle']>[0];
    const answer = await idempotently(route, deps, ctx, request);
    deps.onAnswer?.(route, answer);
    if (prefer.waitMs > 0 && route.headers?.includes('Prefer'))
      ctx.set('preference-applied', `wait=${prefer.waitMs / 1_000}`);
    if (answer.stream && route.public === undefined)
      watchRights(route, deps, ctx, request, answer.stream.source);
    send(ctx, answer);
  };
}

/** How long what is known of a caller holds while a body comes in. */
const MAX_KNOWN_MS = 1_000;

/** How often a caller who reads a stream is looked at again. */
const WATCH_MS = 10_000;

/** Ends a stream whose reader has lost the session or the permission. */
function watchRights(
  route: Route,
  deps: MountDeps,
  ctx: Context,
  request: Parameters<Route['handle']>[0],
  source: Readable,
): void {
  const timer = setInterval(() => {
    const look = async () => {
      const caller = await callerOf(route, deps, ctx);
      await route.watch?.({ ...request, caller }, request.caller);
    };
    look().catch((error: unknown) => {
      if (error instanceof AppError) source.destroy();
    });
  }, deps.watchMs ?? WATCH_MS);
  source.once('close', () => clearInterval(timer));
}

/** Who asks, with the right to come in here. */
async function callerOf(
  route: Route,
  { peer, identify, access }: MountDeps,
  ctx: Context,
): Promise<Caller> {
  if (route.public !== undefined) {
    return anonymousCaller({
      requestId: ctx.state.requestId as string,
      address: peer.addressOf(ctx),
    });
  }
  const caller = await identify(ctx, { tenantNamed: route.tenantNamed ?? false });
  if (route.session !== undefined && !caller.session) {
    throw new AppError('session_invalid', 'This needs a session; identity headers have none.');
  }
  if (route.session !== undefined || route.anyPassword) return caller;
  if (caller.session?.mustChangePassword) {
    throw new AppError(
      'password_change_required',
      'This password is for one login: change it with POST /api/auth/password.',
    );
  }
  if (route.permission !== undefined && !route.checkedInside)
    await access.requireSomewhere(caller, route.permission);
  return caller;
}

/** Aborted when the client closes the connection before the answer is complete. */
function goneSignal(ctx: Context): AbortSignal {
  const gone = new AbortController();
  if (ctx.res.closed) gone.abort();
  ctx.res.once('close', () => {
    if (!ctx.res.writableFinished) gone.abort();
  });
  return gone.signal;
}

const KEY = /^[\x21-\x7e]{1,255}$/;

async function idempotently(
  route: Route,
  { idempotency }: MountDeps,
  ctx: Context,
  request: Parameters<Route['handle']>[0],
): Promise<Answer> {
  const key = ctx.get('idempotency-key');
  if (key === '' || !route.recover) return route.handle(request);
  if (!KEY.test(key)) {
    throw invalidField(
      'header',
      '/Idempotency-Key',
      'format',
      'must be 1 to 255 visible ASCII characters',
    );
  }
  const start = await idempotency.begin(
    request.caller,
    key,
    fingerprintOf(ctx, request),
    route.secretBody === true,
  );
  if (start.kind === 'answered') return replayed({ ...start.answer });
  if (start.kind === 'committed')
    return replayed(await route.recover(request.caller, start.subjectId));
  try {
    const answer = await route.handle({
      ...request,
      caller: { ...request.caller, idempotency: start.claim },
    });
    const { status, headers, body, showOnce } = answer;
    // A refusal with a body of its own: sent again, the request is looked at again.
    if (status >= 400) await idempotency.release(start.claim);
    else if (showOnce !== true) await idempotency.finish(start.claim, { status, headers, body });
    return answer;
  } catch (error) {
    // A failed release is no loss: the claim runs out by itself.
    await idempotency.release(start.claim).catch(() => undefined);
    throw error;
  }
}

/** What makes a request the same one: of a file that is read as it comes, its length. */
const fingerprintOf = (
  ctx: Context,
  { body, upload }: Parameters<Route['handle']>[0],
): string[] => [
  ctx.method,
  ctx.path,
  upload ? `${ctx.querystring} ${ctx.get('content-length')}` : JSON.stringify(body ?? null),
];

const replayed = (answer: Answer): Answer => ({
  ...answer,
  headers: { ...answer.headers, 'idempotent-replayed': 'true' },
});

function send(ctx: Context, { status, headers, body, stream }: Answer): void {
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

/** What no route takes: 405 where the path has other methods, else 404. */
function unmatched(router: Router): Middleware {
  return (ctx) => {
    // A request line without a path, such as `GET http://`.
    const path = (ctx.path as string | null) ?? '/';
    const methods = new Set(
      router.match(path, 'GET').path.flatMap((layer) => layer.methods),
    ) as Set<Method | 'HEAD'>;
    if (methods.size === 0)
      throw new AppError('not_found', `There is nothing at ${path.slice(0, 200)}.`);
    const allow = [...methods, 'OPTIONS'].sort();
    if (ctx.method === 'OPTIONS') {
      ctx.status = 204;
      ctx.set('allow', allow.join(', '));
      return;
    }
    throw new AppError('method_not_allowed', `${ctx.method} is not possible here.`, { allow });
  };
}
