import { createApprovalActivities } from './activities/approvals.ts';
import { createBackupActivities } from './activities/backups.ts';
import { createJobActivities } from './activities/jobs.ts';
import { createReconcileActivities } from './activities/reconcile.ts';
import { createScheduleActivities } from './activities/schedules.ts';
import { createChanges, type Changes } from './db/core/notifications.ts';
import { createCommit, createNote, type Commit, type Note } from './db/commit.ts';
import { openDatabase, type Knex } from './db/core/knex.ts';
import { createAccess, type Access } from './services/access.ts';
import { createAccessReport } from './services/accessReport.ts';
import { createAdministrator } from './services/auth/bootstrapAdmin.ts';
import { createAdmission } from './services/auth/loginSession.ts';
import { createApprovalChecks } from './services/approvalChecks.ts';
import { createApprovalPages } from './services/approvalPage.ts';
import { createApprovalReconcile } from './services/approvalReconcile.ts';
import { createApprovalRequests } from './services/approvalRequests.ts';
import { createApprovalRuns } from './services/approvals/execution.ts';
import { createApprovals } from './services/approvals.ts';
import { createAudit, type Audit } from './services/audit.ts';
import { createAuditTrail } from './services/audit/auditLog.ts';
import { createArchives } from './services/backups/archives.ts';
import { createBackups } from './services/backups/backups.ts';
import { createBackupEnds } from './services/backups/backupEnds.ts';
import { createBackupSteps } from './services/backups/backupSteps.ts';
import { createBackupReconcile } from './services/backups/reconcile.ts';
import { createRestores } from './services/backups/restores.ts';
import { createRestoreEnds } from './services/backups/restoreCompletion.ts';
import { createRestoreSteps } from './services/backups/restoreSteps.ts';
import { createRestoreSwap } from './services/backups/restoreSwap.ts';
import { createRoom } from './services/backups/room.ts';
import { createSafety } from './services/backups/preRestoreBackup.ts';
import { createDeliveries } from './services/webhooks/deliveries.ts';
import { createDeliveryQueue } from './services/deliveryQueue.ts';
import { createEventRelay } from './services/eventRelay.ts';
import { createEvents } from './services/events.ts';
import { createFederation } from './services/federation.ts';
import { createGrants } from './services/access/grants.ts';
import { createIdempotency } from './services/shared/idempotency.ts';
import { createAddressSpace } from './services/inventory/addressSpace.ts';
import { createInventoryApplies } from './services/inventory/applies.ts';
import { createInventoryBulk } from './services/inventory/batches.ts';
import { createInventoryExports } from './services/inventory/exports.ts';
import { createInventoryImports } from './services/inventory/imports.ts';
import { createPlanner } from './services/inventory/planner.ts';
import { createInventoryRecords } from './services/inventory/records.ts';
import { createInventoryWrites, type InventoryWrites } from './services/inventory/writes.ts';
import { createJobEnds } from './services/jobEnds.ts';
import { createJobRuns } from './services/jobRuns.ts';
import { createJobSteps } from './services/jobSteps.ts';
import { createJobStarts, type JobStarts } from './services/jobStarts.ts';
import { allJobTypes, jobEndings } from './services/jobTypes/index.ts';
import { createJobTypes, type JobTypes } from './services/jobTypes/registry.ts';
import { createJobs } from './services/jobs.ts';
import { createPasswords, type Passwords } from './services/auth/passwords.ts';
import { createLdap } from './services/auth/providers/kinds/ldap.ts';
import { createOidc } from './services/auth/providers/kinds/oidc.ts';
import { createSaml } from './services/auth/providers/kinds/saml.ts';
import { createProviderTest } from './services/auth/providers/testConnection.ts';
import { createProviders } from './services/auth/providers/providers.ts';
import { createReadiness } from './services/readiness.ts';
import { createReconcile } from './services/jobs/reconcile.ts';
import { createRights, type UserRights } from './services/access/rights.ts';
import { createRoles } from './services/access/roles.ts';
import { createScheduleBackfills } from './services/scheduleBackfills.ts';
import { createScheduleFires, type ScheduleFires } from './services/scheduleFires.ts';
import { createScheduleLog } from './services/scheduleLog.ts';
import { createScheduleMirrors } from './services/scheduleMirrors.ts';
import { createSchedules } from './services/schedules.ts';
import { createScheduleSweep } from './services/scheduleSweep.ts';
import { createScheduleVerdicts } from './services/scheduleVerdicts.ts';
import { createSealer } from './services/sealer.ts';
import { createSessions } from './services/auth/sessions.ts';
import { createSignIn } from './services/signIn.ts';
import { createThrottle } from './services/throttle.ts';
import { createUsers } from './services/auth/users.ts';
import { createWebhookDisable } from './services/webhookDisable.ts';
import { createWebhookReplays } from './services/webhooks/replays.ts';
import { createWebhookSecrets } from './services/webhookSecrets.ts';
import { createWebhookSend } from './services/webhooks/sender.ts';
import { createWebhookTest } from './services/webhookTest.ts';
import { createWebhooks } from './services/webhooks.ts';
import type { JobType } from './domain/jobType.ts';
import { systemClock, type Clock } from './platform/clock.ts';
import type { Config } from './platform/config.ts';
import { createGuardedHttp } from './platform/guardedHttp.ts';
import { createIds, type Ids } from './platform/ids.ts';
import { createFolderStore } from './platform/stores/folder.ts';
import { createS3Store } from './platform/stores/s3.ts';
import { APP_VERSION } from './platform/version.ts';
import type { Log } from './platform/log.ts';
import { createMetrics } from './platform/metrics.ts';
import { createProviderOutbound } from './platform/providerOutbound.ts';
import { createVault, type Vault } from './platform/vault.ts';
import type { DispatchTask, InspectWorkflow } from './temporal/contracts.ts';
import { createDispatch } from './temporal/dispatch.ts';
import { createInspect } from './temporal/describe.ts';
import { createTemporalLink } from './temporal/connection.ts';
import { createCompareMirror, createListMirrors } from './temporal/scheduleSync.ts';
import { createWorkers } from './temporal/worker.ts';

export { installRuntime } from './temporal/worker.ts';

export type Deps = ReturnType<typeof compose>;

/** Builds everything that one process is made of. Nothing connects or runs before `start`. */
export function compose(
  config: Config,
  log: Log,
  { moreJobTypes = [] }: { moreJobTypes?: readonly JobType[] } = {},
) {
  const clock = systemClock;
  const ids = createIds();
  const metrics = createMetrics();
  const db = openDatabase({
    url: config.databaseUrl,
    poolSize: config.databasePool,
    statementTimeoutMs: config.statementTimeoutMs,
    log,
  });
  const changes = createChanges(config.databaseUrl, log);
  const http = createGuardedHttp({ allow: config.outboundAllow });
  const link = createTemporalLink(config.temporal);
  const { taskQueue, heartbeatMs, reconcileSeconds, stopGraceMs } = config;
  const graceMs = reconcileSeconds * 1_000;

  const dispatch = createDispatch({
    db,
    link,
    changes,
    log,
    metrics,
    taskQueue,
    eager: () => workers.isRunning(),
  });
  const commit = createCommit<DispatchTask>({
    db,
    ids,
    clock,
    dispatch,
    eventsCommitted: () => relay.wake(),
    dispatchGraceMs: config.dispatchGraceMs,
  });

  const note = createNote({ db, clock });

  const audit = createAudit({ commit, metrics });
  const rights = createRights({ db });
  const access = createAccess({ audit, rights });
  const passwords = createPasswords();
  const vault = createVault(config.masterKeys);
  const people = composePeople(config, {
    db,
    commit,
    passwords,
    audit,
    access,
    rights,
    vault,
    ids,
    clock,
    log,
  });
  const secrets = createWebhookSecrets(vault);
  const send = createWebhookSend({ http, clock });
  // Jobs of one type make jobs of schedules, which may be of any type.
  const backfill: ScheduleFires['backfill'] = (...args) => fires.backfill(...args);
  const starts = createJobStarts({ ids, heartbeatMs });
  const inventory = composeInventory({
    db,
    commit,
    note,
    access,
    rights,
    ids,
    clock,
    starts,
    jobTypes: () => jobTypes,
  });
  const backups = composeBackups(config, {
    db,
    commit,
    note,
    access,
    ids,
    clock,
    log,
    starts,
    vault,
    changes,
    jobTypes: () => jobTypes,
  });
  const jobTypes: JobTypes = createJobTypes([
    ...allJobTypes({
      db,
      commit,
      note,
      ids,
      clock,
      log,
      metrics,
      http,
      secrets,
      send,
      disable: createWebhookDisable({ commit, log }),
      backfill,
      imports: inventory.imports,
      applies: inventory.applies,
      backups: backups.backups,
      restores: backups.restores,
    }),
    ...moreJobTypes,
  ]);
  const ends = createJobEnds({ jobTypes, endings: jobEndings });
  const jobs = createJobs({ db, commit, access, jobTypes, clock, changes, starts, ends });
  const inspect = createInspect(link);
  const queue = createDeliveryQueue({ db, commit, jobTypes, starts, ends, log });
  const runs = createJobRuns({
    db,
    commit,
    note,
    access,
    rights,
    jobTypes,
    ends,
    clock,
    log,
    metrics,
    admit: { delivery: queue.admit },
  });
  const jobSteps = createJobSteps({ db, note, jobTypes, runs, clock, log });
  const reconcileBackups = createBackupReconcile({
    db,
    commit,
    clock,
    log,
    inspect,
    archives: backups.archives,
    ends: backups.ends,
    restoreEnds: backups.restoreEnds,
    graceMs,
  });
  const reconcile = createReconcile({
    db,
    commit,
    runs,
    jobTypes,
    clock,
    log,
    starts,
    inspect,
    graceMs,
  });
  const approvals = composeApprovals({
    db,
    commit,
    access,
    rights,
    ids,
    clock,
    log,
    audit,
    changes,
    starts,
    inspect,
    graceMs,
    heartbeatMs,
    jobTypes,
    writes: inventory.writes,
  });
  const verdicts = createScheduleVerdicts({ access, jobTypes, starts, ends });
  const schedules = createSchedules({ db, commit, access, ids, jobTypes, verdicts });
  const fires = createScheduleFires({ db, commit, rights, ids, verdicts, schedules });
  const sweep = createScheduleSweep({
    db,
    commit,
    note,
    fires,
    ids,
    clock,
    log,
    everyMs: config.sweepSeconds * 1_000,
  });
  const mirrors = createScheduleMirrors({
    db,
    commit,
    clock,
    log,
    compare: createCompareMirror(link, { db, taskQueue }),
    list: createListMirrors(link, taskQueue),
    graceMs,
  });
  const relay = createEventRelay({ db, queue, ids, clock, log, metrics });
  const webhooks = createWebhooks({ db, commit, access, ids, http, secrets });
  const sealer = createSealer({ db, log });
  const idempotency = createIdempotency({ db, clock, passwords });

  const activities = {
    ...createJobActivities({ runs, steps: jobSteps, log }),
    ...createReconcileActivities({
      reconcile,
      approvals: approvals.reconcile,
      backups: reconcileBackups,
      log,
    }),
    ...createScheduleActivities({ fires, mirrors, log }),
    ...createApprovalActivities({ runs: approvals.runs, log }),
    ...createBackupActivities({ steps: jobSteps, ...backups.runs, log }),
  };
  const workers = createWorkers({
    link,
    log,
    taskQueue,
    activities,
    heartbeatMs,
    stopGraceMs,
    reconcileSeconds,
    maxInlineRuns: config.maxInlineRuns,
    maxActivityRuns: config.maxActivityRuns,
    maxDeliveryRuns: config.maxDeliveryRuns,
  });
  const works = config.role !== 'api';
  const readiness = createReadiness({
    db,
    temporal: link,
    worker: works ? workers : undefined,
    workerIsVital: config.role === 'worker',
  });

  return {
    config,
    log,
    clock,
    ids,
    metrics,
    db,
    commit,
    link,
    inspect,
    access,
    audit,
    jobTypes,
    jobs,
    runs,
    reconcile,
    sealer,
    idempotency,
    readiness,
    activities,
    rights,
    ...people,
    auditTrail: createAuditTrail({ db, access }),
    events: createEvents({ db, access, relay }),
    inventory,
    approvals,
    backups,
    reconcileBackups,
    schedules,
    fires,
    sweep,
    mirrors,
    scheduleLog: createScheduleLog({ db, access }),
    scheduleBackfills: createScheduleBackfills({ commit, schedules, jobTypes, starts }),
    webhooks,
    webhookTest: createWebhookTest({ commit, webhooks, secrets, send, clock, ids }),
    webhookReplays: createWebhookReplays({ db, commit, webhooks, relay, jobTypes, starts }),
    deliveries: createDeliveries({ db, commit, access, webhooks, queue }),

    /** Begins the work in the background that this process has by its role. */
    start(): void {
      changes.start();
      // The first job shall not wait for the connection; when there is none yet, others ask again.
      link.connection().catch(() => undefined);
      dispatch.start();
      sealer.start();
      relay.start();
      if (!works) return;
      workers.start();
      sweep.start();
    },

    /** Takes no new tasks; resolves when what runs has ended or was handed back. */
    stopWorkers: (): Promise<void> => workers.stop(),

    /** Ends it: no new work, what runs is finished or handed back, connections are closed. */
    async stop(): Promise<void> {
      await Promise.all([workers.stop(), sweep.stop()]);
      // The relay commits calls that are owed: it ends before they are made.
      await relay.stop();
      await Promise.all([dispatch.stop(), sealer.stop()]);
      await changes.stop();
      await Promise.all([link.close(), http.close(), people.closeProviders()]);
      backups.archives.close();
      await db.destroy();
    },
  };
}

type InventoryNeeds = { note: Note; starts: JobStarts; jobTypes: () => JobTypes };

/** The record of the estate: one planner, and all that plans through it. */
function composeInventory({
  db,
  commit,
  note,
  access,
  rights,
  ids,
  clock,
  starts,
  jobTypes,
}: Pick<PeopleDeps, 'db' | 'commit' | 'access' | 'rights' | 'ids' | 'clock'> & InventoryNeeds) {
  const planner = createPlanner({ access, ids });
  const records = createInventoryRecords({ db, access });
  const writes = createInventoryWrites({ db, commit, access, planner, clock });
  return {
    records,
    writes,
    applies: createInventoryApplies({ db, access, writes }),
    imports: createInventoryImports({
      db,
      commit,
      note,
      access,
      rights,
      ids,
      writes,
      starts,
      jobTypes,
    }),
    exports: createInventoryExports({ records }),
    bulk: createInventoryBulk({ db, access, writes }),
    space: createAddressSpace({ db, access, records, writes }),
  };
}

type BackupNeeds = Pick<
  PeopleDeps,
  'db' | 'commit' | 'access' | 'ids' | 'clock' | 'log' | 'vault'
> &
  InventoryNeeds & { changes: Changes };

/** Archives of the records: how they are made, kept, read and restored. */
function composeBackups(
  { databaseUrl, backups: { folder, s3, store }, outboundAllow }: Config,
  deps: BackupNeeds,
) {
  const stores = {
    ...(folder !== undefined && { folder: createFolderStore(folder) }),
    ...(s3 && { s3: createS3Store(s3, outboundAllow) }),
  };
  const archives = createArchives({ stores, current: store, vault: deps.vault });
  const room = createRoom();
  const backups = createBackups({ ...deps, archives });
  const [ends, restoreEnds] = [createBackupEnds({ ...deps, archives }), createRestoreEnds(deps)];
  const restoreSteps = createRestoreSteps({ ...deps, databaseUrl, archives, room });
  return {
    archives,
    backups,
    restores: createRestores({ ...deps, backups }),
    ends,
    restoreEnds,
    /** What workflows do. */
    runs: {
      backups: createBackupSteps({ ...deps, databaseUrl, archives, room, appVersion: APP_VERSION }),
      ends,
      restores: restoreSteps,
      swap: createRestoreSwap({ ...deps, room, steps: restoreSteps }),
      restoreEnds,
      safety: createSafety({ ...deps, backups }),
    },
  };
}

type ApprovalNeeds = Pick<
  PeopleDeps,
  'db' | 'commit' | 'access' | 'rights' | 'ids' | 'clock' | 'log' | 'audit'
> & {
  changes: Changes;
  starts: JobStarts;
  jobTypes: JobTypes;
  inspect: InspectWorkflow;
  writes: InventoryWrites;
  graceMs: number;
  heartbeatMs: number;
};

/** Requests for approval: how they are made, seen, decided and carried out. */
function composeApprovals(deps: ApprovalNeeds) {
  const checks = createApprovalChecks(deps);
  const runs = createApprovalRuns({ ...deps, checks });
  return {
    runs,
    approvals: createApprovals(deps),
    requests: createApprovalRequests(deps),
    pages: createApprovalPages({ ...deps, checks }),
    reconcile: createApprovalReconcile({ ...deps, runs }),
  };
}

type PeopleDeps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  passwords: Passwords;
  audit: Audit;
  access: Access;
  rights: UserRights;
  vault: Vault;
  ids: Ids;
  clock: Clock;
  log: Log;
};

/** Everything about who people are and what they may do. */
function composePeople(config: Config, deps: PeopleDeps) {
  const { db, commit, passwords, audit, access, rights, vault, ids, clock, log } = deps;
  const throttle = createThrottle({ db });
  const outbound = createProviderOutbound(config.outboundAllow);
  const [ldap, oidc, saml] = [createLdap(outbound), createOidc(outbound), createSaml(outbound)];
  const sessions = createSessions({ db, commit, rights, clock, ids, limits: config });
  const admission = createAdmission({ db, commit, ids, sessions, audit });
  const providers = createProviders({ db, commit, access, ids, vault });
  return {
    sessions,
    providers,
    roles: createRoles({ db, commit, access, ids }),
    grants: createGrants({ db, commit, access, ids }),
    accessReport: createAccessReport({ db, access }),
    users: createUsers({ db, commit, access, ids, passwords, throttle, audit }),
    administrator: createAdministrator({ db, commit, ids, passwords, throttle }),
    signIn: createSignIn({ db, log, passwords, throttle, admission, providers, ldap }),
    federation: createFederation({
      db,
      clock,
      ids,
      log,
      vault,
      throttle,
      admission,
      providers,
      oidc,
      saml,
    }),
    providerTest: createProviderTest({ db, commit, providers, ldap, oidc, saml }),
    closeProviders: outbound.close,
  };
}
