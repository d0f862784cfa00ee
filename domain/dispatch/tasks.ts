import type { Lane } from '../jobs/jobType.ts';
import {
  approvalWorkflowId,
  jobWorkflowId,
  removalWorkflowId,
  shortJobsWorkflowId,
  temporalScheduleId,
} from './workflowIds.ts';

/** Inputs of the job workflow. The payload stays in PostgreSQL. */
export type JobWorkflowInput = {
  jobId: string;
  lane: Lane;
  timeoutMs: number;
  heartbeatMs: number;
  /** The first attempt was made without a workflow, and failed. */
  firstAttempt?: FailedFirstAttempt;
  /** For a job of runners: their pool, and the type, which is the name of their activity. */
  remote?: { pool: string; type: string };
};

/** Why an attempt failed, and after how long the next one follows; null if there is none. */
export type FailedFirstAttempt = { code: string; retryInMs: number | null };

/**
 * The failure of a local activity that another worker must repeat, because this one stops or does not know the
 * type of the job. Its detail is after how many milliseconds.
 */
export const OTHER_WORKER_NEEDED = 'other_worker_needed';

/** Input of the workflow that makes the first attempts of short jobs of one tenant and type. */
export type ShortJobsInput = { jobIds: string[]; timeoutMs: number };

/** Short jobs of one tenant and type, and the workflow that is going to be started for them. */
export type ImmediateJobs = Readonly<ShortJobsInput> & { workflowId: string; tenantId: string };

/** Input of the workflow that a Temporal Schedule starts. Temporal adds the scheduled time. */
export type ScheduleWorkflowInput = { scheduleId: string };

/**
 * The outcome of one scheduled time. `not_due`: Temporal started a run for a time that is not an
 * occurrence of the schedule record.
 */
export type ScheduleRunResult = {
  outcome:
    | 'fired'
    | 'skipped'
    | 'failed'
    | 'buffered'
    | 'already_handled'
    | 'left_to_others'
    | 'purged'
    | 'held'
    | 'not_due';
  reason?: string;
  jobId?: string;
};

/** The input of the approval workflow. */
export type ApprovalWorkflowInput = {
  approvalId: string;
  heartbeatMs: number;
  /** From this many events on the run continues as a new one; by default when Temporal suggests it. */
  maxHistoryEvents?: number;
};

/** The signals of the approval workflow. Each carries the id of a row of `approval_decisions`. */
export type ApprovalSignal = 'approve' | 'reject' | 'cancel';

/** A request as its workflow sees it. Durations count from the time at which it was read. */
export type ApprovalState =
  | {
      phase: 'pending';
      missingApprovals: number;
      expiresAt: string;
      expiresInMs: number;
      /** Null when no reminder is left; 0 or less when one is due. */
      reminderInMs: number | null;
    }
  /** Approved for later: its job is created at `executeAt`. */
  | { phase: 'deferred'; executeAt: string; startsInMs: number }
  /** Approved, and its job is to be created now. */
  | { phase: 'queued' }
  /** `job` is null if the worker that was asked does not know its type: another version may. */
  | { phase: 'running'; job: StartJobTask | null }
  | { phase: 'finished'; result: ApprovalResult };
export type ApprovalResult = { status: string; execution: string };

/** Values of the search attributes of a run. */
export type RunAttributes = { tenant: string; jobType: string; record: string };

/** The priority of a run in the queues of Temporal. Activities and child workflows inherit it. */
export type RunPriority = { priorityKey: number; fairnessKey: string; fairnessWeight: number };

/**
 * All work of all tenants has the same priority: with different ones, the urgent work of one tenant
 * would hold up the work of the others. Within it, a server with fairness serves the tenants in
 * turn; another server ignores the key. A tenant id has at most 63 bytes, a key 64.
 */
export const priorityOf = (tenantId: string): RunPriority => ({
  priorityKey: 3,
  fairnessKey: tenantId,
  fairnessWeight: 1,
});

/** The fairness key of the system itself. It has a character that no tenant id has. */
export const SYSTEM_FAIRNESS_KEY = 'holdfast:system';

/** The few runs of the system itself, which repair what others wait for. */
export const SYSTEM_PRIORITY: RunPriority = {
  priorityKey: 2,
  fairnessKey: SYSTEM_FAIRNESS_KEY,
  fairnessWeight: 1,
};

/** Limits of each step, in milliseconds. */
export type StepLimits = { timeoutMs: number; heartbeatMs: number };

/** Input of the workflow that makes a backup. Its steps write to the log of the job. */
export type BackupWorkflowInput = { backupId: string; jobId: string } & StepLimits;

/** Input of the workflow that loads an archive. */
export type RestoreWorkflowInput = {
  jobId: string;
  purpose: 'validate' | 'restore' | 'verify';
} & StepLimits;

export type RemoveBackupWorkflowInput = { backupId: string };

type StartTask<Workflow extends string, Input> = {
  kind: 'start';
  workflow: Workflow;
  workflowId: string;
  input: Input;
  summary: string;
  attributes: RunAttributes;
  /** The workflow is not started together with others: its job has waited long enough. */
  alone?: true;
};

/** Starts the workflow of a job: as a call of its own, or as a child of another workflow. */
export type StartJobTask = Traced & StartTask<'job', JobWorkflowInput>;

/**
 * A call to Temporal that a commit writes to the outbox. The dispatcher makes it at least once, so
 * every task must be idempotent.
 */
export type OutboxTask = Traced & Task;

/** The trace that a task belongs to, as a W3C `traceparent`. It is no part of the input of a workflow. */
type Traced = { trace?: string | null };

type Task =
  | StartJobTask
  | StartTask<'releaseBufferedRun', ScheduleWorkflowInput>
  | StartTask<'approval', ApprovalWorkflowInput>
  | StartTask<'removeBackup', RemoveBackupWorkflowInput>
  | { kind: 'cancel'; tenantId: string; workflowId: string }
  | {
      kind: 'signal';
      tenantId: string;
      workflowId: string;
      signal: ApprovalSignal;
      args: [decisionId: string];
    }
  /**
   * Makes the Temporal Schedule equal to the schedule record as it is when the call is made.
   * `workflowId` is the id of the Temporal Schedule; the reconcilers search the outbox by it.
   */
  | { kind: 'schedule'; tenantId: string; workflowId: string; scheduleId: string };

/** The tenant that a task is for. Tenants take turns. */
export const tenantOfTask = (task: OutboxTask): string =>
  task.kind === 'start' ? task.attributes.tenant : task.tenantId;

export const startJobTask = (
  job: { id: string; type: string; tenantId: string; trace?: string | null },
  settings: Omit<JobWorkflowInput, 'jobId'>,
): StartJobTask => ({
  kind: 'start',
  workflow: 'job',
  workflowId: jobWorkflowId(job.id),
  input: { jobId: job.id, ...settings },
  summary: job.type,
  attributes: { tenant: job.tenantId, jobType: job.type, record: job.id },
  ...(typeof job.trace === 'string' && { trace: job.trace }),
});

/** Starts one workflow for several short jobs. It is not kept in the outbox: each job has its own task there. */
export type StartShortJobsTask = Traced & StartTask<'shortJobs', ShortJobsInput>;

/**
 * What jobs must have in common to be started together; undefined for tasks that are not starts of
 * short jobs.
 */
export const shortJobsKey = (task: OutboxTask): string | undefined =>
  task.kind === 'start' &&
  task.workflow === 'job' &&
  task.input.lane === 'inline' &&
  task.input.firstAttempt === undefined &&
  task.alone === undefined
    ? JSON.stringify([task.attributes.tenant, task.attributes.jobType])
    : undefined;

/** One start for jobs with the same `shortJobsKey`. `taskId` is the outbox task of the first one. */
export const startShortJobsTask = (
  taskId: string,
  first: StartJobTask,
  others: readonly StartJobTask[],
): StartShortJobsTask => {
  const inputs = [first, ...others].map(({ input }) => input);
  return {
    kind: 'start',
    workflow: 'shortJobs',
    workflowId: shortJobsWorkflowId(taskId),
    input: {
      jobIds: inputs.map(({ jobId }) => jobId),
      timeoutMs: Math.max(...inputs.map(({ timeoutMs }) => timeoutMs)),
    },
    summary: others.length === 0 ? first.summary : `${inputs.length} × ${first.summary}`,
    // The jobs name this workflow; it cannot name all of them in an attribute for one.
    attributes: { ...first.attributes, ...(others.length > 0 && { record: 'several' }) },
    // The trace of one job: the attempts themselves are in the traces of their own jobs.
    ...(typeof first.trace === 'string' && { trace: first.trace }),
  };
};

/** Requests cancellation of a job's workflow. A workflow that does not exist counts as cancelled. */
export const cancelJobTask = ({ id, tenantId }: { id: string; tenantId: string }): OutboxTask => ({
  kind: 'cancel',
  tenantId,
  workflowId: jobWorkflowId(id),
});

/** Starts the workflow that deletes the archive of a deleted backup. */
export const removeBackupTask = ({
  id,
  tenantId,
}: {
  id: string;
  tenantId: string;
}): OutboxTask => ({
  kind: 'start',
  workflow: 'removeBackup',
  workflowId: removalWorkflowId(id),
  input: { backupId: id },
  summary: 'delete a backup',
  attributes: { tenant: tenantId, jobType: 'none', record: id },
});

/** Starts the workflow of an approval request. Title and payload of the request are not sent. */
export const startApprovalTask = (
  { id, tenantId, jobType }: { id: string; tenantId: string; jobType: string | null },
  heartbeatMs: number,
): OutboxTask => ({
  kind: 'start',
  workflow: 'approval',
  workflowId: approvalWorkflowId(id),
  input: { approvalId: id, heartbeatMs },
  summary: jobType === null ? 'approval' : `approval of ${jobType}`,
  attributes: { tenant: tenantId, jobType: jobType ?? 'none', record: id },
});

/**
 * Announces a committed decision to the workflow of its request. A workflow that has ended ignores it,
 * one that starts later reads the decision from the record.
 */
export const signalApprovalTask = (
  { id, tenantId }: { id: string; tenantId: string },
  signal: ApprovalSignal,
  decisionId: string,
): OutboxTask => ({
  kind: 'signal',
  tenantId,
  workflowId: approvalWorkflowId(id),
  signal,
  args: [decisionId],
});

/** Makes the Temporal Schedule of a schedule equal to its record. */
export const syncSchedule = ({ id, tenantId }: { id: string; tenantId: string }): OutboxTask => ({
  kind: 'schedule',
  tenantId,
  workflowId: temporalScheduleId(id),
  scheduleId: id,
});

/** Starts the run that a schedule has buffered. `endedJobId` is the job that the run waited for. */
export const startBufferedRun = (
  schedule: { id: string; tenantId: string; jobType: string },
  endedJobId: string,
): OutboxTask => ({
  kind: 'start',
  workflow: 'releaseBufferedRun',
  workflowId: `${temporalScheduleId(schedule.id)}:after:${endedJobId}`,
  input: { scheduleId: schedule.id },
  summary: `buffered run of ${schedule.jobType}`,
  attributes: { tenant: schedule.tenantId, jobType: schedule.jobType, record: schedule.id },
});

/** Describes how a schedule differs from its Temporal Schedule; null when they are equal. */
export type CompareTemporalSchedule = (scheduleId: string) => Promise<string | null>;

/** Most Temporal Schedules that one round of the temporal sync reads. */
export const MAX_TEMPORAL_SCHEDULES = 50_000;

/**
 * Schedule ids that have a Temporal Schedule, and whether it is paused. The list is eventually
 * consistent, as Temporal's visibility store is.
 */
export type ListTemporalSchedules = () => Promise<Map<string, { paused: boolean }>>;

/** The state of a workflow in Temporal. */
export type WorkflowState =
  | { found: false }
  | {
      found: true;
      status: 'running' | 'completed' | 'failed' | 'cancelled' | 'terminated' | 'timedOut';
      /** Its last run. */
      runId?: string;
    };

export type DescribeWorkflow = (workflowId: string) => Promise<WorkflowState>;
