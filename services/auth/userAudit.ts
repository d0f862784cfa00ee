import { recordOf } from '../../db/core/recordAudit.ts';
import type { User } from '../../db/models/User.ts';

type UserEvent = 'auth.user.created' | 'auth.user.updated';

const EVENTS = { created: 'auth.user.created', updated: 'auth.user.updated' } as const;

const auditView = ({ username, displayName, email, providerId, tenantId, enabled }: User) => ({
  username,
  displayName,
  email,
  providerId,
  tenantId,
  enabled,
});

const eventData = ({ id, providerId, tenantId, enabled }: User) => ({
  userId: id,
  providerId,
  tenantId,
  enabled,
});

/** Audit entries and events about users, without password hashes. */
export const userRecord = recordOf<User, UserEvent>({
  type: 'user',
  auditView,
  events: EVENTS,
  eventData,
});

/** Audit entries and events about service accounts, which are users. */
export const serviceAccountRecord = recordOf<User, UserEvent>({
  type: 'user',
  auditView: (user) => ({ ...auditView(user), ownerId: user.ownerId }),
  events: EVENTS,
  eventData,
});
