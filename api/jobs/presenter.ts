import { jobWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import type { JobType } from '../../domain/jobs/jobType.ts';
import type { JobData, JobLogData, JobSummaryData } from '../../domain/jobs/records.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import type { JobRecord, JobSummary, JobTypeRecord, LogRecord } from './schemas.ts';

/** A time in ISO 8601, or null. */
export const isoOrNull = (at: Date | null): string | null => at?.toISOString() ?? null;

export const logView = ({ line, attempt, level, message, data, at }: JobLogData): LogRecord => ({
  line,
  attempt,
  level,
  message,
  data,
  at: at.toISOString(),
});

const summary = (job: JobSummaryData): JobSummary => ({
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
  workflowId: jobWorkflowId(job.id),
  cancelRequestedAt: isoOrNull(job.cancelRequestedAt),
  createdAt: job.createdAt.toISOString(),
  updatedAt: job.updatedAt.toISOString(),
  startedAt: isoOrNull(job.startedAt),
  finishedAt: isoOrNull(job.finishedAt),
  version: job.version,
});

/** Jobs as callers see them. */
export const jobPresenter = (jobTypes: JobTypes) => ({
  summary,
  record: (job: JobData, logs: readonly JobLogData[]): JobRecord => ({
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
    createdOnlyBy,
    lane,
    retry,
    timeoutMs,
  }: JobType): JobTypeRecord => ({
    name,
    summary: about,
    payloadSchema: payload,
    permission,
    createdOnlyBy,
    lane,
    retryPolicy: retry,
    timeoutMs,
  }),
});
