import Koa from 'koa';
import helmet from 'koa-helmet';
import type { Deps } from '../composition.ts';
import type { Answer } from './kit/answer.ts';
import { mount } from './http/mount.ts';
import type { Route } from './kit/route.ts';
import { createIdentify } from './middleware/authenticate.ts';
import { createPeer } from './middleware/clientAddress.ts';
import { requestContext } from './middleware/requestContext.ts';
import { approvalRoutes } from './routes/approvals.ts';
import { auditRoutes } from './audit/routes.ts';
import { authRoutes } from './auth/routes.ts';
import { backupRoutes } from './backups/routes.ts';
import { eventRoutes } from './routes/events.ts';
import { federationRoutes } from './auth/ssoRoutes.ts';
import { inventoryRoutes } from './routes/inventory.ts';
import { inventoryFileRoutes } from './inventory/fileRoutes.ts';
import { inventoryPlanRoutes } from './inventory/planRoutes.ts';
import { jobRoutes } from './jobs/routes.ts';
import { operationRoutes } from './operations/routes.ts';
import { providerRoutes } from './auth/providerRoutes.ts';
import { rbacRoutes } from './access/routes.ts';
import { referenceRoutes } from './reference/routes.ts';
import { scheduleRoutes } from './routes/schedules.ts';
import { userRoutes } from './auth/userRoutes.ts';
import { webhookRoutes } from './webhooks/routes.ts';

/** What the routes serve. */
type RouteDeps = Pick<
  Deps,
  | 'jobs'
  | 'jobTypes'
  | 'grants'
  | 'roles'
  | 'accessReport'
  | 'users'
  | 'signIn'
  | 'sessions'
  | 'federation'
  | 'providers'
  | 'providerTest'
  | 'auditTrail'
  | 'events'
  | 'webhooks'
  | 'webhookTest'
  | 'webhookReplays'
  | 'deliveries'
  | 'schedules'
  | 'fires'
  | 'scheduleLog'
  | 'scheduleBackfills'
  | 'inventory'
  | 'approvals'
  | 'backups'
  | 'access'
  | 'config'
>;
type AppDeps = RouteDeps &
  Pick<
    Deps,
    | 'config'
    | 'ids'
    | 'log'
    | 'metrics'
    | 'audit'
    | 'access'
    | 'rights'
    | 'idempotency'
    | 'readiness'
  >;

/** As it comes, but for what breaks a page that is served without TLS, as on loopback. */
const HELMET = { contentSecurityPolicy: { directives: { 'upgrade-insecure-requests': null } } };

type AppOptions = {
  version: string;
  stopping: AbortSignal;
  /** How often the reader of a stream is looked at again. */
  watchMs?: number;
  onAnswer?(route: Route, answer: Answer): void;
};

/** Every route of the API. */
export function allRoutes(deps: RouteDeps, version: string): Route[] {
  const routes = [
    ...jobRoutes(deps.jobs, deps.jobTypes),
    ...rbacRoutes(deps),
    ...userRoutes(deps.users),
    ...authRoutes(deps),
    ...federationRoutes(deps.federation),
    ...providerRoutes(deps),
    ...auditRoutes(deps.auditTrail),
    ...eventRoutes(deps.events),
    ...webhookRoutes(deps),
    ...scheduleRoutes(deps),
    ...approvalRoutes(deps),
    ...backupRoutes({ ...deps.backups, access: deps.access }),
    ...inventoryRoutes({ ...deps.inventory, requireIfMatch: deps.config.requireIfMatch }),
    ...inventoryPlanRoutes(deps.inventory),
    ...inventoryFileRoutes({ ...deps.inventory, jobs: deps.jobs }),
  ];
  return [...routes, ...referenceRoutes(routes, version)];
}

/** The HTTP application of one process. A worker answers only what the machinery asks. */
export function createApp(
  deps: AppDeps,
  { version, stopping, onAnswer, watchMs }: AppOptions,
): Koa {
  const { config, access, idempotency } = deps;
  const app = new Koa();
  app.use(requestContext(deps));
  app.use(helmet(HELMET));
  app.use(operationRoutes({ ...deps, metricsForAll: false }));
  const peer = createPeer(config);
  const identify = createIdentify({ ...deps, peer });
  const routes = config.role === 'worker' ? [] : allRoutes(deps, version);
  for (const middleware of mount(routes, {
    access,
    idempotency,
    identify,
    peer,
    stopping,
    ...(watchMs && { watchMs }),
    ...(onAnswer && { onAnswer }),
  })) {
    app.use(middleware);
  }
  // Errors are answered and logged by requestContext; what is left is a client that went away.
  app.on('error', (error) => deps.log.debug({ err: error }, 'a connection broke'));
  return app;
}

/** What the metrics port serves: the same operations, to whoever can reach that port. */
export function createOperationsApp(
  deps: Pick<AppDeps, 'ids' | 'log' | 'metrics' | 'readiness'>,
): Koa {
  const app = new Koa();
  app.use(requestContext(deps));
  app.use(operationRoutes({ ...deps, metricsForAll: true }));
  return app;
}
