import { SHOWN_NOW } from '../core/databaseTime.ts';
import { quoteIdentifier, type RunQuery } from './catalog.ts';
import { findPlanned, mayChangeRights, type RestorePlan } from './restorePlan.ts';
import { restoredTable } from './restoredTables.ts';
import { diffTable } from './sql.ts';

/** What a restore changed beyond its tables. `schedules` need their Temporal Schedules updated. */
export type RestoreEffects = {
  schedules: { id: string; deleted: boolean }[];
  sessionsEnded: number;
  jobsEnded: number;
};

/**
 * Runs `applyRows`, which writes the differences of a plan, and makes the rest of the database
 * consistent with the result. `changed`: the tables that have differences; what depends only on
 * others stays as it is. Requires `findDifferences`.
 */
export async function repairAfterRestore(
  query: RunQuery,
  plan: RestorePlan,
  changed: ReadonlySet<string>,
  applyRows: () => Promise<void>,
): Promise<RestoreEffects> {
  const hasChanged = (...names: string[]) => names.some((name) => changed.has(name));
  const sessionsDeleted = await deleteSessions(query, plan);
  await applyRows();
  await satisfyConstraints(query, plan);
  await repairInventory(query, plan, hasChanged);
  await repairAccess(query, plan, hasChanged);
  const sessionsEnded =
    sessionsDeleted + (hasChanged('users', 'providers') ? await endSessions(query) : 0);
  if (hasChanged('events')) await query(ADVANCE_EVENT_SEQUENCE);
  if (plan.intoEmptyDatabase) await query(SKIP_LOST_SEQUENCES);
  if (findPlanned(plan, 'audit_heads')?.role === 'history') await advanceAuditHeads(query, plan);
  if (hasChanged('job_artifacts')) await query(KEEP_ARTIFACTS);
  const jobsEnded = hasChanged('jobs') ? await failInterruptedJobs(query, plan) : 0;
  if (hasChanged('approvals')) await failInterruptedExecutions(query, plan);
  if (hasChanged('schedule_runs')) await skipBufferedRuns(query, plan);
  await repairDeliveries(query, plan, hasChanged);
  // What is restored and due is purged by the next purge, not by that of the next day.
  if (hasChanged('jobs', 'events', 'deliveries', 'schedule_runs'))
    await query('DELETE FROM public.purge_progress');
  return { schedules: await repairSchedules(query, plan), sessionsEnded, jobsEnded };
}

/** True when any of these tables has differences. */
type HasChanged = (...names: string[]) => boolean;

/** True when the row with the key `key` has a difference that matches the SQL condition `change`. */
function isInDiff(plan: RestorePlan, name: string, change: string, key = 't.id'): string {
  const planned = findPlanned(plan, name);
  if (!planned) return 'false';
  return `EXISTS (
    SELECT FROM ${diffTable(planned.table)} AS d
    WHERE d.${quoteIdentifier(planned.table.key[0])} = ${key} AND d.change ${change})`;
}

/** Deletes sessions of users that the restore deletes. */
export const deleteSessions = async (query: RunQuery, plan: RestorePlan): Promise<number> =>
  (
    await query(
      `DELETE FROM public.sessions AS t
       WHERE ${isInDiff(plan, 'users', "= 'deleted'", 't.user_id')} RETURNING 1`,
    )
  ).length;

/** Ends sessions of users that the restore has disabled, or whose provider it has. */
async function endSessions(query: RunQuery): Promise<number> {
  const ended = await query(
    `UPDATE public.sessions AS t SET ended_at = ${SHOWN_NOW},
       end_reason = CASE WHEN u.enabled THEN 'provider_disabled' ELSE 'disabled' END
     FROM public.users AS u LEFT JOIN public.providers AS p ON p.id = u.provider_id
     WHERE u.id = t.user_id AND t.ended_at IS NULL AND NOT (u.enabled AND coalesce(p.enabled, false))
     RETURNING 1`,
  );
  return ended.length;
}

/** Writes the derived columns and rows on which constraints depend, for the records that differ. */
export async function satisfyConstraints(query: RunQuery, plan: RestorePlan): Promise<void> {
  const cables = findPlanned(plan, 'cables');
  if (cables) {
    const diff = diffTable(cables.table);
    const restored = `FROM public.cables AS t JOIN ${diff} AS d ON d.id = t.id`;
    await query(`DELETE FROM public.cable_ends AS e USING ${diff} AS d WHERE e.cable_id = d.id`);
    await query(
      `INSERT INTO public.cable_ends (interface_id, cable_id)
       SELECT t.a_interface_id, t.id ${restored}
       UNION ALL SELECT t.b_interface_id, t.id ${restored}`,
    );
  }
  if (plan.scope.tenantId === null) return;
  // A changed VRF is deleted and inserted, so that the trigger which copies its flag does not run.
  for (const table of ['prefixes', 'ip_addresses'])
    await query(
      `UPDATE public.${table} AS t SET unique_in_vrf = v.enforce_unique FROM public.vrfs AS v
       WHERE v.id = t.vrf_id AND t.unique_in_vrf <> v.enforce_unique
         AND ${isInDiff(plan, 'vrfs', "<> 'deleted'", 'v.id')}`,
    );
}

/** For a dry run, instead of `repairInventory`: no prefix keeps a parent that is deleted or changed. */
export async function releaseChildren(query: RunQuery, plan: RestorePlan): Promise<void> {
  if (plan.scope.tenantId === null) return;
  await query(
    `UPDATE public.prefixes AS t SET parent_prefix_id = NULL
     WHERE ${isInDiff(plan, 'prefixes', "<> 'created'", 't.parent_prefix_id')}`,
  );
}

/** Rebuilds what the inventory derives from prefixes, addresses, sites and devices. */
async function repairInventory(
  query: RunQuery,
  plan: RestorePlan,
  hasChanged: HasChanged,
): Promise<void> {
  if (hasChanged('vrfs', 'prefixes', 'ip_addresses', 'ip_ranges'))
    await query('DELETE FROM public.free_hints');
  if (hasChanged('prefixes') && plan.scope.tenantId !== null)
    await query('SELECT public.recalculate_prefix_parents()');
  // Otherwise triggers have counted the addresses whose VRF has another flag.
  if (hasChanged('ip_addresses')) await query('SELECT public.recount_used_blocks()');
  if (hasChanged(...SCOPE_TABLES) && !isWholeInventory(plan)) {
    // Interfaces first: cables get their sites from them.
    if (hasChanged('devices')) await alignInterfaces(query, plan);
    await query('SELECT public.recalculate_inventory_scopes()');
  }
  if (hasChanged('sites', 'devices', 'approvals'))
    await query('SELECT public.recalculate_approval_scopes()');
  if (hasChanged('sites', 'devices', 'jobs')) await query('SELECT public.recalculate_job_scopes()');
}

/**
 * Interfaces belong to the tenant and the site of their device. A changed device is deleted and inserted
 * without the trigger that updates them, and they do not differ themselves: these columns are derived.
 */
const alignInterfaces = (query: RunQuery, plan: RestorePlan) =>
  query(
    `UPDATE public.interfaces AS t SET tenant_id = v.tenant_id, site_id = v.site_id
     FROM public.devices AS v
     WHERE v.id = t.device_id AND ${isInDiff(plan, 'devices', "<> 'deleted'", 'v.id')}
       AND (t.tenant_id, t.site_id) IS DISTINCT FROM (v.tenant_id, v.site_id)`,
  );

/** True when all inventory records become those of the backup, whose scopes are consistent. */
const isWholeInventory = ({ scope, sections, tables }: RestorePlan): boolean =>
  scope.tenantId === null &&
  sections.includes('inventory') &&
  tables.every(({ table, role }) => table.section !== 'inventory' || role === 'state');

/** Tables whose rows decide, or store, which sites and devices inventory records belong to. */
export const SCOPE_TABLES: readonly string[] = [
  'devices',
  'interfaces',
  'cables',
  'vlan_groups',
  'vlans',
  'prefixes',
  'ip_ranges',
  'ip_addresses',
];

async function repairAccess(
  query: RunQuery,
  plan: RestorePlan,
  hasChanged: HasChanged,
): Promise<void> {
  const changesRights = mayChangeRights(plan);
  // Even if they change nothing, these statements lock `access_state`, which comes before all other locks.
  if (changesRights && hasChanged('sites', 'devices', 'grants'))
    for (const statement of ALIGN_GRANTS) await query(statement);
  // The trigger that does this is disabled.
  if (hasChanged('tenants', 'tenant_quotas'))
    await query(
      'DELETE FROM public.tenant_quotas AS q WHERE NOT EXISTS (SELECT FROM public.tenants AS t WHERE t.id = q.tenant_id)',
    );
  if (hasChanged('tenants', 'retention_settings')) await query(FORGET_RETENTION);
  if (hasChanged('tenants', 'views'))
    for (const statement of forgetViews(plan)) await query(statement);
  if (hasChanged('users', 'tokens')) await query(ALIGN_TOKENS);
  if (hasChanged('tokens') && !plan.intoEmptyDatabase)
    await query(
      `UPDATE public.tokens AS t SET disabled_at = ${SHOWN_NOW}
       WHERE t.disabled_at IS NULL AND ${isInDiff(plan, 'tokens', "= 'created'")}`,
    );
  if (hasChanged('job_types') && !plan.intoEmptyDatabase)
    await query(
      `UPDATE public.job_types AS t SET state = 'disabled'
       WHERE t.state = 'accepted' AND ${isInDiff(plan, 'job_types', "= 'created'", 't.name')}`,
    );
  // A pool that was deleted trusts no types that it would accept unseen.
  if (hasChanged('pools') && !plan.intoEmptyDatabase)
    await query(
      `UPDATE public.pools AS t SET accept_types = '{}'
       WHERE ${isInDiff(plan, 'pools', "= 'created'", 't.name')}`,
    );
  if (changesRights && hasChanged('roles', 'grants', 'users'))
    await query('UPDATE public.access_state SET version = version + 1');
}

/**
 * A grant at a site or a device of another tenant than at present does not follow it, as when it is
 * moved. One at a device that was at another site does, unless that is another tenant's.
 */
const ALIGN_GRANTS: readonly string[] = [
  `DELETE FROM public.grants AS g USING public.sites AS s
   WHERE g.level = 'site' AND g.site_id = s.id AND g.tenant_id <> s.tenant_id`,
  `DELETE FROM public.grants AS g USING public.devices AS v
   WHERE g.level = 'device' AND g.device_id = v.id AND g.tenant_id <> v.tenant_id`,
  `UPDATE public.grants SET site_id = public.own_site_of_device(device_id)
   WHERE level = 'device' AND site_id IS DISTINCT FROM public.own_site_of_device(device_id)`,
];

/** Periods of an earlier tenant with the id of a present one. */
const FORGET_RETENTION = `
  DELETE FROM public.retention_settings AS r USING public.tenants AS t
  WHERE t.id = r.tenant_id AND r.updated_at < t.created_at`;

/**
 * Deletes the views of tenants that the restore deletes, and those that it adds of tenants which were deleted
 * since. Gateways may name tenants without a record: views without one are not old.
 */
const forgetViews = (plan: RestorePlan): readonly string[] => [
  `DELETE FROM public.views AS v
   WHERE ${isInDiff(plan, 'tenants', "= 'deleted'", 'v.tenant_id')}
     OR ${isInDiff(plan, 'views', "= 'created'", 'v.id')} AND EXISTS (
       SELECT FROM public.audit_entries AS e
       WHERE e.action IN ('inventory.tenant.delete', 'inventory.tenant.restore') AND e.after IS NULL
         AND e.outcome = 'done' AND e.subject_id COLLATE "C" = v.tenant_id AND e.at >= v.created_at
         AND NOT EXISTS (
           SELECT FROM public.tenants AS t WHERE t.id = v.tenant_id AND t.created_at < e.at))`,
  'DELETE FROM public.view_defaults AS d WHERE NOT EXISTS (SELECT FROM public.views AS v WHERE v.id = d.view_id)',
];

/** Tokens belong to the tenant of their owner. */
const ALIGN_TOKENS = `
  UPDATE public.tokens AS t SET tenant_id = u.tenant_id FROM public.users AS u
  WHERE u.id = t.user_id AND u.tenant_id <> t.tenant_id`;

const ADVANCE_EVENT_SEQUENCE = `
  UPDATE public.event_head
  SET sequence = greatest(sequence, (SELECT coalesce(max(sequence), 0) FROM public.events))`;

/**
 * Sequences that were assigned after the backup are unknown to an empty database. Consumers have seen some
 * of them, so none is assigned again: the next one is the time in microseconds, which is greater than any
 * number of events so far. Those who follow the log recognise the gap (`assertKnown`). docs/deployment.md has the
 * same statement, for recoveries to a point in time.
 */
const SKIP_LOST_SEQUENCES = `
  UPDATE public.event_head
  SET sequence = greatest(sequence, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)`;

/** Files whose jobs were deleted since the backup, and that are still in their store, remain there. */
const KEEP_ARTIFACTS = `
  DELETE FROM public.artifact_removals AS r USING public.job_artifacts AS a WHERE a.object = r.object`;

/** Continues the hash chain of the audit log after the restored entries. */
const advanceAuditHeads = (query: RunQuery, { schema }: RestorePlan) =>
  query(
    `UPDATE public.audit_heads AS h SET position = s.position, hash = s.hash
     FROM ${quoteIdentifier(schema)}.audit_heads AS s
     WHERE s.tenant_id = h.tenant_id AND s.position > h.position`,
  );

/** The error of a restored job that was still running when the backup was made. */
const INTERRUPTED_JOB_ERROR = JSON.stringify({
  code: 'outcome_unknown',
  message:
    'The job was still running when the backup was made; it was restored but not started again',
});

/** Fails restored jobs that have no end. Running them again could repeat what they did. */
async function failInterruptedJobs(query: RunQuery, plan: RestorePlan): Promise<number> {
  const failed = await query(
    `UPDATE public.jobs AS t SET status = 'failed', error = '${INTERRUPTED_JOB_ERROR}',
       finished_at = ${SHOWN_NOW}, updated_at = ${SHOWN_NOW}, version = version + 1
     WHERE t.status IN ('queued', 'running') AND ${isInDiff(plan, 'jobs', "= 'created'")}
     RETURNING 1`,
  );
  return failed.length;
}

/**
 * Fails the execution of restored requests whose job is restored as failed, or missing. The job of any
 * other goes on, and ends it.
 */
const failInterruptedExecutions = (query: RunQuery, plan: RestorePlan) =>
  query(
    `UPDATE public.approvals AS t SET execution = 'failed', error = '${INTERRUPTED_JOB_ERROR}',
       executed_at = ${SHOWN_NOW}, updated_at = ${SHOWN_NOW}, version = version + 1
     WHERE t.execution = 'running' AND ${isInDiff(plan, 'approvals', "= 'created'")}
       AND (${isInDiff(plan, 'jobs', "= 'created'", 't.job_id')}
         OR NOT EXISTS (SELECT FROM public.jobs AS j WHERE j.id = t.job_id))`,
  );

/** Skips restored runs that waited for the end of a job: past occurrences do not run. */
const skipBufferedRuns = (query: RunQuery, plan: RestorePlan) =>
  query(
    `UPDATE public.schedule_runs AS t SET outcome = 'skipped', reason = 'missed'
     WHERE t.outcome = 'buffered' AND ${isInDiff(plan, 'schedule_runs', "= 'created'")}`,
  );

/** Queues restored pending deliveries again, and cancels those of webhooks that the restore disables. */
async function repairDeliveries(
  query: RunQuery,
  plan: RestorePlan,
  hasChanged: HasChanged,
): Promise<void> {
  if (hasChanged('deliveries'))
    await query(
      `UPDATE public.deliveries AS t SET job_id = NULL, in_flight = false
       WHERE t.status = 'pending' AND ${isInDiff(plan, 'deliveries', "= 'created'")}`,
    );
  if (hasChanged('webhooks'))
    await query(
      `UPDATE public.webhooks AS t SET cancel_before = now(), cancel_reason = 'webhook_disabled'
       WHERE NOT t.enabled AND t.deleted_at IS NULL
         AND ${isInDiff(plan, 'webhooks', "<> 'deleted'")}
         AND EXISTS (
           SELECT FROM public.deliveries AS w
           WHERE w.webhook_id = t.id AND w.status = 'pending' AND w.reason IS NULL)`,
    );
}

/** Skips buffered runs of deleted schedules. Returns the schedules that the restore changed. */
async function repairSchedules(
  query: RunQuery,
  plan: RestorePlan,
): Promise<RestoreEffects['schedules']> {
  const schedules = findPlanned(plan, 'schedules');
  if (!schedules) return [];
  const diff = diffTable(schedules.table);
  await query(
    `UPDATE public.schedule_runs AS r SET outcome = 'skipped', reason = 'deleted'
     FROM ${diff} AS d
     WHERE d.id = r.schedule_id AND d.change = 'deleted' AND r.outcome = 'buffered'`,
  );
  await countRestoredRuns(query, plan);
  return query<{ id: string; deleted: boolean }>(
    `SELECT id, change = 'deleted' AS deleted FROM ${diff} ORDER BY id`,
  );
}

/** Counts restored runs for schedules that exist: they have run since the older backup that these are from. */
async function countRestoredRuns(query: RunQuery, plan: RestorePlan): Promise<void> {
  const runs = findPlanned(plan, 'schedule_runs');
  if (plan.intoEmptyDatabase || !runs) return;
  const total = `t.run_count + CASE WHEN ${isInDiff(plan, 'schedules', "= 'created'")} THEN 0 ELSE r.fired END`;
  await query(
    `UPDATE public.schedules AS t SET run_count = ${total},
       next_due_at = CASE WHEN ${total} < t.max_runs OR t.max_runs IS NULL THEN t.next_due_at END,
       last_run_id = (SELECT max(id) FROM public.schedule_runs WHERE schedule_id = t.id)
     FROM (
       SELECT s.schedule_id, count(*) FILTER (WHERE s.outcome = 'fired' AND s.kind = 'scheduled') AS fired
       FROM ${diffTable(runs.table)} AS d JOIN ${restoredTable(plan, runs.table)} AS s ON s.id = d.id
       GROUP BY 1) AS r
     WHERE t.id = r.schedule_id`,
  );
}
