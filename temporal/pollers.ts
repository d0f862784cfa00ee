/**
 * Polls cost the server: their number follows what the server says about waiting tasks. Measured against fixed numbers
 * (docs/benchmarks.md).
 */
export const POLLERS = { type: 'autoscaling', minimum: 1, initial: 5, maximum: 100 } as const;
