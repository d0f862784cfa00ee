import { createHash, timingSafeEqual } from 'node:crypto';
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import ipaddr from 'ipaddr.js';
import { AppError } from '../../domain/shared/errors.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { Readiness } from '../../services/shared/readiness.ts';

type OperationDeps = {
  readiness: Readiness;
  metrics: Metrics;
  config: { metricsPort: number; metricsToken: string | undefined };
  /** True for the metrics port, which operators open to their monitoring only. */
  isMetricsPort: boolean;
};

const isLoopback = (address: string) =>
  ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';

/** Headers that a proxy adds. */
const PROXY_HEADERS = /^(x-forwarded|forwarded|via$|x-real-ip$|x-client-ip$|true-client-ip$)/;

/** The host of a `Host` header, without the port. */
const hostOf = (header: string): string => header.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');

/**
 * True for a request of a program on this machine. A proxy on this machine has the same address: it
 * is recognised by the headers that it adds, or by the name under which its clients know it.
 */
function isFromThisMachine(ctx: Context): boolean {
  const host = hostOf(ctx.get('host'));
  return (
    isLoopback(ctx.req.socket.remoteAddress ?? '') &&
    (host === 'localhost' || isLoopback(host)) &&
    !Object.keys(ctx.req.headers).some((name) => PROXY_HEADERS.test(name))
  );
}

const digest = (text: string) => createHash('sha256').update(text).digest();

const hasToken = (ctx: Context, token: string): boolean =>
  timingSafeEqual(digest(ctx.get('authorization')), digest(`Bearer ${token}`));

/** Health probes and metrics, for orchestrators and monitoring. They show no records. */
export function operationRoutes({
  readiness,
  metrics,
  config: { metricsPort, metricsToken },
  isMetricsPort,
}: OperationDeps): Middleware {
  const router = new Router();

  function showsMetrics(ctx: Context): boolean {
    if (metricsToken !== undefined) return hasToken(ctx, metricsToken);
    return isMetricsPort || (metricsPort === 0 && isFromThisMachine(ctx));
  }

  router.get('/livez', (ctx: Context) => {
    ctx.body = { status: 'alive' };
  });

  router.get('/readyz', async (ctx: Context) => {
    const report = await readiness.report();
    ctx.status = report.status === 'unready' ? 503 : 200;
    ctx.body = report;
  });

  router.get('/metrics', async (ctx: Context) => {
    // 404 hides from other callers that metrics exist.
    if (!showsMetrics(ctx)) throw new AppError('not_found', 'No resource at /metrics.');
    ctx.body = await metrics.registry.metrics();
    ctx.type = metrics.registry.contentType;
  });

  return router.routes() as unknown as Middleware;
}
