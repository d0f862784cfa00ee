import type { User } from '../db/models/User.ts';
import type { EventData } from '../domain/events/events.ts';

/** A user as the subject of audit entries and events. */
export const userSubject = ({ id }: { id: string }) => ({ type: 'user', id });

/** A user as an event tells of them. */
export const userEvent = ({
  id,
  providerId,
  tenantId,
  enabled,
}: User): EventData<'auth.user.created'> => ({ userId: id, providerId, tenantId, enabled });

/** A user as the trail keeps them: never the password's hash. */
export const userView = ({
  username,
  displayName,
  email,
  providerId,
  tenantId,
  enabled,
}: User): object => ({
  username,
  displayName,
  email,
  providerId,
  tenantId,
  enabled,
});
