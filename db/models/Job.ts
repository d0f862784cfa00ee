import { Model, snakeCaseMappers } from 'objection';
import type { Authority } from '../../domain/shared/caller.ts';
import type { JobError, JobProgress, JobSource, JobStatus } from '../../domain/jobs/jobs.ts';
import type { RetryPolicy } from '../../domain/jobs/retry.ts';

/** A row of `jobs`. */
export class Job extends Model {
  static override tableName = 'jobs';
  static override jsonAttributes = [
    'payload',
    'retryPolicy',
    'result',
    'error',
    'progress',
    'authority',
  ];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare type: string;
  declare tenantId: string;
  /** What it is about: a site, or a device and the site of the device. */
  declare targetSiteId: string | null;
  declare targetDeviceId: string | null;
  /** These as long as they are of the tenant of the job: rights there are rights over the job. */
  declare siteId: string | null;
  declare deviceId: string | null;
  declare status: JobStatus;
  declare payload: Record<string, unknown>;
  declare retryPolicy: RetryPolicy;
  declare result: Record<string, unknown> | null;
  declare error: JobError | null;
  declare progress: JobProgress | null;
  declare attempts: number;
  /** Those of the attempts that an orderly stop has interrupted. */
  declare interruptions: number;
  declare logCount: number;
  /** Workflow run that has claimed this job. Other runs of the job do nothing. */
  declare runId: string | null;
  /**
   * The attempt is made by a process without a run, until this time at the latest. `runId` is then an
   * id that the process has chosen. From then on a run may make another attempt.
   */
  declare leasedUntil: Date | null;
  /** The workflow of that run, if several jobs share it; null for the workflow of the job. */
  declare workflowId: string | null;
  declare createdBy: string;
  /** The principal that the job acts for. Its rights are evaluated when the job runs. */
  declare authority: Authority;
  declare sourceKind: JobSource['kind'];
  declare sourceId: string | null;
  declare retryOf: string | null;
  declare cancelRequestedAt: Date | null;
  declare createdAt: Date;
  declare updatedAt: Date;
  declare startedAt: Date | null;
  declare finishedAt: Date | null;
  /** When the reconciler checked the job last. */
  declare checkedAt: Date;
  declare version: number;
  /** Null for a job that needs no slot, or waits for its next attempt. */
  declare slot: 'waiting' | 'held' | null;
  /** The pool whose runners run it; empty for a job that the worker runs. */
  declare pool: string;
  /** The version of the type that ran a job of runners, or that was approved. */
  declare typeDigest: string | null;
  /** The trace that it was created in, as a W3C `traceparent`; null while traces are off. */
  declare trace: string | null;
  /** When retention deleted payload and result. */
  declare dataPurgedAt: Date | null;
}
