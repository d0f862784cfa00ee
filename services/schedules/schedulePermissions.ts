import { describeResourceScope } from '../../domain/access/scope.ts';
import { allowsJobType } from '../../domain/access/tokenScope.ts';
import { permissionsToCreate } from '../../domain/jobs/jobType.ts';
import type { OverlapPolicy } from '../../domain/schedules/schedules.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Warning } from '../../domain/shared/warnings.ts';
import type { Access } from '../access/access.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { checkJob } from './fields.ts';

export type SchedulePermissions = ReturnType<typeof createSchedulePermissions>;

/** The job type of a schedule, and where its jobs run. */
type RunnableSchedule = { jobType: string; tenantId: string };

/** Checks the permissions that matter for a schedule in addition to `schedule:write`. */
export const createSchedulePermissions = ({
  access,
  jobTypes,
}: {
  access: Access;
  jobTypes: JobTypes;
}) => {
  const permissionOf = ({ jobType }: RunnableSchedule) =>
    jobTypes.find(jobType)?.permission ?? null;

  /**
   * True for callers who may decide when the jobs of a schedule run, with the rights of its owner:
   * besides `schedule:write` they need the permission of the job type, such as `backup:restore`.
   */
  function mayRun(caller: Caller, schedule: RunnableSchedule): boolean {
    const permission = permissionOf(schedule);
    const { tenantId, jobType } = schedule;
    if (!allowsJobType(caller.rights, jobType)) return false;
    return permission === null || access.holds(caller.rights, permission, { tenantId });
  }

  return {
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

    mayRun,

    /**
     * Error: `permission_denied`, of callers who trigger, backfill or resume a schedule without the
     * permission of its job type.
     */
    async requireToRun(caller: Caller, schedule: RunnableSchedule): Promise<void> {
      const permission = permissionOf(schedule);
      await access.requireJobType(caller, schedule.jobType);
      if (permission !== null)
        await access.require(caller, permission, { tenantId: schedule.tenantId });
    },

    /**
     * Validates job type and payload. Jobs are created with the rights of the owner: the result has a
     * warning when the caller, who becomes the owner, does not hold the permissions of these jobs.
     * Error: `invalid_request`.
     */
    checkJob(caller: Caller, type: string, payload: Record<string, unknown>): Warning[] {
      const missing = permissionsToCreate(checkJob(jobTypes, type, payload)).filter(
        (permission) => !access.holds(caller.rights, permission, caller),
      );
      const isTypeAllowed = allowsJobType(caller.rights, type);
      if (missing.length === 0 && isTypeAllowed) return [];
      const where = describeResourceScope({ tenantId: caller.tenantId });
      const message = isTypeAllowed
        ? `its jobs need ${missing.join(' and ')} at ${where}, which you do not hold: occurrences are skipped as owner_denied until you do`
        : `the token of the request does not allow jobs of the type ${type}: occurrences are skipped as owner_denied`;
      return [{ code: 'owner_denied', pointer: '/jobType', message }];
    },
  };
};
