import { invalidField } from '../../domain/shared/errors.ts';
import { OutboundError } from '../../platform/addressGuard.ts';
import type { GuardedHttp } from '../../platform/guardedHttp.ts';

/**
 * Refuses a URL in the body of a request to which nothing may be sent. Names are resolved and checked again at
 * each attempt. Error: `invalid_request` at `pointer`.
 */
export function checkUrlField(
  http: Pick<GuardedHttp, 'checkUrl'>,
  url: string,
  pointer: string,
): void {
  try {
    http.checkUrl(url);
  } catch (error) {
    if (error instanceof OutboundError)
      throw invalidField('body', pointer, error.code, error.message);
    throw error;
  }
}
