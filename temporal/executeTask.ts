import {
  NamespaceNotFoundError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  isGrpcServiceError,
  type Client,
} from '@temporalio/client';
import { ValueError } from '@temporalio/common';
import type { DispatchTask } from './contracts.ts';
import { attributesOf } from './workflows/attributes.ts';

/** gRPC codes after which the same call may succeed with nothing changed. */
const TRANSIENT = new Set([1, 4, 8, 10, 13, 14]);

/**
 * True when the server, or the way to it, is the trouble and not the call. The client wraps the answer of the
 * server; what has none at all did not reach one.
 */
export function isTransient(error: unknown): boolean {
  const answer = isGrpcServiceError(error)
    ? error
    : error instanceof Error
      ? error.cause
      : undefined;
  if (isGrpcServiceError(answer)) return TRANSIENT.has(answer.code);
  return !(error instanceof NamespaceNotFoundError || error instanceof ValueError);
}

type Where = {
  taskQueue: string;
  eager: boolean;
  mirror: (client: Client, scheduleId: string) => Promise<void>;
};

/**
 * Makes one owed call. Made twice it is the same as once: "already started" and "not found" are successes, a signal only
 * makes its run look again.
 */
export async function perform(
  client: Client,
  task: DispatchTask,
  { taskQueue, eager, mirror }: Where,
): Promise<void> {
  try {
    if (task.kind === 'schedule') return void (await mirror(client, task.scheduleId));
    if (task.kind === 'cancel')
      return void (await client.workflow.getHandle(task.workflowId).cancel());
    if (task.kind === 'signal')
      return void (await client.workflow.getHandle(task.workflowId).signal(task.signal));
    await client.workflow.start(task.workflow, {
      workflowId: task.workflowId,
      taskQueue,
      args: [task.input],
      staticSummary: task.summary,
      typedSearchAttributes: attributesOf(task.attributes),
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
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
