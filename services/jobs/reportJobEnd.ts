import type { Job } from '../../db/models/Job.ts';
import type { FinalJobStatus } from '../../domain/jobs/jobs.ts';
import { jobLog, type Log } from '../../platform/log.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { JobTypes } from '../jobTypes/registry.ts';

/** A job that has ended. */
export type EndedJob = Pick<
  Job,
  'id' | 'type' | 'tenantId' | 'attempts' | 'createdAt' | 'startedAt'
> &
  Partial<Pick<Job, 'workflowId'>>;

/** Reports the end of a job after its commit: to the metrics, and in one line of the log. */
export type ReportJobEnd = (
  job: EndedJob,
  end: { status: FinalJobStatus; code: string | null; at?: Date },
) => void;

type Deps = { jobTypes: JobTypes; log: Log; metrics: Metrics };

const seconds = (from: Date, to: Date): number =>
  Math.max(to.getTime() - from.getTime(), 0) / 1_000;

/** The label of the types that runners announce: tenants choose their names, and how many there are. */
const COMMAND = 'command';

export function createReportJobEnd({ jobTypes, log, metrics }: Deps): ReportJobEnd {
  return (job, { status, code, at = new Date() }) => {
    const { id, tenantId, attempts, createdAt, startedAt } = job;
    const type = jobTypes.isOwn(job.type) ? job.type : COMMAND;
    const lane = jobTypes.find(job.type)?.lane ?? 'unknown';
    const whole = seconds(createdAt, at);
    metrics.jobsFinished.inc({ type, status });
    metrics.jobSeconds.observe({ lane, status }, whole);
    if (startedAt) {
      metrics.jobWaitSeconds.observe({ lane, type }, seconds(createdAt, startedAt));
      metrics.jobRunSeconds.observe({ lane, type }, seconds(startedAt, at));
    }
    jobLog(log, id, job.workflowId).info(
      {
        tenantId,
        jobType: job.type,
        lane,
        status,
        ...(code !== null && { code }),
        attempts,
        seconds: whole,
      },
      'a job has ended',
    );
  };
}
