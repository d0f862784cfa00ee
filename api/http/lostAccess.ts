import type { WatchAccess } from '../../services/access/watchAccess.ts';
import { isBusyError } from '../../domain/shared/busy.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { authorizeCaller, type AuthorizeDeps } from './authorize.ts';
import { encodeError, EVENT_STREAM } from './eventStream.ts';
import type { HttpResponse } from './response.ts';
import { permissionsOf, type Exchange, type HandlerRequest } from './route.ts';

export type LostAccessDeps = AuthorizeDeps & {
  watchAccess: WatchAccess;
  /**
   * Interval of the access check while a stream is open, in milliseconds; 10 s by default. Changes that a
   * process commits are checked immediately; what has expired, and lost notifications, are not.
   */
  accessRecheckMs?: number;
};

const ACCESS_RECHECK_MS = 10_000;

/** Ends a stream, incompletely, when its caller loses the session or the permission. */
export function endStreamOnLostAccess(
  exchange: Exchange<LostAccessDeps>,
  request: HandlerRequest,
  { contentType, source, recheck: onRechecked }: NonNullable<HttpResponse['stream']>,
  ended: AbortController,
): void {
  const { route, deps, ctx } = exchange;
  const end = (error: AppError) => {
    if (contentType === EVENT_STREAM && ctx.res.headersSent) {
      source.unpipe(ctx.res);
      ctx.res.end(encodeError(error, request.caller.requestId));
    }
    // Before the first byte the client can still get the status.
    source.destroy(ctx.res.headersSent ? undefined : error);
    // What the source waits for must not keep its slot.
    ended.abort();
  };
  const recheck = async () => {
    try {
      const caller = await authorizeCaller(exchange);
      if (route.keepsScope)
        deps.access.assertSameScope(caller, request.caller, ...permissionsOf(route));
      await route.recheckAccess?.({ ...request, caller });
      onRechecked?.(caller);
    } catch (error) {
      // A busy server is no reason to end what it has allowed.
      if (error instanceof AppError && !isBusyError(error)) end(error);
    }
  };
  const timer = setInterval(() => void recheck(), deps.accessRecheckMs ?? ACCESS_RECHECK_MS);
  const unwatch = deps.watchAccess(request.caller, recheck);
  source.once('close', () => {
    clearInterval(timer);
    unwatch();
  });
}
