import type { Context } from 'koa';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Slots } from '../../platform/slots.ts';
import { REPLAYED } from './idempotentRequests.ts';
import type { Route } from './route.ts';

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
  unreadBytes: Slots,
  { allowsReadOnly }: Route,
  ctx: Context,
  caller: Caller,
  bytes: number,
): void {
  if (ctx.res.closed || caller.kind === 'anonymous') return;
  const canRepeat = ctx.method === 'GET' || allowsReadOnly === true || ctx.res.hasHeader(REPLAYED);
  const take = canRepeat ? unreadBytes.takeNow : unreadBytes.takeAnyway;
  ctx.res.once('close', take(caller, bytes));
}
