import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  type Client,
  type ScheduleDescription,
  type ScheduleOptions,
} from '@temporalio/client';
import { findForTemporal } from '../db/schedules/schedules.ts';
import type { Knex } from '../db/core/knex.ts';
import type { Schedule } from '../db/models/Schedule.ts';
import type { Cron } from '../domain/schedules/cron.ts';
import { maxDelaySeconds, timingOf } from '../domain/schedules/schedules.ts';
import {
  MAX_TEMPORAL_SCHEDULES,
  priorityOf,
  type CompareTemporalSchedule,
  type ListTemporalSchedules,
  type RunPriority,
  type ScheduleWorkflowInput,
} from '../domain/dispatch/tasks.ts';
import { temporalScheduleId } from '../domain/dispatch/workflowIds.ts';
import { assertDefined } from '../domain/shared/assert.ts';
import { keyIdOf, unencrypted } from './codec.ts';
import type { TemporalConnection } from './connection.ts';
import { toSearchAttributes } from './workflows/shared/searchAttributes.ts';

type SyncDeps = { db: Knex; taskQueue: string };
type Calendar = NonNullable<ScheduleOptions['spec']['calendars']>[number];

const DEADLINE_MS = 5_000;
const LIST_DEADLINE_MS = 20_000;
const PAGE_SIZE = 500;

/** Concurrent writers of one Temporal Schedule check this often whether the record has changed. */
const MAX_ROUNDS = 5;

/** The field of the memo that names the task queue of the installation. */
const OWNER = 'taskQueue';

/** A workflow need not run longer than this beyond the catch-up window: its run is missed then. */
const RUN_MARGIN_MS = 300_000;

/**
 * Creates, updates or deletes a Temporal Schedule so that it equals its record. Concurrent calls
 * may write in any order, so each reads the record again after it has written.
 */
export const createScheduleSync =
  ({ db, taskQueue }: SyncDeps) =>
  async (client: Client, scheduleId: string): Promise<void> => {
    for (let round = 0, writtenVersion = -1; round < MAX_ROUNDS; round++) {
      const record = await findForTemporal(db, scheduleId);
      const version = record?.version ?? 0;
      if (version === writtenVersion) return;
      await (record
        ? createOrUpdate(client, record, taskQueue)
        : removeIfPresent(client, scheduleId));
      writtenVersion = version;
    }
  };

/** Ends an update without a change: the schedule must be made again. */
class OtherMemo extends Error {}

/**
 * Version 1 of a record is probably new, so this creates first; otherwise it updates first. Each
 * way falls back to the other. An update cannot change the memo: a schedule whose memo is encrypted, as 0.2.0 made
 * them, or names the queue that the installation had before, is deleted and created.
 * until 0.4: no memo is encrypted; remove `memoKeyId`.
 */
async function createOrUpdate(client: Client, record: Schedule, taskQueue: string): Promise<void> {
  const options = optionsOf(record, taskQueue);
  const { scheduleId, memo, ...changed } = options;
  const create = () => client.schedule.create(options);
  const update = async () => {
    try {
      await client.schedule.getHandle(scheduleId).update(({ raw, memo }) => {
        if (memoKeyId(raw) !== undefined || memo?.[OWNER] !== taskQueue) throw new OtherMemo();
        return changed;
      });
    } catch (error) {
      if (!(error instanceof OtherMemo)) throw error;
      await removeIfPresent(client, record.id);
      await create();
    }
  };
  try {
    await (record.version === 1 ? create() : update());
  } catch (error) {
    if (error instanceof ScheduleAlreadyRunning) return void (await update());
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    await create();
  }
}

async function removeIfPresent(client: Client, scheduleId: string): Promise<void> {
  try {
    await client.schedule.getHandle(temporalScheduleId(scheduleId)).delete();
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
  }
}

/** The SDK sends the priority of an action, but the type of its options does not name it. */
type TemporalScheduleOptions = ScheduleOptions &
  Required<Pick<ScheduleOptions, 'policies' | 'state'>> & { action: { priority: RunPriority } };

/**
 * The Temporal Schedule of a record. It allows all overlaps: overlaps are decided from the record,
 * since Temporal does not report which occurrences it skips.
 */
function optionsOf(record: Schedule, taskQueue: string): TemporalScheduleOptions {
  const { id, tenantId, name, jobType, timezone, startAt, endAt, catchupWindowSeconds, enabled } =
    record;
  const attributes = toSearchAttributes({ tenant: tenantId, jobType, record: id });
  return {
    scheduleId: temporalScheduleId(id),
    spec: {
      calendars: calendarsOf(timingOf(record).cron),
      timezone,
      jitter: maxDelaySeconds(record) * 1_000,
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
      args: [{ scheduleId: id } satisfies ScheduleWorkflowInput],
      typedSearchAttributes: attributes,
      staticSummary: `scheduled run of ${jobType}`,
      priority: priorityOf(tenantId),
      workflowExecutionTimeout:
        (catchupWindowSeconds + maxDelaySeconds(record)) * 1_000 + RUN_MARGIN_MS,
    },
    state: {
      paused: !enabled,
      note: `${name}: managed by Holdfast, which reverts changes made here`,
    },
    // Whose schedule it is must be readable without the keys that encrypt its input.
    memo: { [OWNER]: unencrypted(taskQueue) },
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

/** Two calendars when either day field is enough: within a calendar, all fields must match. */
function calendarsOf({ minute, hour, dayOfMonth, month, dayOfWeek, days }: Cron): Calendar[] {
  const common = {
    second: 0,
    minute: rangesOf(minute, (value) => value),
    hour: rangesOf(hour, (value) => value),
    month: rangesOf(month, (value) => assertDefined(MONTHS[value - 1], 'month')),
  };
  const inMonth = { dayOfMonth: rangesOf(dayOfMonth, (value) => value) };
  const inWeek = {
    dayOfWeek: rangesOf(dayOfWeek, (value) => assertDefined(WEEKDAYS[value], 'dayOfWeek')),
  };
  return days === 'either'
    ? [
        { ...common, ...inMonth },
        { ...common, ...inWeek },
      ]
    : [{ ...common, ...inMonth, ...inWeek }];
}

/** Joins consecutive values to ranges. `values` are sorted. */
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

type CalendarRange = { start: unknown; end?: unknown; step?: unknown };
type CalendarField = CalendarRange[] | number | undefined;

/** The fields of a calendar, and the ranges (start, end and step) of one that is omitted. */
const CALENDAR_FIELDS = {
  second: '0:0:1',
  minute: '0:0:1',
  hour: '0:0:1',
  dayOfMonth: '1:31:1',
  month: '',
  dayOfWeek: 'SUNDAY:SATURDAY:1',
  year: '',
} as const;

/** The calendars as sorted text. */
function calendarsFingerprint({ calendars = [] }: { calendars?: unknown[] }): string[] {
  const ranges = (field: CalendarField, omitted: string) => {
    if (field === undefined) return omitted;
    const list: CalendarRange[] = typeof field === 'number' ? [{ start: field }] : field;
    return list
      .map(({ start, end = start, step = 1 }) => [start, end, step].map(String).join(':'))
      .join();
  };
  return (calendars as Record<string, CalendarField>[])
    .map((calendar) =>
      Object.entries(CALENDAR_FIELDS)
        .map(([name, omitted]) => ranges(calendar[name], omitted))
        .join(' '),
    )
    .sort();
}

/** What must be equal, by the name that a reported difference has. */
function fingerprint(
  temporalSchedule: Pick<
    TemporalScheduleOptions | ScheduleDescription,
    'spec' | 'policies' | 'action' | 'state'
  >,
): Record<string, unknown> {
  const { spec, policies, action, state } = temporalSchedule;
  return {
    calendars: calendarsFingerprint(spec),
    intervalsAndSkips: [spec.intervals?.length ?? 0, spec.skip?.length ?? 0],
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

const memoKeyId = ({ memo }: ScheduleDescription['raw']): string | undefined => {
  const owner = memo?.fields?.[OWNER];
  return owner ? keyIdOf(owner) : undefined;
};

/** The key that encrypts the input, and the one that encrypts the memo, which must be none. */
const encryptionOf = ({ raw }: ScheduleDescription): (string | undefined)[] => {
  const [input] = raw.schedule?.action?.startWorkflow?.input?.payloads ?? [];
  return [input ? keyIdOf(input) : undefined, memoKeyId(raw)];
};

/** Compares a record with its Temporal Schedule; see `CompareTemporalSchedule`. */
export const createCompareTemporalSchedule =
  (temporal: TemporalConnection, { db, taskQueue }: SyncDeps): CompareTemporalSchedule =>
  async (scheduleId) => {
    const record = await findForTemporal(db, scheduleId);
    try {
      const found = await temporal.call(DEADLINE_MS, (client) =>
        client.schedule.getHandle(temporalScheduleId(scheduleId)).describe(),
      );
      if (!record) return 'unexpected';
      const expected: Record<string, unknown> = {
        ...fingerprint(optionsOf(record, taskQueue)),
        encryption: [temporal.encryptionKeyId, undefined],
        owner: taskQueue,
      };
      const actual: Record<string, unknown> = {
        ...fingerprint(found),
        encryption: encryptionOf(found),
        owner: found.memo?.[OWNER],
      };
      const different = Object.keys(expected).filter(
        (key) => JSON.stringify(expected[key]) !== JSON.stringify(actual[key]),
      );
      return different.length > 0 ? different.join(', ') : null;
    } catch (error) {
      if (error instanceof ScheduleNotFoundError) return record ? 'missing' : null;
      throw error;
    }
  };

const TEMPORAL_SCHEDULE_ID = /^schedule:(sch_[0-9a-z]{26})$/;

/** The Temporal Schedules of an installation, and the ids of those that may belong to it or to another one. */
type FoundSchedules = { own: Map<string, { paused: boolean }>; unreadable: string[] };

/**
 * Finds the Temporal Schedules of an installation by their id and the task queue in their memo: other
 * installations may share the namespace. The memo of a schedule from 0.2.0 may be encrypted, with a key that
 * this installation does not have.
 * until 0.4: each memo can be read; remove `unreadable`.
 */
export const findTemporalSchedules = (
  temporal: TemporalConnection,
  taskQueue: string,
): Promise<FoundSchedules> =>
  temporal.call(LIST_DEADLINE_MS, async (client) => {
    const own: FoundSchedules['own'] = new Map();
    const unreadable: string[] = [];
    for await (const { scheduleId, memo, state } of client.schedule.list({
      pageSize: PAGE_SIZE,
    })) {
      const id = TEMPORAL_SCHEDULE_ID.exec(scheduleId)?.[1];
      if (id === undefined) continue;
      const owner: unknown = memo?.[OWNER];
      if (owner === taskQueue) own.set(id, { paused: state.paused });
      else if (typeof owner !== 'string' && unreadable.length < MAX_TEMPORAL_SCHEDULES)
        unreadable.push(id);
      if (own.size === MAX_TEMPORAL_SCHEDULES) break;
    }
    return { own, unreadable };
  });

/** Lists the Temporal Schedules that are known to belong to this installation. */
export const createListTemporalSchedules =
  (temporal: TemporalConnection, taskQueue: string): ListTemporalSchedules =>
  async () =>
    (await findTemporalSchedules(temporal, taskQueue)).own;
