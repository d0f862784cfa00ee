/** The statuses of a job: `queued → running → succeeded | failed | cancelled`. */
export const JOB_STATUSES = ['queued', 'running', 'succeeded', 'failed', 'cancelled'] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];
export type FinalJobStatus = 'succeeded' | 'failed' | 'cancelled';

/** The run of a job as its record has it: null if none has started or the last one has left the job. */
export const runOf = ({ id, runId }: { id: string; runId: string | null }) => ({
  jobId: id,
  runId,
});

/** What created a job; `id` is the schedule, approval request or webhook. */
export const JOB_SOURCES = ['api', 'schedule', 'approval', 'webhook', 'system'] as const;
export type JobSource = { kind: (typeof JOB_SOURCES)[number]; id: string | null };

/** Which jobs a list has, beside its conditions. */
export type JobFilter = {
  /** Jobs that one of these schedules, approval requests or webhooks created. */
  sources?: readonly { kind: JobSource['kind']; ids: readonly string[] }[];
  /** Whether the jobs are those that nobody has asked for: deliveries and the system's own. */
  internal?: boolean | undefined;
};

/** The start of the response of another server, with credentials masked. */
export type FailedResponse = {
  status: number;
  contentType: string | null;
  body: string;
  truncated: boolean;
};

/** The form of the codes of errors that runners and modules choose. */
export const ERROR_CODE = '^[a-z0-9_]{1,64}$';

/**
 * Why a job or an attempt failed. `code` is stable, `message` is for people, `response` is what
 * another server answered.
 */
export type JobError = { code: string; message: string; response?: FailedResponse };

export type JobProgress = { percent: number; message: string | null };

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const isFinal = (status: JobStatus): status is FinalJobStatus =>
  status !== 'queued' && status !== 'running';

/**
 * Most log lines that a job type can write in one job. Later lines are dropped, and the log says
 * so.
 */
export const MAX_LOG_LINES = 10_000;

/** Largest result, in bytes of JSON. */
export const MAX_RESULT_BYTES = 1_048_576;
