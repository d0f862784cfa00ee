import type { QueryBuilder } from 'objection';
import type { JobFilter } from '../../domain/jobs/jobs.ts';
import { isOneOf } from '../core/listConditions.ts';
import type { Job } from '../models/Job.ts';

/** The conditions are those of the index `jobs_asked_for`. */
const IS_INTERNAL = {
  true: "source_kind IN ('webhook', 'system')",
  false: "source_kind <> 'webhook' AND source_kind <> 'system'",
};

/** Adds the conditions of a filter to a query of jobs. */
export function whereJobs(query: QueryBuilder<Job>, { sources = [], internal }: JobFilter): void {
  for (const { kind, ids } of sources) {
    const { sql, bindings } = isOneOf('source_id', 'text', ids);
    void query.where({ source_kind: kind }).whereRaw(sql, bindings);
  }
  if (internal !== undefined) void query.whereRaw(IS_INTERNAL[`${internal}`]);
}
