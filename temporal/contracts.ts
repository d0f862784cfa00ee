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

/** A Temporal Schedule of the system's own; installations that share a namespace differ by their task queue. */
export const systemScheduleId = (
  taskQueue: string,
  workflow: 'reconcile' | 'reconcileSchedules',
): string => `system:${taskQueue}:${workflow}`;

/** What the job workflow needs to know. The payload stays in PostgreSQL. */
export type JobStart = { jobId: string; lane: Lane; timeoutMs: number; heartbeatMs: number };

/** What the workflow that a schedule starts needs to know; when it was due, Temporal tells it. */
export type ScheduleFire = { scheduleId: string };

/** What became of a time due, as the workflow tells it. `not_due` is a time that Temporal takes for one, and the record does not. */
export type FireResult = {
  outcome: 'fired' | 'skipped' | 'failed' | 'buffered' | 'done_before' | 'not_due';
  reason?: string;
  jobId?: string;
};

/** What the workflow of an approval request needs to know. */
export type ApprovalStart = { approvalId: string; heartbeatMs: number };

/** The signal on which that workflow looks at its record again. It carries nothing: what counts is what was committed. */
export const APPROVAL_CHANGED = 'approvalChanged';

/** The start of a job's run, as a call of its own or as a child of another run. */
export type JobRun = Start<'job', JobStart>;

/** What the workflow of a request has to do next. `note` says in the Temporal Web UI what it waits for. */
export type ApprovalStep =
  | { do: 'wait'; ms: number; note: string }
  | { do: 'remind' | 'expire' | 'execute' }
  | { do: 'follow'; job: JobRun; note: string }
  | { do: 'end'; result: ApprovalResult };
export type ApprovalResult = { status: string; execution: string };

export type RunAttributes = { tenant: string; jobType: string; record: string };

/** What the workflow of a backup needs to know. Its steps are logged with the job. */
export type BackupStart = { backupId: string; jobId: string } & StepLimits;

/** What the workflow that loads an archive needs to know. */
export type RestoreStart = {
  jobId: string;
  purpose: 'validate' | 'restore' | 'verify';
} & StepLimits;

/** Limits of each step, in milliseconds. */
export type StepLimits = { timeoutMs: number; heartbeatMs: number };

export type RemoveStart = { backupId: string };

type Start<Workflow extends string, Input> = {
  kind: 'start';
  workflow: Workflow;
  workflowId: string;
  input: Input;
  summary: string;
  attributes: RunAttributes;
};

/** A call to Temporal that a commit owes. It is written to the outbox and made at least once. */
export type DispatchTask =
  | JobRun
  | Start<'releaseSchedule', ScheduleFire>
  | Start<'approval', ApprovalStart>
  | Start<'removeBackup', RemoveStart>
  | { kind: 'cancel'; workflowId: string }
  | { kind: 'signal'; workflowId: string; signal: typeof APPROVAL_CHANGED }
  /**
   * Brings the mirror of a schedule in line with its record as that is when the call is made. `workflowId` is the id of the
   * Temporal Schedule, by which the outbox is searched.
   */
  | { kind: 'schedule'; workflowId: string; scheduleId: string };

export const jobWorkflowId = (jobId: string): string => `job:${jobId}`;

/** The start of a job's run. */
export const startJob = (
  job: { id: string; type: string; tenantId: string },
  settings: Omit<JobStart, 'jobId'>,
): JobRun => ({
  kind: 'start',
  workflow: 'job',
  workflowId: jobWorkflowId(job.id),
  input: { jobId: job.id, ...settings },
  summary: job.type,
  attributes: { tenant: job.tenantId, jobType: job.type, record: job.id },
});

/** The cancellation of a job's run; "no such run" is a success. */
export const cancelJob = (jobId: string): DispatchTask => ({
  kind: 'cancel',
  workflowId: jobWorkflowId(jobId),
});

export const backupWorkflowId = (backupId: string): string => `backup:${backupId}`;

/** The run of what an archive is loaded for. */
export const restoreWorkflowId = (purpose: RestoreStart['purpose'], jobId: string): string =>
  `${purpose}:${jobId}`;

export const removalWorkflowId = (backupId: string): string => `backup:${backupId}:delete`;

/** Removes the archive of a backup that is deleted, and then says so. */
export const removeBackup = ({ id, tenantId }: { id: string; tenantId: string }): DispatchTask => ({
  kind: 'start',
  workflow: 'removeBackup',
  workflowId: removalWorkflowId(id),
  input: { backupId: id },
  summary: 'delete a backup',
  attributes: { tenant: tenantId, jobType: 'none', record: id },
});

export const approvalWorkflowId = (approvalId: string): string => `approval:${approvalId}`;

/** The start of the run that waits for the decision about a request. Its words are not for Temporal. */
export const startApproval = (
  { id, tenantId, jobType }: { id: string; tenantId: string; jobType: string | null },
  heartbeatMs: number,
): DispatchTask => ({
  kind: 'start',
  workflow: 'approval',
  workflowId: approvalWorkflowId(id),
  input: { approvalId: id, heartbeatMs },
  summary: jobType === null ? 'approval' : `approval of ${jobType}`,
  attributes: { tenant: tenantId, jobType: jobType ?? 'none', record: id },
});

/** Lets that run look at its record; one that has ended, or has not begun, needs no telling. */
export const wakeApproval = (id: string): DispatchTask => ({
  kind: 'signal',
  workflowId: approvalWorkflowId(id),
  signal: APPROVAL_CHANGED,
});

/** The id of the Temporal Schedule that mirrors a schedule; its runs add the time due. */
export const temporalScheduleId = (scheduleId: string): string => `schedule:${scheduleId}`;

/** Brings the mirror of a schedule in line with its record. */
export const mirrorSchedule = (scheduleId: string): DispatchTask => ({
  kind: 'schedule',
  workflowId: temporalScheduleId(scheduleId),
  scheduleId,
});

/** The start of the run that a schedule has buffered, after a job of it has ended. */
export const releaseSchedule = (
  schedule: { id: string; tenantId: string; jobType: string },
  endedJobId: string,
): DispatchTask => ({
  kind: 'start',
  workflow: 'releaseSchedule',
  workflowId: `${temporalScheduleId(schedule.id)}:after:${endedJobId}`,
  input: { scheduleId: schedule.id },
  summary: schedule.jobType,
  attributes: { tenant: schedule.tenantId, jobType: schedule.jobType, record: schedule.id },
});

/** How a schedule and its mirror in Temporal differ; null when they do not. */
export type CompareMirror = (scheduleId: string) => Promise<string | null>;

/** Mirrors that are looked at in one round. */
export const MAX_MIRRORS = 50_000;

/** The schedules that have a mirror in Temporal, as far as that has noted them by now, and whether those are paused. */
export type ListMirrors = () => Promise<Map<string, { paused: boolean }>>;

/** What Temporal knows of a run, as the reconciler asks for it. */
export type WorkflowState =
  | { found: false }
  | {
      found: true;
      status: 'running' | 'completed' | 'failed' | 'cancelled' | 'terminated' | 'timedOut';
    };

export type InspectWorkflow = (workflowId: string) => Promise<WorkflowState>;
