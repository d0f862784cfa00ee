import { randomBytes } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import { AppError } from '../../domain/shared/errors.ts';
import { htmlPage, prefersPage } from '../http/page.ts';
import { chooseEncoding, sendShared } from '../http/sharedContent.ts';
import type { Asset, ConsoleBundle } from './bundle.ts';

/** What `ui/vite.config.ts` writes where the nonce belongs. */
const NONCE_PLACEHOLDER = '__CSP_NONCE__';

const ASSETS = '/assets/';
/** Assets have the hash of their content in their name. */
const FOREVER = 'public, max-age=31536000, immutable';
/** The one that does not, because all versions have it: it loads a page again whose other assets are missing. */
const EARLY = { path: '/assets/early.js', cacheControl: 'public, max-age=300' };

/** Paths that are never pages, and what is below them. */
const RESERVED = /^\/(api|livez|readyz|routez|metrics)(\/|$)/;

/** Scripts, styles and requests of the pages come from their origin only; markup is not set from text. */
const policy = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; ');

/** Shown where the console was not built. */
const MISSING = htmlPage(
  'Holdfast',
  '<h1>The console has not been built</h1>\n' +
    '<p>Run <code>npm ci</code> and <code>npm run bundle</code>, then start this process again.</p>\n' +
    '<p>The API works without it: <a href="/api/docs">API reference</a>.</p>',
);

/**
 * Serves the console: its assets, and its page at every path that is none of the API's, since the page
 * has routes of its own. Without `bundle`, the page says how to build it.
 */
export function consolePages(bundle: ConsoleBundle | undefined): Middleware {
  return async (ctx, next) => {
    const path = (ctx.path as string | null) ?? '/';
    const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
    if (!isRead || RESERVED.test(path)) await next();
    else if (path.startsWith(ASSETS)) sendAsset(ctx, bundle?.assets.get(path));
    else if (prefersPage(ctx)) sendPage(ctx, bundle?.page);
    else await next();
  };
}

function sendPage(ctx: Context, page: string | undefined): void {
  ctx.state.route = '/';
  ctx.compress = false;
  // Without an ETag: a page with the nonce of an earlier response would lose its styles.
  ctx.set('cache-control', 'no-store');
  ctx.vary('accept');
  ctx.type = 'text/html; charset=utf-8';
  if (page === undefined) {
    ctx.status = 503;
    ctx.body = MISSING;
    return;
  }
  const nonce = randomBytes(18).toString('base64url');
  ctx.set('content-security-policy', policy(nonce));
  ctx.body = page.replaceAll(NONCE_PLACEHOLDER, nonce);
}

/** Error: `not_found`, which no cache may keep: another process may have the asset already. */
function sendAsset(ctx: Context, asset: Asset | undefined): void {
  ctx.state.route = ASSETS;
  if (asset === undefined) {
    ctx.set('cache-control', 'no-store');
    throw new AppError('not_found', `No asset at ${ctx.path.slice(0, 200)}.`);
  }
  const encoding = chooseEncoding(ctx, asset.content);
  ctx.set('cache-control', ctx.path === EARLY.path ? EARLY.cacheControl : FOREVER);
  ctx.etag = `${asset.etag}-${encoding}`;
  ctx.type = asset.type;
  sendShared(ctx, asset.content, encoding);
}
