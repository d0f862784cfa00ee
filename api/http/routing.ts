import type Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { AppError } from '../../domain/shared/errors.ts';
import type { Route } from './route.ts';

/** The routes of a router, without the type of its own context. */
export const middlewareOf = (router: Router): Middleware =>
  router.routes() as unknown as Middleware;

/** The segments before the first parameter, at most those of `/api/<area>/<collection>`. */
export const fixedStart = (segments: readonly string[]): string[] => {
  const parameter = segments.findIndex((segment) => segment.startsWith('{'));
  return segments.slice(0, Math.min(parameter === -1 ? Infinity : parameter, MAX_FIXED));
};
const MAX_FIXED = 4;

/**
 * Asks the router of the longest start of the path, then those of shorter ones: a router compares a path
 * with all of its routes, and there are some hundreds.
 */
export function chooseRouter(routers: ReadonlyMap<string, Router>): Middleware {
  const handlers = new Map([...routers].map(([start, router]) => [start, middlewareOf(router)]));
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
