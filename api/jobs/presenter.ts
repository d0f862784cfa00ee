import { HIDDEN_CHANGE, seesJobContent } from '../../domain/approvals/jobContent.ts';
import { jobWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import {
  isPayloadAuthor,
  type JobMark,
  type JobLogData,
  type JobSummaryData,
} from '../../domain/jobs/records.ts';
import { targetOf } from '../../domain/jobs/targets.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { maskText } from '../../domain/shared/credentials.ts';
import { DELIVER_JOB_TYPE } from '../../domain/webhooks/webhooks.ts';
import type { JobState } from '../../services/jobs/followLog.ts';
import type { JobWithLogs } from '../../services/jobs/jobs.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import { maskInTurns } from '../../platform/maskInTurns.ts';
import { presentAll } from '../http/presentAll.ts';
import type { JobRecord, JobSummary, LogRecord } from './schemas.ts';

/** A time in ISO 8601, or null. */
export const isoOrNull = (at: Date | null): string | null => at?.toISOString() ?? null;

/** A job that a record names, and whether it is purged. */
export const jobReference = (
  id: string | null,
  { jobPurged }: JobMark,
): { id: string; purged: boolean } | null => (id === null ? null : { id, purged: jobPurged });

/**
 * Presents the log of a job to a caller. Only the author of its payload sees credentials, and not everyone
 * what a change of the inventory is about.
 */
export function logPresenter(
  job: JobSummaryData,
  caller: Caller,
): (line: JobLogData) => Promise<LogRecord> {
  const isAuthor = isPayloadAuthor(caller, job);
  const isHidden = !seesJobContent(caller, job);
  return async ({ line, attempt, level, message, data, at }) => ({
    line,
    attempt,
    level,
    ...(isHidden
      ? { message: HIDDEN_CHANGE, data: null }
      : {
          message: isAuthor ? message : maskText(message),
          data: isAuthor ? data : await maskInTurns(data),
        }),
    at: at.toISOString(),
  });
}

/** True for the job of a delivery in its first attempt, and after it unless that has failed. */
const hasNoWorkflow = ({ type, runId, attempts, error }: JobSummaryData): boolean =>
  type === DELIVER_JOB_TYPE && attempts > 0 && runId === null && error === null;

/** What a job type says of its progress is masked as its errors are. */
const presentProgress = (progress: JobSummaryData['progress']): JobSummary['progress'] =>
  progress && {
    ...progress,
    message: progress.message === null ? null : maskText(progress.message),
  };

const summary = (job: JobSummaryData, caller: Caller): JobSummary => ({
  id: job.id,
  type: job.type,
  tenantId: job.tenantId,
  target: targetOf(job),
  siteId: job.siteId,
  deviceId: job.deviceId,
  status: job.status,
  retryCount: Math.max(job.attempts - 1, 0),
  attempts: job.attempts,
  interruptions: job.interruptions,
  progress: presentProgress(job.progress),
  error: job.error && {
    code: job.error.code,
    message: seesJobContent(caller, job) ? maskText(job.error.message) : HIDDEN_CHANGE,
  },
  retryPolicy: job.retryPolicy,
  createdBy: job.createdBy,
  source: { kind: job.sourceKind, id: job.sourceId },
  retryOf: job.retryOf,
  workflowId: hasNoWorkflow(job) ? null : (job.workflowId ?? jobWorkflowId(job.id)),
  cancelRequestedAt: isoOrNull(job.cancelRequestedAt),
  createdAt: job.createdAt.toISOString(),
  updatedAt: job.updatedAt.toISOString(),
  startedAt: isoOrNull(job.startedAt),
  finishedAt: isoOrNull(job.finishedAt),
  version: job.version,
});

/** How far a job is, in a stream of its log. */
export const jobState = ({ status, attempts, progress }: JobState) => ({
  status,
  attempt: attempts,
  progress: presentProgress(progress),
});

/** Jobs as callers see them. */
export const jobPresenter = (jobTypes: JobTypes) => ({
  summary,
  async record(
    {
      job,
      logs,
      workflowForgotten = false,
      retriedPurged = false,
      waitingFor = null,
      queue = null,
      targetName = null,
    }: JobWithLogs,
    caller: Caller,
  ): Promise<JobRecord> {
    const isAuthor = isPayloadAuthor(caller, job);
    const isHidden = !seesJobContent(caller, job);
    const { error, target, ...summarized } = summary(job, caller);
    const response = isAuthor ? job.error?.response : await maskInTurns(job.error?.response);
    return {
      ...summarized,
      target: target && { ...target, name: targetName, tenantId: job.tenantId },
      error: error && { ...error, ...(response && { response }) },
      payload: isHidden ? {} : await jobTypes.show(job.type, job.payload, { isAuthor }),
      result: isHidden ? null : isAuthor ? job.result : await maskInTurns(job.result),
      logs: await presentAll(logs, logPresenter(job, caller)),
      dataPurgedAt: isoOrNull(job.dataPurgedAt),
      logsPurged: job.finishedAt !== null && job.logCount > 0 && logs.length === 0,
      retried: jobReference(job.retryOf, { jobPurged: retriedPurged }),
      workflowForgotten,
      waitingFor: waitingFor && { ...waitingFor, since: waitingFor.since.toISOString() },
      typeDigest: job.typeDigest,
      queue,
    };
  },
});
