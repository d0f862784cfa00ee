import { PLATFORM } from '../access/scope.ts';

/** The queued jobs of a tenant. */
export type TenantQueue = { queued: number; oldestAt: Date };

export type QueueState = ReadonlyMap<string, TenantQueue>;

/** How many jobs may wait: of one tenant, and of all together. */
export type QueueLimits = { tenant: number; all: number };

/** Where a queued job is in the queue of its tenant, from 1 on, and for how long the oldest one waits. */
export type QueuePosition = { position: number; oldestSeconds: number };

/** Positions are counted up to this one. */
export const MAX_POSITION = 1_001;

export const queuePosition = (ahead: number, oldestAt: Date, now: number): QueuePosition => ({
  position: Math.min(ahead + 1, MAX_POSITION),
  oldestSeconds: Math.max(Math.floor((now - oldestAt.getTime()) / 1_000), 0),
});

/**
 * Why a tenant may not add a job now. `tenant`: it has as many as one may have. `all`: all tenants
 * together have as many as may wait, and this one has its share of them. So the backlog of one tenant
 * is never the reason to refuse another that has less than its share.
 */
export function queueRefusal(
  state: QueueState,
  tenantId: string,
  limits: QueueLimits,
): 'tenant' | 'all' | undefined {
  const own = state.get(tenantId)?.queued ?? 0;
  if (tenantId !== PLATFORM && own >= limits.tenant) return 'tenant';
  const total = [...state.values()].reduce((sum, { queued }) => sum + queued, 0);
  if (total < limits.all) return undefined;
  const tenants = state.size + (state.has(tenantId) ? 0 : 1);
  return own >= limits.all / tenants ? 'all' : undefined;
}

const RETRY_AFTER_SECONDS = { min: 2, max: 60 };

/** The older the oldest job of a queue, the longer it takes until there is space in it. */
export const queueRetryAfter = (oldestAt: Date | undefined, now: number): number => {
  const ageSeconds = oldestAt ? (now - oldestAt.getTime()) / 1_000 : 0;
  const { min, max } = RETRY_AFTER_SECONDS;
  return Math.min(Math.max(Math.ceil(ageSeconds / 10), min), max);
};
