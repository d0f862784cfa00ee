import { assertDefined } from '../../domain/shared/assert.ts';
import type { AssignmentRecord, MappingRecord } from './schemas.ts';

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
