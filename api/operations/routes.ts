import { hash, timingSafeEqual } from 'node:crypto';
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { AppError } from '../../domain/shared/errors.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { parseAddress, withoutBrackets } from '../../platform/network.ts';
import type { Readiness } from '../../services/shared/readiness.ts';
import { middlewareOf, rejectMethod, rejectMethodOfFixedPath } from '../http/routing.ts';

type OperationDeps = {
  readiness: Readiness;
  metrics: Metrics;
  config: { metricsPort: number; metricsToken: string | undefined };
  /** True for a request with an API token that may read metrics. */
  mayReadMetrics(ctx: Context): Promise<boolean>;
  /** True for the metrics port, which operators open to their monitoring only. */
  isMetricsPort: boolean;
};

const isLoopback = (address: string) => parseAddress(address)?.range() === 'loopback';

/**
 * Headers that monitoring and browsers send themselves. Any other may come from a proxy: each has
 * its own to name its client.
 */
const OWN_HEADERS = new Set(
  `host connection keep-alive user-agent accept accept-encoding accept-language accept-charset
   authorization cookie cache-control pragma dnt priority te referer range if-none-match
   if-modified-since upgrade-insecure-requests content-length content-type traceparent tracestate
   x-prometheus-scrape-timeout-seconds x-request-id`.split(/\s+/),
);
const isOwnHeader = (name: string): boolean => OWN_HEADERS.has(name) || name.startsWith('sec-');

/** The host of a `Host` header, without the port. */
const hostOf = (header: string): string => withoutBrackets(header.replace(/:\d+$/, ''));

/**
 * True for a request of a program on this machine. A proxy on this machine has the same address: it
 * is recognised by headers that are not the client's own, or by the name under which its clients know it.
 */
function isFromThisMachine(ctx: Context): boolean {
  const host = hostOf(ctx.get('host'));
  return (
    isLoopback(ctx.req.socket.remoteAddress ?? '') &&
    (host === 'localhost' || isLoopback(host)) &&
    Object.keys(ctx.req.headers).every(isOwnHeader)
  );
}

const digest = (text: string) => hash('sha256', text, 'buffer');

const hasToken = (ctx: Context, token: string): boolean =>
  timingSafeEqual(digest(ctx.get('authorization')), digest(`Bearer ${token}`));

const PROBES = ['/livez', '/readyz', '/routez'].map((path) => ({ path, method: 'GET' as const }));

/** Health probes and metrics, for orchestrators and monitoring. They show no records. */
export function operationRoutes({
  readiness,
  metrics,
  config: { metricsPort, metricsToken },
  mayReadMetrics,
  isMetricsPort,
}: OperationDeps): Middleware[] {
  const router = new Router();

  function showsMetrics(ctx: Context): boolean {
    if (metricsToken !== undefined) return hasToken(ctx, metricsToken);
    return isMetricsPort || (metricsPort === 0 && isFromThisMachine(ctx));
  }

  router.get('/livez', (ctx: Context) => {
    ctx.body = { status: 'alive' };
  });

  router.get('/readyz', (ctx: Context) => {
    const report = readiness.report();
    ctx.status = report.status === 'unready' ? 503 : 200;
    ctx.body = report;
  });

  router.get('/routez', (ctx: Context) => {
    const takesRequests = readiness.takesRequests();
    ctx.status = takesRequests ? 200 : 503;
    ctx.body = { status: takesRequests ? 'open' : 'closed' };
  });

  router.all('/metrics', async (ctx: Context) => {
    // 404 hides from other callers that metrics exist.
    if (!showsMetrics(ctx) && !(await mayReadMetrics(ctx)))
      throw new AppError('not_found', 'No resource at /metrics.');
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      rejectMethod(ctx, ['GET', 'HEAD']);
      return;
    }
    ctx.body = await metrics.text();
    ctx.type = metrics.contentType;
  });

  return [middlewareOf(router), rejectMethodOfFixedPath(PROBES)];
}
