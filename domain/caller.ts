import type { Grant } from './scope.ts';

/** A claimed `Idempotency-Key`; the commit of the request marks it as done in its own transaction. */
export type IdempotencyClaim = {
  actorId: string;
  tenantId: string;
  key: string;
  /** Until when the claim holds; it also tells this claim from a later one of the same key. */
  leaseUntil: Date;
};

/** Someone who asks for something, and through what. */
export type Caller = {
  kind: 'gateway' | 'session' | 'anonymous' | 'system';
  actorId: string;
  /** Where new records of this caller stand. */
  tenantId: string;
  grants: readonly Grant[];
  requestId: string;
  /** Address of the peer, for the audit trail. */
  address: string | null;
  idempotency?: IdempotencyClaim;
};

/** The platform itself, for what no person asked for: a workflow's own steps, the reconciler. */
export const systemCaller = (tenantId: string, requestId: string): Caller => ({
  kind: 'system',
  actorId: 'system',
  tenantId,
  grants: [{ roleId: 'platform-admin', tenantId: 'platform' }],
  requestId,
  address: null,
});
