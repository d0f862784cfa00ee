import type { Work } from '../../db/core/commit.ts';
import { recordOf } from '../../db/core/recordAudit.ts';
import type { User } from '../../db/models/User.ts';

type UserEvent = 'auth.user.created' | 'auth.user.updated';

const EVENTS = { created: 'auth.user.created', updated: 'auth.user.updated' } as const;

type Account = Pick<
  User,
  'id' | 'username' | 'displayName' | 'email' | 'providerId' | 'tenantId' | 'enabled' | 'ownerId'
>;

const auditView = ({ username, displayName, email, providerId, tenantId, enabled }: Account) => ({
  username,
  displayName,
  email,
  providerId,
  tenantId,
  enabled,
});

const eventData = ({ id, providerId, tenantId, enabled }: Account) => ({
  userId: id,
  providerId,
  tenantId,
  enabled,
});

/** Audit entries and events about users, without password hashes. */
export const userRecord = recordOf<Account, UserEvent>({
  type: 'user',
  auditView,
  events: EVENTS,
  eventData,
});

/**
 * Records a change of an account in its tenant, and also in the one that it leaves: `tenantId` in the
 * event says where it is (docs/adr/0078-a-move-is-seen-in-both-tenants.md).
 */
export function recordAccountChange(
  work: Work,
  record: Pick<typeof userRecord, 'updated'>,
  before: Account,
  after: Account,
): void {
  for (const tenantId of new Set([before.tenantId, after.tenantId]))
    record.updated(work, before, after, { tenantId });
}

/** Audit entries and events about service accounts, which are users. */
export const serviceAccountRecord = recordOf<Account, UserEvent>({
  type: 'user',
  auditView: (user) => ({ ...auditView(user), ownerId: user.ownerId }),
  events: EVENTS,
  eventData,
});
