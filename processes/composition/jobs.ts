import { createJobAttempts } from '../../services/jobs/attempts.ts';
import { createJobs } from '../../services/jobs/jobs.ts';
import { createMultiStepJobs } from '../../services/jobs/multiStep.ts';
import { createReconcile } from '../../services/jobs/reconcile.ts';
import type { DeliveryQueue } from '../../services/webhooks/deliveryQueue.ts';
import type { Core } from './core.ts';

/** Builds jobs. Attempts of deliveries start only with a free slot of `deliveryQueue`. */
export function composeJobs(core: Core, deliveryQueue: DeliveryQueue) {
  const jobAttempts = createJobAttempts({
    ...core,
    admissionChecks: { delivery: deliveryQueue.acquireSlot },
  });
  return {
    jobs: createJobs(core),
    jobAttempts,
    multiStepJobs: createMultiStepJobs({ ...core, jobAttempts }),
    reconcile: createReconcile({ ...core, jobAttempts }),
  };
}
