import { isDeepStrictEqual } from 'node:util';
import type { Schedule } from '../db/models/Schedule.ts';
import { parseCron, type CronField } from '../domain/cron.ts';
import { nextDue, upcoming, type Timing, type Upcoming } from '../domain/dueTimes.ts';
import { AppError, invalidField, invalidFields, type FieldError } from '../domain/errors.ts';
import type { JobType } from '../domain/jobType.ts';
import { MASK } from '../domain/mask.ts';
import type { RetryPolicy } from '../domain/retry.ts';
import { timingOf, type OverlapPolicy } from '../domain/schedules.ts';
import { zoneName } from '../domain/timeZone.ts';
import type { JobTypes } from './jobTypes/registry.ts';

/** Fields that a caller sets; null takes a limit away. */
export type ScheduleFields = {
  name: string; description?: string; cronExpression: string; timezone?: string; jobType: string; payload?: Record<string, unknown>;
  retryPolicy?: Partial<RetryPolicy>; enabled?: boolean; overlapPolicy?: OverlapPolicy; catchupWindowSeconds?: number; jitterSeconds?: number;
  startAt?: Date | null; endAt?: Date | null; maxRuns?: number | null;
};

/** What is asked of a preview. */
export type PreviewRequest = { cronExpression: string; timezone?: string; startAt?: Date; endAt?: Date; after: Date; count: number };
export type Preview = { timing: Timing; upcoming: Upcoming[] };

type AskedTiming = { cronExpression: string; timezone: string; startAt: Date | null; endAt: Date | null };

const WORDS: Readonly<Record<CronField, string>> = {
  minute: 'the minute', hour: 'the hour', dayOfMonth: 'the day of the month', month: 'the month', dayOfWeek: 'the day of the week',
};

/** Checks when a schedule is due. Errors: `invalid_request` that names every bad field of the expression, and the zone. */
export function checkTiming({ cronExpression, timezone, startAt, endAt }: AskedTiming): Timing {
  const errors: FieldError[] = [];
  const tell = (pointer: string, code: string, message: string) => void errors.push({ in: 'body', pointer, code, message });
  const parsed = parseCron(cronExpression);
  for (const { field, message } of 'errors' in parsed ? parsed.errors : []) {
    tell('/cronExpression', field === 'expression' ? 'cron' : `cron_${snake(field)}`, field === 'expression' ? message : `${WORDS[field]} ${message}`);
  }
  const zone = zoneName(timezone);
  if (zone === undefined) tell('/timezone', 'unknown_timezone', 'must be a time zone of the tz database, such as Europe/London or UTC');
  if (startAt && endAt && endAt < startAt) tell('/endAt', 'order', 'must not be before startAt');
  if ('errors' in parsed || zone === undefined || errors.length > 0) throw invalidFields(errors);
  return { cron: parsed.cron, timezone: zone, startAt, endAt };
}

const snake = (field: string) => field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The next times of an expression, for somebody who wants to see them first. Errors: `invalid_request`. */
export function preview({ cronExpression, timezone = 'UTC', startAt, endAt, after, count }: PreviewRequest): Preview {
  const timing = checkTiming({ cronExpression, timezone, startAt: startAt ?? null, endAt: endAt ?? null });
  return { timing, upcoming: upcoming(timing, after, count) };
}

/** The next times of a schedule, with those that daylight saving skips; none when it is paused or has ended. */
export const upcomingOf = (schedule: Schedule, now: Date, count: number): Upcoming[] => {
  if (!schedule.enabled || schedule.nextDueAt === null) return [];
  const left = schedule.maxRuns === null ? count : Math.min(count, schedule.maxRuns - schedule.runCount);
  return left > 0 ? upcoming(timingOf(schedule), now, left) : [];
};

/** Errors: `invalid_request` for a schedule that would never be due. */
export function checkComes(timing: Timing, now: Date): void {
  if (nextDue(timing, now) === null) throw invalidField('body', timing.endAt ? '/endAt' : '/cronExpression', 'never_due', 'leaves no time from now on at which the schedule is due');
}

/** The job type of a schedule, its payload checked. Errors: `invalid_request` at `/jobType` or under `/payload`. */
export function checkJob(jobTypes: JobTypes, name: string, payload: Record<string, unknown>): JobType {
  const type = jobTypes.getDirect(name, '/jobType');
  refuseMasks(payload, '/payload');
  jobTypes.checkPayload(type, payload);
  return type;
}

/** A mask is what is shown in the place of a secret: saved, it would be sent as one. */
function refuseMasks(value: unknown, pointer: string): void {
  if (typeof value === 'string' && value.includes(MASK)) {
    throw invalidField('body', pointer, 'masked', 'is or has a mask; whoever changes the payload gives its secrets again');
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [name, part] of Object.entries(value)) refuseMasks(part, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`);
}

/** True when a payload says the same as the one that is there; its secrets may be masked, as they are shown. */
export const samePayload = (jobTypes: JobTypes, { jobType, payload }: Schedule, given: Record<string, unknown>): boolean =>
  isDeepStrictEqual(given, payload) || isDeepStrictEqual(given, jobTypes.find(jobType)?.redact(payload));

/** Refuses a job type that is announced and not there yet. */
export function requireJobType(jobTypes: JobTypes, name: string, what: string): void {
  if (!jobTypes.find(name)) throw new AppError('not_supported', `${what} cannot be scheduled: this installation has no job type ${name}.`);
}
