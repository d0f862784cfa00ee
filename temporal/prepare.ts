import {
  ScheduleAlreadyRunning,
  ScheduleOverlapPolicy,
  isGrpcServiceError,
  type Client,
} from '@temporalio/client';
import proto from '@temporalio/proto';
import { SYSTEM_PRIORITY } from '../domain/dispatch/tasks.ts';
import {
  SEARCH_ATTRIBUTES,
  SYSTEM_WORKFLOWS,
  systemScheduleId,
  type SystemWorkflow,
} from '../domain/dispatch/workflowIds.ts';
import type { TemporalConnection } from './connection.ts';

const DEADLINE_MS = 10_000;
const KEYWORD = proto.temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD;

/** gRPC codes of calls that the server does not allow, as on Temporal Cloud. */
const UNSUPPORTED_GRPC_CODES = new Set([7, 12]);

/** A round of a reconciler is ended after this time: the next one starts only then. */
const ROUND_TIMEOUT = '1 hour';

/** Creates the search attributes, unless they exist. */
export async function ensureSearchAttributes(temporal: TemporalConnection): Promise<void> {
  const connection = await temporal.nativeConnection();
  await connection.withDeadline(Date.now() + DEADLINE_MS, () =>
    addSearchAttributes(temporal, connection),
  );
}

/**
 * Creates the schedules of the reconcilers, unless they exist. Those that exist become as they should be: an operator
 * may have paused one.
 */
export const ensureReconcileSchedules = (
  temporal: TemporalConnection,
  settings: { taskQueue: string; reconcileSeconds: number },
): Promise<void> =>
  temporal.call(DEADLINE_MS, async (client) => {
    for (const workflowType of SYSTEM_WORKFLOWS)
      await ensureReconcileSchedule(client, workflowType, settings);
  });

async function addSearchAttributes(
  temporal: TemporalConnection,
  { operatorService }: Awaited<ReturnType<TemporalConnection['nativeConnection']>>,
) {
  const { namespace } = temporal;
  try {
    const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
    const missing = Object.values(SEARCH_ATTRIBUTES).filter(
      (name) => !(name in (customAttributes ?? {})),
    );
    if (missing.length === 0) return;
    const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD]));
    await operatorService.addSearchAttributes({ namespace, searchAttributes });
  } catch (error) {
    if (!isGrpcServiceError(error) || !UNSUPPORTED_GRPC_CODES.has(error.code)) throw error;
    // On Temporal Cloud an administrator adds them (docs/deployment.md). Starts without them fail and
    // are retried.
  }
}

/** Offset of each reconciler within its interval, in thousandths. */
const OFFSETS_PER_MILLE = { reconcile: 300, reconcileSchedules: 700 } as const;

async function ensureReconcileSchedule(
  client: Client,
  workflowType: SystemWorkflow,
  { taskQueue, reconcileSeconds }: { taskQueue: string; reconcileSeconds: number },
) {
  // The offset avoids the full minute, when most schedules are due.
  const spec = {
    intervals: [
      {
        every: reconcileSeconds * 1_000,
        offset: reconcileSeconds * OFFSETS_PER_MILLE[workflowType],
      },
    ],
  };
  const scheduleId = systemScheduleId(taskQueue, workflowType);
  const action = {
    type: 'startWorkflow' as const,
    workflowType,
    workflowId: scheduleId,
    taskQueue,
    workflowExecutionTimeout: ROUND_TIMEOUT,
    priority: SYSTEM_PRIORITY,
  } as const;
  const policies = { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: 60_000 };
  try {
    await client.schedule.create({ scheduleId, spec, action, policies });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    await client.schedule
      .getHandle(scheduleId)
      .update((current) => ({ ...current, spec, policies, action, state: { paused: false } }));
  }
}
