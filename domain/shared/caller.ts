import { BUILT_IN_ROLES } from '../access/roles.ts';
import { grantAtTenant, NO_RIGHTS, PLATFORM, type Rights } from '../access/scope.ts';

/**
 * A claimed `Idempotency-Key`. The commit of the request marks it as done, in the same transaction.
 */
export type IdempotencyClaim = {
  actorId: string;
  tenantId: string;
  key: string;
  /** When the claim expires. It also distinguishes this claim from a later one of the same key. */
  leaseUntil: Date;
};

/** The sender of a request, and how it was authenticated. */
export type Caller = {
  kind: 'gateway' | 'session' | 'token' | 'anonymous' | 'system';
  /** The id of a user, or the actor id from the gateway. */
  actorId: string;
  /** The tenant of records that this caller creates. */
  tenantId: string;
  rights: Rights;
  /** The roles that a request with a token narrows its rights to. */
  roleIds?: readonly string[];
  /** The session, if the caller signed in. */
  session?: { id: string; mustChangePassword: boolean };
  /** The API token, if the request has one. */
  token?: { id: string; readOnly: boolean };
  /** The token of the request is that of runners: it has no rights, and reaches only their routes. */
  runner?: { tokenId: string; pools: readonly string[] };
  requestId: string;
  /** Network address of the client, for the audit log. */
  address: string | null;
  idempotency?: IdempotencyClaim;
};

/**
 * The principal that a job acts for. The rights of a user are read when the job runs, cut by the API
 * token of the original request, and narrowed to `roleIds` if the request was. For callers
 * authenticated by a gateway, the roles sent with the original request are kept.
 */
export type Authority =
  | { actorId: string; userId: string; roleIds?: readonly string[]; tokenId?: string }
  | { actorId: string; grants: readonly { roleId: string; tenantId: string }[] };

/** True for a caller with an account: signed in, or with an API token. */
export const hasAccount = ({ kind }: Pick<Caller, 'kind'>): boolean =>
  kind === 'session' || kind === 'token';

/**
 * How an entry of the audit log at a tenant says that a caller was authenticated. A gateway that named
 * another tenant is shown with it: an actor id from a gateway identifies a person within its tenant.
 */
export const viaOf = (
  { kind, token, tenantId }: Pick<Caller, 'kind' | 'token' | 'tenantId'>,
  entryTenantId: string,
): string => {
  if (token) return `token:${token.id}`;
  return kind === 'gateway' && tenantId !== entryTenantId ? `gateway:${tenantId}` : kind;
};

/**
 * Identifies a person as the author of what is stored: the id of an account, or the actor id from a
 * gateway with the tenant that the gateway named. The same actor id at another tenant is another
 * person.
 */
export const authorKeyOf = ({
  kind,
  actorId,
  tenantId,
}: Pick<Caller, 'kind' | 'actorId' | 'tenantId'>): string =>
  hasAccount({ kind }) ? actorId : `${tenantId}/${actorId}`;

/**
 * The `authorKeyOf` of the caller whose authority is stored. All grants from a gateway are at the
 * tenant that it named.
 */
export const storedAuthorKeyOf = (authority: Authority): string =>
  'userId' in authority
    ? authority.userId
    : `${authority.grants[0]?.tenantId ?? ''}/${authority.actorId}`;

/** Between the id of an account and that of its API token; ids have neither it nor the `/` of a gateway's key. */
const OF_TOKEN = '#';

const withToken = (authorKey: string, tokenId: string | undefined): string =>
  tokenId === undefined ? authorKey : `${authorKey}${OF_TOKEN}${tokenId}`;

/** Who has written what is stored: the `authorKeyOf` a caller, with the API token if the request had one. */
export const writerKeyOf = (
  caller: Pick<Caller, 'kind' | 'actorId' | 'tenantId' | 'token'>,
): string => withToken(authorKeyOf(caller), caller.token?.id);

/** The `writerKeyOf` the caller whose authority is stored. */
export const storedWriterKeyOf = (authority: Authority): string =>
  withToken(storedAuthorKeyOf(authority), 'userId' in authority ? authority.tokenId : undefined);

/**
 * True if the caller has written what is stored with this key: a person also with their tokens, but a token
 * only what it has sent itself, since its owner may do more than it may.
 */
export function hasWritten(caller: Caller, writerKey: string | null): boolean {
  const own = writerKeyOf(caller);
  return (
    writerKey === own ||
    (hasAccount(caller) && !caller.token && writerKey?.startsWith(`${own}${OF_TOKEN}`) === true)
  );
}

const adminRole = BUILT_IN_ROLES.get('platform-admin');
const SYSTEM_RIGHTS: Rights = { grants: adminRole ? [grantAtTenant(adminRole, PLATFORM)] : [] };

/**
 * The platform itself, for changes that no person requested: workflow steps and the reconcilers.
 */
export const systemCaller = (tenantId: string, requestId: string): Caller => ({
  kind: 'system',
  actorId: 'system',
  tenantId,
  rights: SYSTEM_RIGHTS,
  requestId,
  address: null,
});

/** Who made a change, as the audit log and events show it. */
export type Actor = Pick<Caller, 'kind' | 'actorId' | 'tenantId' | 'address' | 'token'>;

/**
 * The actor of changes that the owner of a record in another tenant causes: readers of the changed
 * record learn that it was another tenant, but neither who nor from where.
 */
export const OTHER_TENANT: Actor = {
  kind: 'system',
  actorId: 'other-tenant',
  tenantId: PLATFORM,
  address: null,
};

/** An unauthenticated caller. */
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
