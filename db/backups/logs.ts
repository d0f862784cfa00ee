import type { Scope } from '../../domain/access/scope.ts';
import type { Knex } from '../core/knex.ts';
import { scopeCondition } from '../core/scopeSql.ts';

/** A log line of a `backup.*` job. */
export type BackupLog = {
  jobId: string;
  jobType: string;
  line: number;
  level: string;
  message: string;
  at: Date;
};

/** The number of newest jobs whose log lines are considered. */
const MAX_JOBS = 20;

/** The last log lines of the newest `backup.*` jobs in a scope, newest first, at most `limit`. */
export async function findBackupLogs(db: Knex, scope: Scope, limit: number): Promise<BackupLog[]> {
  const inScope = scopeCondition(scope, { tenant: 'j.tenant_id' });
  const { rows } = await db.raw<{ rows: BackupLog[] }>(
    `SELECT l.job_id AS "jobId", j.type AS "jobType", l.line, l.level, l.message, l.at
     FROM (
         SELECT j.id, j.type FROM jobs AS j
         WHERE j.type LIKE 'backup.%' AND ${inScope.sql} ORDER BY j.id DESC LIMIT ?) AS j
       CROSS JOIN LATERAL (
         SELECT * FROM job_logs WHERE job_id = j.id ORDER BY line DESC LIMIT ?) AS l
     ORDER BY l.at DESC, l.job_id DESC, l.line DESC LIMIT ?`,
    [...inScope.bindings, MAX_JOBS, limit, limit],
  );
  return rows;
}
