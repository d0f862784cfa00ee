import {
  ApplicationFailure,
  proxyActivities,
  proxyLocalActivities,
  workflowInfo,
} from '@temporalio/workflow';
import { defineSearchAttributeKey } from '@temporalio/common';
import type { ScheduleActivities } from '../../activities/schedules.ts';
import { activityQueueOf, type FireResult, type ScheduleFire } from '../contracts.ts';
import { STEP } from './shared/stepOptions.ts';

const { fireDue, releaseBuffered } = proxyLocalActivities<ScheduleActivities>(STEP);

/** The time for which Temporal started this run, without jitter. */
const DUE_AT = defineSearchAttributeKey('TemporalScheduledStartTime', 'DATETIME');

/** Started by a Temporal Schedule at each time due. What is to be done then is decided from the record. */
export async function fireSchedule({ scheduleId }: ScheduleFire): Promise<FireResult> {
  const dueAt = workflowInfo().typedSearchAttributes.get(DUE_AT);
  if (!dueAt)
    throw ApplicationFailure.nonRetryable(
      'Only a Temporal Schedule starts this workflow',
      'not_scheduled',
    );
  return fireDue(scheduleId, dueAt.toISOString());
}

/** Started when a job has ended for which another run of its schedule has waited. */
export const releaseSchedule = ({ scheduleId }: ScheduleFire): Promise<FireResult> =>
  releaseBuffered(scheduleId);

/** Keeps schedules and their Temporal Schedules in step; started by a schedule of the system's own. */
export async function reconcileSchedules(): Promise<void> {
  const { compareSchedules } = proxyActivities<ScheduleActivities>({
    taskQueue: activityQueueOf(workflowInfo().taskQueue),
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: '30 seconds',
    retry: { maximumAttempts: 3 },
  });
  await compareSchedules();
}
