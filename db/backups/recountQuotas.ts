import type { RunQuery } from './catalog.ts';

/** The inventory tables, whose rows count for one quota. */
const INVENTORY = [
  'regions',
  'sites',
  'locations',
  'racks',
  'devices',
  'interfaces',
  'cables',
  'vrfs',
  'vlan_groups',
  'vlans',
  'prefixes',
  'ip_ranges',
  'ip_addresses',
];

/** Table, quota, and the condition for rows that count, as in the triggers `quota_*`. */
export const COUNTED_ROWS: readonly (readonly [string, string, string])[] = [
  ...INVENTORY.map((table) => [table, 'inventoryRecords', 'true'] as const),
  ['schedules', 'schedules', 'deleted_at IS NULL'],
  ['webhooks', 'webhooks', 'deleted_at IS NULL'],
  ['jobs', 'unfinishedJobs', `status IN ('queued', 'running') AND source_kind <> 'webhook'`],
  ['jobs', 'unfinishedImports', `status IN ('queued', 'running') AND type = 'inventory.import'`],
  ['approvals', 'openApprovals', `status = 'pending'`],
  ['users', 'users', 'true'],
  ['grants', 'grants', 'true'],
  ['custom_fields', 'customFields', 'true'],
  ['legal_holds', 'legalHolds', `released_at IS NULL AND level = 'tenant'`],
  ['secrets', 'secrets', 'true'],
];

/** Counts the rows of tables that were replaced, for which no trigger has run. */
export async function countForQuotas(
  query: RunQuery,
  replaced: ReadonlySet<string>,
): Promise<void> {
  for (const [table, quota, condition] of COUNTED_ROWS) {
    if (!replaced.has(table)) continue;
    await query(
      `INSERT INTO public.quota_usage (tenant_id, quota, change, written_by)
       SELECT tenant_id, '${quota}', count(*), '0' FROM public.${table}
       WHERE tenant_id <> 'platform' AND ${condition} GROUP BY tenant_id`,
    );
  }
}
