import { sleep } from '@temporalio/workflow';
import type {
  ApprovalResult,
  ApprovalWorkflowInput,
  BackupWorkflowInput,
  ScheduleRunResult,
  JobWorkflowInput,
  RemoveBackupWorkflowInput,
  RestoreWorkflowInput,
  ScheduleWorkflowInput,
  ShortJobsInput,
} from '../../../domain/dispatch/tasks.ts';
import { approval as approvalToday } from '../../../temporal/workflows/approvals.ts';
import {
  backup as backupToday,
  removeBackup as removeToday,
  restore as restoreToday,
} from '../../../temporal/workflows/backups.ts';
import { job as jobToday, shortJobs as shortJobsToday } from '../../../temporal/workflows/jobs.ts';
import {
  fireSchedule as fireToday,
  releaseBufferedRun as releaseToday,
} from '../../../temporal/workflows/schedules.ts';

/** Today's workflows with a step in front: a change that would break every running workflow. */
const late =
  <Input, Result>(today: (input: Input) => Promise<Result>) =>
  async (input: Input): Promise<Result> => {
    await sleep(1_000);
    return today(input);
  };

export const job: (start: JobWorkflowInput) => Promise<void> = late(jobToday);
export const shortJobs: (start: ShortJobsInput) => Promise<void> = late(shortJobsToday);
export const fireSchedule: (input: ScheduleWorkflowInput) => Promise<ScheduleRunResult> =
  late(fireToday);
export const releaseBufferedRun: (input: ScheduleWorkflowInput) => Promise<ScheduleRunResult> =
  late(releaseToday);
export const approval: (start: ApprovalWorkflowInput) => Promise<ApprovalResult> =
  late(approvalToday);
export const backup: (start: BackupWorkflowInput) => Promise<void> = late(backupToday);
export const restore: (start: RestoreWorkflowInput) => Promise<void> = late(restoreToday);
export const removeBackup: (start: RemoveBackupWorkflowInput) => Promise<void> = late(removeToday);
