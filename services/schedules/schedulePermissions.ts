import { describeResourceScope } from '../../domain/access/scope.ts';
import { mayUseJobType, type GuardedType } from '../../domain/access/jobTypeRights.ts';
import { allowsJobType } from '../../domain/access/tokenScope.ts';
import { mayCreateJob } from '../../domain/jobs/jobRights.ts';
import { permissionsToCreate, type JobType } from '../../domain/jobs/jobType.ts';
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

  /** A type that this version does not know may be known again when the schedule runs. */
  const typeOf = ({ jobType }: RunnableSchedule): GuardedType =>
    jobTypes.find(jobType) ?? { name: jobType, access: 'granted' };

  /**
   * True for callers who may decide when the jobs of a schedule run, with the rights of its owner:
   * besides `schedule:write` they need the permission of the job type, such as `backup:restore`, and
   * a role that names the type if its access is `granted`.
   */
  function mayRun(caller: Caller, schedule: RunnableSchedule): boolean {
    const permission = permissionOf(schedule);
    const { tenantId } = schedule;
    if (!mayUseJobType(caller.rights, typeOf(schedule), { tenantId })) return false;
    return permission === null || access.holds(caller.rights, permission, { tenantId });
  }

  /** What a caller lacks who may not create the jobs of a schedule. */
  function missingFor(caller: Caller, type: JobType): string {
    const where = describeResourceScope({ tenantId: caller.tenantId });
    if (!allowsJobType(caller.rights, type.name))
      return `the token of the request does not allow jobs of the type ${type.name}`;
    const missing = permissionsToCreate(type).filter(
      (permission) => !access.holds(caller.rights, permission, caller),
    );
    return missing.length > 0
      ? `its jobs need ${missing.join(' and ')} at ${where}, which you do not hold`
      : `no role that you hold at ${where} names the job type ${type.name}`;
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
     * permission of its job type, or a role that names it.
     */
    async requireToRun(caller: Caller, schedule: RunnableSchedule): Promise<void> {
      const permission = permissionOf(schedule);
      const { tenantId } = schedule;
      await access.requireJobType(caller, typeOf(schedule), { tenantId });
      if (permission !== null) await access.require(caller, permission, { tenantId });
    },

    /**
     * Validates job type and payload. Jobs are created with the rights of the owner: the result has a
     * warning when the caller, who becomes the owner, may not create these jobs. Error: `invalid_request`.
     */
    checkJob(caller: Caller, name: string, payload: Record<string, unknown>): Warning[] {
      const type = checkJob(jobTypes, name, payload);
      if (mayCreateJob(caller.rights, type, caller)) return [];
      const message = `${missingFor(caller, type)}: occurrences are skipped as owner_denied`;
      return [{ code: 'owner_denied', pointer: '/jobType', message }];
    },
  };
};
