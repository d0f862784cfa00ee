import type { User } from '../db/models/User.ts';

/** A user as the subject of audit entries and events. */
export const userSubject = ({ id }: { id: string }) => ({ type: 'user', id });

/** A user as trail and events keep it: never the password's hash. */
export const userView = ({ username, displayName, email, providerId, tenantId, enabled }: User): object => ({
  username, displayName, email, providerId, tenantId, enabled,
});
