import type { Headers } from '@temporalio/common';
import type { WorkflowInterceptors } from '@temporalio/workflow';
import { TRACE_HEADER } from '../../../domain/dispatch/workflowIds.ts';

/**
 * Passes the trace that a run was started in to its activities and child workflows. A header changes no
 * decision of a workflow, so old runs replay; the workflow itself makes no spans.
 */
export const interceptors = (): WorkflowInterceptors => {
  let trace: Headers = {};
  const withTrace = <Input extends { readonly headers: Headers }>(input: Input): Input => ({
    ...input,
    headers: { ...input.headers, ...trace },
  });
  return {
    inbound: [
      {
        execute(input, next) {
          const sent = input.headers[TRACE_HEADER];
          if (sent) trace = { [TRACE_HEADER]: sent };
          return next(input);
        },
      },
    ],
    outbound: [
      {
        scheduleActivity: (input, next) => next(withTrace(input)),
        scheduleLocalActivity: (input, next) => next(withTrace(input)),
        startChildWorkflowExecution: (input, next) => next(withTrace(input)),
        continueAsNew: (input, next) => next(withTrace(input)),
      },
    ],
  };
};
