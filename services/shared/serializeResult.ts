import { JobFailure } from '../../domain/jobs/jobType.ts';
import { MAX_RESULT_BYTES } from '../../domain/jobs/jobs.ts';
import { isDeeperThan, MAX_DEPTH } from '../../platform/jsonDepth.ts';

/** Most levels of a result, wherever it is from: runners send it inside of the body of a request. */
const MAX_RESULT_DEPTH = MAX_DEPTH - 1;

/** Error: `JobFailure('invalid_result')`, before recursive code reads a result that is nested too deep. */
export function assertResultDepth(result: object): void {
  if (!isDeeperThan(MAX_RESULT_DEPTH, result)) return;
  throw new JobFailure(
    'invalid_result',
    `The result is nested deeper than ${MAX_RESULT_DEPTH} levels`,
    { retryable: false },
  );
}

/** A result as JSON text. Errors: `JobFailure` with `invalid_result` or `result_too_large`. */
export function serializeResult(result: object): string {
  assertResultDepth(result);
  const json = JSON.stringify(result);
  if (Buffer.byteLength(json) <= MAX_RESULT_BYTES) return json;
  throw new JobFailure('result_too_large', `The result has more than ${MAX_RESULT_BYTES} bytes`, {
    retryable: false,
  });
}
