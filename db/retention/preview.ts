import type { Cutoffs, RetentionKind } from '../../domain/retention/retention.ts';
import { KEPT_OF_EACH } from '../../domain/retention/retention.ts';
import type { Knex } from '../core/knex.ts';
import { beforeCutoff, endKey, FIRST_KEY, FLOOR_SQL } from './batches.ts';
import { dueSql, SOURCES } from './sources.ts';

/** How many records, or parts of them, would be purged of those created in a month (`2026-08`). */
export type MonthCount = { month: string; count: number };

const NO_LIMIT = 2 ** 31 - 1;

/** Counts what a purge of one kind would delete of a tenant now, by month of creation. */
export async function countDue(
  trx: Knex,
  kind: RetentionKind,
  { tenantId, cutoffs }: { tenantId: string; cutoffs: Cutoffs },
): Promise<MonthCount[]> {
  const before = await endKey(trx, kind, cutoffs);
  if (before === null) return [];
  const source = SOURCES[kind];
  const cutoff = beforeCutoff(source, cutoffs);
  const after = FIRST_KEY[kind === 'events' ? 'events' : 'other'];
  const hasParts = kind === 'jobLogs' || kind === 'importRows';
  const floor = kind === 'jobs' || kind === 'scheduleRuns' ? FLOOR_SQL[kind] : null;
  const { rows } = await trx.raw<{ rows: MonthCount[] }>(
    `WITH due AS MATERIALIZED (
       SELECT r.id, ${source.keptBy === null ? 'NULL' : `r.${source.keptBy}`} AS value,
         ${hasParts ? source.rows : '1'} AS rows, r.created_at
       FROM (${source.window(NO_LIMIT)}) AS r ${source.joins}
       WHERE ${cutoff.sql} AND ${dueSql(source)}
     )
     SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM') AS month, sum(rows)::bigint AS count
     FROM due ${
       floor === null
         ? ''
         : `JOIN (SELECT k.value, (${floor}) AS id FROM (SELECT DISTINCT value FROM due) AS k)
              AS kept ON kept.value = due.value AND due.id < kept.id`
     }
     GROUP BY 1 ORDER BY 1`,
    [
      tenantId,
      after,
      before,
      ...cutoff.bindings,
      ...(floor === null ? [] : [tenantId, KEPT_OF_EACH - 1]),
    ],
  );
  return rows;
}
