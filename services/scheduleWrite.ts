import type { Work } from '../db/commit.ts';
import type { Knex } from '../db/core/knex.ts';
import { Schedule } from '../db/models/Schedule.ts';
import { isDue } from '../domain/schedules/occurrences.ts';
import { nextDueOf, timingOf } from '../domain/schedules/schedules.ts';
import type { Ids } from '../platform/ids.ts';
import { mirrorSchedule, type DispatchTask } from '../temporal/contracts.ts';
import { closeTimes, MAX_CLOSED, openTimes } from './scheduleAccounts.ts';
import { scheduleEvent, scheduleSubject, scheduleView } from './scheduleTrail.ts';
import type { ScheduleVerdicts } from './scheduleVerdicts.ts';

/** Fields whose change makes other times due, and those that only bound them. */
const RHYTHM = ['cronExpression', 'timezone', 'enabled'] as const;
const TIMES = [...RHYTHM, 'startAt', 'endAt', 'maxRuns'] as const;

/** What belongs to a change of a schedule, whatever it changes. */
export function createScheduleWrite({ ids, verdicts }: { ids: Ids; verdicts: ScheduleVerdicts }) {
  /** Accounts for what was due until now when a change changes that; returns what is due next. */
  async function retime(
    work: Work<DispatchTask>,
    trx: Knex,
    before: Schedule,
    after: Schedule,
  ): Promise<Date | null> {
    const differs = (field: (typeof TIMES)[number]) =>
      before[field]?.valueOf() !== after[field]?.valueOf();
    if (!TIMES.some(differs)) return before.nextDueAt;
    const next = nextDueOf(after, work.now);
    // Other bounds leave the times between them as they are: those may fire still.
    const stays =
      next !== null && !RHYTHM.some(differs)
        ? (dueAt: Date) => isDue(timingOf(after), dueAt)
        : () => false;
    const open = openTimes(before, work.now, MAX_CLOSED).find(stays) ?? null;
    await closeTimes(work, trx, ids, before, {
      reason: after.enabled ? 'changed' : 'disabled',
      next: open ?? next,
      except: stays,
    });
    return open ?? next;
  }

  /** Writes a changed schedule whose row is locked. `told` goes into its audit entry. */
  return async function write(
    work: Work<DispatchTask>,
    trx: Knex,
    before: Schedule,
    changed: Partial<Schedule>,
    action: string,
    told: object = {},
  ): Promise<Schedule> {
    const after = Object.assign(new Schedule(), before, changed);
    const nextDueAt = await retime(work, trx, before, after);
    if (before.enabled && !after.enabled)
      await verdicts.dropBuffered(work, trx, before, 'disabled', ['due']);
    const saved = await Schedule.query(trx).patchAndFetchById(before.id, {
      ...changed,
      nextDueAt,
      updatedAt: work.now,
      version: before.version + 1,
    });
    work.audit(action, scheduleSubject(saved), {
      before: scheduleView(before),
      after: { ...scheduleView(saved), payloadChanged: changed.payload !== undefined, ...told },
    });
    work.emit('schedule.updated', scheduleSubject(saved), scheduleEvent(saved));
    work.dispatch(mirrorSchedule(saved.id));
    return saved;
  };
}
