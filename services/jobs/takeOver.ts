import type { Knex } from '../../db/core/knex.ts';
import { takeOverFrom } from '../../db/jobs/jobs.ts';
import { Job } from '../../db/models/Job.ts';
import type { DescribeWorkflow } from '../../domain/dispatch/tasks.ts';
import { jobWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import { AttemptFailed, type JobRunRef } from './lifecycle.ts';

/** A run that has taken its job over claims it when it asks again, after this time. */
export const TAKEN_OVER_MS = 200;
export const TAKEN_OVER = new AttemptFailed('claim_lost', TAKEN_OVER_MS);

/**
 * Creates the function with which a run takes its job over from an earlier run of the same workflow, as after a reset in
 * Temporal. A workflow has one open run at most: if that is this one, the other one has ended. False if there is
 * nothing to take over.
 */
export const createTakeOver =
  ({ db, describeWorkflow }: { db: Knex; describeWorkflow: DescribeWorkflow }) =>
  async ({ jobId, runId }: JobRunRef): Promise<boolean> => {
    const job = await Job.query(db)
      .findById(jobId)
      .select('status', 'run_id', 'workflow_id', 'leased_until');
    if (job?.status !== 'running' || job.runId === null || job.runId === runId) return false;
    // A shared run, or a process without one, has the job.
    if (job.workflowId !== null || job.leasedUntil !== null) return false;
    const current = await describeWorkflow(jobWorkflowId(jobId));
    if (!current.found || current.status !== 'running' || current.runId !== runId) return false;
    return takeOverFrom(db, { jobId, runId, formerRunId: job.runId });
  };
