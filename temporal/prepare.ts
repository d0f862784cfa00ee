import {
  ScheduleAlreadyRunning,
  ScheduleOverlapPolicy,
  isGrpcServiceError,
  type Client,
} from '@temporalio/client';
import proto from '@temporalio/proto';
import { SEARCH_ATTRIBUTES, systemScheduleId } from './contracts.ts';
import type { TemporalLink } from './connection.ts';

const DEADLINE_MS = 10_000;
const KEYWORD = proto.temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD;

/** gRPC code of what the server has no such call for or does not let us do, as on Temporal Cloud. */
const NOT_OURS_TO_DO = new Set([7, 12]);

/** Makes sure that the namespace has what runs need: the search attributes and the reconcilers' schedules. */
export async function prepareNamespace(
  link: TemporalLink,
  settings: { taskQueue: string; reconcileSeconds: number },
): Promise<void> {
  const connection = await link.connection();
  await connection.withDeadline(Date.now() + DEADLINE_MS, () =>
    addSearchAttributes(link, connection),
  );
  await link.call(DEADLINE_MS, async (client) => {
    for (const workflowType of ['reconcile', 'reconcileSchedules'] as const)
      await scheduleReconciler(client, workflowType, settings);
  });
}

async function addSearchAttributes(
  link: TemporalLink,
  { operatorService }: Awaited<ReturnType<TemporalLink['connection']>>,
) {
  const { namespace } = link;
  try {
    const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
    const missing = Object.values(SEARCH_ATTRIBUTES).filter(
      (name) => !(name in (customAttributes ?? {})),
    );
    if (missing.length === 0) return;
    const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD]));
    await operatorService.addSearchAttributes({ namespace, searchAttributes });
  } catch (error) {
    if (!isGrpcServiceError(error) || !NOT_OURS_TO_DO.has(error.code)) throw error;
    // Temporal Cloud: its administrator adds them (docs/deployment.md); a start without them fails and is repeated.
  }
}

/** When the rounds begin, in thousandths of the time between two. */
const PHASES = { reconcile: 300, reconcileSchedules: 700 } as const;

async function scheduleReconciler(
  client: Client,
  workflowType: 'reconcile' | 'reconcileSchedules',
  { taskQueue, reconcileSeconds }: { taskQueue: string; reconcileSeconds: number },
) {
  // Not at the full minute, when schedules are due.
  const spec = {
    intervals: [
      { every: reconcileSeconds * 1_000, offset: reconcileSeconds * PHASES[workflowType] },
    ],
  };
  const scheduleId = systemScheduleId(taskQueue, workflowType);
  const action = {
    type: 'startWorkflow' as const,
    workflowType,
    workflowId: scheduleId,
    taskQueue,
  };
  const policies = { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: 60_000 };
  try {
    await client.schedule.create({ scheduleId, spec, action, policies });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    await client.schedule
      .getHandle(scheduleId)
      .update((current) => ({ ...current, spec, policies, action }));
  }
}
