import { ScheduleNotFoundError, WorkflowNotFoundError } from '@temporalio/client';
import { systemScheduleId } from '../domain/dispatch/workflowIds.ts';
import type { TemporalConnection } from './connection.ts';
import { createListTemporalSchedules } from './scheduleSync.ts';

/** What an installation has in its namespace: ids of its Temporal Schedules and of its open workflows. */
export type FoundInTemporal = { schedules: string[]; workflows: string[] };

/** One page of either; the caller repeats until both are empty. */
const PAGE_SIZE = 500;
const DEADLINE_MS = 60_000;

const SYSTEM_WORKFLOWS = ['reconcile', 'reconcileSchedules'] as const;

const quote = (text: string): string => `"${text.replaceAll('"', '\\"')}"`;

/**
 * Finds what an installation, known by its main task queue, has in the namespace: its Temporal Schedules and at most
 * 500 of its workflows that have not ended. Other installations in the namespace have other queues.
 */
export async function findInTemporal(
  link: TemporalConnection,
  taskQueue: string,
): Promise<FoundInTemporal> {
  const own = await createListTemporalSchedules(link, taskQueue)();
  return link.call(DEADLINE_MS, async (client) => {
    const schedules = [...own.keys()].map((id) => `schedule:${id}`);
    for (const workflow of SYSTEM_WORKFLOWS) {
      const id = systemScheduleId(taskQueue, workflow);
      const exists = await client.schedule
        .getHandle(id)
        .describe()
        .then(() => true, ignoreMissing(false));
      if (exists) schedules.push(id);
    }
    const workflows: string[] = [];
    const query = `TaskQueue = ${quote(taskQueue)} AND ExecutionStatus = "Running"`;
    for await (const { workflowId } of client.workflow.list({ query, pageSize: PAGE_SIZE })) {
      workflows.push(workflowId);
      if (workflows.length === PAGE_SIZE) break;
    }
    return { schedules, workflows };
  });
}

/** Deletes the Temporal Schedules and terminates the workflows. What has ended in the meantime is no error. */
export async function removeFromTemporal(
  link: TemporalConnection,
  { schedules, workflows }: FoundInTemporal,
): Promise<void> {
  await link.call(DEADLINE_MS, async (client) => {
    for (const id of schedules)
      await client.schedule.getHandle(id).delete().catch(ignoreMissing(undefined));
    for (const id of workflows)
      await client.workflow
        .getHandle(id)
        .terminate('The installation is removed from this namespace')
        .catch(ignoreMissing(undefined));
  });
}

const ignoreMissing =
  <T>(value: T) =>
  (error: unknown): T => {
    if (error instanceof ScheduleNotFoundError || error instanceof WorkflowNotFoundError)
      return value;
    throw error;
  };
