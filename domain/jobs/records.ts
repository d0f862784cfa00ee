import { hasWritten, storedWriterKeyOf, type Authority, type Caller } from '../shared/caller.ts';
import type { JobError, JobProgress, JobSource, JobStatus, LogLevel } from './jobs.ts';
import type { RetryPolicy } from './retry.ts';
import type { TargetColumns } from './targets.ts';

/** A job as lists show it: without payload and result, which may have a megabyte each. */
export type JobSummaryData = TargetColumns & {
  id: string;
  type: string;
  tenantId: string;
  /** The site and the device that the job belongs to; the database sets them. */
  siteId: string | null;
  deviceId: string | null;
  status: JobStatus;
  retryPolicy: RetryPolicy;
  error: JobError | null;
  progress: JobProgress | null;
  attempts: number;
  interruptions: number;
  /** The workflow that it shares with other jobs; null if it has its own. */
  workflowId: string | null;
  /** The workflow run that has claimed it; null: none has. */
  runId: string | null;
  /** The number of lines that the log has had. */
  logCount: number;
  createdBy: string;
  /** The principal that the job acts for. */
  authority: Authority;
  sourceKind: JobSource['kind'];
  sourceId: string | null;
  retryOf: string | null;
  cancelRequestedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
  startedAt: Date | null;
  finishedAt: Date | null;
  /** The pool whose runners run it; empty for a job that the worker runs. */
  pool: string;
  /** The version of the type that ran a job of runners, or that was approved. */
  typeDigest: string | null;
  /** When retention deleted payload and result. */
  dataPurgedAt: Date | null;
  version: number;
};

/** A job as it is stored. */
export type JobData = JobSummaryData & {
  payload: Record<string, unknown>;
  result: Record<string, unknown> | null;
};

/** Whether retention has purged the job that a record names. */
export type JobMark = { jobPurged: boolean };

/** A line of the log of a job; `line` counts from 1 without gaps. */
export type JobLogData = {
  line: number;
  attempt: number;
  level: LogLevel;
  message: string;
  data: object | null;
  at: Date;
};

/**
 * True for the caller who sent the payload of a job. The payload of a retry, of a schedule's job
 * and of an approved job may be that of another user, and `createdBy` may name another user.
 */
export function isPayloadAuthor(
  caller: Caller,
  { authority, sourceKind, retryOf }: Pick<JobSummaryData, 'authority' | 'sourceKind' | 'retryOf'>,
): boolean {
  return (
    sourceKind === 'api' && retryOf === null && hasWritten(caller, storedWriterKeyOf(authority))
  );
}

/** True if a job may run with a version of its type; an approved one runs with what was approved only. */
export const mayRunVersion = (
  { sourceKind, typeDigest }: Pick<JobSummaryData, 'sourceKind' | 'typeDigest'>,
  digest: string,
): boolean => sourceKind !== 'approval' || typeDigest === null || typeDigest === digest;
