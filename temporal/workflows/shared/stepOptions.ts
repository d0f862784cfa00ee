/** Short steps that a run takes in its record. A database that is away is asked again for as long as the run lives. */
export const STEP = {
  startToCloseTimeout: '5 seconds',
  localRetryThreshold: '5 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '30 seconds' },
} as const;
