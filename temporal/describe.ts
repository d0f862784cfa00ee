import { WorkflowNotFoundError } from '@temporalio/client';
import type { InspectWorkflow, WorkflowState } from './contracts.ts';
import type { TemporalLink } from './connection.ts';

const DEADLINE_MS = 5_000;

type RunStatus = Extract<WorkflowState, { found: true }>['status'];

const STATUS: Readonly<Record<string, RunStatus>> = {
  COMPLETED: 'completed',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
  TERMINATED: 'terminated',
  TIMED_OUT: 'timedOut',
};

/** Asks Temporal about a run. One that is paused or was continued still runs. */
export const createInspect =
  (link: TemporalLink): InspectWorkflow =>
  async (workflowId) => {
    try {
      const { status } = await link.call(DEADLINE_MS, (client) =>
        client.workflow.getHandle(workflowId).describe(),
      );
      return { found: true, status: STATUS[status.name] ?? 'running' };
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return { found: false };
      throw error;
    }
  };
