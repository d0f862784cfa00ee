import { formatDuration, formatNumberOf } from '../format.ts';

/** How often and after which delays a failed attempt is retried. */
export type RetryPolicy = {
  maxAttempts: number;
  initialIntervalSeconds: number;
  backoffCoefficient: number;
  maxIntervalSeconds: number;
  nonRetryableCodes: string[];
  intervalsSeconds?: number[];
  jitter?: number;
};

const MAX_DELAYS = 5;

/**
 * The policy of a job, of which `own` was set and the rest comes from its type. Delays that are listed
 * without a maximum are not shortened to that of the type.
 */
export const withDefaults = (
  defaults: Partial<RetryPolicy> | undefined,
  own: Partial<RetryPolicy>,
): Partial<RetryPolicy> => ({
  ...defaults,
  ...own,
  ...(own.intervalsSeconds &&
    own.maxIntervalSeconds === undefined && {
      maxIntervalSeconds: Math.max(defaults?.maxIntervalSeconds ?? 0, ...own.intervalsSeconds),
    }),
});

/** A retry policy in words: `4 attempts; delays 1 s, 2 s, 4 s.` */
export function describeRetries(policy: Partial<RetryPolicy>): string {
  const { maxAttempts = 1, initialIntervalSeconds = 1, backoffCoefficient = 2 } = policy;
  const { maxIntervalSeconds = Infinity, intervalsSeconds, jitter = 0 } = policy;
  if (maxAttempts <= 1) return 'One attempt, no retries.';
  const delays = Array.from({ length: Math.min(maxAttempts - 1, MAX_DELAYS) }, (_, index) => {
    const exponential = initialIntervalSeconds * backoffCoefficient ** index;
    const given = intervalsSeconds?.[Math.min(index, intervalsSeconds.length - 1)];
    return formatDuration(Math.min(given ?? exponential, maxIntervalSeconds) * 1_000);
  });
  const more = maxAttempts - 1 > delays.length ? ' …' : '';
  const extra = jitter > 0 ? `, each up to ${Math.round(jitter * 100)} % longer` : '';
  return `${formatNumberOf(maxAttempts, 'attempt')}; delays ${delays.join(', ')}${more}${extra}.`;
}
