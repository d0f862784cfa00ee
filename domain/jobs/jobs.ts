/** The life of a job: `queued → running → succeeded | failed | cancelled`. */
export const JOB_STATUSES = ['queued', 'running', 'succeeded', 'failed', 'cancelled'] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];
export type FinalJobStatus = 'succeeded' | 'failed' | 'cancelled';

/** What asked for a job. */
export const JOB_SOURCES = ['api', 'schedule', 'approval', 'webhook', 'system'] as const;
export type JobSource = { kind: (typeof JOB_SOURCES)[number]; id: string | null };

/** Why a job or an attempt failed. `code` is stable, `message` is for people. */
export type JobError = { code: string; message: string };

export type JobProgress = { percent: number; message: string | null };

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const isFinal = (status: JobStatus): status is FinalJobStatus =>
  status !== 'queued' && status !== 'running';

/** Lines a job type may write in one job; what comes after is left out, and the log says so. */
export const MAX_LOG_LINES = 10_000;

/** Bytes of JSON that a result may have. */
export const MAX_RESULT_BYTES = 1_048_576;
