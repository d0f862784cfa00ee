import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import ipaddr from 'ipaddr.js';
import { AppError } from '../../domain/shared/errors.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { Readiness } from '../../services/shared/readiness.ts';

type OperationDeps = { readiness: Readiness; metrics: Metrics; allowRemoteMetrics: boolean };

const isLoopback = (address: string | undefined) =>
  address !== undefined && ipaddr.process(address).range() === 'loopback';

/** Health probes and metrics, for orchestrators and monitoring. They show no records. */
export function operationRoutes({
  readiness,
  metrics,
  allowRemoteMetrics,
}: OperationDeps): Middleware {
  const router = new Router();

  router.get('/livez', (ctx: Context) => {
    ctx.body = { status: 'alive' };
  });

  router.get('/readyz', async (ctx: Context) => {
    const report = await readiness.report();
    ctx.status = report.status === 'unready' ? 503 : 200;
    ctx.body = report;
  });

  router.get('/metrics', async (ctx: Context) => {
    if (!allowRemoteMetrics && !isLoopback(ctx.req.socket.remoteAddress)) {
      throw new AppError('not_found', 'No resource at /metrics.');
    }
    ctx.body = await metrics.registry.metrics();
    ctx.type = metrics.registry.contentType;
  });

  return router.routes() as unknown as Middleware;
}
