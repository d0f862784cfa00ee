import type { Job } from '../../db/models/Job.ts';
import type { EventData } from '../../domain/events/events.ts';

/** The topics of `Changes` on which a job's news go. */
export const jobEnded = (jobId: string): string => `job:${jobId}`;
export const jobLogged = (jobId: string): string => `log:${jobId}`;

/** The job as the subject of audit entries and events. */
export const subject = (job: { id: string }) => ({ type: 'job', id: job.id });

export type JobView = Pick<
  Job,
  | 'id'
  | 'type'
  | 'tenantId'
  | 'status'
  | 'createdBy'
  | 'retryPolicy'
  | 'retryOf'
  | 'attempts'
  | 'error'
  | 'sourceKind'
  | 'sourceId'
>;

/** A job as the audit trail keeps it: never the payload or the result, which may hold secrets. */
export const auditView = (job: JobView): object => ({
  type: job.type,
  tenantId: job.tenantId,
  status: job.status,
  createdBy: job.createdBy,
  retryPolicy: job.retryPolicy,
  retryOf: job.retryOf,
  attempts: job.attempts,
  error: job.error?.code ?? null,
});

/** What an event tells of a job. */
export const eventData = (job: JobView): EventData<'job.created'> => ({
  jobId: job.id,
  type: job.type,
  status: job.status,
  attempts: job.attempts,
  source: { kind: job.sourceKind, id: job.sourceId },
  error: job.error?.code ?? null,
});
