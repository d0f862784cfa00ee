import type { Grants } from '../../services/access/grants.ts';
import type { SessionTokens, Sessions } from '../../services/auth/sessions.ts';
import type {
  AssignmentRecord,
  MappingRecord,
  SessionRecord,
  UserRecord,
} from './schemas.ts';

type Grant = Awaited<ReturnType<Grants['read']>>;
type Session = Awaited<ReturnType<Sessions['current']>>['session'];
type User = SessionTokens['user'];

const grantPart = ({
  id,
  roleId,
  level,
  tenantId,
  siteId,
  deviceId,
  createdBy,
  createdAt,
}: Grant) => ({
  id,
  roleId,
  level,
  tenantId,
  siteId,
  deviceId,
  createdBy,
  createdAt: createdAt.toISOString(),
});

export const assignmentView = (grant: Grant): AssignmentRecord => ({
  ...grantPart(grant),
  userId: grant.userId ?? '',
});

export const mappingView = (grant: Grant): MappingRecord => ({
  ...grantPart(grant),
  providerId: grant.providerId ?? '',
  externalGroup: grant.externalGroup ?? '',
});

export const userView = (user: User): UserRecord => ({
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

/** `currentId` is the session that asks. */
export const sessionView = (session: Session, currentId: string | undefined): SessionRecord => ({
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
