import type { Lane } from '../domain/jobType.ts';

/** Names, ids and inputs that API, relay, workflows and workers share. No SDK here. */

/**
 * The task queue of long or network work that belongs to the main one. Workflows run on the main one, inline work as part
 * of them, and deliveries, whose first attempt the worker that took the workflow can begin without asking the server.
 */
export const activityQueueOf = (mainQueue: string): string => `${mainQueue}-activity`;

/** Search attributes of every run, all of type Keyword. */
export const SEARCH_ATTRIBUTES = {
  tenant: 'HoldfastTenant',
  jobType: 'HoldfastJobType',
  record: 'HoldfastRecord',
} as const;

/** The system's own schedule; installations that share a namespace differ by their task queue. */
export const reconcileScheduleId = (taskQueue: string): string => `system:${taskQueue}:reconcile`;

/** What the job workflow needs to know. The payload stays in PostgreSQL. */
export type JobStart = { jobId: string; lane: Lane; timeoutMs: number; heartbeatMs: number };

/** A call to Temporal that a commit owes. It is written to the outbox and made at least once. */
export type DispatchTask =
  | {
      kind: 'start';
      workflow: 'job';
      workflowId: string;
      input: JobStart;
      summary: string;
      attributes: { tenant: string; jobType: string; record: string };
    }
  | { kind: 'cancel'; workflowId: string };

export const jobWorkflowId = (jobId: string): string => `job:${jobId}`;

/** The start of a job's run. */
export const startJob = (
  job: { id: string; type: string; tenantId: string },
  settings: Omit<JobStart, 'jobId'>,
): DispatchTask => ({
  kind: 'start',
  workflow: 'job',
  workflowId: jobWorkflowId(job.id),
  input: { jobId: job.id, ...settings },
  summary: job.type,
  attributes: { tenant: job.tenantId, jobType: job.type, record: job.id },
});

/** The cancellation of a job's run; "no such run" is a success. */
export const cancelJob = (jobId: string): DispatchTask => ({ kind: 'cancel', workflowId: jobWorkflowId(jobId) });

/** What Temporal knows of a run, as the reconciler asks for it. */
export type WorkflowState =
  | { found: false }
  | { found: true; status: 'running' | 'completed' | 'failed' | 'cancelled' | 'terminated' | 'timedOut' };

export type InspectWorkflow = (workflowId: string) => Promise<WorkflowState>;
