import { ScheduleNotFoundError, WorkflowNotFoundError, type Client } from '@temporalio/client';
import {
  SYSTEM_WORKFLOWS,
  systemScheduleId,
  temporalScheduleId,
} from '../domain/dispatch/workflowIds.ts';
import type { TemporalConnection } from './connection.ts';
import { findTemporalSchedules } from './scheduleSync.ts';

/** What an installation has in its namespace: ids of its Temporal Schedules and of its open workflows. */
export type FoundInTemporal = { schedules: string[]; workflows: string[] };

/** The most workflows that are found in one call; the caller repeats until there are none. */
const PAGE_SIZE = 500;
const DEADLINE_MS = 60_000;
/** How many schedules are read or deleted, or workflows terminated, within one deadline. */
const CALLS_TOGETHER = 100;

const quote = (text: string): string => `"${text.replaceAll('"', '\\"')}"`;

/**
 * Finds what an installation, known by its main task queue, has in the namespace: its Temporal Schedules and at most
 * 500 of its workflows that have not ended. Other installations in the namespace have other queues.
 */
export async function findInTemporal(
  temporal: TemporalConnection,
  taskQueue: string,
): Promise<FoundInTemporal> {
  const { own, unreadable } = await findTemporalSchedules(temporal, taskQueue);
  const schedules = [...own.keys()].map(temporalScheduleId);
  await callEach(temporal, unreadable.map(temporalScheduleId), async (client, id) => {
    const { action } = await client.schedule.getHandle(id).describe();
    if (action.taskQueue === taskQueue) schedules.push(id);
  });
  return temporal.call(DEADLINE_MS, async (client) => {
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
  temporal: Pick<TemporalConnection, 'call'>,
  { schedules, workflows }: FoundInTemporal,
): Promise<void> {
  await callEach(temporal, schedules, (client, id) => client.schedule.getHandle(id).delete());
  await callEach(temporal, workflows, (client, id) =>
    client.workflow.getHandle(id).terminate('The installation is removed from this namespace'),
  );
}

/** Makes a call for each id, a limited number within one deadline. */
async function callEach(
  temporal: Pick<TemporalConnection, 'call'>,
  ids: readonly string[],
  callOne: (client: Client, id: string) => Promise<unknown>,
): Promise<void> {
  for (let start = 0; start < ids.length; start += CALLS_TOGETHER)
    await temporal.call(DEADLINE_MS, async (client) => {
      for (const id of ids.slice(start, start + CALLS_TOGETHER))
        await callOne(client, id).catch(ignoreMissing(undefined));
    });
}

const ignoreMissing =
  <T>(value: T) =>
  (error: unknown): T => {
    if (error instanceof ScheduleNotFoundError || error instanceof WorkflowNotFoundError)
      return value;
    throw error;
  };
