import { Type, type Static } from 'typebox';

/** How often and how soon a failed attempt is tried again. Everything is bounded. */
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
      Type.String({ minLength: 1, maxLength: 64, pattern: '^[a-z0-9_]+$' }),
      {
        maxItems: 50,
        description: 'Error codes after which no further attempt is made.',
      },
    ),
    intervalsSeconds: Type.Optional(
      Type.Array(Type.Number({ minimum: 0.05, maximum: 86_400 }), {
        minItems: 1,
        maxItems: 100,
        description: 'The waits one by one, the last for all that follow, instead of growing ones.',
      }),
    ),
    jitter: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description: 'Up to this part of a wait is added to it at random.',
      }),
    ),
  },
  { additionalProperties: false },
);
export type RetryPolicy = Static<typeof RetryPolicy>;

export const DEFAULT_RETRY: RetryPolicy = {
  maxAttempts: 3,
  initialIntervalSeconds: 1,
  backoffCoefficient: 2,
  maxIntervalSeconds: 60,
  nonRetryableCodes: [],
};

/** Milliseconds to wait after attempt number `attempt` (1 is the first) has failed. `chance` is from 0 to 1. */
export function retryDelayMs(
  policy: RetryPolicy,
  attempt: number,
  chance: number = Math.random(),
): number {
  const { intervalsSeconds, jitter = 0 } = policy;
  const grown = policy.initialIntervalSeconds * policy.backoffCoefficient ** (attempt - 1);
  const seconds = Math.min(
    intervalsSeconds?.[Math.min(attempt, intervalsSeconds.length) - 1] ?? grown,
    policy.maxIntervalSeconds,
  );
  return Math.round(seconds * (1 + jitter * chance) * 1_000);
}

/** True when another attempt may follow the failure `code` of attempt number `attempt`. */
export const mayRetry = (policy: RetryPolicy, attempt: number, code: string): boolean =>
  attempt < policy.maxAttempts && !policy.nonRetryableCodes.includes(code);
