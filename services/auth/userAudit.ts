import { recordOf } from '../../db/core/recordAudit.ts';
import type { User } from '../../db/models/User.ts';

/** Audit entries and events about users, without password hashes. */
export const userRecord = recordOf<User, 'auth.user.created' | 'auth.user.updated'>({
  type: 'user',
  auditView: ({ username, displayName, email, providerId, tenantId, enabled }) => ({
    username,
    displayName,
    email,
    providerId,
    tenantId,
    enabled,
  }),
  events: { created: 'auth.user.created', updated: 'auth.user.updated' },
  eventData: ({ id, providerId, tenantId, enabled }) => ({
    userId: id,
    providerId,
    tenantId,
    enabled,
  }),
});
