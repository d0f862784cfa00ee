/**
 * Options of short local activities that update a record. Outages of the database are retried
 * without limit.
 */
export const LOCAL_STEP_OPTIONS = {
  startToCloseTimeout: '5 seconds',
  localRetryThreshold: '5 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '30 seconds' },
} as const;
