import type { Caller } from '../../domain/shared/caller.ts';
import type { Slots } from '../../platform/slots.ts';
import { REPLAYED } from './idempotentRequests.ts';
import type { Exchange, Route } from './route.ts';

export type UnreadDeps = {
  /** Bytes of large responses that their callers have not read yet. */
  unreadBytes: Slots;
};

/**
 * True for a write whose response can be large. A runner must report, and strangers get short texts and documents
 * that all share, whatever they have not read.
 */
export const mayAnswerMuch = ({ method, runner, public: isPublic, responses }: Route): boolean =>
  method !== 'GET' &&
  runner === undefined &&
  isPublic === undefined &&
  Object.values(responses).some((schema) => schema !== null);

/**
 * Counts the bytes of a large response until its client has read it, or has closed the connection. Error:
 * `too_many_requests` if the client has not read too much already. The response of a write is not refused.
 */
export function holdUnread(
  { route: { allowsReadOnly }, deps: { unreadBytes }, ctx }: Exchange<UnreadDeps>,
  caller: Caller,
  bytes: number,
): void {
  if (ctx.res.closed || caller.kind === 'anonymous') return;
  const canRepeat = ctx.method === 'GET' || allowsReadOnly === true || ctx.res.hasHeader(REPLAYED);
  const take = canRepeat ? unreadBytes.takeNow : unreadBytes.takeAnyway;
  ctx.res.once('close', take(caller, bytes));
}
