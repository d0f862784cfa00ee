import { JobFailure } from '../../../domain/jobs/jobType.ts';
import { OutboundError } from '../../../platform/addressGuard.ts';
import type { GuardedHttp } from '../../../platform/guardedHttp.ts';
import type { HttpRequest, HttpResponse, JobTools } from './jobType.ts';

const TIMEOUT_MS = { default: 15_000, max: 120_000 };
const BODY_BYTES = { default: 1_048_576, max: 16 * 1_048_576 };

const bounded = (value: number | undefined, limit: { default: number; max: number }): number =>
  Math.max(1, Math.min(value ?? limit.default, limit.max));

/** Requests of a module: through the guarded client, and no longer than its attempt. */
export const createHttpTool = (
  http: Pick<GuardedHttp, 'request'>,
  signal: AbortSignal,
): JobTools['http'] => ({
  async request({ url, method = 'GET', headers = {}, body, ...limits }: HttpRequest) {
    try {
      const answer: HttpResponse = await http.request({
        url,
        method,
        headers,
        ...(body !== undefined && { body }),
        timeoutMs: bounded(limits.timeoutMs, TIMEOUT_MS),
        maxBodyBytes: bounded(limits.maxBodyBytes, BODY_BYTES),
        signal,
      });
      return answer;
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error;
      throw new JobFailure(error.code, error.message, { retryable: error.transient });
    }
  },
});
