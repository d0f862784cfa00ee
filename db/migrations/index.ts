import type { Migrations } from '../core/migration.ts';
import * as jobs from './0001_jobs.ts';
import * as audit from './0002_audit.ts';
import * as access from './0003_access.ts';
import * as webhooks from './0004_webhooks.ts';
import * as schedules from './0005_schedules.ts';
import * as inventory from './0006_inventory.ts';
import * as approvals from './0007_approvals.ts';
import * as backups from './0008_backups.ts';
import * as scheduleNames from './0009_schedule_names.ts';
import * as inventoryScopes from './0010_inventory_scopes.ts';
import * as importModes from './0011_import_modes.ts';
import * as sharedRecords from './0012_shared_records.ts';
import * as spaces from './0013_spaces.ts';
import * as authorsAndNames from './0015_authors_and_names.ts';
import * as shares from './0016_shares.ts';
import * as quotas from './0017_quotas.ts';
import * as ownScopes from './0018_own_scopes.ts';
import * as namesOfTenants from './0019_names_of_tenants.ts';
import * as spreadSchedules from './0020_spread_schedules.ts';
import * as firstAttempts from './0021_first_attempts.ts';
import * as sharedRuns from './0022_shared_runs.ts';
import * as usedBlocks from './0023_used_blocks.ts';
import * as retention from './0025_retention.ts';
import * as jobLogMonths from './0026_job_log_months.ts';
import * as legalHolds from './0028_legal_holds.ts';
import * as auditArchives from './0029_audit_archives.ts';
import * as fullBlocksInOrder from './0030_full_blocks_in_order.ts';
import * as holdsAndMoves from './0031_holds_and_moves.ts';
import * as lookupsInOneSpace from './0033_lookups_in_one_space.ts';
import * as purgedRuns from './0035_purged_runs.ts';
import * as restOfMonths from './0036_rest_of_months.ts';
import * as immediateAttempts from './0037_immediate_attempts.ts';
import * as tokens from './0039_tokens.ts';
import * as refreshLeeway from './0041_refresh_leeway.ts';
import * as listIndexes from './0043_list_indexes.ts';
import * as usageOfBlocks from './0045_usage_of_blocks.ts';
import * as search from './0046_search.ts';
import * as lockForWrite from './0047_lock_for_write.ts';
import * as failedLogins from './0049_failed_logins.ts';
import * as searchInScopes from './0050_search_in_scopes.ts';
import * as listOrders from './0051_list_orders.ts';
import * as accountControllers from './0052_account_controllers.ts';
import * as internalJobs from './0054_internal_jobs.ts';
import * as remoteJobTypes from './0055_remote_job_types.ts';
import * as jobTypesOfRoles from './0056_job_types_of_roles.ts';
import * as jobTargets from './0057_job_targets.ts';
import * as secrets from './0058_secrets.ts';
import * as changesOfJobs from './0060_changes_of_jobs.ts';
import * as targetsOfRequests from './0061_targets_of_requests.ts';
import * as approvedVersions from './0062_approved_versions.ts';
import * as artifacts from './0063_artifacts.ts';
import * as modulesPool from './0064_modules_pool.ts';
import * as plansOfGrowingTables from './0065_plans_of_growing_tables.ts';
import * as preRestoreBackups from './0067_pre_restore_backups.ts';
import * as listsOfUsers from './0068_lists_of_users.ts';
import * as appliedDryRuns from './0069_applied_dry_runs.ts';
import * as views from './0070_views.ts';
import * as installationState from './0071_installation_state.ts';
import * as upgrades from './0072_upgrades.ts';
import * as queuedJobs from './0073_queued_jobs.ts';
import * as indexOfDryRuns from './0074_index_of_dry_runs.ts';
import * as requestsByJobType from './0075_requests_by_job_type.ts';
import * as deliveriesByTime from './0077_deliveries_by_time.ts';
import * as importCounts from './0078_import_counts.ts';
import * as finishedJobs from './0083_finished_jobs.ts';
import * as rulesOfConcurrentWrites from './0084_rules_of_concurrent_writes.ts';
import * as jobsByTenantAndType from './0085_jobs_by_tenant_and_type.ts';
import * as deliveriesWithJob from './0087_deliveries_with_job.ts';
import * as jobsOfMovedSites from './0088_jobs_of_moved_sites.ts';
import * as eventFanOuts from './0089_event_fan_outs.ts';
import * as reachableWebhooks from './0090_reachable_webhooks.ts';
import * as deletedTenants from './0097_deleted_tenants.ts';
import * as deletedJobTypes from './0098_deleted_job_types.ts';
import * as namesOfAccounts from './0102_names_of_accounts.ts';
import * as indexOfNames from './0103_index_of_names.ts';
import * as jobTypesOfWorkers from './0107_job_types_of_workers.ts';
import * as lostAttempts from './0108_lost_attempts.ts';
import * as askedForJobsOfTenants from './0111_asked_for_jobs_of_tenants.ts';
import * as unfinishedPurges from './0112_unfinished_purges.ts';
import * as passwordsThatExpire from './0116_passwords_that_expire.ts';
import * as replacedPasswords from './0117_replaced_passwords.ts';
import * as formerTenants from './0119_former_tenants.ts';
import * as processes from './0122_processes.ts';
import * as unitsOfDeviceTypes from './0124_units_of_device_types.ts';
import * as orderOfEvents from './0125_order_of_events.ts';
import * as indexOfEventOrder from './0126_index_of_event_order.ts';
import * as requestsFollowDevices from './0127_requests_follow_devices.ts';
import * as sitesOfRequests from './0128_sites_of_requests.ts';
import * as knownNames from './0131_known_names.ts';
import * as indexOfKnownNames from './0132_index_of_known_names.ts';
import * as lockOrderOfTargets from './0133_lock_order_of_targets.ts';
import * as restartsOfRequests from './0134_restarts_of_requests.ts';
import * as archiveErrors from './0136_archive_errors.ts';
import * as runnersWithoutTemporal from './0138_runners_without_temporal.ts';

/**
 * All migrations in the order in which they run. A released migration is never edited. Numbers that
 * are missing belong to migrations that were never released.
 */
export const MIGRATIONS: Migrations = {
  '0001_jobs': jobs,
  '0002_audit': audit,
  '0003_access': access,
  '0004_webhooks': webhooks,
  '0005_schedules': schedules,
  '0006_inventory': inventory,
  '0007_approvals': approvals,
  '0008_backups': backups,
  '0009_schedule_names': scheduleNames,
  '0010_inventory_scopes': inventoryScopes,
  '0011_import_modes': importModes,
  '0012_shared_records': sharedRecords,
  '0013_spaces': spaces,
  '0015_authors_and_names': authorsAndNames,
  '0016_shares': shares,
  '0017_quotas': quotas,
  '0018_own_scopes': ownScopes,
  '0019_names_of_tenants': namesOfTenants,
  '0020_spread_schedules': spreadSchedules,
  '0021_first_attempts': firstAttempts,
  '0022_shared_runs': sharedRuns,
  '0023_used_blocks': usedBlocks,
  '0025_retention': retention,
  '0026_job_log_months': jobLogMonths,
  '0028_legal_holds': legalHolds,
  '0029_audit_archives': auditArchives,
  '0030_full_blocks_in_order': fullBlocksInOrder,
  '0031_holds_and_moves': holdsAndMoves,
  '0033_lookups_in_one_space': lookupsInOneSpace,
  '0035_purged_runs': purgedRuns,
  '0036_rest_of_months': restOfMonths,
  '0037_immediate_attempts': immediateAttempts,
  '0039_tokens': tokens,
  '0041_refresh_leeway': refreshLeeway,
  '0043_list_indexes': listIndexes,
  '0045_usage_of_blocks': usageOfBlocks,
  '0046_search': search,
  '0047_lock_for_write': lockForWrite,
  '0049_failed_logins': failedLogins,
  '0050_search_in_scopes': searchInScopes,
  '0051_list_orders': listOrders,
  '0052_account_controllers': accountControllers,
  '0054_internal_jobs': internalJobs,
  '0055_remote_job_types': remoteJobTypes,
  '0056_job_types_of_roles': jobTypesOfRoles,
  '0057_job_targets': jobTargets,
  '0058_secrets': secrets,
  '0060_changes_of_jobs': changesOfJobs,
  '0061_targets_of_requests': targetsOfRequests,
  '0062_approved_versions': approvedVersions,
  '0063_artifacts': artifacts,
  '0064_modules_pool': modulesPool,
  '0065_plans_of_growing_tables': plansOfGrowingTables,
  '0067_pre_restore_backups': preRestoreBackups,
  '0068_lists_of_users': listsOfUsers,
  '0069_applied_dry_runs': appliedDryRuns,
  '0070_views': views,
  '0071_installation_state': installationState,
  '0072_upgrades': upgrades,
  '0073_queued_jobs': queuedJobs,
  '0074_index_of_dry_runs': indexOfDryRuns,
  '0075_requests_by_job_type': requestsByJobType,
  '0077_deliveries_by_time': deliveriesByTime,
  '0078_import_counts': importCounts,
  '0083_finished_jobs': finishedJobs,
  '0084_rules_of_concurrent_writes': rulesOfConcurrentWrites,
  '0085_jobs_by_tenant_and_type': jobsByTenantAndType,
  '0087_deliveries_with_job': deliveriesWithJob,
  '0088_jobs_of_moved_sites': jobsOfMovedSites,
  '0089_event_fan_outs': eventFanOuts,
  '0090_reachable_webhooks': reachableWebhooks,
  '0097_deleted_tenants': deletedTenants,
  '0098_deleted_job_types': deletedJobTypes,
  '0102_names_of_accounts': namesOfAccounts,
  '0103_index_of_names': indexOfNames,
  '0107_job_types_of_workers': jobTypesOfWorkers,
  '0108_lost_attempts': lostAttempts,
  '0111_asked_for_jobs_of_tenants': askedForJobsOfTenants,
  '0112_unfinished_purges': unfinishedPurges,
  '0116_passwords_that_expire': passwordsThatExpire,
  '0117_replaced_passwords': replacedPasswords,
  '0119_former_tenants': formerTenants,
  '0122_processes': processes,
  '0124_units_of_device_types': unitsOfDeviceTypes,
  '0125_order_of_events': orderOfEvents,
  '0126_index_of_event_order': indexOfEventOrder,
  '0127_requests_follow_devices': requestsFollowDevices,
  '0128_sites_of_requests': sitesOfRequests,
  '0131_known_names': knownNames,
  '0132_index_of_known_names': indexOfKnownNames,
  '0133_lock_order_of_targets': lockOrderOfTargets,
  '0134_restarts_of_requests': restartsOfRequests,
  '0136_archive_errors': archiveErrors,
  '0138_runners_without_temporal': runnersWithoutTemporal,
};
