import { createMasker, type Masker } from '../shared/masker.ts';
import { JobFailure } from './jobType.ts';

/**
 * A masker of all secrets of an attempt: named ones, and those of its payload. An attempt whose secrets
 * cannot all be masked is not made, because a sender could fill the masker and read the named ones. Error:
 * `JobFailure('secrets_not_maskable')`.
 */
export function attemptMasker(
  secrets: { named: readonly string[]; ofPayload: readonly string[] },
  options?: { minChars?: number },
): Masker {
  const masker = createMasker([], options);
  if (masker.addAll([...secrets.named, ...secrets.ofPayload])) return masker;
  throw new JobFailure(
    'secrets_not_maskable',
    'The secrets of the attempt cannot all be masked: there are too many, they have too many lines, or one is too long',
    { retryable: false },
  );
}
