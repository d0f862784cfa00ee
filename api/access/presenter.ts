import type { SessionDetails, UserDetails } from '../../domain/auth/users.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { AssignmentRecord, MappingRecord, SessionRecord, UserRecord } from './schemas.ts';

/** A record of the API before its times are converted to text. */
type WithDates<T, K extends keyof T> = Omit<T, K> & Record<K, Date>;

type ScopedGrant = WithDates<Omit<AssignmentRecord, 'userId'>, 'createdAt'>;
type Assignment = ScopedGrant & { userId: string | null };
type Mapping = ScopedGrant & { providerId: string | null; externalGroup: string | null };
const grantFields = ({
  id,
  roleId,
  level,
  tenantId,
  siteId,
  deviceId,
  createdBy,
  createdAt,
}: ScopedGrant) => ({
  id,
  roleId,
  level,
  tenantId,
  siteId,
  deviceId,
  createdBy,
  createdAt: createdAt.toISOString(),
});

export const assignmentView = (grant: Assignment): AssignmentRecord => ({
  ...grantFields(grant),
  userId: assertDefined(grant.userId, 'assignment.userId'),
});

export const mappingView = (grant: Mapping): MappingRecord => ({
  ...grantFields(grant),
  providerId: assertDefined(grant.providerId, 'mapping.providerId'),
  externalGroup: assertDefined(grant.externalGroup, 'mapping.externalGroup'),
});

export const userView = (user: UserDetails): UserRecord => ({
  id: user.id,
  username: user.username,
  displayName: user.displayName,
  email: user.email,
  providerId: user.providerId,
  tenantId: user.tenantId,
  enabled: user.enabled,
  mustChangePassword: user.mustChangePassword,
  groups: user.externalGroups,
  lastLoginAt: user.lastLoginAt?.toISOString() ?? null,
  createdAt: user.createdAt.toISOString(),
  updatedAt: user.updatedAt.toISOString(),
  version: user.version,
});

/** `currentId` is the id of the session that made the request. */
export const sessionView = (
  session: SessionDetails,
  currentId: string | undefined,
): SessionRecord => ({
  id: session.id,
  tenantId: session.tenantId,
  current: session.id === currentId,
  address: session.address,
  userAgent: session.userAgent,
  createdAt: session.createdAt.toISOString(),
  refreshedAt: session.refreshedAt.toISOString(),
  idleExpiresAt: session.idleExpiresAt.toISOString(),
  absoluteExpiresAt: session.absoluteExpiresAt.toISOString(),
});
