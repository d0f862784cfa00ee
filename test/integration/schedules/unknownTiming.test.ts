import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { resumeSchedules } from '../../../db/backups/resumeSchedules.ts';
import { HOUR_MS } from '../../../domain/shared/durations.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { expectProblem } from '../../support/problem.ts';
import { admin, type Page } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

const ago = new Date(Date.now() - HOUR_MS);

/** A schedule that was due an hour ago, with a timing that was saved by a process with other rules. */
async function createOld(saved: object, due = ago): Promise<string> {
  const name = `old ${Math.random()}`;
  const { id } = await admin(app)
    .post<ScheduleRecord>('/api/schedules', {
      ...{ name, cronExpression: '* * * * *', jobType: 'core.echo', payload: {} },
    })
    .expect(201);
  await app.deps
    .db('schedules')
    .where({ id })
    .update({ ...saved, next_due_at: due });
  return id;
}

const CASES = {
  'time zone': {
    ...{ saved: { timezone: 'Mars/Olympus' }, problem: /time zone Mars\/Olympus/ },
    mended: { timezone: 'UTC' },
  },
  expression: {
    ...{ saved: { cron_expression: '0 0 * * * *' }, problem: /cron expression/ },
    mended: { cronExpression: '0 0 * * *' },
  },
};
type Case = keyof typeof CASES;

test.each(Object.keys(CASES) as Case[])(
  'a schedule whose %s is not known any more is shown, and can be changed',
  async (name) => {
    const { saved, problem, mended } = CASES[name];
    const id = await createOld(saved);
    const client = admin(app);
    const path = `/api/schedules/${id}`;
    const { items } = await client.get<Page<ScheduleRecord>>('/api/schedules').expect(200);
    const shown = { timingProblem: expect.stringMatching(problem), nextRuns: [], state: 'active' };
    expect(items.find((item) => item.id === id)).toMatchObject(shown);
    const read = await client.get<ScheduleRecord>(path).expect(200);
    expect(read).toMatchObject(shown);
    await client.get(`${path}/days`).expect(200);
    await client.put(path, { ...read, name: `renamed ${id}` }).expect(200);
    await client.post(`${path}/trigger`, {}).expect(202);
    const interval = { since: ago.toISOString(), until: ago.toISOString() };
    for (const [action, body] of [
      ['backfill', interval],
      ['backfill/preview', interval],
    ] as const)
      await expectProblem(client.post(`${path}/${action}`, body), 409, 'schedule_not_runnable');
    expect(await client.post(`${path}/pause`, {}).expect(200)).toMatchObject({ state: 'paused' });
    await expectProblem(client.post(`${path}/resume`, {}), 409, 'schedule_not_runnable');
    expect(await client.put(path, mended).expect(200)).toMatchObject({ timingProblem: null });
    const { nextRuns } = await client.post<ScheduleRecord>(`${path}/resume`, {}).expect(200);
    expect(nextRuns).toHaveLength(5);
  },
);

test.each(Object.keys(CASES) as Case[])(
  'a schedule whose %s is not known any more is deleted, restored and left to others',
  async (name) => {
    const { db, runner, catchUp } = app.deps;
    const id = await createOld(CASES[name].saved);
    const others = await createOld({});
    await catchUp.catchUpAll(new AbortController().signal);
    expect(await runner.fireOccurrence(id, ago)).toEqual({ outcome: 'left_to_others' });
    const nextOf = async (of: string): Promise<Date> =>
      (await db('schedules').where({ id: of }).first()).next_due_at;
    expect(await nextOf(id)).toEqual(ago);
    expect((await nextOf(others)).getTime()).toBeGreaterThan(ago.getTime());
    const now = new Date();
    await resumeSchedules(
      db,
      [id, others].map((each) => ({ id: each, deleted: false })),
      now,
    );
    for (const each of [id, others])
      expect((await nextOf(each)).getTime()).toBeGreaterThan(now.getTime());
    await admin(app).delete(`/api/schedules/${id}`).expect(204);
  },
);
