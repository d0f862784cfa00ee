import type { RetentionKind } from '../../domain/retention/retention.ts';
import type { IdKind } from '../../platform/ids.ts';
import { notHeld, type HistoryKind } from './holds.ts';

/**
 * Where the records of a kind are, as SQL. `r` is the record, or the record whose parts are purged:
 * the job of log lines, the import of rows.
 */
export type PurgeSource = {
  idKind: IdKind;
  /**
   * A query with the first `most` records of the tenant `?` whose key is greater than `?` and less
   * than `?`, in the order of their keys.
   */
  window(most: number): string;
  /** Records that one batch examines. */
  batch: number;
  /** The job type of a record; empty for kinds without one. */
  type: string;
  /** The column of records of which the last are always kept, or null. */
  keptBy: 'type' | 'schedule_id' | null;
  /** Joins that `rows`, `first` and `due` need. */
  joins: string;
  /** Rows that are deleted for a record. */
  rows: string;
  /** The first of the parts that exist, for records that are purged part by part. */
  first: string;
  /** True for records that may be purged, once they are old enough. */
  due: string;
  /** The time from which on a record counts, where that may be after its creation. */
  since?: string;
  /** True for records whose parts are purged. Those of old enough records are due, too. */
  partsPurged: string;
  /** What legal holds know the record as. */
  history: HistoryKind;
};

const window = (columns: string, table: string) => (most: number) =>
  `SELECT ${columns} FROM ${table} WHERE tenant_id = ? AND id > ? AND id < ? ORDER BY id LIMIT ${most}`;

const JOB_WINDOW = window(
  'id, type, tenant_id, status, log_count, created_by, source_kind, source_id, created_at, data_purged_at',
  'jobs',
);
const ENDED = `r.status NOT IN ('queued', 'running')`;

const job = {
  idKind: 'job',
  window: JOB_WINDOW,
  batch: 5_000,
  type: 'r.type',
  keptBy: null,
  joins: '',
  rows: '2',
  first: '0',
  partsPurged: 'true',
  history: 'jobs',
} as const;

const JOB_ENDED = `NOT EXISTS (
  SELECT FROM jobs AS j WHERE j.id = r.job_id AND j.status IN ('queued', 'running'))`;

export const SOURCES: Readonly<Record<RetentionKind, PurgeSource>> = {
  importRows: {
    idKind: 'imp',
    window: window('id, tenant_id, job_id, created_by, created_at', 'imports'),
    batch: 1_000,
    type: `''`,
    keptBy: null,
    joins: `CROSS JOIN LATERAL (
      SELECT min(line) AS first, max(line) AS last FROM import_rows WHERE import_id = r.id) AS p`,
    rows: 'p.last - p.first + 1',
    first: 'p.first',
    due: `p.first IS NOT NULL AND ${JOB_ENDED}`,
    partsPurged: 'true',
    history: 'imports',
  },
  jobLogs: {
    ...job,
    joins: `CROSS JOIN LATERAL (
      SELECT line AS first FROM job_logs WHERE job_id = r.id ORDER BY line LIMIT 1) AS p`,
    rows: 'greatest(r.log_count - p.first + 1, 1)',
    first: 'p.first',
    due: ENDED,
  },
  jobData: { ...job, due: `${ENDED} AND r.data_purged_at IS NULL` },
  scheduleRuns: {
    idKind: 'run',
    window: window(
      'id, tenant_id, schedule_id, job_id, outcome, decided_at AS created_at',
      'schedule_runs',
    ),
    batch: 5_000,
    type: `''`,
    keptBy: 'schedule_id',
    joins: '',
    rows: '1',
    first: '0',
    // The id of a run that was backfilled or caught up has its scheduled time.
    since: 'r.created_at',
    due: `r.outcome <> 'buffered' AND ${JOB_ENDED}`,
    partsPurged: 'true',
    history: 'schedule_runs',
  },
  deliveries: {
    idKind: 'dlv',
    window: window(
      'id, tenant_id, webhook_id, event_id, status, queued_at, created_at',
      'deliveries',
    ),
    batch: 1_000,
    type: `''`,
    keptBy: null,
    joins: '',
    rows: '1 + (SELECT count(*) FROM delivery_attempts WHERE delivery_id = r.id)',
    first: '0',
    // A delivery of an old event that is replayed or repeated keeps its id.
    since: 'r.queued_at',
    due: `r.status <> 'pending'`,
    partsPurged: 'true',
    history: 'deliveries',
  },
  events: {
    idKind: 'evt',
    window: (
      most,
    ) => `SELECT id, sequence, tenant_id, subject_type, subject_id, actor_id, created_at FROM events
      WHERE tenant_id = ? AND sequence > ?::bigint AND sequence < ?::bigint
      ORDER BY sequence LIMIT ${most}`,
    batch: 5_000,
    type: `''`,
    keptBy: null,
    joins: '',
    rows: '1',
    first: '0',
    due: 'NOT EXISTS (SELECT FROM deliveries WHERE event_id = r.id)',
    partsPurged: 'true',
    history: 'events',
  },
  jobs: {
    ...job,
    batch: 2_500,
    keptBy: 'type',
    partsPurged: 'NOT EXISTS (SELECT FROM job_logs WHERE job_id = r.id)',
    due: `${ENDED} AND NOT EXISTS (
        SELECT FROM imports AS i JOIN import_rows AS l ON l.import_id = i.id WHERE i.job_id = r.id)
      AND NOT EXISTS (SELECT FROM restore_runs AS t
        WHERE t.job_id = r.id AND t.purpose = 'restore' AND t.outcome IS NULL)`,
  },
};

/** The order in which the kinds of a tenant are purged: parts before what they belong to. */
export const PURGE_ORDER = Object.keys(SOURCES) as readonly RetentionKind[];

/** The condition for rows that may be purged, once they are old enough. */
export const dueSql = ({ due, history }: PurgeSource): string =>
  `${due} AND ${notHeld(history, 'r')}`;
