import type { RetentionKind } from '../../domain/retention/retention.ts';
import type { RunQuery } from './catalog.ts';
import { findPlanned, type PlannedTable, type RestorePlan } from './restorePlan.ts';
import { columnsEqual, liveTable, stagedTable } from './sql.ts';

/**
 * What retention has purged is not restored: `purge_marks` says up to which id rows of a tenant and
 * a job type were purged. Rows up to a mark that still exist were kept; the restore does not touch
 * them.
 */

/** SQL: a mark covers the row `r`. Marks without a tenant and a type cover all. */
const isMarked = (kind: RetentionKind, r: string, type = `''`): string =>
  `EXISTS (SELECT FROM public.purge_marks AS m WHERE m.kind = '${kind}'
     AND m.tenant_id IN (${r}.tenant_id, '') AND m.job_type IN (${type}, '') AND ${r}.id <= m.until_id)`;

type Conditions = Readonly<Record<string, (r: string) => string>>;

/** SQL that is true for purged rows of the archive, by table; `r` is the row. */
function conditions(plan: RestorePlan): Conditions {
  /** The condition for the row of another table that this one belongs to. */
  const via = (name: string, key: string, condition: (r: string) => string) => (r: string) => {
    const parent = findPlanned(plan, name);
    if (!parent) return 'false';
    const alias = `${r}_${name}`;
    return `EXISTS (SELECT FROM ${stagedTable(plan.schema, parent.table)} AS ${alias}
      WHERE ${alias}.id = ${r}.${key} AND ${condition(alias)})`;
  };
  const isMissing = (name: string, key: string) => (r: string) => {
    const parent = findPlanned(plan, name);
    if (!parent) return 'false';
    return `NOT EXISTS (SELECT FROM ${liveTable(parent.table)} AS x WHERE x.id = ${r}.${key})`;
  };
  const job = (r: string) => isMarked('jobs', r, `${r}.type`);
  const part = (kind: RetentionKind) => (r: string) =>
    `(${isMarked(kind, r, `${r}.type`)} OR ${job(r)})`;
  const event = (r: string) => isMarked('events', r);
  const imported = (r: string) => `(${via('jobs', 'job_id', job)(r)})`;
  const delivery = (r: string) =>
    `(${isMarked('deliveries', r)}
      OR (${isMissing('events', 'event_id')(r)} AND ${via('events', 'event_id', event)(r)}))`;
  return {
    jobs: job,
    job_logs: via('jobs', 'job_id', part('jobLogs')),
    job_artifacts: via('jobs', 'job_id', part('jobData')),
    inventory_apply_results: via('jobs', 'job_id', part('jobData')),
    imports: imported,
    import_rows: via(
      'imports',
      'import_id',
      (r) => `(${isMarked('importRows', r)} OR ${imported(r)})`,
    ),
    events: event,
    deliveries: delivery,
    delivery_attempts: via('deliveries', 'delivery_id', delivery),
    schedule_runs: (r) => isMarked('scheduleRuns', r),
  };
}

/** SQL that is true for the row `r` of the archive when it was purged. */
export const isPurged = (plan: RestorePlan, table: string, r: string): string =>
  plan.hasPurged ? (conditions(plan)[table]?.(r) ?? 'false') : 'false';

/** The rows of the archive that are not restored because they were purged. */
export async function countPurged(
  query: RunQuery,
  plan: RestorePlan,
  { table, role }: PlannedTable,
): Promise<number> {
  const condition = isPurged(plan, table.name, 's');
  if (role !== 'history' || condition === 'false') return 0;
  const [row] = await query<{ count: number }>(
    `SELECT count(*) AS count FROM ${stagedTable(plan.schema, table)} AS s
     WHERE NOT EXISTS (
       SELECT FROM ${liveTable(table)} AS l WHERE ${columnsEqual(table.key, 's', 'l')})
     AND ${condition}`,
  );
  return row?.count ?? 0;
}
