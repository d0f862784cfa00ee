import { BUILT_IN_ROLES } from '../access/roles.ts';
import { grantAtTenant, NO_RIGHTS, PLATFORM, type Rights } from '../access/scope.ts';

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
  /** A user's id, or what the gateway says. */
  actorId: string;
  /** Where new records of this caller stand. */
  tenantId: string;
  rights: Rights;
  /** The session of a caller who has one. */
  session?: { id: string; mustChangePassword: boolean };
  requestId: string;
  /** Address of the peer, for the audit trail. */
  address: string | null;
  idempotency?: IdempotencyClaim;
};

/**
 * Who a job acts for. Of a user the id is enough: what they may do is looked up when the job runs. A gateway's
 * word holds for the job as it was given.
 */
export type Authority =
  | { actorId: string; userId: string }
  | { actorId: string; grants: readonly { roleId: string; tenantId: string }[] };

const adminRole = BUILT_IN_ROLES.get('platform-admin');
const SYSTEM_RIGHTS: Rights = { grants: adminRole ? [grantAtTenant(adminRole, PLATFORM)] : [] };

/** The platform itself, for what no person asked for: a workflow's own steps, the reconciler. */
export const systemCaller = (tenantId: string, requestId: string): Caller => ({
  kind: 'system',
  actorId: 'system',
  tenantId,
  rights: SYSTEM_RIGHTS,
  requestId,
  address: null,
});

/** Somebody of whom nothing is known but where the request came from. */
export const anonymousCaller = ({
  requestId,
  address,
}: Pick<Caller, 'requestId' | 'address'>): Caller => ({
  kind: 'anonymous',
  actorId: 'anonymous',
  tenantId: PLATFORM,
  rights: NO_RIGHTS,
  requestId,
  address,
});
