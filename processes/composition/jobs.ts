import { createAttemptWatch } from '../../services/jobs/attemptWatch.ts';
import { createJobAttempts } from '../../services/jobs/attempts.ts';
import { createCancelRevoked } from '../../services/jobs/cancelRevoked.ts';
import { createImmediateAttempts } from '../../services/jobs/immediateAttempts.ts';
import { createJobs } from '../../services/jobs/jobs.ts';
import { createJobQueue } from '../../services/jobs/queue.ts';
import { createMultiStepJobs } from '../../services/jobs/multiStep.ts';
import { createJobSlots } from '../../services/jobs/slots.ts';
import { createReconcile } from '../../services/jobs/reconcile.ts';
import { createRecordTogether } from '../../services/jobs/recordTogether.ts';
import { createSharedRuns } from '../../services/jobs/sharedRuns.ts';
import { createStopSignal } from '../../services/jobs/stopSignal.ts';
import { createUnknownTypes } from '../../services/jobs/unknownTypes.ts';
import { createWorkerPresence } from '../../services/jobs/workerPresence.ts';
import { createNoteLostRunner } from '../../services/runners/lostAttempt.ts';
import type { DeliveryQueue } from '../../services/webhooks/deliveryQueue.ts';
import type { Core } from './core.ts';

/** Builds jobs. Attempts of deliveries start only with a free slot of `deliveryQueue`. */
export function composeJobs(core: Core, deliveryQueue: DeliveryQueue) {
  const jobSlots = createJobSlots(core);
  const unknownTypes = createUnknownTypes(core);
  const attemptWatch = createAttemptWatch({ ...core, ...core.config });
  const jobAttempts = createJobAttempts({
    ...core,
    jobSlots,
    unknownTypes,
    attemptWatch,
    admissionChecks: { delivery: deliveryQueue.acquireSlot },
  });
  const recordTogether = createRecordTogether(core);
  const sharedRuns = createSharedRuns({ ...core, jobAttempts, recordTogether, unknownTypes });
  return {
    jobs: createJobs({ ...core, jobQueue: createJobQueue(core) }),
    attemptWatch,
    jobAttempts,
    sharedRuns,
    immediateAttempts: createImmediateAttempts({
      ...core,
      ...core.config,
      jobAttempts,
      sharedRuns,
      recordTogether,
    }),
    jobSlots,
    unknownTypes,
    stopSignal: createStopSignal(core.config),
    workerPresence: createWorkerPresence(core),
    multiStepJobs: createMultiStepJobs({
      ...core,
      jobAttempts,
      attemptWatch,
      jobSlots,
      unknownTypes,
    }),
    reconcile: createReconcile({
      ...core,
      jobAttempts,
      cancelRevoked: createCancelRevoked(core),
      unknownTypes,
      noteLostRunner: createNoteLostRunner(core),
    }),
  };
}
