import Koa from 'koa';
import helmet from 'koa-helmet';
import type { AppError } from '../domain/shared/errors.ts';
import type { Config } from '../platform/config.ts';
import { useConnectionsFor } from '../platform/connectionUser.ts';
import { networkOf } from '../platform/network.ts';
import type { ReadBudgets } from '../platform/readBudgets.ts';
import type { Slots } from '../platform/slots.ts';
import type { HttpResponse } from './http/response.ts';
import { withInclude } from './http/include.ts';
import { createExpensiveReads } from './http/expensiveReads.ts';
import { mount, type MountDeps } from './http/mount.ts';
import { rejectUnmatched } from './http/routing.ts';
import type { Route } from './http/route.ts';
import { createAuthenticate } from './middleware/authenticate.ts';
import { createClientAddress } from './middleware/clientAddress.ts';
import { redirectToOrigin } from './middleware/oneOrigin.ts';
import { compression } from './middleware/compression.ts';
import { requestContext } from './middleware/requestContext.ts';
import { requestSpans } from './middleware/requestSpans.ts';
import { schemaGate } from './middleware/schemaGate.ts';
import { createStrangers } from './middleware/strangers.ts';
import { approvalRoutes } from './approvals/routes.ts';
import { auditRoutes } from './audit/routes.ts';
import { authRoutes } from './auth/routes.ts';
import { backupRoutes } from './backups/routes.ts';
import type { ConsoleBundle } from './console/bundle.ts';
import { consolePages } from './console/pages.ts';
import { consoleRoutes } from './console/routes.ts';
import { eventRoutes } from './events/routes.ts';
import { eventTypeRoutes } from './events/typeRoutes.ts';
import { ssoRoutes } from './auth/ssoRoutes.ts';
import { inventoryRoutes } from './inventory/routes.ts';
import { inventoryFileRoutes } from './inventory/fileRoutes.ts';
import { inventoryPlanRoutes } from './inventory/planRoutes.ts';
import { resourceRoutes } from './inventory/resourceRoutes.ts';
import { jobRoutes } from './jobs/routes.ts';
import { typeRoutes } from './jobs/typeRoutes.ts';
import { createMayReadMetrics } from './operations/metricsAccess.ts';
import { operationRoutes } from './operations/routes.ts';
import { quotaRoutes } from './access/quotaRoutes.ts';
import { providerRoutes } from './auth/providerRoutes.ts';
import { rbacRoutes } from './access/routes.ts';
import { referenceRoutes } from './reference/routes.ts';
import { legalHoldRoutes } from './retention/holdRoutes.ts';
import { retentionRoutes } from './retention/routes.ts';
import { artifactRoutes } from './runners/artifactRoutes.ts';
import { protocolRoutes } from './runners/protocolRoutes.ts';
import { runnerRoutes } from './runners/routes.ts';
import { scheduleRoutes } from './schedules/routes.ts';
import { secretRoutes } from './secrets/routes.ts';
import { viewRoutes } from './views/routes.ts';
import { searchRoutes } from './search/routes.ts';
import { serviceAccountRoutes } from './auth/serviceAccountRoutes.ts';
import { tokenRoutes } from './auth/tokenRoutes.ts';
import { userRoutes } from './auth/userRoutes.ts';
import { userSessionRoutes } from './auth/userSessionRoutes.ts';
import { webhookRoutes } from './webhooks/routes.ts';

type DepsOf<Routes extends (...args: never[]) => Route[]> = Parameters<Routes>[0];

/** The services that the routes call, as each group of routes declares them. */
type RouteDeps = DepsOf<typeof rbacRoutes> &
  DepsOf<typeof retentionRoutes> &
  DepsOf<typeof authRoutes> &
  DepsOf<typeof tokenRoutes> &
  DepsOf<typeof serviceAccountRoutes> &
  DepsOf<typeof providerRoutes> &
  DepsOf<typeof webhookRoutes> &
  DepsOf<typeof scheduleRoutes> &
  DepsOf<typeof approvalRoutes> &
  DepsOf<typeof protocolRoutes> &
  DepsOf<typeof artifactRoutes> &
  DepsOf<typeof runnerRoutes> &
  DepsOf<typeof typeRoutes> & {
    jobs: DepsOf<typeof jobRoutes>;
    jobTypes: Parameters<typeof jobRoutes>[1];
    quotas: DepsOf<typeof quotaRoutes>;
    users: DepsOf<typeof userRoutes>;
    userSessions: DepsOf<typeof userSessionRoutes>;
    sso: DepsOf<typeof ssoRoutes>;
    auditLog: DepsOf<typeof auditRoutes>;
    events: DepsOf<typeof eventRoutes>;
    legalHolds: DepsOf<typeof legalHoldRoutes>;
    secrets: DepsOf<typeof secretRoutes>;
    views: DepsOf<typeof viewRoutes>;
    search: DepsOf<typeof searchRoutes>;
    backups: Omit<DepsOf<typeof backupRoutes>, 'access'> & {
      auditArchives: Parameters<typeof auditRoutes>[1];
    };
    inventory: Omit<DepsOf<typeof inventoryRoutes>, 'requireIfMatch'> &
      DepsOf<typeof inventoryPlanRoutes> &
      Omit<DepsOf<typeof inventoryFileRoutes>, 'jobs' | 'slots'>;
    slots: { logStreams: Slots; eventStreams: Slots; exports: Slots; downloads: Slots };
    access: MountDeps['access'];
    config: Pick<Config, 'requireIfMatch'> & DepsOf<typeof consoleRoutes>['config'];
  };

type AppDeps = RouteDeps &
  DepsOfMiddleware & {
    config: Pick<
      Config,
      | 'role'
      | 'trustedGateways'
      | 'gatewayHosts'
      | 'publicUrl'
      | 'requireIfMatch'
      | 'metricsPort'
      | 'metricsToken'
      | 'strangerBudget'
    >;
    schema: Parameters<typeof schemaGate>[0];
    idempotency: MountDeps['idempotency'];
    findNames: MountDeps['findNames'];
    watchAccess: MountDeps['watchAccess'];
    slots: { expensiveReads: Slots; unreadBytes: Slots };
    readBudgets: ReadBudgets;
  };

type DepsOfMiddleware = Parameters<typeof requestContext>[0] &
  Omit<Parameters<typeof operationRoutes>[0], 'isMetricsPort' | 'config' | 'mayReadMetrics'> &
  Omit<Parameters<typeof createAuthenticate>[0], 'clientAddress' | 'strangers'>;

/** The defaults, except the directive that breaks pages served without TLS, as on loopback. */
/** Answers of the API are no pages: nothing in them may run or be framed. Pages have policies of their own. */
const HELMET_OPTIONS = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
  },
  frameguard: { action: 'deny' },
} as const;

type AppOptions = {
  version: string;
  shutdownSignal: AbortSignal;
  /** The console, if it was built. */
  consoleBundle?: ConsoleBundle | undefined;
  /** See `MountDeps`. */
  accessRecheckMs?: number;
  onResponse?(route: Route, response: HttpResponse): void;
  onError?(route: Route, error: AppError): void;
};

/** Returns every route of the API. */
export function allRoutes(deps: RouteDeps, version: string): Route[] {
  const routes = withInclude([
    ...jobRoutes(deps.jobs, deps.jobTypes, deps.slots.logStreams),
    ...runnerRoutes(deps),
    ...typeRoutes(deps),
    ...protocolRoutes(deps),
    ...artifactRoutes(deps),
    ...rbacRoutes(deps),
    ...quotaRoutes(deps.quotas),
    ...retentionRoutes(deps),
    ...userRoutes(deps.users),
    ...userSessionRoutes(deps.userSessions),
    ...authRoutes(deps),
    ...tokenRoutes(deps),
    ...serviceAccountRoutes(deps),
    ...ssoRoutes(deps.sso),
    ...providerRoutes(deps),
    ...auditRoutes(deps.auditLog, deps.backups.auditArchives, deps.slots.exports),
    ...eventRoutes(deps.events, deps.slots.eventStreams),
    ...eventTypeRoutes(),
    ...legalHoldRoutes(deps.legalHolds),
    ...secretRoutes(deps.secrets),
    ...viewRoutes(deps.views),
    ...webhookRoutes(deps),
    ...scheduleRoutes(deps),
    ...approvalRoutes(deps),
    ...searchRoutes(deps.search),
    ...backupRoutes({ ...deps.backups, access: deps.access }),
    ...inventoryRoutes({ ...deps.inventory, requireIfMatch: deps.config.requireIfMatch }),
    ...resourceRoutes(deps.inventory),
    ...inventoryPlanRoutes(deps.inventory),
    ...inventoryFileRoutes({ ...deps.inventory, jobs: deps.jobs, slots: deps.slots }),
    ...consoleRoutes(deps, version),
  ]);
  return [...routes, ...referenceRoutes(routes, version)];
}

type AuthenticationDeps = Omit<
  Parameters<typeof createAuthenticate>[0],
  'clientAddress' | 'strangers'
> &
  Pick<AppDeps, 'access' | 'readiness'> & {
    config: Pick<Config, 'trustedGateways' | 'gatewayHosts' | 'publicUrl' | 'strangerBudget'>;
  };

/** How the servers of a process authenticate requests. */
function createAuthentication(deps: AuthenticationDeps) {
  const clientAddress = createClientAddress(deps.config);
  const strangers = createStrangers({ budgetPerMinute: deps.config.strangerBudget });
  const authenticate = createAuthenticate({ ...deps, clientAddress, strangers });
  const mayReadMetrics = createMayReadMetrics({ ...deps, clientAddress, authenticate });
  return { clientAddress, strangers, authenticate, mayReadMetrics };
}

/** Creates the HTTP application of a process. A worker serves probes and metrics only. */
export function createApp(
  deps: AppDeps,
  { version, shutdownSignal, consoleBundle, onResponse, onError, accessRecheckMs }: AppOptions,
): Koa {
  const { config, access, watchAccess, idempotency, findNames } = deps;
  const app = new Koa();
  const { clientAddress, strangers, authenticate, mayReadMetrics } = createAuthentication(deps);
  app.use(requestSpans(clientAddress.isTrusted));
  app.use(requestContext(deps, clientAddress.isTrusted));
  app.use(helmet(HELMET_OPTIONS));
  const operations = operationRoutes({ ...deps, mayReadMetrics, isMetricsPort: false });
  for (const middleware of operations) app.use(middleware);
  app.use(redirectToOrigin(clientAddress));
  if (config.role !== 'worker') app.use(consolePages(consoleBundle));
  app.use(schemaGate(deps.schema));
  app.use(compression());
  app.use((ctx, next) =>
    useConnectionsFor(
      { part: 'requests', key: `address:${networkOf(clientAddress.addressOf(ctx))}` },
      next,
    ),
  );
  const routes = config.role === 'worker' ? [] : allRoutes(deps, version);
  for (const middleware of mount(routes, {
    access,
    watchAccess,
    idempotency,
    findNames,
    authenticate,
    clientAddress,
    strangers,
    expensiveReads: createExpensiveReads({
      slots: deps.slots.expensiveReads,
      budgets: deps.readBudgets,
    }),
    unreadBytes: deps.slots.unreadBytes,
    shutdownSignal,
    ...(accessRecheckMs && { accessRecheckMs }),
    ...(onResponse && { onResponse }),
    ...(onError && { onError }),
  })) {
    app.use(middleware);
  }
  // requestContext handles errors; the remaining ones are broken connections.
  app.on('error', (error) => deps.log.debug({ err: error }, 'connection broken'));
  return app;
}

/** Creates the application of the metrics port: probes and metrics, for every client that reaches the port. */
export function createOperationsApp(
  deps: AuthenticationDeps & Pick<AppDeps, 'ids' | 'log' | 'metrics' | 'readiness' | 'config'>,
): Koa {
  const app = new Koa();
  const { mayReadMetrics } = createAuthentication(deps);
  app.use(requestContext(deps, () => false));
  const operations = operationRoutes({ ...deps, mayReadMetrics, isMetricsPort: true });
  for (const middleware of [...operations, rejectUnmatched([])]) app.use(middleware);
  return app;
}
