import { Type, type Static } from 'typebox';

/** How often and after which delays a failed attempt is retried. */
export const RetryPolicy = Type.Object(
  {
    maxAttempts: Type.Integer({
      minimum: 1,
      maximum: 100,
      description: 'All attempts, the first included.',
    }),
    initialIntervalSeconds: Type.Number({ minimum: 0.05, maximum: 86_400 }),
    backoffCoefficient: Type.Number({ minimum: 1, maximum: 10 }),
    maxIntervalSeconds: Type.Number({ minimum: 0.05, maximum: 86_400 }),
    nonRetryableCodes: Type.Array(
      Type.String({
        minLength: 1,
        maxLength: 64,
        pattern: '^[a-z0-9_]*$',
        'x-rule': 'must be an error code: a to z, 0 to 9 and underscores',
      }),
      {
        maxItems: 50,
        description: 'Error codes after which no further attempt is made.',
      },
    ),
    intervalsSeconds: Type.Optional(
      Type.Array(Type.Number({ minimum: 0.05, maximum: 86_400 }), {
        minItems: 1,
        maxItems: 100,
        description:
          'Delays between attempts, in order; the last one repeats. Replaces the exponential delays. Where they are given, `maxIntervalSeconds` shortens them only if it is given with them.',
      }),
    ),
    jitter: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description:
          'Largest random part that is added to each delay; 0.1 adds up to ten per cent.',
      }),
    ),
  },
  { title: 'RetryPolicy', additionalProperties: false },
);
export type RetryPolicy = Static<typeof RetryPolicy>;

export const DEFAULT_RETRY: RetryPolicy = {
  maxAttempts: 3,
  initialIntervalSeconds: 1,
  backoffCoefficient: 2,
  maxIntervalSeconds: 60,
  nonRetryableCodes: [],
};

/**
 * A policy in which `change` replaces fields. Delays that are listed without a maximum are not shortened
 * to the maximum of `policy`.
 */
export function withPolicy(policy: RetryPolicy, change: Partial<RetryPolicy> = {}): RetryPolicy {
  const { intervalsSeconds = [], maxIntervalSeconds } = change;
  return {
    ...policy,
    ...change,
    maxIntervalSeconds:
      maxIntervalSeconds ?? Math.max(policy.maxIntervalSeconds, ...intervalsSeconds),
  };
}

/**
 * Milliseconds between the failure of attempt number `attempt` (1 is the first) and the next
 * attempt. `random` is from 0 to 1 and scales the jitter.
 */
export function retryDelayMs(
  policy: RetryPolicy,
  attempt: number,
  random: number = Math.random(),
): number {
  const { intervalsSeconds, jitter = 0 } = policy;
  const exponentialSeconds =
    policy.initialIntervalSeconds * policy.backoffCoefficient ** (attempt - 1);
  const seconds = Math.min(
    intervalsSeconds?.[Math.min(attempt, intervalsSeconds.length) - 1] ?? exponentialSeconds,
    policy.maxIntervalSeconds,
  );
  return Math.round(seconds * (1 + jitter * random) * 1_000);
}

/**
 * How many attempts of a job may end because their worker was stopped in order, without being counted: a
 * rolling restart must not use up the attempts of a long job, and must not repeat it for ever either.
 */
export const MAX_FREE_INTERRUPTIONS = 10;

/** The attempts that the retry policy counts. Numbers of attempts count all. */
export const countedAttempts = ({
  attempts,
  interruptions,
}: {
  attempts: number;
  interruptions: number;
}): number => attempts - Math.min(interruptions, MAX_FREE_INTERRUPTIONS);

/** The number of the last attempt that the retry policy allows, as it is now. */
export const lastAttemptOf = (job: {
  attempts: number;
  interruptions: number;
  retryPolicy: RetryPolicy;
}): number => job.retryPolicy.maxAttempts + job.attempts - countedAttempts(job);

/** True if an interrupted attempt may be repeated: a job with one attempt must not be done twice. */
export const repeatsInterrupted = ({ maxAttempts }: RetryPolicy): boolean => maxAttempts > 1;

/**
 * True when the policy allows another attempt after attempt number `attempt` failed with `code`.
 */
export const mayRetry = (policy: RetryPolicy, attempt: number, code: string): boolean =>
  attempt < policy.maxAttempts && !policy.nonRetryableCodes.includes(code);
