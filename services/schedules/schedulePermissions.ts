import { describeResourceScope, type ResourceScope } from '../../domain/access/scope.ts';
import { mayUseJobType, type GuardedType } from '../../domain/access/jobTypeRights.ts';
import { allowsJobType } from '../../domain/access/tokenScope.ts';
import { mayCreateJob } from '../../domain/jobs/jobRights.ts';
import { permissionsToCreate, type JobType } from '../../domain/jobs/jobType.ts';
import { scopeOfTarget, type Target, type TargetRef } from '../../domain/jobs/targets.ts';
import type { OverlapPolicy } from '../../domain/schedules/schedules.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { invalidField, type AppError } from '../../domain/shared/errors.ts';
import type { Warning } from '../../domain/shared/warnings.ts';
import type { Access } from '../access/access.ts';
import type { JobReferences } from '../jobs/payloadReferences.ts';
import type { JobTargets } from '../jobs/targets.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { checkJob, checkPart, NOTHING_SAVED, type PayloadRequest } from './fields.ts';

export type SchedulePermissions = ReturnType<typeof createSchedulePermissions>;

/** The job type of a schedule, and what its jobs belong to. */
type RunnableSchedule = { jobType: string; tenantId: string; target: TargetRef | null };

/** What the jobs of a schedule are to do. */
type JobRequest = PayloadRequest & { target: TargetRef | null };

/** Checks the permissions that matter for a schedule in addition to `schedule:write`. */
export const createSchedulePermissions = ({
  access,
  jobTypes,
  jobTargets,
  jobReferences,
}: {
  access: Access;
  jobTypes: JobTypes;
  jobTargets: JobTargets;
  jobReferences: JobReferences;
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
  async function mayRun(caller: Caller, schedule: RunnableSchedule): Promise<boolean> {
    await jobTypes.refreshUnknown(schedule.jobType);
    const permission = permissionOf(schedule);
    const scope = await jobTargets.scopeOf(schedule);
    if (!mayUseJobType(caller.rights, typeOf(schedule), scope)) return false;
    return permission === null || access.holds(caller.rights, permission, scope);
  }

  /** What a caller lacks who may not create the jobs of a schedule. */
  function missingFor(caller: Caller, type: JobType, scope: ResourceScope): string {
    const where = describeResourceScope(scope);
    if (!allowsJobType(caller.rights, type.name))
      return `the token of the request does not allow jobs of the type ${type.name}`;
    const missing = permissionsToCreate(type).filter(
      (permission) => !access.holds(caller.rights, permission, scope),
    );
    return missing.length > 0
      ? `its jobs need ${missing.join(' and ')} at ${where}, which you do not hold`
      : `no role that you hold at ${where} names the job type ${type.name}`;
  }

  /** Errors: those of `JobTargets.resolve`; `invalid_request` for a target of another tenant than the caller's. */
  async function findTarget(
    caller: Caller,
    type: JobType,
    target: TargetRef | null,
  ): Promise<Target | null> {
    const found = await jobTargets.resolve(caller, type, target);
    if (found && found.tenantId !== caller.tenantId)
      throw invalidField('body', '/target/id', 'mismatch', 'is not of the tenant of the schedule');
    return found;
  }

  return {
    /**
     * The policy `cancelOther` requires `job:cancel`, of callers who set the policy and of those who
     * trigger or resume a schedule that has it, or change when its jobs run or what they do. Error:
     * `permission_denied`.
     */
    async requireCancel(
      caller: Caller,
      overlapPolicy: OverlapPolicy | undefined,
      schedule: Pick<RunnableSchedule, 'tenantId' | 'target'>,
    ): Promise<void> {
      if (overlapPolicy === 'cancelOther')
        await access.require(caller, 'job:cancel', await jobTargets.scopeOf(schedule));
    },

    mayRun,

    /**
     * Error: `permission_denied`, of callers who trigger, backfill or resume a schedule without the
     * permission of its job type, or a role that names it.
     */
    async requireToRun(caller: Caller, schedule: RunnableSchedule): Promise<void> {
      await jobTypes.refreshUnknown(schedule.jobType);
      const permission = permissionOf(schedule);
      const scope = await jobTargets.scopeOf(schedule);
      await access.requireJobType(caller, typeOf(schedule), scope);
      if (permission !== null) await access.require(caller, permission, scope);
    },

    /**
     * Validates what the jobs of a schedule at the caller's tenant are to do. They are created with the
     * rights of the owner: the result has a warning when the caller, who becomes the owner, may not
     * create these jobs, and those for what they lack at present. Errors: `invalid_request`;
     * `permission_denied` as of `JobTargets.resolve` and the check of the job type.
     */
    async checkJob(caller: Caller, { target, ...job }: JobRequest): Promise<Warning[]> {
      const { type, lacks } = await checkJob(jobTypes, caller, job);
      if (!type) return lacks.flatMap(warningsOf);
      const { payload, pointer, saved = NOTHING_SAVED } = job;
      const found = await checkPart(saved.target, lacks, () => findTarget(caller, type, target));
      await checkPart(saved.payload, lacks, () =>
        jobReferences.check(caller, type, payload, pointer),
      );
      const { tenantId } = caller;
      const scope = found ? scopeOfTarget(found) : await jobTargets.scopeOf({ tenantId, target });
      const warnings = lacks.flatMap(warningsOf);
      if (mayCreateJob(caller.rights, type, scope)) return warnings;
      const message = `${missingFor(caller, type, scope)}: occurrences are skipped as owner_denied`;
      return [...warnings, { code: 'owner_denied', pointer: '/jobType', message }];
    },
  };
};

const warningsOf = ({ code, message, extra }: AppError): Warning[] =>
  extra.errors?.map((each) => ({
    code: each.code,
    pointer: each.pointer,
    message: each.message,
  })) ?? [{ code, pointer: '/jobType', message }];
