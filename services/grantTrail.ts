import type { Work } from '../db/commit.ts';
import type { GrantRecord } from '../db/models/GrantRecord.ts';
import type { DispatchTask } from '../temporal/contracts.ts';

const placeOf = ({ roleId, level, tenantId, siteId, deviceId }: GrantRecord) => ({
  roleId,
  level,
  tenantId,
  siteId,
  deviceId,
});

const view = (grant: GrantRecord) => ({
  ...(grant.kind === 'assignment'
    ? { userId: grant.userId }
    : { providerId: grant.providerId, externalGroup: grant.externalGroup }),
  ...placeOf(grant),
});

/** Leaves in trail and events that a role was given or taken back. */
export function noteGrant(
  work: Work<DispatchTask>,
  verb: 'create' | 'delete',
  grant: GrantRecord,
): void {
  const { id, kind } = grant;
  const subject = { type: kind, id };
  const done = verb === 'create' ? 'created' : 'deleted';
  work.audit(
    `${kind}.${verb}`,
    subject,
    verb === 'create' ? { after: view(grant) } : { before: view(grant) },
  );
  if (kind === 'assignment') {
    work.emit(`rbac.assignment.${done}`, subject, {
      assignmentId: id,
      userId: grant.userId ?? '',
      ...placeOf(grant),
    });
  } else {
    work.emit(`rbac.mapping.${done}`, subject, {
      mappingId: id,
      providerId: grant.providerId ?? '',
      externalGroup: grant.externalGroup ?? '',
      ...placeOf(grant),
    });
  }
}
