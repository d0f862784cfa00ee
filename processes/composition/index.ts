import { runEach } from '../../domain/shared/runEach.ts';
import { createApprovalActivities } from '../../activities/approvals.ts';
import { createBackupActivities } from '../../activities/backups.ts';
import { createJobActivities } from '../../activities/jobs.ts';
import { createReconcileActivities } from '../../activities/reconcile.ts';
import { createScheduleActivities } from '../../activities/schedules.ts';
import type { JobType } from '../../domain/jobs/jobType.ts';
import type { Config } from '../../platform/config.ts';
import { compileForeignSchema } from '../../platform/foreignSchema.ts';
import type { Log } from '../../platform/log.ts';
import { digestSettings, type SharedSettings } from '../../platform/sharedSettings.ts';
import { createWatchAccess } from '../../services/access/watchAccess.ts';
import { approvalCompletionHook } from '../../services/approvals/completionHook.ts';
import type { PasswordCost } from '../../services/auth/passwords.ts';
import { allJobTypes } from '../../services/jobTypes/index.ts';
import { JOB_TYPE_MARK, type ModuleJobType } from '../../services/jobTypes/modules/jobType.ts';
import { moduleJobType } from '../../services/jobTypes/modules/moduleJobType.ts';
import { deliveryCompletionHook } from '../../services/jobTypes/webhooks/deliver.ts';
import { scheduleCompletionHook } from '../../services/schedules/completionHook.ts';
import { createReadInstallationState } from '../../services/operations/installationState.ts';
import { createProcessPresence } from '../../services/operations/processPresence.ts';
import { createIdempotency } from '../../services/shared/idempotency.ts';
import { createFindNames } from '../../services/shared/names.ts';
import { createConnectionCheck } from '../../services/shared/connectionCheck.ts';
import { createReadiness } from '../../services/shared/readiness.ts';
import { createSchemaState, type SchemaState } from '../../services/shared/schemaState.ts';
import { createWorkers } from '../../temporal/worker.ts';
import { composeApprovals } from './approvals.ts';
import { composeAuth } from './auth.ts';
import { composeBackups } from './backups.ts';
import { composeCore, type Core } from './core.ts';
import { composeSearch } from './search.ts';
import { composeInventory } from './inventory.ts';
import { composeJobs } from './jobs.ts';
import { composeOperations } from './operations.ts';
import { composeRetention } from './retention.ts';
import { composeRunners } from './runners.ts';
import { composeSchedules } from './schedules.ts';
import { createViews } from '../../services/views/views.ts';
import { composeSecrets } from './secrets.ts';
import { composeWebhooks } from './webhooks.ts';

export { installRuntime } from '../../temporal/runtime.ts';
export { collectSdkMetrics } from '../../temporal/sdkMetrics.ts';

export type Composition = ReturnType<typeof compose>;

type Areas = ReturnType<typeof composeAreas>;

/** With the settings that processes compare. */
type CoreWithSettings = Core & { sharedSettings: SharedSettings };

type ComposeOptions = {
  /** Job types of modules, which `loadJobTypeModules` has loaded. */
  modules?: readonly ModuleJobType[];
  extraJobTypes?: readonly JobType[];
  /** The cost of hashing new passwords; for tests, because hashing is slow on purpose. */
  passwordCost?: PasswordCost;
  /** From how many changed rows of a table on it is restored in bulk; for tests. */
  bulkRestoreRows?: number | undefined;
};

/** Builds everything that a process consists of. Nothing connects or runs before `start`. */
export function compose(
  config: Config,
  log: Log,
  { modules = [], extraJobTypes = [], passwordCost, bulkRestoreRows }: ComposeOptions = {},
) {
  const core = {
    ...composeCore(config, log, passwordCost),
    sharedSettings: digestSettings(
      config,
      modules.map((each) => each[JOB_TYPE_MARK].name),
    ),
  };
  const areas = composeAreas(core, bulkRestoreRows);
  core.jobTypes.register([...composeJobTypes(core, areas), ...extraJobTypes]);
  core.jobTypes.register(
    modules.map((each) =>
      moduleJobType(each, { ...core, ...areas.inventory, ...areas.runners, ...areas.secrets }),
    ),
    compileForeignSchema,
  );
  core.jobCompletion.register(
    scheduleCompletionHook,
    approvalCompletionHook,
    deliveryCompletionHook,
  );
  const activities = composeActivities(core, areas);
  const workers = createWorkers({ ...config, ...core, activities });
  const runsWorker = config.role !== 'api';
  const schema = createSchemaState(core);
  const health = composeHealth({ ...core, schema }, runsWorker ? workers : undefined);
  core.bind({ workers, ...health, relay: areas.webhooks.relay, ...areas.jobs });
  core.metrics.measureComponents(() => Promise.resolve(health.readiness.report().components));
  core.metrics.measureInstallation(createReadInstallationState(core));
  const { auth, webhooks, jobs, runners, schedules, retention, operations, secrets, ...rest } =
    areas;
  return {
    ...core,
    ...auth,
    ...webhooks,
    ...jobs,
    ...runners,
    ...schedules,
    ...retention,
    ...operations,
    ...secrets,
    ...rest,
    activities,
    schema,
    watchAccess: createWatchAccess(core),
    idempotency: createIdempotency(core),
    findNames: createFindNames(core),
    views: createViews(core),
    search: composeSearch(core, areas.approvals),
    ...health,
    ...composeLifecycle(core, areas, runsWorker ? workers : undefined),
  };
}

function composeAreas(core: Core, bulkRestoreRows?: number) {
  const inventory = composeInventory(core);
  const webhooks = composeWebhooks(core);
  const jobs = composeJobs(core, webhooks.deliveryQueue);
  const secrets = composeSecrets(core);
  const backups = composeBackups(core, bulkRestoreRows);
  return {
    auth: composeAuth(core),
    inventory,
    backups,
    webhooks,
    jobs,
    runners: composeRunners(core, jobs, backups, secrets),
    schedules: composeSchedules(core),
    approvals: composeApprovals(core, inventory),
    retention: composeRetention(core),
    operations: composeOperations(core),
    secrets,
  };
}

const composeJobTypes = (
  core: CoreWithSettings,
  { inventory, backups, webhooks, schedules, retention }: Areas,
) =>
  allJobTypes({
    ...core,
    sendEvent: webhooks.sendEvent,
    disable: webhooks.disable,
    health: webhooks.health,
    backfillOccurrence: schedules.runner.backfillOccurrence,
    mayRunSchedule: schedules.schedules.mayRun,
    imports: inventory.imports,
    approvedChanges: inventory.approvedChanges,
    backups: backups.backups,
    restores: backups.restores,
    auditArchiver: backups.auditArchiver,
    purge: retention.purge,
    logMonths: retention.logMonths,
  });

const composeActivities = (
  { log }: Core,
  { jobs, runners, schedules, approvals, backups, operations }: Areas,
) => ({
  ...createJobActivities({ ...jobs, ...runners, log }),
  ...createReconcileActivities({
    reconcile: jobs.reconcile,
    housekeeping: operations.housekeeping,
    approvals: approvals.reconcile,
    // Removals come last: nothing waits for them, and they use their time as long as something is due.
    backups: async (signal) => {
      const [repaired] = await runEach<number | undefined>([
        () => backups.reconcile(signal),
        () => runners.artifacts.removeUnused(signal).then(() => undefined),
      ]);
      return repaired ?? 0;
    },
    log,
  }),
  ...createScheduleActivities({ ...schedules, log }),
  ...createApprovalActivities({ execution: approvals.execution, log }),
  ...createBackupActivities({ steps: jobs.multiStepJobs, ...backups.runs, log }),
});

type Workers = ReturnType<typeof createWorkers>;

/** What probes and operators learn of the process. It is checked from before the work starts. */
function composeHealth(core: Core & { schema: SchemaState }, worker: Workers | undefined) {
  const workerRequired = core.config.role === 'worker';
  const readiness = createReadiness({ ...core, worker, workerRequired });
  const connectionCheck = createConnectionCheck(core);
  return {
    readiness,
    connectionCheck,
    startHealth(): void {
      readiness.start();
      connectionCheck.start();
    },
    stopHealth: async (): Promise<void> =>
      void (await Promise.all([readiness.stop(), connectionCheck.stop()])),
  };
}

/** Starts and stops the background work. A process that serves only the API has no `workers`. */
function composeLifecycle(core: CoreWithSettings, areas: Areas, workers: Workers | undefined) {
  const { notifications, temporal, dispatcher, http, db } = core;
  const { auth, webhooks, jobs, runners, schedules, backups } = areas;
  const processPresence = createProcessPresence(core);

  /** From now on others get the slots that this worker offered, not only when its work has ended. */
  const stopWorkers = async (): Promise<void> => {
    jobs.stopSignal.begin();
    await Promise.all([
      jobs.workerPresence.stop(),
      workers?.stop(),
      webhooks.firstAttempts.stop(),
      jobs.immediateAttempts.stop(),
    ]);
  };

  notifications.onConnected(() => {
    core.rights.forget();
    webhooks.eventFeed.reload();
  });
  return {
    /** Starts the background work of the role of this process. */
    start(): void {
      notifications.start();
      // Connects in advance, for the first job. Later calls connect again if this fails.
      temporal.nativeConnection().catch(() => undefined);
      processPresence.start();
      runners.remoteTypes.start();
      dispatcher.start();
      auth.auditSealer.start();
      auth.tokenUses.start();
      webhooks.relay.start();
      jobs.jobSlots.start();
      // The API notes what its test messages say about endpoints.
      webhooks.health.start();
      workers?.start();
      if (!workers) return;
      jobs.workerPresence.start();
      jobs.attemptWatch.start();
      jobs.immediateAttempts.start();
      webhooks.firstAttempts.start(webhooks.relay.onSlotFreed);
      schedules.catchUp.start();
    },

    /** Accepts no new tasks. Resolves when running ones have finished or were given back. */
    stopWorkers,

    /** Stops the background work, dispatches pending outbox tasks and closes all connections. */
    async stop(): Promise<void> {
      await Promise.all([
        stopWorkers(),
        schedules.catchUp.stop(),
        runners.remoteTypes.stop(),
        processPresence.stop(),
      ]);
      // These add outbox tasks, so they stop before the dispatcher.
      await Promise.all([webhooks.relay.stop(), webhooks.eventFeed.stop(), jobs.jobSlots.stop()]);
      await Promise.all([
        dispatcher.stop(),
        jobs.attemptWatch.stop(),
        auth.auditSealer.stop(),
        auth.tokenUses.stop(),
        webhooks.health.stop(),
      ]);
      await notifications.stop();
      await Promise.all([temporal.close(), http.close(), auth.closeProviders()]);
      await backups.archives.close();
      await db.destroy();
    },
  };
}
