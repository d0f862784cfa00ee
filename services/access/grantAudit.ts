import { recordOf } from '../../db/core/recordAudit.ts';
import type { GrantRecord } from '../../db/models/GrantRecord.ts';
import { assertDefined } from '../../domain/shared/assert.ts';

const grantScope = ({ roleId, level, tenantId, siteId, deviceId }: GrantRecord) => ({
  roleId,
  level,
  tenantId,
  siteId,
  deviceId,
});

const mappedGroup = ({ providerId, externalGroup }: GrantRecord) => ({
  providerId: assertDefined(providerId, 'mapping.providerId'),
  externalGroup: assertDefined(externalGroup, 'mapping.externalGroup'),
});

const assignedUser = ({ userId }: GrantRecord) => ({
  userId: assertDefined(userId, 'assignment.userId'),
});

const assignmentRecord = recordOf<
  GrantRecord,
  'rbac.assignment.created' | 'rbac.assignment.deleted'
>({
  type: 'assignment',
  auditView: (grant) => ({ ...assignedUser(grant), ...grantScope(grant) }),
  events: { created: 'rbac.assignment.created', deleted: 'rbac.assignment.deleted' },
  eventData: (grant) => ({
    assignmentId: grant.id,
    ...assignedUser(grant),
    ...grantScope(grant),
  }),
});

const mappingRecord = recordOf<GrantRecord, 'rbac.mapping.created' | 'rbac.mapping.deleted'>({
  type: 'mapping',
  auditView: (grant) => ({ ...mappedGroup(grant), ...grantScope(grant) }),
  events: { created: 'rbac.mapping.created', deleted: 'rbac.mapping.deleted' },
  eventData: (grant) => ({ mappingId: grant.id, ...mappedGroup(grant), ...grantScope(grant) }),
});

/** Audit entries and events of a grant, by its kind. */
export const grantRecordOf = ({ kind }: GrantRecord) =>
  kind === 'assignment' ? assignmentRecord : mappingRecord;
