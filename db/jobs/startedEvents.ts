import type { Knex } from '../core/knex.ts';

/** What others learn of a claim. */
export type ClaimReport = {
  /** The events of jobs whose first attempt is claimed: an id for each job, and types without events. */
  startedEvents?: { ids: readonly string[]; exceptTypes: readonly string[] };
  /** Topics that are notified. */
  topics?: readonly string[];
};

const DATA = `'jobId', job.id, 'type', job.type, 'status', job.status, 'attempts', job.attempts,
                'source', json_build_object('kind', job.source_kind, 'id', job.source_id), 'error', NULL`;

const TARGET = `'target', json_build_object('kind', CASE WHEN job.target_device_id IS NULL THEN 'site' ELSE 'device' END,
                'id', coalesce(job.target_device_id, job.target_site_id))`;

/**
 * SQL of a CTE that writes the events `job.started` of `job`, in the statement of the claim: a short job
 * must not wait for another round trip. Events of a claim that is rolled back, or that PostgreSQL forgets
 * in a crash, never were.
 */
export const STARTED_EVENTS = `started AS (
       INSERT INTO events (id, type, tenant_id, subject_type, subject_id, actor_id, data, created_at)
       SELECT e.id, 'job.started', job.tenant_id, 'job', job.id, 'system',
              CASE WHEN coalesce(job.target_device_id, job.target_site_id) IS NULL
                THEN json_build_object(${DATA}) ELSE json_build_object(${DATA}, ${TARGET}) END,
              job.updated_at
       FROM job JOIN unnest(?::text[], ?::text[]) AS e (job_id, id) ON e.job_id = job.id
       WHERE job.is_first AND job.type <> ALL (?::text[])
     )`;

export const startedEventBindings = (
  jobIds: readonly string[],
  { ids, exceptTypes }: NonNullable<ClaimReport['startedEvents']>,
): Knex.RawBinding[] => [ids.length === 0 ? [] : [...jobIds], [...ids], [...exceptTypes]];

export const NO_EVENTS = { ids: [], exceptTypes: [] };
