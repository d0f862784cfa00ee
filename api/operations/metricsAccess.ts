import type { Context } from 'koa';
import { LRUCache } from 'lru-cache';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { isBusyError } from '../../domain/shared/busy.ts';
import { HOUR_MS } from '../../domain/shared/durations.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { isOutage } from '../../domain/shared/outage.ts';
import type { Access } from '../../services/access/access.ts';
import { hashToken } from '../../services/auth/hashToken.ts';
import type { Readiness } from '../../services/shared/readiness.ts';
import type { ClientAddress } from '../middleware/clientAddress.ts';

type Deps = {
  access: Pick<Access, 'holds'>;
  readiness: Pick<Readiness, 'report'>;
  clientAddress: Pick<ClientAddress, 'addressOf'>;
  authenticate(ctx: Context): Promise<Pick<Caller, 'rights'>>;
  rememberedMs?: number;
};

/** How long a token that PostgreSQL has accepted reads the metrics while PostgreSQL cannot be asked. */
const REMEMBERED_MS = HOUR_MS;
const MAX_REMEMBERED = 100;

/** True when PostgreSQL has not answered, which says nothing about the token. */
const isUnanswered = (error: unknown): boolean =>
  isOutage(error) || (isBusyError(error) && error.code !== 'too_many_requests');

/**
 * Returns a check whether a request has an API token that may read the metrics. An outage of PostgreSQL is seen in
 * the metrics, so that it must not hide them: a token is remembered, as a hash with the address of its client.
 */
export function createMayReadMetrics({
  access,
  readiness,
  clientAddress,
  authenticate,
  rememberedMs = REMEMBERED_MS,
}: Deps) {
  const accepted = new LRUCache<string, true>({ max: MAX_REMEMBERED, ttl: rememberedMs });
  const isDatabaseAway = () => readiness.report().components.postgres === 'unavailable';

  return async (ctx: Context): Promise<boolean> => {
    const header = ctx.get('authorization');
    if (!/^Bearer hf[tv]_/i.test(header)) return false;
    const key = `${hashToken(header).toString('base64')} ${clientAddress.addressOf(ctx)}`;
    // Without asking: a server that does not answer would take longer than monitoring waits.
    if (accepted.has(key) && isDatabaseAway()) return true;
    try {
      const { rights } = await authenticate(ctx);
      const mayRead = access.holds(rights, 'metrics:read', { tenantId: PLATFORM });
      if (mayRead) accepted.set(key, true);
      else accepted.delete(key);
      return mayRead;
    } catch (error) {
      if (isUnanswered(error) && accepted.has(key)) return true;
      if (!(error instanceof AppError) || isBusyError(error)) throw error;
      accepted.delete(key);
      return false;
    }
  };
}
