import Koa from 'koa';
import helmet from 'koa-helmet';
import type { Deps } from '../composition.ts';
import type { Answer } from './kit/answer.ts';
import { mount } from './kit/mount.ts';
import type { Route } from './kit/route.ts';
import { createIdentify } from './middleware/identity.ts';
import { requestContext } from './middleware/requestContext.ts';
import { jobRoutes } from './routes/jobs.ts';
import { operationRoutes } from './routes/operations.ts';
import { referenceRoutes } from './routes/reference.ts';

type AppDeps = Pick<
  Deps, 'config' | 'ids' | 'log' | 'metrics' | 'audit' | 'access' | 'idempotency' | 'readiness' | 'jobs' | 'jobTypes'
>;

/** As it comes, but for what breaks a page that is served without TLS, as on loopback. */
const HELMET = { contentSecurityPolicy: { directives: { 'upgrade-insecure-requests': null } } };

type AppOptions = {
  version: string;
  stopping: AbortSignal;
  onAnswer?(route: Route, answer: Answer): void;
};

/** Every route of the API. */
export function allRoutes({ jobs, jobTypes }: Pick<AppDeps, 'jobs' | 'jobTypes'>, version: string): Route[] {
  const routes = jobRoutes(jobs, jobTypes);
  return [...routes, ...referenceRoutes(routes, version)];
}

/** The HTTP application of one process. A worker answers only what the machinery asks. */
export function createApp(deps: AppDeps, { version, stopping, onAnswer }: AppOptions): Koa {
  const { config, audit, access, idempotency } = deps;
  const app = new Koa();
  app.use(requestContext(deps));
  app.use(helmet(HELMET));
  app.use(operationRoutes({ ...deps, metricsForAll: false }));
  const identify = createIdentify({ trustedGateways: config.trustedGateways, audit });
  const routes = config.role === 'worker' ? [] : allRoutes(deps, version);
  for (const middleware of mount(routes, { access, idempotency, identify, stopping, ...(onAnswer && { onAnswer }) })) {
    app.use(middleware);
  }
  // Errors are answered and logged by requestContext; what is left is a client that went away.
  app.on('error', (error) => deps.log.debug({ err: error }, 'a connection broke'));
  return app;
}

/** What the metrics port serves: the same operations, to whoever can reach that port. */
export function createOperationsApp(deps: Pick<AppDeps, 'ids' | 'log' | 'metrics' | 'readiness'>): Koa {
  const app = new Koa();
  app.use(requestContext(deps));
  app.use(operationRoutes({ ...deps, metricsForAll: true }));
  return app;
}
