import type { Middleware } from 'koa';
import { prefersPage } from '../http/page.ts';
import type { ClientAddress } from './clientAddress.ts';

/**
 * Redirects pages that a browser opens under another loopback address of this machine to our origin:
 * cookies and sign-ins belong to one origin. The target is our own origin with the path of the request.
 */
export const redirectToOrigin =
  ({ publicOriginOf, otherLoopbackOriginOf }: ClientAddress): Middleware =>
  (ctx, next) => {
    const isPage = (ctx.method === 'GET' || ctx.method === 'HEAD') && prefersPage(ctx);
    if (!isPage || otherLoopbackOriginOf(ctx) === undefined) return next();
    const origin = publicOriginOf(ctx);
    const target = ctx.url.startsWith('/') ? URL.parse(origin + ctx.url) : null;
    if (target?.origin !== origin) return next();
    ctx.status = 307;
    ctx.set({ location: target.href, 'cache-control': 'no-store' });
    return undefined;
  };
