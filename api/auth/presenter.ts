import { passwordEndOf } from '../../domain/auth/oneTimePasswords.ts';
import type { SessionDetails, UserDetails } from '../../domain/auth/users.ts';
import type { SessionRecord, UserRecord } from './schemas.ts';

export const userView = (user: UserDetails): UserRecord => ({
  id: user.id,
  username: user.username,
  displayName: user.displayName,
  email: user.email,
  providerId: user.providerId,
  tenantId: user.tenantId,
  enabled: user.enabled,
  mustChangePassword: user.mustChangePassword,
  passwordExpiresAt: passwordEndOf(user)?.toISOString() ?? null,
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
