import { isDeepStrictEqual } from 'node:util';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import type { ScopedRepository } from '../../db/core/scopedRepository.ts';
import { Schedule } from '../../db/models/Schedule.ts';
import type { Warning } from '../../domain/shared/warnings.ts';
import { hasWritten, writerKeyOf, type Caller } from '../../domain/shared/caller.ts';
import type { TargetRef } from '../../domain/jobs/targets.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import type { RetryPolicy } from '../../domain/jobs/retry.ts';
import { authorityOf } from '../access/rights.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import {
  assertOccurs,
  checkTiming,
  isSamePayload,
  type SavedParts,
  type ScheduleFields,
} from './fields.ts';
import { rejectTakenName } from './names.ts';
import { ConcurrentChange, retryChanged } from './retryChanged.ts';
import { enabledChange, type SaveSchedule } from './saveSchedule.ts';
import type { SchedulePermissions } from './schedulePermissions.ts';

/** Null removes an override of the retry policy of the job type. */
type RetryPolicyChange = { [Field in keyof RetryPolicy]?: RetryPolicy[Field] | null };

/** Fields to change. `takeOver` makes the caller the owner without another change. */
export type ScheduleUpdate = Partial<Omit<ScheduleFields, 'retryPolicy'>> & {
  retryPolicy?: RetryPolicyChange;
  takeOver?: boolean;
};

type Deps = {
  repository: ScopedRepository<Schedule>;
  jobTypes: JobTypes;
  permissions: SchedulePermissions;
  saveSchedule: SaveSchedule;
};

/** What an update changes about the jobs of a schedule: only fields with another value. */
type JobUpdate = {
  jobType?: string;
  payload?: Record<string, unknown>;
  target?: TargetRef | null;
  retryPolicy?: Partial<RetryPolicy>;
  /** A caller who changes what the jobs do becomes the owner. */
  changesOwner: boolean;
};

/** A change of these fields decides when the jobs of a schedule run. */
const RUN_FIELDS = [
  'cronExpression',
  'timezone',
  'startAt',
  'endAt',
  'maxRuns',
  'catchupWindowSeconds',
  'jitterSeconds',
  'overlapPolicy',
] as const;

const TIMING_FIELDS = ['cronExpression', 'timezone', 'startAt', 'endAt'] as const;

/** True if one of these fields gets another value: forms and scripts send those that they leave as they are, too. */
const changesAny = (
  fields: readonly (typeof RUN_FIELDS)[number][],
  update: ScheduleUpdate,
  schedule: Schedule,
): boolean =>
  fields.some(
    (field) =>
      update[field] !== undefined && update[field]?.valueOf() !== schedule[field]?.valueOf(),
  );

const changesRuns = (update: ScheduleUpdate, schedule: Schedule): boolean =>
  (update.enabled === true && !schedule.enabled) || changesAny(RUN_FIELDS, update, schedule);

/** True when the saved payload has values that only its author sees. */
const hidesValues = async (jobTypes: JobTypes, { jobType, payload }: Schedule): Promise<boolean> =>
  !isDeepStrictEqual(payload, await jobTypes.show(jobType, payload, { isAuthor: false }));

/** The overrides of a retry policy after a change of some. */
const changedRetryPolicy = (
  before: Partial<RetryPolicy>,
  change: RetryPolicyChange,
): Partial<RetryPolicy> =>
  Object.fromEntries(
    Object.entries({ ...before, ...change }).filter(([, value]) => value !== null),
  );

/** Error: `invalid_request` for another job type, or a target that would get secrets of others, without a payload. */
async function jobUpdateOf(
  caller: Caller,
  jobTypes: JobTypes,
  schedule: Schedule,
  { jobType, payload, target, retryPolicy, takeOver = false }: ScheduleUpdate,
): Promise<JobUpdate> {
  const changesJobType = jobType !== undefined && jobType !== schedule.jobType;
  // The saved payload may contain secrets, which another job type might show.
  if (changesJobType && !payload)
    throw invalidField('body', '/payload', 'required', 'is required with another jobType');
  const isAuthor = hasWritten(caller, schedule.payloadAuthor);
  const changesPayload =
    payload !== undefined &&
    (changesJobType || !(await isSamePayload(jobTypes, schedule, payload, { isAuthor })));
  const changesTarget = target !== undefined && !isDeepStrictEqual(target, schedule.target);
  if (changesTarget && !changesPayload && !isAuthor && (await hidesValues(jobTypes, schedule)))
    throw invalidField(
      'body',
      '/payload',
      'required',
      'is required with another target: the saved one has values of others that you may not see',
    );
  const newRetryPolicy = changedRetryPolicy(schedule.retryPolicy, retryPolicy ?? {});
  const changesRetryPolicy = !isDeepStrictEqual(newRetryPolicy, schedule.retryPolicy);
  return {
    ...(changesJobType && { jobType }),
    ...(changesPayload && { payload }),
    ...(changesTarget && { target }),
    ...(changesRetryPolicy && { retryPolicy: newRetryPolicy }),
    changesOwner:
      takeOver || changesJobType || changesPayload || changesTarget || changesRetryPolicy,
  };
}

/** The parts of the job that are not changed. Which targets there are depends on the job type. */
const savedParts = ({ jobType, payload, target }: Omit<JobUpdate, 'changesOwner'>): SavedParts => ({
  jobType: jobType === undefined,
  payload: payload === undefined,
  target: jobType === undefined && target === undefined,
});

/** The time zone after an update, whose timing is validated if it is another one. Error: `invalid_request`. */
function checkUpdatedTiming(before: Schedule, update: ScheduleUpdate, now: Date): string {
  if (!changesAny(TIMING_FIELDS, update, before)) return before.timezone;
  const { cronExpression, timezone, startAt, endAt } = update;
  const timing = checkTiming({
    cronExpression: cronExpression ?? before.cronExpression,
    timezone: timezone ?? before.timezone,
    startAt: startAt === undefined ? before.startAt : startAt,
    endAt: endAt === undefined ? before.endAt : endAt,
  });
  assertOccurs(timing, now);
  return timing.timezone;
}

/** The use case behind `PUT /api/schedules/{id}`. */
export const createUpdateSchedule =
  (deps: Deps) =>
  (
    caller: Caller,
    id: string,
    update: ScheduleUpdate,
    expectedVersion?: number,
  ): Promise<{ saved: Schedule; warnings: Warning[] }> =>
    retryChanged(() => updateOnce(deps, caller, id, withOwnPayload(update), expectedVersion));

/** Each attempt fills the defaults of the job type into the payload. */
const withOwnPayload = ({ payload, ...update }: ScheduleUpdate): ScheduleUpdate => ({
  ...update,
  ...(payload && { payload: structuredClone(payload) }),
});

/** Error: `ConcurrentChange`, if the schedule changes while the update is checked; those of the update. */
async function updateOnce(
  { repository, jobTypes, permissions, saveSchedule }: Deps,
  caller: Caller,
  id: string,
  update: ScheduleUpdate,
  expectedVersion?: number,
): Promise<{ saved: Schedule; warnings: Warning[] }> {
  const known = await repository.findToAct(caller, id, 'schedule:write');
  await jobTypes.refreshUnknown(known.jobType);
  const { changesOwner: changesJobs, ...jobUpdate } = await jobUpdateOf(
    caller,
    jobTypes,
    known,
    update,
  );
  const { tenantId } = known;
  // Callers who may not start such jobs must not decide when they run with the rights of the owner.
  // The schedule is saved nevertheless, and its jobs have the rights of the caller.
  const changesOwner =
    changesJobs || (changesRuns(update, known) && !(await permissions.mayRun(caller, known)));
  const { jobType = known.jobType, payload = known.payload, target = known.target } = jobUpdate;
  const warnings = changesOwner
    ? await permissions.checkJob(
        { ...caller, tenantId },
        { jobType, payload, target, saved: savedParts(jobUpdate) },
      )
    : [];
  const overlapPolicy = update.overlapPolicy ?? known.overlapPolicy;
  if (changesOwner || changesRuns(update, known)) {
    await permissions.requireCancel(caller, overlapPolicy, { tenantId, target });
    // The jobs that it would cancel are those of the target before.
    if (jobUpdate.target !== undefined)
      await permissions.requireCancel(caller, overlapPolicy, known);
  }

  const saved = repository.commitLocked(
    caller,
    known,
    expectedVersion,
    async (work, before, trx) => {
      // The job, and who may decide when it runs, were checked for the record as it was read.
      const isChecked = changesOwner || changesRuns(update, known) || changesRuns(update, before);
      if (isChecked && before.version !== known.version) throw new ConcurrentChange();
      // Read once: the last occurrence could come between the check and the change.
      const now = await readDatabaseTime(trx);
      const timezone = checkUpdatedTiming(before, update, now);
      const { takeOver, jobType, payload, target, retryPolicy, enabled, ...fields } = update;
      const changed: Partial<Schedule> = { ...fields, ...jobUpdate, timezone };
      if (fields.cronExpression !== undefined)
        changed.cronExpression = fields.cronExpression.trim();
      if (changesOwner) changed.owner = authorityOf(caller);
      if (jobUpdate.payload) changed.payloadAuthor = writerKeyOf(caller);
      if (enabled !== undefined && enabled !== before.enabled)
        Object.assign(changed, enabledChange(enabled, caller.actorId, null, work.now));
      return saveSchedule(work, trx, before, { changed, verb: 'update', now });
    },
  );
  return {
    saved: await saved.catch(rejectTakenName(update.name ?? known.name)),
    warnings,
  };
}
