import { describe, expect, it } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { admin } from '../support/users.ts';
import { everyMinute, patience, withSchedules } from '../support/schedules.ts';

const { bed, inTenant, schedule, untilMirrored } = withSchedules();

describe('a Temporal Schedule', () => {
  const repaired = async () => {
    await bed.app.deps.db('schedules').update({ checked_at: new Date(0) });
    return bed.app.deps.mirrors.compare(patience());
  };

  it('that is as its record says is left alone', async () => {
    const client = inTenant();
    const { id } = await everyMinute(client, {
      cronExpression: '*/7 3,5 1-15/3 jan-mar sun',
      jitterSeconds: 5,
      startAt: '2026-01-01T00:00:00Z',
      endAt: '2036-01-01T00:00:00Z',
    });
    await untilMirrored(id);
    await repaired();
    await repaired();
    expect(
      (await admin(bed.app).get(`/api/audit?subjectId=${id}&action=schedule.repair`)).body.items,
    ).toEqual([]);
  });

  it.each<[string, (id: string) => Promise<unknown>]>([
    ['deleted', (id) => schedule(id, (handle) => handle.delete())],
    ['paused', (id) => schedule(id, (handle) => handle.pause('by hand'))],
    [
      'given other times',
      (id) =>
        schedule(id, (handle) =>
          handle.update((found) => ({ ...found, spec: { calendars: [{ hour: 4 }] } })),
        ),
    ],
    [
      'given another workflow',
      (id) =>
        schedule(id, (handle) =>
          handle.update((found) => ({
            ...found,
            action: { ...found.action, workflowType: 'job' },
          })),
        ),
    ],
    [
      'given another policy',
      (id) =>
        schedule(id, (handle) =>
          handle.update((found) => ({
            ...found,
            policies: { ...found.policies, overlap: 'SKIP' },
          })),
        ),
    ],
    [
      'limited',
      (id) =>
        schedule(id, (handle) =>
          handle.update((found) => ({ ...found, state: { ...found.state, remainingActions: 1 } })),
        ),
    ],
  ])('that was %s is put right', async (_, harm) => {
    const client = inTenant();
    const { id } = await everyMinute(client, { cronExpression: '0 0 13 * fri' });
    const essence = (mirror: Awaited<ReturnType<typeof untilMirrored>>) =>
      mirror && [mirror.spec, mirror.policies, mirror.state, mirror.action.workflowType];
    const before = essence(await untilMirrored(id));
    await harm(id);
    // Temporal tells of a change some time after it was made.
    const repairs = () =>
      admin(bed.app)
        .get(`/api/audit?subjectId=${id}&action=schedule.repair`)
        .then(({ body }) => body.items.length as number);
    await eventually(
      async () => (await repairs()) > 0 || (await repaired(), (await repairs()) > 0),
      Boolean,
    );
    const found = await eventually(
      () => schedule(id, (handle) => handle.describe()).catch(() => null),
      (is) => JSON.stringify(essence(is)) === JSON.stringify(before),
    );
    expect(essence(found)).toEqual(before);
  });

  it('without a record is taken away, and that of somebody else is not', async () => {
    const { id } = await everyMinute(inTenant());
    const foreign = 'schedule:sch_00000000000000000000000000';
    const action = {
      type: 'startWorkflow' as const,
      workflowType: 'fireSchedule',
      taskQueue: 'elsewhere',
      args: [],
    };
    await bed.app.deps.link.call(5_000, (client) =>
      client.schedule.create({
        scheduleId: foreign,
        spec: {},
        action,
        memo: { taskQueue: 'elsewhere' },
      }),
    );
    await untilMirrored(id);
    await bed.app.deps
      .db('schedules')
      .where({ id })
      .update({ deleted_at: new Date(), next_due_at: null });
    await eventually(
      async () => {
        await repaired();
        return schedule(id, (handle) => handle.describe()).then(
          () => true,
          () => false,
        );
      },
      (there) => !there,
    );
    await bed.app.deps.link.call(5_000, (client) => client.schedule.getHandle(foreign).delete());
  });

  it('is made when Temporal was told nothing', async () => {
    const { id } = await everyMinute(inTenant());
    await untilMirrored(id);
    await schedule(id, (handle) => handle.delete());
    await bed.app.deps.db('outbox').delete();
    await repaired();
    await untilMirrored(id);
  });
});
