import { sleep } from '@temporalio/workflow';
import type {
  ApprovalResult,
  ApprovalStart,
  BackupStart,
  FireResult,
  JobStart,
  RemoveStart,
  RestoreStart,
  ScheduleFire,
} from '../../../temporal/contracts.ts';
import { approval as approvalToday } from '../../../temporal/workflows/approval.ts';
import {
  backup as backupToday,
  removeBackup as removeToday,
  restore as restoreToday,
} from '../../../temporal/workflows/backups.ts';
import { job as jobToday } from '../../../temporal/workflows/job.ts';
import {
  fireSchedule as fireToday,
  releaseSchedule as releaseToday,
} from '../../../temporal/workflows/schedules.ts';

/** Today's workflows with a step in front: a change that would break every run under way. */
const late =
  <Input, Result>(today: (input: Input) => Promise<Result>) =>
  async (input: Input): Promise<Result> => {
    await sleep(1_000);
    return today(input);
  };

export const job: (start: JobStart) => Promise<void> = late(jobToday);
export const fireSchedule: (start: ScheduleFire) => Promise<FireResult> = late(fireToday);
export const releaseSchedule: (start: ScheduleFire) => Promise<FireResult> = late(releaseToday);
export const approval: (start: ApprovalStart) => Promise<ApprovalResult> = late(approvalToday);
export const backup: (start: BackupStart) => Promise<void> = late(backupToday);
export const restore: (start: RestoreStart) => Promise<void> = late(restoreToday);
export const removeBackup: (start: RemoveStart) => Promise<void> = late(removeToday);
