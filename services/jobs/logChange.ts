import { jobChange, type JobChange } from '../../db/jobs/jobs.ts';
import type { RecordChange } from '../../db/core/unitOfWork.ts';
import { jobLogTopic } from './jobAudit.ts';

/** A change of the log and the progress of a job alone. */
export const logChange = (
  change: Pick<JobChange, 'jobId' | 'guard' | 'values' | 'lines'>,
): RecordChange => jobChange({ ...change, topics: [jobLogTopic(change.jobId)], newVersion: false });
