import { recordOf } from '../../db/core/recordAudit.ts';
import type { Job } from '../../db/models/Job.ts';
import type { EventData } from '../../domain/events/events.ts';
import { targetOf } from '../../domain/jobs/targets.ts';

/** Notification topic: a job has finished. */
export const jobFinishedTopic = (jobId: string): string => `job:${jobId}`;

/** Notification topic: the log of a job has new lines. */
export const jobLogTopic = (jobId: string): string => `log:${jobId}`;

/** Notification topic: the cancellation of a running job was requested. */
export const jobCancelTopic = (jobId: string): string => `cancel:${jobId}`;

/** The fields of a job that audit entries and events need. */
export type JobView = Pick<
  Job,
  | 'id'
  | 'type'
  | 'tenantId'
  | 'targetSiteId'
  | 'targetDeviceId'
  | 'status'
  | 'createdBy'
  | 'retryPolicy'
  | 'retryOf'
  | 'attempts'
  | 'error'
  | 'sourceKind'
  | 'sourceId'
>;

type JobEvent = 'job.created' | 'job.waiting' | 'job.succeeded' | 'job.failed' | 'job.cancelled';

/** Audit entries keep neither payload nor result: both may contain secrets. */
const auditView = (job: JobView) => ({
  type: job.type,
  tenantId: job.tenantId,
  target: targetOf(job),
  status: job.status,
  createdBy: job.createdBy,
  retryPolicy: job.retryPolicy,
  retryOf: job.retryOf,
  attempts: job.attempts,
  error: job.error?.code ?? null,
});

function eventData(job: JobView): EventData<JobEvent> {
  const target = targetOf(job);
  return {
    jobId: job.id,
    type: job.type,
    status: job.status,
    attempts: job.attempts,
    source: { kind: job.sourceKind, id: job.sourceId },
    ...(target && { target }),
    error: job.error?.code ?? null,
  };
}

/** Audit entries and events about jobs. */
export const jobRecord = recordOf<JobView, JobEvent>({
  type: 'job',
  auditView,
  events: { created: 'job.created' },
  eventData,
});
