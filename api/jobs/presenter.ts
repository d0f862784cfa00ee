import type { JobType } from '../../domain/jobType.ts';
import type { JobWithLogs } from '../../services/jobs.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import type { JobRecord, JobSummary, JobTypeRecord, LogRecord } from './schemas.ts';

type Job = JobWithLogs['job'];
type JobLog = JobWithLogs['logs'][number];

/** A time that need not have come. */
export const time = (at: Date | null): string | null => at?.toISOString() ?? null;

/** The workflow in Temporal that runs a job. */
export const workflowIdOf = (jobId: string): string => `job:${jobId}`;

export const logView = ({ line, attempt, level, message, data, at }: JobLog): LogRecord => ({
  line,
  attempt,
  level,
  message,
  data,
  at: at.toISOString(),
});

const summary = (job: Job): JobSummary => ({
  id: job.id,
  type: job.type,
  tenantId: job.tenantId,
  status: job.status,
  retryCount: Math.max(job.attempts - 1, 0),
  attempts: job.attempts,
  progress: job.progress,
  error: job.error,
  retryPolicy: job.retryPolicy,
  createdBy: job.createdBy,
  source: { kind: job.sourceKind, id: job.sourceId },
  retryOf: job.retryOf,
  workflowId: workflowIdOf(job.id),
  cancelRequestedAt: time(job.cancelRequestedAt),
  createdAt: job.createdAt.toISOString(),
  updatedAt: job.updatedAt.toISOString(),
  startedAt: time(job.startedAt),
  finishedAt: time(job.finishedAt),
  version: job.version,
});

/** Jobs as callers see them. */
export const jobPresenter = (jobTypes: JobTypes) => ({
  summary,
  record: (job: Job, logs: readonly JobLog[]): JobRecord => ({
    ...summary(job),
    payload: jobTypes.find(job.type)?.redact(job.payload) ?? {},
    result: job.result,
    logs: logs.map(logView),
  }),
  type: ({
    name,
    summary: about,
    payload,
    permission,
    onlyThrough,
    lane,
    retry,
    timeoutMs,
  }: JobType): JobTypeRecord => ({
    name,
    summary: about,
    payloadSchema: payload,
    permission,
    onlyThrough,
    lane,
    retryPolicy: retry,
    timeoutMs,
  }),
});
