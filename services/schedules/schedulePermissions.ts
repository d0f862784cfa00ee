import { permissionsToCreate } from '../../domain/jobs/jobType.ts';
import type { OverlapPolicy } from '../../domain/schedules/schedules.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Access } from '../access/access.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { checkJob } from './fields.ts';

export type SchedulePermissions = ReturnType<typeof createSchedulePermissions>;

/** Checks the permissions that a schedule requires in addition to `schedule:write`. */
export const createSchedulePermissions = ({
  access,
  jobTypes,
}: {
  access: Access;
  jobTypes: JobTypes;
}) => ({
  /**
   * The policy `cancelOther` requires `job:cancel`, of callers who set the policy and of those who
   * trigger a schedule that has it. Error: `permission_denied`.
   */
  async requireCancel(
    caller: Caller,
    { overlapPolicy, tenantId }: { overlapPolicy: OverlapPolicy | undefined; tenantId: string },
  ): Promise<void> {
    if (overlapPolicy === 'cancelOther') await access.require(caller, 'job:cancel', { tenantId });
  },

  /**
   * Validates job type and payload. Jobs are created with the rights of the owner, so a caller who
   * becomes the owner must hold the permissions of these jobs. Errors: `invalid_request`,
   * `permission_denied`.
   */
  async requireJob(caller: Caller, type: string, payload: Record<string, unknown>): Promise<void> {
    for (const permission of permissionsToCreate(checkJob(jobTypes, type, payload)))
      await access.require(caller, permission, caller);
  },
});
