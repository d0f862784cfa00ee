import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import ipaddr from 'ipaddr.js';
import { AppError } from '../../domain/shared/errors.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { Readiness } from '../../services/readiness.ts';

type Deps = { readiness: Readiness; metrics: Metrics; metricsForAll: boolean };

const isLoopback = (address: string | undefined) =>
  address !== undefined && ipaddr.process(address).range() === 'loopback';

/** What the machinery around a process asks. These paths are outside `/api` and carry no records. */
export function operationRoutes({ readiness, metrics, metricsForAll }: Deps): Middleware {
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
    if (!metricsForAll && !isLoopback(ctx.req.socket.remoteAddress)) {
      throw new AppError('not_found', 'There is nothing at /metrics.');
    }
    ctx.body = await metrics.registry.metrics();
    ctx.type = metrics.registry.contentType;
  });

  return router.routes() as unknown as Middleware;
}
