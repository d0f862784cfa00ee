import { WorkflowNotFoundError } from '@temporalio/client';
import type { DescribeWorkflow, WorkflowState } from '../domain/dispatch/tasks.ts';
import type { TemporalConnection } from './connection.ts';

const DEADLINE_MS = 5_000;

type RunStatus = Extract<WorkflowState, { found: true }>['status'];

const STATUS: Readonly<Record<string, RunStatus>> = {
  COMPLETED: 'completed',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
  TERMINATED: 'terminated',
  TIMED_OUT: 'timedOut',
};

/** Reads the state of a workflow. Paused and continued workflows are running. */
export const createDescribeWorkflow =
  (temporal: TemporalConnection): DescribeWorkflow =>
  async (workflowId) => {
    try {
      const { status, runId } = await temporal.call(DEADLINE_MS, (client) =>
        client.workflow.getHandle(workflowId).describe(),
      );
      return { found: true, status: STATUS[status.name] ?? 'running', runId };
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return { found: false };
      throw error;
    }
  };
