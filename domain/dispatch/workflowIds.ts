/** Ids and names in Temporal that the API, the dispatcher, the workflows and the workers share. */

/**
 * The task queue for regular activities that run long or use the network. Workflows, local activities
 * and webhook deliveries use the main queue: a worker that starts a delivery's workflow can then run
 * its first attempt without another call to the server.
 */
export const activityTaskQueue = (mainQueue: string): string => `${mainQueue}-activity`;

/** The task queue of the runners of a pool. Their activities are named like the job types. */
export const poolTaskQueue = (mainQueue: string, pool: string): string =>
  `${mainQueue}-pool-${pool}`;

/** The header of a run that has the trace that it was started in: a W3C `traceparent`. */
export const TRACE_HEADER = 'holdfast-trace';

/** Search attributes of every workflow run, all of type Keyword. */
export const SEARCH_ATTRIBUTES = {
  tenant: 'HoldfastTenant',
  jobType: 'HoldfastJobType',
  record: 'HoldfastRecord',
} as const;

/** The workflows that repair what is out of step. Each is started by a Temporal Schedule of its own. */
export const SYSTEM_WORKFLOWS = ['reconcile', 'reconcileSchedules'] as const;
export type SystemWorkflow = (typeof SYSTEM_WORKFLOWS)[number];

/**
 * The Temporal Schedule that starts a reconciler. The task queue is part of the id, because
 * installations that share a namespace have different task queues.
 */
export const systemScheduleId = (taskQueue: string, workflow: SystemWorkflow): string =>
  `system:${taskQueue}:${workflow}`;

export const jobWorkflowId = (jobId: string): string => `job:${jobId}`;

/**
 * The workflow that makes the first attempts of several short jobs. `taskId` is the first of their
 * outbox tasks: a job that is started again must not meet the run of its first start.
 */
export const shortJobsWorkflowId = (taskId: string): string => `jobs:${taskId}`;

export const approvalWorkflowId = (approvalId: string): string => `approval:${approvalId}`;

export const backupWorkflowId = (backupId: string): string => `backup:${backupId}`;

/** The workflow that deletes the archive of a backup. */
export const removalWorkflowId = (backupId: string): string => `backup:${backupId}:delete`;

/** The workflow that loads an archive to validate, restore or verify it. */
export const restoreWorkflowId = (
  purpose: 'validate' | 'restore' | 'verify',
  jobId: string,
): string => `${purpose}:${jobId}`;

/** The Temporal Schedule of a schedule record. Runs append the scheduled time to this id. */
export const temporalScheduleId = (scheduleId: string): string => `schedule:${scheduleId}`;
