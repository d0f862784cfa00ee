import { getHeapStatistics } from 'node:v8';
import {
  createCommit,
  createDispatchUnaudited,
  createWriteUnaudited,
} from '../../db/core/commit.ts';
import { openSharedDatabase } from '../../db/core/connectionPool.ts';
import { listenerName } from '../../db/core/connectionFacts.ts';
import { createNotifications, type Notifications } from '../../db/core/notifications.ts';
import { MAX_LOADED } from '../../db/inventory/load.ts';
import type { Config } from '../../platform/config.ts';
import { createGuardedHttp } from '../../platform/guardedHttp.ts';
import { createIds } from '../../platform/ids.ts';
import type { Log } from '../../platform/log.ts';
import { createMetrics, type Metrics } from '../../platform/metrics.ts';
import { createOwnEndpoints, endpointOf } from '../../platform/ownEndpoints.ts';
import { createReadBudgets } from '../../platform/readBudgets.ts';
import { createVault } from '../../platform/vault.ts';
import { APP_VERSION } from '../../platform/version.ts';
import { createAccess } from '../../services/access/access.ts';
import { createRights } from '../../services/access/rights.ts';
import { createDeniedAttempts } from '../../services/audit/deniedAttempts.ts';
import { createPasswords, type PasswordCost } from '../../services/auth/passwords.ts';
import { createPlanMemory } from '../../services/inventory/planMemory.ts';
import { createJobCompletion } from '../../services/jobs/completion.ts';
import { createJobFactory } from '../../services/jobs/createJob.ts';
import { createJobLifecycle } from '../../services/jobs/lifecycle.ts';
import { createJobReferences } from '../../services/jobs/payloadReferences.ts';
import { createReportJobEnd } from '../../services/jobs/reportJobEnd.ts';
import { createJobTargets } from '../../services/jobs/targets.ts';
import { createJobTypes } from '../../services/jobTypes/registry.ts';
import { createTemporalConnection } from '../../temporal/connection.ts';
import { createDescribeWorkflow } from '../../temporal/describe.ts';
import { createReadRunRetention } from '../../temporal/runRetention.ts';
import { createDispatcher } from '../../temporal/dispatcher.ts';
import { sdkMetricsText } from '../../temporal/sdkMetrics.ts';
import type { MakeAttempts } from '../../temporal/shortJobStarts.ts';
import { composeSlots } from './slots.ts';

export type Core = ReturnType<typeof composeCore>;

/** Builds what every area uses: connections, commits, access checks, and the registries of jobs. */
export function composeCore(config: Config, log: Log, passwordCost?: PasswordCost) {
  const { taskQueue, heartbeatMs, dispatchGraceMs, databaseUrl } = config;
  const ids = createIds();
  const metrics = createMetrics({
    role: config.role,
    version: APP_VERSION,
    others: sdkMetricsText,
  });
  const db = openPool(config, log, metrics);
  const ownEndpoints = createOwnEndpoints(ownServers(config).map(endpointOf));
  const notifications = createNotifications(databaseUrl, log, listenerName(config.databasePool));
  const temporal = createTemporalConnection(config.temporal);
  const late = createLateBindings();
  const dispatcher = createDispatcher({
    db,
    temporal,
    notifications,
    log,
    metrics,
    taskQueue,
    heartbeatMs,
    eager: late.workerState.isWorkerRunning,
    attempts: late.attempts,
  });
  const writes = composeWrites(
    { db, ids, dispatcher, dispatchGraceMs },
    { notifications, metrics, late },
  );
  const checks = composeAccess({ db, log, metrics, ...writes });
  return {
    config,
    log,
    ids,
    metrics,
    db,
    databaseUrl,
    notifications,
    temporal,
    dispatcher,
    ...writes,
    ...late.workerState,
    workerSlots: { activity: config.maxActivityRuns, delivery: config.maxDeliveryRuns },
    sharePercent: config.tenantSharePercent,
    ownEndpoints,
    http: createGuardedHttp({ allow: config.outboundAllow, ownEndpoints }),
    vault: createVault(config.masterKeys),
    passwords: createPasswords(passwordCost),
    ...checks,
    describeWorkflow: createDescribeWorkflow(temporal),
    readRunRetention: createReadRunRetention(temporal),
    ...composeBounds(config, metrics),
    ...composeJobParts({ db, ids, heartbeatMs, log, metrics, ...writes, ...checks }),
    taskQueue,
    heartbeatMs,
    /** Records that have not changed for this long are compared with their workflows. */
    graceMs: config.reconcileSeconds * 1_000,
    bind: late.bind,
  };
}

/** How much of this process callers may use together, and each of them. */
const composeBounds = (config: Config, metrics: Metrics) => ({
  slots: composeSlots(config, metrics),
  readBudgets: createReadBudgets({ perSecondMs: config.readBudgetMs }),
  planMemory: createPlanMemory({ maxBytes: planMemoryBytes() }),
});

/** Rows take several times their size in memory, and plans leave most of it to other work. */
const planMemoryBytes = (): number =>
  Math.max(2 * MAX_LOADED.bytes, getHeapStatistics().heap_size_limit / 8);

/** Servers of the installation, which no request of a user may reach. */
const ownServers = ({ databaseUrl, temporal, temporalUiUrl }: Config): string[] =>
  [databaseUrl, temporal.address, temporalUiUrl].filter((server) => server !== undefined);

/** What creates jobs, and what happens at their end. */
function composeJobParts(
  deps: Parameters<typeof createJobFactory>[0] &
    Parameters<typeof createJobTargets>[0] &
    Omit<Parameters<typeof createReportJobEnd>[0], 'jobTypes'> &
    Omit<Parameters<typeof createJobLifecycle>[0], 'jobTargets' | 'reportJobEnd' | 'jobCompletion'>,
) {
  const jobTypes = createJobTypes();
  const jobTargets = createJobTargets(deps);
  const reportJobEnd = createReportJobEnd({ ...deps, jobTypes });
  const jobCompletion = createJobCompletion({ jobTypes, reportJobEnd });
  return {
    jobTypes,
    jobFactory: createJobFactory(deps),
    jobTargets,
    jobReferences: createJobReferences(deps),
    reportJobEnd,
    jobCompletion,
    jobLifecycle: createJobLifecycle({ ...deps, jobTargets, reportJobEnd, jobCompletion }),
  };
}

/** Rights, and the checks of them. */
function composeAccess({
  db,
  ...deps
}: Parameters<typeof createDeniedAttempts>[0] & Parameters<typeof createRights>[0]) {
  const deniedAttempts = createDeniedAttempts(deps);
  const rights = createRights({ db });
  return { deniedAttempts, rights, access: createAccess({ deniedAttempts, rights }) };
}

/** The ways in which records and technical state are written. */
const composeWrites = (
  dispatching: Parameters<typeof createDispatchUnaudited>[0],
  {
    notifications,
    metrics,
    late,
  }: {
    notifications: Notifications;
    metrics: Metrics;
    late: ReturnType<typeof createLateBindings>;
  },
) => ({
  commit: createCommit({
    ...dispatching,
    onEventsCommitted: late.eventsCommitted,
    onSlotAwaited: late.wakeSlots,
    onChanged: notifications.announce,
    onEnded: (outcome, seconds) => metrics.commitSeconds.observe({ outcome }, seconds),
  }),
  /** For events that are written outside of commits. */
  onEventsCommitted: late.eventsCommitted,
  onSlotFreed: late.wakeSlots,
  writeUnaudited: createWriteUnaudited(dispatching),
  dispatchUnaudited: createDispatchUnaudited(dispatching),
});

type LateServices = {
  workers: { isRunning(): boolean; isCurrentVersion(): boolean };
  readiness: { isTemporalReady(): boolean };
  relay: { wake(): void };
  jobSlots: { wake(): void };
  immediateAttempts: MakeAttempts;
};

const openPool = (config: Config, log: Log, metrics: Metrics) =>
  openSharedDatabase({
    url: config.databaseUrl,
    poolSize: config.databasePool,
    waitMs: config.databaseWaitMs,
    metrics,
    sharePercent: config.tenantSharePercent,
    statementTimeoutMs: config.statementTimeoutMs,
    log,
    quotaDefaults: config.quotas,
  });

/** Services that the core calls, but that are built from it. Until `bind`, the calls do nothing. */
function createLateBindings() {
  let services: LateServices | undefined;
  return {
    bind: (bound: LateServices): void => void (services = bound),
    workerState: {
      isWorkerRunning: (): boolean => services?.workers.isRunning() ?? false,
      isCurrentVersion: (): boolean => services?.workers.isCurrentVersion() ?? true,
      isTemporalReady: (): boolean => services?.readiness.isTemporalReady() ?? false,
    },
    attempts: {
      accepts: () =>
        services !== undefined &&
        services.workers.isRunning() &&
        services.workers.isCurrentVersion() &&
        services.immediateAttempts.accepts(),
      make: async (jobs) => services?.immediateAttempts.make(jobs),
    } satisfies MakeAttempts,
    eventsCommitted: (): void => services?.relay.wake(),
    wakeSlots: (): void => services?.jobSlots.wake(),
  };
}
