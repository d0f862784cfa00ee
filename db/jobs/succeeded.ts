import type { Knex } from '../core/knex.ts';
import type { RecordChange } from '../core/unitOfWork.ts';
import type { LogLine } from './jobs.ts';

/** A job whose current attempt has succeeded. `result` and `progress` are JSON texts. */
export type SucceededJob = {
  id: string;
  attempts: number;
  result: string;
  progress: string | null;
  lines: readonly LogLine[];
};

/**
 * Ends jobs of one run, and appends the last lines to their logs, in one change. It has no effect
 * unless the attempts of all of them are the current ones.
 */
export function succeededChange(
  runId: string,
  jobs: readonly SucceededJob[],
  now: Date,
  topics: readonly string[],
): RecordChange {
  const lines = jobs.flatMap(({ id, lines: own }) =>
    own.map((line, i) => ({ id, n: i + 1, line })),
  );
  return {
    topics,
    sql: (name) => `${name}_changed AS (
       UPDATE jobs SET log_count = log_count + s.lines, version = version + 1, status = 'succeeded', leased_until = NULL,
              updated_at = ?, finished_at = ?, result = s.result::json, error = NULL,
              progress = COALESCE(s.progress::json, jobs.progress)
       FROM unnest(?::text[], ?::int[], ?::text[], ?::text[], ?::int[])
            AS s (id, attempts, result, progress, lines)
       WHERE jobs.id = s.id AND jobs.status = 'running' AND jobs.run_id = ? AND jobs.attempts = s.attempts
       RETURNING jobs.id, jobs.log_count - s.lines AS log_count
     ), ${name}_logged AS (
       INSERT INTO job_logs (job_id, line, attempt, level, message, data, at)
       SELECT job.id, job.log_count + l.n, l.attempt, l.level, l.message, l.data::json, l.at
       FROM ${name}_changed AS job
       JOIN unnest(?::text[], ?::int[], ?::int[], ?::text[], ?::text[], ?::text[], ?::timestamptz[])
            AS l (id, n, attempt, level, message, data, at) ON l.id = job.id
     ), ${name} AS (SELECT count(*) FROM ${name}_changed HAVING count(*) = ?::int)`,
    bindings: [
      now,
      now,
      jobs.map(({ id }) => id),
      jobs.map(({ attempts }) => attempts),
      jobs.map(({ result }) => result),
      jobs.map(({ progress }) => progress) as string[],
      jobs.map((job) => job.lines.length),
      runId,
      lines.map(({ id }) => id),
      lines.map(({ n }) => n),
      lines.map(({ line }) => line.attempt),
      lines.map(({ line }) => line.level),
      lines.map(({ line }) => line.message),
      lines.map(({ line: { data } }) => (data === null ? null : JSON.stringify(data))) as string[],
      lines.map(({ line }) => line.at),
      jobs.length,
    ] satisfies Knex.RawBinding[],
  };
}
