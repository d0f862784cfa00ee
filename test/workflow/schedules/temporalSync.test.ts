import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { ScheduleDescription } from '@temporalio/client';
import { MAX_TEMPORAL_SCHEDULES } from '../../../domain/dispatch/tasks.ts';
import { createTemporalSync } from '../../../services/schedules/temporalSync.ts';
import { createTemporalConnection, type TemporalConnection } from '../../../temporal/connection.ts';
import { findInTemporal } from '../../../temporal/removeInstallation.ts';
import {
  createCompareTemporalSchedule,
  createListTemporalSchedules,
  createScheduleSync,
} from '../../../temporal/scheduleSync.ts';
import { eventually } from '../../support/eventually.ts';
import {
  createMinutelySchedule,
  listAudit,
  readSchedule,
  timeoutSignal,
  useScheduleFixture,
} from '../../support/schedules.ts';
import { admin } from '../../support/users.ts';

const {
  fixture,
  clientOfNewTenant,
  withTemporalSchedule,
  describeTemporalSchedule,
  waitForTemporalSchedule,
  waitUntilNoTemporalSchedule,
} = useScheduleFixture();

/** Compares all schedules in full, and repairs their Temporal Schedules. */
const reconcile = async () => {
  await fixture.app.deps.db('schedules').update({ checked_at: new Date(0) });
  return fixture.app.deps.temporalSync.reconcile(timeoutSignal());
};
const countRepairs = async (id: string) =>
  (await listAudit(admin(fixture.app), id, '&action=schedule.repair')).length;

describe('a Temporal Schedule', () => {
  it('follows its record through changes, pause and deletion', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, {
      name: 'nightly',
      cronExpression: '5 4 13 * fri',
      timezone: 'Europe/London',
      jitterSeconds: 30,
      catchupWindowSeconds: 600,
    });
    const created = await waitForTemporalSchedule(id);
    expect(created.spec).toMatchObject({ timezone: 'Europe/London', jitter: 30_000 });
    expect(created.spec.calendars).toHaveLength(2);
    expect(created.action.priority?.fairnessKey).toMatch(/./);
    expect(created.policies).toMatchObject({ overlap: 'ALLOW_ALL', catchupWindow: 600_000 });
    expect(created.state).toMatchObject({ paused: false });
    expect(created.state.note).toContain('nightly');

    const waitUntilPaused = (paused: boolean) =>
      eventually(
        () => describeTemporalSchedule(id),
        (found) => found?.state.paused === paused,
      );
    await client.post(`/api/schedules/${id}/pause`, { reason: 'maintenance' }).expect(200);
    await waitUntilPaused(true);
    expect(await readSchedule(client, id)).toMatchObject({
      state: 'paused',
      enabled: false,
      pauseReason: 'maintenance',
      nextRuns: [],
    });
    await client.post(`/api/schedules/${id}/resume`, {}).expect(200);
    await waitUntilPaused(false);
    expect(await readSchedule(client, id)).toMatchObject({
      state: 'active',
      enabled: true,
      pauseReason: null,
      pausedAt: null,
    });

    await client.delete(`/api/schedules/${id}`).expect(204);
    await waitUntilNoTemporalSchedule(id);
  });

  it('of a tenant with many is spread', async () => {
    const client = clientOfNewTenant();
    const { tenantId } = await createMinutelySchedule(client);
    await fixture.app.deps
      .db('quota_usage')
      .insert({ tenant_id: tenantId, quota: 'schedules', change: 29 });
    const { id } = await createMinutelySchedule(client, { jitterSeconds: 5 });
    const created = await waitForTemporalSchedule(id);
    expect(created.spec.jitter).toBe(21_000);
    expect(created.action).toMatchObject({ workflowExecutionTimeout: 3_921_000 });
  });

  it('that equals its record is not repaired', async () => {
    const { id } = await createMinutelySchedule(clientOfNewTenant(), {
      cronExpression: '*/7 3,5 1-15/3 jan-mar sun',
      jitterSeconds: 5,
      startAt: '2026-01-01T00:00:00Z',
      endAt: '2036-01-01T00:00:00Z',
    });
    await waitForTemporalSchedule(id);
    await reconcile();
    await reconcile();
    expect(await countRepairs(id)).toBe(0);
  });

  it('that Temporal lists no more, because it lists only so far, is not taken for missing', async () => {
    const { id } = await createMinutelySchedule(clientOfNewTenant());
    await waitForTemporalSchedule(id);
    const { db, commit, writeUnaudited, log } = fixture.app.deps;
    const comparedAfter = async (listed: number) => {
      const compared: string[] = [];
      const ids = Array.from({ length: listed }, (_, n): [string, { paused: boolean }] => [
        `sch_${n}`,
        { paused: false },
      ]);
      const sync = createTemporalSync({
        ...{ db, commit, writeUnaudited, log, graceMs: 60_000 },
        listTemporalSchedules: () => Promise.resolve(new Map(ids)),
        compareWithTemporal: (compares) => {
          compared.push(compares);
          return Promise.resolve(null);
        },
      });
      await db('schedules').update({ checked_at: new Date() });
      await sync.reconcile(timeoutSignal());
      return compared;
    };
    // Once its task is done.
    await eventually(
      () => comparedAfter(0),
      (compared) => compared.includes(id),
    );
    expect(await comparedAfter(MAX_TEMPORAL_SCHEDULES)).not.toContain(id);
  });

  const update = (id: string, change: (found: ScheduleDescription) => object) =>
    withTemporalSchedule(id, (handle) =>
      handle.update((found) => ({ ...found, ...change(found) })),
    );

  /** Changes a field of the calendars. */
  const updateCalendars = (id: string, change: object) =>
    update(id, ({ spec }) => ({
      spec: { ...spec, calendars: spec.calendars?.map((each) => ({ ...each, ...change })) },
    }));

  it.each<[string, (id: string) => Promise<unknown>]>([
    ['moved to other seconds', (id) => updateCalendars(id, { second: 30 })],
    ['limited to a year', (id) => updateCalendars(id, { year: 2099 })],
    [
      'limited to every other month',
      (id) => updateCalendars(id, { month: { start: 'JANUARY', end: 'DECEMBER', step: 2 } }),
    ],
    ['deleted', (id) => withTemporalSchedule(id, (handle) => handle.delete())],
    ['paused', (id) => withTemporalSchedule(id, (handle) => handle.pause('by hand'))],
    ['moved to other times', (id) => update(id, () => ({ spec: { calendars: [{ hour: 4 }] } }))],
    [
      'changed to another workflow',
      (id) => update(id, ({ action }) => ({ action: { ...action, workflowType: 'job' } })),
    ],
    [
      'changed to another policy',
      (id) => update(id, ({ policies }) => ({ policies: { ...policies, overlap: 'SKIP' } })),
    ],
    ['limited', (id) => update(id, ({ state }) => ({ state: { ...state, remainingActions: 1 } }))],
  ])('that was %s is repaired', async (_, change) => {
    const { id } = await createMinutelySchedule(clientOfNewTenant(), {
      cronExpression: '0 0 13 * fri',
    });
    const comparable = ({ spec, policies, state, action }: ScheduleDescription) => [
      spec,
      policies,
      state,
      action.workflowType,
    ];
    const before = comparable(await waitForTemporalSchedule(id));
    await change(id);
    // Temporal lists a change some time after it was made.
    await eventually(
      async () => {
        if ((await countRepairs(id)) === 0) await reconcile();
        return countRepairs(id);
      },
      (repairs) => repairs > 0,
    );
    const isRepaired = (found: ScheduleDescription | null) =>
      found !== null && JSON.stringify(comparable(found)) === JSON.stringify(before);
    await eventually(() => describeTemporalSchedule(id), isRepaired);
    expect(comparable(await waitForTemporalSchedule(id))).toEqual(before);
  });

  it('without a record is deleted, and one of another installation is kept', async () => {
    const { id } = await createMinutelySchedule(clientOfNewTenant());
    const foreignId = 'schedule:sch_00000000000000000000000000';
    await fixture.app.deps.temporal.call(20_000, (client) =>
      client.schedule.create({
        scheduleId: foreignId,
        spec: {},
        action: {
          type: 'startWorkflow',
          workflowType: 'fireSchedule',
          taskQueue: 'elsewhere',
          args: [],
        },
        memo: { taskQueue: 'elsewhere' },
      }),
    );
    await waitForTemporalSchedule(id);
    await fixture.app.deps
      .db('schedules')
      .where({ id })
      .update({ deleted_at: new Date(), next_due_at: null });
    await eventually(
      async () => {
        await reconcile();
        return describeTemporalSchedule(id);
      },
      (found) => found === null,
    );
    // Deleting fails if the reconciler has deleted it.
    await fixture.app.deps.temporal.call(20_000, (client) =>
      client.schedule.getHandle(foreignId).delete(),
    );
  });

  it('belongs to the installation under its new task queue after that was renamed', async () => {
    const { id } = await createMinutelySchedule(clientOfNewTenant(), {
      cronExpression: '0 0 1 1 *',
    });
    await waitForTemporalSchedule(id);
    const { db, temporal, taskQueue: former } = fixture.app.deps;
    const taskQueue = `${former}-renamed`;
    const compare = createCompareTemporalSchedule(temporal, { db, taskQueue });
    expect(await compare(id)).toBe('action, owner');
    // Of a record that was changed, and as one that an earlier version has updated.
    await db('schedules').where({ id }).update({ version: 2 });
    await update(id, ({ action }) => ({ action: { ...action, taskQueue } }));
    expect(await compare(id)).toBe('owner');
    await temporal.call(20_000, (client) => createScheduleSync({ db, taskQueue })(client, id));
    expect(await compare(id)).toBeNull();
    const listed = createListTemporalSchedules(temporal, taskQueue);
    await eventually(
      async () => [...(await listed()).keys()],
      (ids) => ids.includes(id),
    );
    await withTemporalSchedule(id, (handle) => handle.delete());
  });

  it('is created if its outbox task was lost', async () => {
    const { id } = await createMinutelySchedule(clientOfNewTenant());
    await waitForTemporalSchedule(id);
    await withTemporalSchedule(id, (handle) => handle.delete());
    await fixture.app.deps.db('outbox').delete();
    await reconcile();
    await waitForTemporalSchedule(id);
  });
});

describe('a Temporal Schedule that is encrypted', () => {
  const keyOf = (id: string) => ({ id, key: randomBytes(32) });
  const [former, current] = [keyOf('former'), keyOf('current')];

  const withKeys = async <T>(
    codecKeys: { id: string; key: Buffer }[],
    work: (connection: TemporalConnection) => Promise<T>,
  ): Promise<T> => {
    const connection = createTemporalConnection({
      ...fixture.app.deps.config.temporal,
      codecKeys,
    });
    return work(connection).finally(() => connection.close());
  };

  /** Makes the Temporal Schedule of a record as 0.2.0 did: memo and input encrypted with a key. */
  async function encryptAsBefore(id: string, taskQueue = fixture.app.deps.taskQueue) {
    const { spec, action, policies, state } = await waitForTemporalSchedule(id);
    await withTemporalSchedule(id, (handle) => handle.delete());
    await withKeys([former], (connection) =>
      connection.call(20_000, (client) =>
        client.schedule.create({
          scheduleId: `schedule:${id}`,
          spec,
          action: { ...action, taskQueue },
          policies,
          state,
          memo: { taskQueue },
        }),
      ),
    );
  }

  const createYearly = () =>
    createMinutelySchedule(clientOfNewTenant(), { cronExpression: '0 0 1 1 *' });
  const isReadable = (found: ScheduleDescription | null): boolean =>
    found?.memo?.taskQueue === fixture.app.deps.taskQueue &&
    JSON.stringify(found.action.args ?? []).includes('sch_');

  it('follows a change of its record without the key', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, { cronExpression: '0 0 1 1 *' });
    await encryptAsBefore(id);
    await client.post(`/api/schedules/${id}/pause`, { reason: 'maintenance' }).expect(200);
    await eventually(
      () => describeTemporalSchedule(id),
      (found) => isReadable(found) && (found?.state.paused ?? false),
    );
  });

  it('is repaired by its installation, and kept by another one', async () => {
    const [own, foreign] = [await createYearly(), await createYearly()];
    await encryptAsBefore(own.id);
    await encryptAsBefore(foreign.id, 'elsewhere');
    await fixture.app.deps
      .db('schedules')
      .where({ id: foreign.id })
      .update({ deleted_at: new Date(), next_due_at: null });
    await eventually(
      () => findInTemporal(fixture.app.deps.temporal, fixture.app.deps.taskQueue),
      ({ schedules }) =>
        schedules.includes(`schedule:${own.id}`) && !schedules.includes(`schedule:${foreign.id}`),
    );
    await eventually(async () => {
      await reconcile();
      return describeTemporalSchedule(own.id);
    }, isReadable);
    await withTemporalSchedule(foreign.id, (handle) => handle.delete());
  });

  it('gets the first key of the installation, and its owner can be read without one', async () => {
    const { id } = await createYearly();
    await waitForTemporalSchedule(id);
    const { db, taskQueue } = fixture.app.deps;
    for (const keys of [[former], [current, former]])
      await withKeys(keys, async (connection) => {
        const compare = createCompareTemporalSchedule(connection, { db, taskQueue });
        expect(await compare(id)).toBe('encryption');
        await connection.call(20_000, (client) =>
          createScheduleSync({ db, taskQueue })(client, id),
        );
        expect(await compare(id)).toBeNull();
      });
    const found = await waitForTemporalSchedule(id);
    expect([found.memo, found.action.args]).toEqual([{ taskQueue }, [null]]);
    const [input] = found.raw.schedule?.action?.startWorkflow?.input?.payloads ?? [];
    expect(Buffer.from(input?.metadata?.['encryption-key-id'] ?? []).toString()).toBe('current');
  });
});
