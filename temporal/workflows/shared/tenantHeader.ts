import { defaultPayloadConverter } from '@temporalio/common';
import { workflowInfo, type WorkflowInterceptors } from '@temporalio/workflow';

/** The header with which a local activity learns whose work it does. */
export const TENANT_HEADER = 'holdfast-tenant';

/**
 * Sends the tenant of the run to its local activities: unlike other activities, they do not know
 * the fairness key. A header changes no decision of a workflow, so old runs replay.
 */
export const interceptors = (): WorkflowInterceptors => ({
  outbound: [
    {
      scheduleLocalActivity(input, next) {
        const tenant = workflowInfo().priority?.fairnessKey ?? '';
        const header = defaultPayloadConverter.toPayload(tenant);
        return next({ ...input, headers: { ...input.headers, [TENANT_HEADER]: header } });
      },
    },
  ],
});
