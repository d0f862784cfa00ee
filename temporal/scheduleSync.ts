import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  type Client,
  type ScheduleDescription,
  type ScheduleOptions,
} from '@temporalio/client';
import { findMirrored } from '../db/schedules/schedules.ts';
import type { Knex } from '../db/core/knex.ts';
import type { Schedule } from '../db/models/Schedule.ts';
import type { Cron } from '../domain/schedules/cron.ts';
import { timingOf } from '../domain/schedules/schedules.ts';
import {
  MAX_MIRRORS,
  temporalScheduleId,
  type CompareMirror,
  type ListMirrors,
  type ScheduleFire,
} from './contracts.ts';
import type { TemporalLink } from './connection.ts';
import { attributesOf } from './workflows/attributes.ts';

type Where = { db: Knex; taskQueue: string };
type Calendar = NonNullable<ScheduleOptions['spec']['calendars']>[number];

const DEADLINE_MS = 5_000;
const LIST_DEADLINE_MS = 20_000;
const PAGE_SIZE = 500;

/** Writers of one mirror at once look again this often whether the record has changed meanwhile. */
const MAX_ROUNDS = 5;

/** Beyond its window a time due is missed, whoever looks at it then. */
const RUN_MARGIN_MS = 300_000;

/**
 * Makes the Temporal Schedule what its record says now: there, changed, or gone. Two at once may write in any order, so
 * each looks at the record again after it has written.
 */
export const mirrorTo =
  ({ db, taskQueue }: Where) =>
  async (client: Client, scheduleId: string): Promise<void> => {
    for (let round = 0, written = -1; round < MAX_ROUNDS; round++) {
      const record = await findMirrored(db, scheduleId);
      const version = record?.version ?? 0;
      if (version === written) return;
      await (record ? put(client, record, taskQueue) : remove(client, scheduleId));
      written = version;
    }
  };

/** A new one is made first, a changed one changed first: each way finds out when it should have been the other. */
async function put(client: Client, record: Schedule, taskQueue: string): Promise<void> {
  const options = mirrorOf(record, taskQueue);
  const { scheduleId, memo: _, ...changed } = options;
  const make = () => client.schedule.create(options);
  const change = () => client.schedule.getHandle(scheduleId).update(() => changed);
  try {
    await (record.version === 1 ? make() : change());
  } catch (error) {
    if (error instanceof ScheduleAlreadyRunning) return void (await change());
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    await make();
  }
}

async function remove(client: Client, scheduleId: string): Promise<void> {
  try {
    await client.schedule.getHandle(temporalScheduleId(scheduleId)).delete();
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
  }
}

type Mirror = ScheduleOptions & Required<Pick<ScheduleOptions, 'policies' | 'state'>>;

/**
 * The Temporal Schedule of a record. Whether a time due may overlap is decided from the record when it fires: Temporal
 * would leave times out without telling which.
 */
function mirrorOf(record: Schedule, taskQueue: string): Mirror {
  const {
    id,
    tenantId,
    name,
    jobType,
    timezone,
    startAt,
    endAt,
    jitterSeconds,
    catchupWindowSeconds,
    enabled,
  } = record;
  const attributes = attributesOf({ tenant: tenantId, jobType, record: id });
  return {
    scheduleId: temporalScheduleId(id),
    spec: {
      calendars: calendarsOf(timingOf(record).cron),
      timezone,
      jitter: jitterSeconds * 1_000,
      ...(startAt && { startAt }),
      ...(endAt && { endAt }),
    },
    policies: {
      overlap: 'ALLOW_ALL',
      catchupWindow: catchupWindowSeconds * 1_000,
      pauseOnFailure: false,
    },
    action: {
      type: 'startWorkflow',
      workflowType: 'fireSchedule',
      workflowId: temporalScheduleId(id),
      taskQueue,
      args: [{ scheduleId: id } satisfies ScheduleFire],
      typedSearchAttributes: attributes,
      staticSummary: jobType,
      workflowExecutionTimeout: (catchupWindowSeconds + jitterSeconds) * 1_000 + RUN_MARGIN_MS,
    },
    state: { paused: !enabled, note: `${name}: kept by Holdfast, which undoes changes made here` },
    memo: { taskQueue },
    typedSearchAttributes: attributes,
  };
}

const MONTHS = [
  'JANUARY',
  'FEBRUARY',
  'MARCH',
  'APRIL',
  'MAY',
  'JUNE',
  'JULY',
  'AUGUST',
  'SEPTEMBER',
  'OCTOBER',
  'NOVEMBER',
  'DECEMBER',
] as const;
const WEEKDAYS = [
  'SUNDAY',
  'MONDAY',
  'TUESDAY',
  'WEDNESDAY',
  'THURSDAY',
  'FRIDAY',
  'SATURDAY',
] as const;

/** Where either day field is enough there are two calendars: within one, all fields must match. */
function calendarsOf({ minute, hour, dayOfMonth, month, dayOfWeek, days }: Cron): Calendar[] {
  const common = {
    second: 0,
    minute: rangesOf(minute, (value) => value),
    hour: rangesOf(hour, (value) => value),
    month: rangesOf(month, (value) => MONTHS[value - 1] ?? 'JANUARY'),
  };
  const inMonth = { dayOfMonth: rangesOf(dayOfMonth, (value) => value) };
  const inWeek = { dayOfWeek: rangesOf(dayOfWeek, (value) => WEEKDAYS[value] ?? 'SUNDAY') };
  return days === 'either'
    ? [
        { ...common, ...inMonth },
        { ...common, ...inWeek },
      ]
    : [{ ...common, ...inMonth, ...inWeek }];
}

/** Sorted values as ranges without gaps. */
function rangesOf<T>(
  values: readonly number[],
  name: (value: number) => T,
): { start: T; end: T; step: number }[] {
  const ranges: [number, number][] = [];
  for (const value of values) {
    const last = ranges.at(-1);
    if (last?.[1] === value - 1) last[1] = value;
    else ranges.push([value, value]);
  }
  return ranges.map(([start, end]) => ({ start: name(start), end: name(end), step: 1 }));
}

type Range = { start: unknown; end?: unknown };
type RangedCalendar = Record<
  'minute' | 'hour' | 'dayOfMonth' | 'month' | 'dayOfWeek',
  Range[] | undefined
>;

/** What must be the same, by the name under which a difference is told. */
function essenceOf(
  mirror: Pick<Mirror | ScheduleDescription, 'spec' | 'policies' | 'action' | 'state'>,
): Record<string, unknown> {
  const { spec, policies, action, state } = mirror;
  const calendars = (spec.calendars ?? []) as unknown as RangedCalendar[];
  const ranges = (field: Range[] | undefined, all: string) =>
    field?.map(({ start, end }) => `${String(start)}-${String(end)}`).join() ?? all;
  return {
    calendars: calendars
      .map((c) =>
        [
          ranges(c.minute, '0'),
          ranges(c.hour, '0'),
          ranges(c.dayOfMonth, '1-31'),
          ranges(c.month, ''),
          ranges(c.dayOfWeek, 'SUNDAY-SATURDAY'),
        ].join(' '),
      )
      .sort(),
    otherTimes: [spec.intervals?.length ?? 0, spec.skip?.length ?? 0],
    timezone: spec.timezone ?? '',
    startAt: spec.startAt?.getTime() ?? null,
    endAt: spec.endAt?.getTime() ?? null,
    jitter: spec.jitter ?? 0,
    overlap: policies.overlap,
    catchupWindow: policies.catchupWindow,
    pauseOnFailure: policies.pauseOnFailure,
    action: [
      action.workflowType,
      action.workflowId,
      action.taskQueue,
      JSON.stringify(action.args),
      action.workflowExecutionTimeout ?? 0,
      action.staticSummary,
    ],
    paused: state.paused ?? false,
    note: state.note ?? '',
    remainingActions: state.remainingActions ?? null,
  };
}

/** Compares records with their mirrors. */
export const createCompareMirror =
  (link: TemporalLink, { db, taskQueue }: Where): CompareMirror =>
  async (scheduleId) => {
    const record = await findMirrored(db, scheduleId);
    try {
      const found = await link.call(DEADLINE_MS, (client) =>
        client.schedule.getHandle(temporalScheduleId(scheduleId)).describe(),
      );
      if (!record) return 'not wanted';
      const [wanted, is] = [essenceOf(mirrorOf(record, taskQueue)), essenceOf(found)];
      const different = Object.keys(wanted).filter(
        (part) => JSON.stringify(wanted[part]) !== JSON.stringify(is[part]),
      );
      return different.length > 0 ? different.join(', ') : null;
    } catch (error) {
      if (error instanceof ScheduleNotFoundError) return record ? 'missing' : null;
      throw error;
    }
  };

const MIRROR = /^schedule:(sch_[0-9a-z]{26})$/;

/** Finds mirrors by their form and the task queue in their memo: others may share the namespace. */
export const createListMirrors =
  (link: TemporalLink, taskQueue: string): ListMirrors =>
  () =>
    link.call(LIST_DEADLINE_MS, async (client) => {
      const mirrors = new Map<string, { paused: boolean }>();
      for await (const { scheduleId, memo, state } of client.schedule.list({
        pageSize: PAGE_SIZE,
      })) {
        const id = MIRROR.exec(scheduleId)?.[1];
        if (id !== undefined && memo?.taskQueue === taskQueue)
          mirrors.set(id, { paused: state.paused });
        if (mirrors.size === MAX_MIRRORS) break;
      }
      return mirrors;
    });
