import { isDeepStrictEqual } from 'node:util';
import type { Schedule } from '../../db/models/Schedule.ts';
import { parseCron, type CronField } from '../../domain/schedules/cron.ts';
import {
  nextOccurrence,
  upcomingOccurrences,
  type Timing,
  type UpcomingOccurrence,
} from '../../domain/schedules/occurrences.ts';
import {
  AppError,
  invalidField,
  invalidFields,
  MAX_FIELD_ERRORS,
  type FieldError,
} from '../../domain/shared/errors.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { pointerTo } from '../../domain/shared/jsonPointer.ts';
import type { JobType } from '../../domain/jobs/jobType.ts';
import { MASK } from '../../domain/shared/mask.ts';
import type { RetryPolicy } from '../../domain/jobs/retry.ts';
import type { TargetRef } from '../../domain/jobs/targets.ts';
import {
  type OverlapPolicy,
  timingProblemOf,
  type TimingFields,
} from '../../domain/schedules/schedules.ts';
import { canonicalTimeZone } from '../../domain/schedules/timeZone.ts';
import type { JobTypes } from '../jobTypes/registry.ts';

/** The fields that a caller can set; null removes a bound or limit. */
export type ScheduleFields = {
  name: string;
  description?: string;
  cronExpression: string;
  timezone?: string;
  jobType: string;
  payload?: Record<string, unknown>;
  target?: TargetRef | null;
  retryPolicy?: Partial<RetryPolicy>;
  enabled?: boolean;
  overlapPolicy?: OverlapPolicy;
  catchupWindowSeconds?: number;
  jitterSeconds?: number;
  startAt?: Date | null;
  endAt?: Date | null;
  maxRuns?: number | null;
};

/** Input of a preview: list `count` occurrences after `after`. */
export type PreviewInput = {
  cronExpression: string;
  timezone?: string;
  startAt?: Date;
  endAt?: Date;
  after: Date;
  count: number;
};
export type Preview = { timing: Timing; upcoming: UpcomingOccurrence[] };

const FIELD_LABELS: Readonly<Record<CronField, string>> = {
  minute: 'the minute',
  hour: 'the hour',
  dayOfMonth: 'the day of the month',
  month: 'the month',
  dayOfWeek: 'the day of the week',
};

/**
 * Validates expression, time zone and bounds, and parses the expression. Error: `invalid_request`
 * that names every invalid part.
 */
export function checkTiming({ cronExpression, timezone, startAt, endAt }: TimingFields): Timing {
  const errors: FieldError[] = [];
  const addError = (pointer: string, code: string, message: string) =>
    void errors.push({ in: 'body', pointer, code, message });
  const parsed = parseCron(cronExpression);
  for (const { field, message } of 'errors' in parsed ? parsed.errors : []) {
    addError(
      '/cronExpression',
      field === 'expression' ? 'cron' : `cron_${toSnakeCase(field)}`,
      field === 'expression' ? message : `${FIELD_LABELS[field]} ${message}`,
    );
  }
  const zone = canonicalTimeZone(timezone);
  if (zone === undefined)
    addError(
      '/timezone',
      'unknown_timezone',
      'must be a time zone of the tz database, such as Europe/London or UTC',
    );
  for (const [name, at] of [
    ['startAt', startAt],
    ['endAt', endAt],
  ] as const)
    if (at && isOutOfRange(at)) addError(`/${name}`, 'range', OUT_OF_RANGE);
  if (startAt && endAt && endAt < startAt)
    addError('/endAt', 'order', 'must not be before startAt');
  if ('errors' in parsed || zone === undefined || errors.length > 0) throw invalidFields(errors);
  return { cron: parsed.cron, timezone: zone, startAt, endAt };
}

/** Before 1972 some UTC offsets have seconds. */
const MIN_TIME_MS = Date.UTC(1972, 0, 1);
/** The end of the range, exclusive. */
const MAX_TIME_MS = Date.UTC(2200, 0, 1);
const OUT_OF_RANGE = 'must be between 1972 and 2200';
const isOutOfRange = (at: Date): boolean =>
  at.getTime() < MIN_TIME_MS || at.getTime() >= MAX_TIME_MS;

const toSnakeCase = (field: string) =>
  field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The next occurrences of an expression that need not be saved. Error: `invalid_request`. */
export function preview({
  cronExpression,
  timezone = 'UTC',
  startAt,
  endAt,
  after,
  count,
}: PreviewInput): Preview {
  const timing = checkTiming({
    cronExpression,
    timezone,
    startAt: startAt ?? null,
    endAt: endAt ?? null,
  });
  if (isOutOfRange(after)) throw invalidField('body', '/after', 'range', OUT_OF_RANGE);
  return { timing, upcoming: upcomingOccurrences(timing, after, count) };
}

/** Error: `invalid_request` when the timing has no occurrence after `now`. */
export function assertOccurs(timing: Timing, now: Date): void {
  if (nextOccurrence(timing, now) === null)
    throw invalidField(
      'body',
      timing.endAt ? '/endAt' : '/cronExpression',
      'never_occurs',
      'leaves no occurrence in the future',
    );
}

/** Error: `schedule_not_runnable`, if the occurrences of a schedule cannot be computed. */
export function requireTiming(schedule: TimingFields): void {
  const problem = timingProblemOf(schedule);
  if (problem !== null) throw new AppError('schedule_not_runnable', problem);
}

/** The parts of the job of a schedule that are not in the request. */
export type SavedParts = { jobType: boolean; payload: boolean; target: boolean };

/** The job of a schedule in a request. `pointer` leads to its payload there. */
export type PayloadRequest = {
  jobType: string;
  payload: Record<string, unknown>;
  pointer?: string;
  saved?: SavedParts;
};

export const NOTHING_SAVED: SavedParts = { jobType: false, payload: false, target: false };

/**
 * Checks a part of a job. What is wrong with a part that `isSaved` is added to `lacks`, and the result is undefined:
 * the request cannot correct it, and its jobs fail as before.
 */
export async function checkPart<T>(
  isSaved: boolean,
  lacks: AppError[],
  check: () => T | Promise<T>,
): Promise<T | undefined> {
  try {
    return await check();
  } catch (error) {
    if (!isSaved || !(error instanceof AppError) || !error.extra.errors) throw error;
    lacks.push(error);
    return undefined;
  }
}

/**
 * Validates job type and payload. Returns the job type, undefined for a saved one that is not known, and what its jobs
 * lack at present, which includes what is wrong with saved parts. Fills the defaults of the type into `payload`.
 * Errors: `invalid_request` at `/jobType` or under `pointer`, and those of the check of the type.
 */
export async function checkJob(
  jobTypes: JobTypes,
  caller: Caller,
  { jobType, payload, pointer = '/payload', saved = NOTHING_SAVED }: PayloadRequest,
): Promise<{ type: JobType | undefined; lacks: AppError[] }> {
  await jobTypes.refreshUnknown(jobType);
  const type = jobTypes.find(jobType);
  const lacks: AppError[] = [];
  // Without its type, a payload or a target of the request cannot be checked.
  const canKeepType = saved.jobType && (type !== undefined || (saved.payload && saved.target));
  await checkPart(canKeepType, lacks, () => jobTypes.getPublic(jobType, '/jobType'));
  if (!type) return { type, lacks };
  const lacking = await checkPart(saved.payload, lacks, () =>
    jobTypes.checkPayload(type, payload, caller, pointer),
  );
  lacks.push(...(lacking ?? []));
  if (!saved.payload) await rejectMaskedSecrets(jobTypes, type, payload);
  return { type, lacks };
}

/** A value of a payload, and what others see of it. `parent` and `name` lead to it. */
type Shown = { sent: unknown; shown: unknown; parent: Shown | null; name: string };

function pointerOf(value: Shown): string {
  const names: string[] = [];
  for (let at = value; at.parent; at = at.parent) names.unshift(at.name);
  return pointerTo(['payload', ...names]);
}

/** The pointers of texts that contain the mask and are shown as a secret, at most `MAX_FIELD_ERRORS`. */
function maskedPointers(payload: object, shownPayload: object): string[] {
  const found: string[] = [];
  const rest: Shown[] = [{ sent: payload, shown: shownPayload, parent: null, name: '' }];
  for (let at = rest.pop(); at && found.length < MAX_FIELD_ERRORS; at = rest.pop()) {
    const { sent, shown } = at;
    if (typeof sent === 'string') {
      if (sent.includes(MASK) && typeof shown === 'string' && shown.includes(MASK))
        found.push(pointerOf(at));
    } else if (typeof sent === 'object' && sent !== null) {
      const all = Object.entries(sent).reverse();
      const shownFields = new Map(Object.entries(typeof shown === 'object' ? (shown ?? {}) : {}));
      for (const [name, child] of all)
        rest.push({ sent: child, shown: shownFields.get(name), parent: at, name });
    }
  }
  return found;
}

/**
 * Rejects a payload that contains the mask at the position of a secret: the mask would be used as
 * the secret. Elsewhere the mask is ordinary text.
 */
async function rejectMaskedSecrets(
  jobTypes: JobTypes,
  type: JobType,
  payload: Record<string, unknown>,
): Promise<void> {
  const text = JSON.stringify(payload);
  if (!text.includes(MASK)) return;
  // Without masks, what is masked in it is a secret.
  const probe = JSON.parse(text.replaceAll(MASK, 'unmasked')) as Record<string, unknown>;
  const shown = await jobTypes.show(type.name, probe, { isAuthor: false });
  const errors = maskedPointers(payload, shown).map((pointer): FieldError => ({
    in: 'body',
    pointer,
    code: 'masked',
    message: 'contains a mask; a changed payload must contain its secrets again',
  }));
  if (errors.length > 0) throw invalidFields(errors);
}

/** A payload with the defaults of its type. A mask may violate the schema, so what else it finds does not matter. */
function filled(jobTypes: JobTypes, type: JobType, requested: Record<string, unknown>) {
  const withDefaults = JSON.parse(JSON.stringify(requested)) as Record<string, unknown>;
  jobTypes.isValidPayload(type, withDefaults);
  return withDefaults;
}

/**
 * True when the requested payload equals the saved one after its defaults are filled in. Its
 * secrets may be masked, as in responses. For others than its author it equals what they see only: they must not
 * learn whether they have guessed a value that they do not see.
 */
export async function isSamePayload(
  jobTypes: JobTypes,
  { jobType, payload }: Schedule,
  requested: Record<string, unknown>,
  { isAuthor }: { isAuthor: boolean },
): Promise<boolean> {
  const type = jobTypes.find(jobType);
  const forms = [requested, ...(type ? [filled(jobTypes, type, requested)] : [])];
  const isOneOf = (saved: object) => forms.some((form) => isDeepStrictEqual(form, saved));
  const isShown = async (toAuthor: boolean) =>
    isOneOf(await jobTypes.show(jobType, payload, { isAuthor: toAuthor }));
  if (await isShown(false)) return true;
  return isAuthor && (isOneOf(payload) || (await isShown(true)));
}
