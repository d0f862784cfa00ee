import {
  ApplicationFailure,
  proxyActivities,
  proxyLocalActivities,
  workflowInfo,
} from '@temporalio/workflow';
import { defineSearchAttributeKey } from '@temporalio/common';
import type { ScheduleActivities } from '../../activities/schedules.ts';
import { type ScheduleRunResult, type ScheduleWorkflowInput } from '../../domain/dispatch/tasks.ts';
import { activityTaskQueue } from '../../domain/dispatch/workflowIds.ts';
import { LOCAL_STEP_OPTIONS } from './shared/stepOptions.ts';

const { fireOccurrence } = proxyLocalActivities<ScheduleActivities>({
  ...LOCAL_STEP_OPTIONS,
  summary: 'decide the run of the occurrence',
});
const { releaseBuffered } = proxyLocalActivities<ScheduleActivities>({
  ...LOCAL_STEP_OPTIONS,
  summary: 'decide the buffered run',
});

/** The scheduled time for which Temporal started this workflow, without jitter. */
const DUE_AT = defineSearchAttributeKey('TemporalScheduledStartTime', 'DATETIME');

/**
 * A Temporal Schedule starts this workflow at each occurrence. The activity decides from the record
 * whether the schedule runs. Started in another way, the workflow fails with `not_scheduled`.
 */
export async function fireSchedule({
  scheduleId,
}: ScheduleWorkflowInput): Promise<ScheduleRunResult> {
  const dueAt = workflowInfo().typedSearchAttributes.get(DUE_AT);
  if (!dueAt)
    throw ApplicationFailure.nonRetryable(
      'Only a Temporal Schedule starts this workflow',
      'not_scheduled',
    );
  return fireOccurrence(scheduleId, dueAt.toISOString());
}

/** Started when a job has ended that a buffered run of the same schedule waits for. */
export const releaseBufferedRun = ({
  scheduleId,
}: ScheduleWorkflowInput): Promise<ScheduleRunResult> => releaseBuffered(scheduleId);

/**
 * Repairs Temporal Schedules that differ from their record. A system schedule starts this workflow;
 * see temporal/prepare.ts.
 */
export async function reconcileSchedules(): Promise<void> {
  const { syncSchedules } = proxyActivities<ScheduleActivities>({
    taskQueue: activityTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: '30 seconds',
    retry: { maximumAttempts: 3 },
    summary: 'compare schedules with their Temporal Schedules',
  });
  await syncSchedules();
}
