import { isDeepStrictEqual } from 'node:util';
import type { Schedule } from '../../db/models/Schedule.ts';
import { parseCron, type CronField } from '../../domain/schedules/cron.ts';
import { nextDue, upcoming, type Timing, type Upcoming } from '../../domain/schedules/occurrences.ts';
import { invalidField, invalidFields, type FieldError } from '../../domain/shared/errors.ts';
import type { JobType } from '../../domain/jobType.ts';
import { MASK } from '../../domain/mask.ts';
import type { RetryPolicy } from '../../domain/jobs/retry.ts';
import { timingOf, type OverlapPolicy, type TimingFields } from '../../domain/schedules/schedules.ts';
import { zoneName } from '../../domain/schedules/timeZone.ts';
import { pointerStep } from '../../platform/schemaCheck.ts';
import type { JobTypes } from '../jobTypes/registry.ts';

/** Fields that a caller sets; null takes a limit away. */
export type ScheduleFields = {
  name: string;
  description?: string;
  cronExpression: string;
  timezone?: string;
  jobType: string;
  payload?: Record<string, unknown>;
  retryPolicy?: Partial<RetryPolicy>;
  enabled?: boolean;
  overlapPolicy?: OverlapPolicy;
  catchupWindowSeconds?: number;
  jitterSeconds?: number;
  startAt?: Date | null;
  endAt?: Date | null;
  maxRuns?: number | null;
};

/** What is asked of a preview. */
export type PreviewRequest = {
  cronExpression: string;
  timezone?: string;
  startAt?: Date;
  endAt?: Date;
  after: Date;
  count: number;
};
export type Preview = { timing: Timing; upcoming: Upcoming[] };

const WORDS: Readonly<Record<CronField, string>> = {
  minute: 'the minute',
  hour: 'the hour',
  dayOfMonth: 'the day of the month',
  month: 'the month',
  dayOfWeek: 'the day of the week',
};

/** Checks when a schedule is due. Errors: `invalid_request` that names every bad field of the expression, and the zone. */
export function checkTiming({ cronExpression, timezone, startAt, endAt }: TimingFields): Timing {
  const errors: FieldError[] = [];
  const tell = (pointer: string, code: string, message: string) =>
    void errors.push({ in: 'body', pointer, code, message });
  const parsed = parseCron(cronExpression);
  for (const { field, message } of 'errors' in parsed ? parsed.errors : []) {
    tell(
      '/cronExpression',
      field === 'expression' ? 'cron' : `cron_${snake(field)}`,
      field === 'expression' ? message : `${WORDS[field]} ${message}`,
    );
  }
  const zone = zoneName(timezone);
  if (zone === undefined)
    tell(
      '/timezone',
      'unknown_timezone',
      'must be a time zone of the tz database, such as Europe/London or UTC',
    );
  for (const [name, at] of [
    ['startAt', startAt],
    ['endAt', endAt],
  ] as const)
    if (at && isOutside(at)) tell(`/${name}`, 'range', OUTSIDE);
  if (startAt && endAt && endAt < startAt) tell('/endAt', 'order', 'must not be before startAt');
  if ('errors' in parsed || zone === undefined || errors.length > 0) throw invalidFields(errors);
  return { cron: parsed.cron, timezone: zone, startAt, endAt };
}

/** Beyond, some offsets have seconds and some years five digits. */
const [FIRST_MS, LAST_MS] = [Date.UTC(1972, 0, 1), Date.UTC(2200, 0, 1)];
const OUTSIDE = 'must lie between 1972 and 2200';
const isOutside = (at: Date): boolean => at.getTime() < FIRST_MS || at.getTime() >= LAST_MS;

const snake = (field: string) => field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The next times of an expression, for somebody who wants to see them first. Errors: `invalid_request`. */
export function preview({
  cronExpression,
  timezone = 'UTC',
  startAt,
  endAt,
  after,
  count,
}: PreviewRequest): Preview {
  const timing = checkTiming({
    cronExpression,
    timezone,
    startAt: startAt ?? null,
    endAt: endAt ?? null,
  });
  if (isOutside(after)) throw invalidField('body', '/after', 'range', OUTSIDE);
  return { timing, upcoming: upcoming(timing, after, count) };
}

/** The next times of a schedule, with those that daylight saving skips; none when it is paused or has ended. */
export const upcomingOf = (schedule: Schedule, now: Date, count: number): Upcoming[] => {
  if (!schedule.enabled || schedule.nextDueAt === null) return [];
  const left =
    schedule.maxRuns === null ? count : Math.min(count, schedule.maxRuns - schedule.runCount);
  return left > 0 ? upcoming(timingOf(schedule), now, left) : [];
};

/** Errors: `invalid_request` for a schedule that would never be due. */
export function checkComes(timing: Timing, now: Date): void {
  if (nextDue(timing, now) === null)
    throw invalidField(
      'body',
      timing.endAt ? '/endAt' : '/cronExpression',
      'never_due',
      'leaves no time from now on at which the schedule is due',
    );
}

/** The job type of a schedule; the payload is checked and gets the type's defaults. Errors: `invalid_request` at `/jobType` or under `/payload`. */
export function checkJob(
  jobTypes: JobTypes,
  name: string,
  payload: Record<string, unknown>,
): JobType {
  const type = jobTypes.getDirect(name, '/jobType');
  jobTypes.checkPayload(type, payload);
  refuseMasks(type, payload);
  return type;
}

/** Every text of a value, with its JSON Pointer. */
function* textsOf(value: unknown, pointer: string): Generator<{ pointer: string; text: string }> {
  if (typeof value === 'string') yield { pointer, text: value };
  if (typeof value !== 'object' || value === null) return;
  for (const [name, part] of Object.entries(value))
    yield* textsOf(part, `${pointer}/${pointerStep(name)}`);
}

/** A mask is what is shown in the place of a secret: saved, it would be sent as one. Elsewhere it is text like any other. */
function refuseMasks(type: JobType, payload: Record<string, unknown>): void {
  const masked = [...textsOf(payload, '/payload')]
    .filter(({ text }) => text.includes(MASK))
    .map(({ pointer }) => pointer);
  if (masked.length === 0) return;
  const probe = JSON.parse(JSON.stringify(payload).replaceAll(MASK, 'unmasked')) as Record<
    string,
    unknown
  >;
  const secret = new Set(
    [...textsOf(type.redact(probe), '/payload')]
      .filter(({ text }) => text.includes(MASK))
      .map(({ pointer }) => pointer),
  );
  const errors = masked
    .filter((pointer) => secret.has(pointer))
    .map((pointer): FieldError => ({
      in: 'body',
      pointer,
      code: 'masked',
      message: 'is or has a mask; whoever changes the payload gives its secrets again',
    }));
  if (errors.length > 0) throw invalidFields(errors);
}

/** True when a payload says the same as the one that is there, its defaults filled in; its secrets may be masked, as they are shown. */
export function samePayload(
  jobTypes: JobTypes,
  { jobType, payload }: Schedule,
  given: Record<string, unknown>,
): boolean {
  const type = jobTypes.find(jobType);
  const filled = JSON.parse(JSON.stringify(given)) as Record<string, unknown>;
  if (!type || !jobTypes.accepts(type, filled)) return isDeepStrictEqual(given, payload);
  return isDeepStrictEqual(filled, payload) || isDeepStrictEqual(filled, type.redact(payload));
}
