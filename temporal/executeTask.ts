import {
  NamespaceNotFoundError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  isGrpcServiceError,
  type Client,
} from '@temporalio/client';
import {
  ValueError,
  type WorkflowIdConflictPolicy,
  type WorkflowIdReusePolicy,
} from '@temporalio/common';
import { priorityOf, type OutboxTask, type StartShortJobsTask } from '../domain/dispatch/tasks.ts';
import { toSearchAttributes } from './workflows/shared/searchAttributes.ts';

/** gRPC codes after which the same call may succeed without any change. */
const TRANSIENT_GRPC_CODES = new Set([1, 4, 8, 10, 13, 14]);

/**
 * True when the server or the network failed, so that the same call may succeed later. The client
 * wraps gRPC errors; an error without one did not reach a server.
 */
export function isTransient(error: unknown): boolean {
  const grpcError = isGrpcServiceError(error)
    ? error
    : error instanceof Error
      ? error.cause
      : undefined;
  if (isGrpcServiceError(grpcError)) return TRANSIENT_GRPC_CODES.has(grpcError.code);
  return !(error instanceof NamespaceNotFoundError || error instanceof ValueError);
}

type StartTask = Extract<OutboxTask | StartShortJobsTask, { kind: 'start' }>;

type ExecutionTarget = {
  taskQueue: string;
  eager: boolean;
  /** After this long without an answer, in milliseconds, a workflow task goes to another worker. */
  workflowTaskTimeoutMs: number;
  syncSchedule: (client: Client, scheduleId: string) => Promise<void>;
};

type IdPolicies = {
  workflowIdConflictPolicy: WorkflowIdConflictPolicy;
  workflowIdReusePolicy: WorkflowIdReusePolicy;
};

/**
 * What happens to a workflow with the id of this one that runs, or has ended. One that may run again reads from its record
 * what is to be done, and finds nothing to do if its start was only repeated. A job that goes on after its first attempt
 * may have had a run of its own already, which found that a shared run has the job, and ended. A request goes on after
 * its workflow has failed. A backup whose archive could not be removed can be deleted again, also in the moment before
 * the former removal has ended, which would not notice that.
 */
function idPoliciesOf(task: StartTask): IdPolicies {
  if (task.workflow === 'removeBackup')
    return {
      workflowIdConflictPolicy: 'TERMINATE_EXISTING',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    };
  const isLaterAttempt = task.workflow === 'job' && task.input.firstAttempt !== undefined;
  return {
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy:
      task.workflow === 'approval'
        ? 'ALLOW_DUPLICATE_FAILED_ONLY'
        : isLaterAttempt
          ? 'ALLOW_DUPLICATE'
          : 'REJECT_DUPLICATE',
  };
}

/**
 * Makes the call of one outbox task. It is idempotent: "already started" and "not found" count as
 * success, and a signal names a committed decision, so that a repeated one changes nothing.
 */
export async function executeTask(
  client: Client,
  task: OutboxTask | StartShortJobsTask,
  { taskQueue, eager, workflowTaskTimeoutMs, syncSchedule }: ExecutionTarget,
): Promise<void> {
  try {
    if (task.kind === 'schedule') return void (await syncSchedule(client, task.scheduleId));
    if (task.kind === 'cancel')
      return void (await client.workflow.getHandle(task.workflowId).cancel());
    if (task.kind === 'signal')
      return void (await client.workflow
        .getHandle(task.workflowId)
        .signal(task.signal, ...task.args));
    await client.workflow.start(task.workflow, {
      workflowId: task.workflowId,
      taskQueue,
      args: [task.input],
      staticSummary: task.summary,
      typedSearchAttributes: toSearchAttributes(task.attributes),
      ...idPoliciesOf(task),
      workflowTaskTimeout: workflowTaskTimeoutMs,
      priority: priorityOf(task.attributes.tenant),
      requestEagerStart: eager,
    });
  } catch (error) {
    if (
      error instanceof WorkflowExecutionAlreadyStartedError ||
      error instanceof WorkflowNotFoundError
    )
      return;
    throw error;
  }
}
