import { ScheduleNotFoundError, WorkflowNotFoundError, type Client } from '@temporalio/client';
import { systemScheduleId } from '../domain/dispatch/workflowIds.ts';
import type { TemporalConnection } from './connection.ts';
import { createListTemporalSchedules } from './scheduleSync.ts';

/** What an installation has in its namespace: ids of its Temporal Schedules and of its open workflows. */
export type FoundInTemporal = { schedules: string[]; workflows: string[] };

/** The most workflows that are found in one call; the caller repeats until there are none. */
const PAGE_SIZE = 500;
const DEADLINE_MS = 60_000;
/** How many schedules are deleted, or workflows terminated, within one deadline. */
const REMOVED_TOGETHER = 100;

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

/**
 * Deletes the Temporal Schedules and terminates the workflows, however many. What has ended in the meantime is
 * no error.
 */
export async function removeFromTemporal(
  link: Pick<TemporalConnection, 'call'>,
  { schedules, workflows }: FoundInTemporal,
): Promise<void> {
  const removeEach = async (
    ids: readonly string[],
    remove: (client: Client, id: string) => Promise<unknown>,
  ) => {
    for (let start = 0; start < ids.length; start += REMOVED_TOGETHER)
      await link.call(DEADLINE_MS, async (client) => {
        for (const id of ids.slice(start, start + REMOVED_TOGETHER))
          await remove(client, id).catch(ignoreMissing(undefined));
      });
  };
  await removeEach(schedules, (client, id) => client.schedule.getHandle(id).delete());
  await removeEach(workflows, (client, id) =>
    client.workflow.getHandle(id).terminate('The installation is removed from this namespace'),
  );
}

const ignoreMissing =
  <T>(value: T) =>
  (error: unknown): T => {
    if (error instanceof ScheduleNotFoundError || error instanceof WorkflowNotFoundError)
      return value;
    throw error;
  };
