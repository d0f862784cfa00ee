import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { findOverdue } from '../../../db/schedules/schedules.ts';
import { DAY_MS, HOUR_MS } from '../../../domain/shared/durations.ts';
import { createTemporalSync } from '../../../services/schedules/temporalSync.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { listRuns, timeoutSignal } from '../../support/schedules.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

const minutesFromNow = (minutes: number) =>
  new Date((Math.floor(Date.now() / 60_000) + minutes) * 60_000);
const later = (at: Date, ms: number) => new Date(at.getTime() + ms);

/** A daily schedule that other time zone data have made due at `savedAs`, and were saved with, two days ago. */
async function createDaily(occursAt: Date, savedAs: Date, fields: object = {}): Promise<string> {
  const { id } = await admin(app)
    .post<ScheduleRecord>('/api/schedules', {
      name: `daily ${Math.random()}`,
      cronExpression: `${occursAt.getUTCMinutes()} ${occursAt.getUTCHours()} * * *`,
      jobType: 'core.echo',
      payload: {},
      ...fields,
    })
    .expect(201);
  await app.deps
    .db('schedules')
    .where({ id })
    .update({ next_due_at: savedAs, updated_at: later(savedAs, -2 * DAY_MS) });
  return id;
}

const nextOf = async (id: string): Promise<Date> =>
  (await app.deps.db('schedules').where({ id }).first()).next_due_at;

const outcomesOf = async (id: string) =>
  (await listRuns(admin(app), id)).map(({ dueAt, outcome, reason }) => [dueAt, outcome, reason]);

describe('an occurrence to come that new time zone data have moved', () => {
  const repaired = async (id: string) => {
    const sync = createTemporalSync({
      ...app.deps,
      graceMs: 0,
      compareWithTemporal: () => Promise.resolve(null),
      listTemporalSchedules: () => Promise.resolve(new Map()),
    });
    await sync.reconcile(timeoutSignal());
    return nextOf(id);
  };

  test('ahead is due at its new time', async () => {
    const at = minutesFromNow(30);
    expect(await repaired(await createDaily(at, later(at, HOUR_MS)))).toEqual(at);
  });

  test('is repaired when the repair of another one fails', async () => {
    const at = minutesFromNow(40);
    const ids = [
      await createDaily(at, later(at, HOUR_MS)),
      await createDaily(at, later(at, HOUR_MS)),
    ];
    let writes = 0;
    const sync = createTemporalSync({
      ...app.deps,
      writeUnaudited: (write) =>
        ++writes === 1 ? Promise.reject(new Error('bad')) : app.deps.writeUnaudited(write),
      graceMs: 0,
      compareWithTemporal: () => Promise.resolve(null),
      listTemporalSchedules: () => Promise.resolve(new Map()),
    });
    await sync.reconcile(timeoutSignal());
    const next = await Promise.all(ids.map(nextOf));
    expect(next.filter((each) => each.getTime() === at.getTime())).toHaveLength(1);
  });

  test('back is due at its new time, after its former one', async () => {
    const at = minutesFromNow(90);
    expect(await repaired(await createDaily(at, later(at, -HOUR_MS)))).toEqual(later(at, -HOUR_MS));
  });

  test('is not due again if it has run early, by a clock that is ahead', async () => {
    const at = minutesFromNow(1);
    const id = await createDaily(at, at);
    await app.deps.runner.fireOccurrence(id, at, { now: at });
    expect(await repaired(id)).toEqual(later(at, DAY_MS));
  });
});

describe('a time that has come and is no occurrence any more', () => {
  const caughtUp = async (id: string) => {
    await app.deps.catchUp.catchUpAll(timeoutSignal());
    expect(await findOverdue(app.deps.db, new Date(), 100)).not.toContain(id);
    return { next: await nextOf(id), runs: await outcomesOf(id) };
  };

  test('is followed by the occurrence before it, which runs inside of the catch-up window', async () => {
    const at = minutesFromNow(-90);
    const id = await createDaily(at, later(at, HOUR_MS), { catchupWindowSeconds: 7_200 });
    expect(await caughtUp(id)).toEqual({
      next: later(at, DAY_MS),
      runs: [[at.toISOString(), 'fired', null]],
    });
  });

  test('has the occurrence before it recorded as missed after that', async () => {
    const at = minutesFromNow(-90);
    const id = await createDaily(at, later(at, HOUR_MS), { catchupWindowSeconds: 60 });
    expect(await caughtUp(id)).toEqual({
      next: later(at, DAY_MS),
      runs: [[at.toISOString(), 'skipped', 'missed']],
    });
  });

  test('is left for the next occurrence, without a run of what was before a change', async () => {
    const at = minutesFromNow(30);
    const early = await createDaily(at, minutesFromNow(-30));
    expect(await caughtUp(early)).toEqual({ next: at, runs: [] });
    const past = minutesFromNow(-90);
    const changed = await createDaily(past, later(past, HOUR_MS));
    await app.deps.db('schedules').where({ id: changed }).update({ updated_at: new Date() });
    expect(await caughtUp(changed)).toEqual({ next: later(past, DAY_MS), runs: [] });
  });
});
