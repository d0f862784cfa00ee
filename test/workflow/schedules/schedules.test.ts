import { describe, expect, it } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { eventually } from '../../support/eventually.ts';
import {
  backdateSchedule,
  clockTime,
  createMinutelySchedule,
  jobIdOf,
  listAudit,
  listEventData,
  listRuns,
  minutesFromNow,
  readJob,
  readSchedule,
  sleepingJob,
  summarizeRuns,
  timeoutSignal,
  triggerSchedule,
  useScheduleFixture,
  waitForRuns,
  type PageOf,
} from '../../support/schedules.ts';
import { admin } from '../../support/users.ts';

const {
  fixture,
  fireOccurrence,
  clientOfNewTenant,
  withTemporalSchedule,
  waitForTemporalSchedule,
  waitUntilNoTemporalSchedule,
} = useScheduleFixture();

const listWorkflows = (scheduleId: string) =>
  fixture.app.deps.temporal.call(20_000, async (client) => {
    const found = [];
    const query = `HoldfastRecord = '${scheduleId}'`;
    for await (const { type, status } of client.workflow.list({ query }))
      found.push([type, status.name]);
    return found;
  });

/** Schedules of three tenants that Temporal knows before the same full minute. */
async function createInOneMinute() {
  for (;;) {
    await eventually(
      () => new Date().getSeconds(),
      (seconds) => seconds > 0 && seconds < 55,
    );
    const [client, pausedClient, busyClient] = [
      clientOfNewTenant(),
      clientOfNewTenant(),
      clientOfNewTenant(),
    ];
    const created = await createMinutelySchedule(client, {
      payload: { n: 1 },
      retryPolicy: { maxAttempts: 7 },
      maxRuns: 1,
      catchupWindowSeconds: 300,
    });
    const paused = await createMinutelySchedule(pausedClient, { enabled: false });
    const busy = await createMinutelySchedule(busyClient, {
      ...sleepingJob,
      catchupWindowSeconds: 300,
    });
    for (const { id } of [created, busy]) await waitForTemporalSchedule(id);
    const nextMinute = 60_000 * Math.floor(Date.now() / 60_000 + 1);
    const isBefore = ({ createdAt }: { createdAt: string }) =>
      nextMinute - Date.parse(createdAt) < 60_000;
    if ([created, paused, busy].every(isBefore))
      return { client, created, pausedClient, paused, busyClient, busy };
  }
}

describe('an occurrence', () => {
  it('is started by Temporal, and creates a run, a job, events and audit entries', async () => {
    const { client, created, pausedClient, paused, busyClient, busy } = await createInOneMinute();
    const { id, name } = created;
    const running = await triggerSchedule(busyClient, busy.id);

    const runs = await waitForRuns(client, id, (found) => found.length > 0, 75_000);
    const run = assertDefined(runs[0], 'run');
    expect(run).toMatchObject({
      kind: 'scheduled',
      outcome: 'fired',
      reason: null,
      actorId: 'alice',
    });
    expect(await readJob(client, jobIdOf(run))).toMatchObject({
      payload: { n: 1 },
      createdBy: 'alice',
      source: { kind: 'schedule', id },
      retryPolicy: { maxAttempts: 7 },
    });
    expect(await readSchedule(client, id)).toMatchObject({
      runCount: 1,
      state: 'ended',
      nextRuns: [],
      lastRun: { id: run.id },
    });
    expect(await listEventData(client, 'schedule.fired', id)).toEqual([
      {
        scheduleId: id,
        name,
        jobType: 'core.echo',
        kind: 'scheduled',
        dueAt: run.dueAt,
        runId: run.id,
        jobId: run.jobId,
      },
    ]);
    const entries = await listAudit(admin(fixture.app), id);
    expect(entries.map(({ action, actorId }) => [action, actorId])).toEqual(
      expect.arrayContaining([
        ['schedule.create', 'alice'],
        ['schedule.fire', 'alice'],
      ]),
    );
    // The schedule has ended.
    await waitUntilNoTemporalSchedule(id);

    const isScheduled = ({ kind }: { kind: string }) => kind === 'scheduled';
    const busyRuns = await waitForRuns(busyClient, busy.id, (found) => found.some(isScheduled));
    expect(busyRuns.find(isScheduled)).toMatchObject({
      outcome: 'skipped',
      reason: 'overlap',
      dueAt: run.dueAt,
    });
    expect(await listRuns(pausedClient, paused.id)).toEqual([]);
    await fixture.app.deps.catchUp.catchUpAll(timeoutSignal());
    expect(summarizeRuns(await listRuns(pausedClient, paused.id))).toEqual([
      `${clockTime(new Date(run.dueAt))} skipped paused`,
    ]);
    await busyClient.post(`/api/jobs/${jobIdOf(running)}/cancel`).expect(202);
    expect(await listWorkflows(id)).toEqual([['fireSchedule', 'COMPLETED']]);
  }, 120_000);

  it('has one run and one job if it is delivered twelve times concurrently', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, {
      overlapPolicy: 'allowAll',
      catchupWindowSeconds: 200,
    });
    const minute = minutesFromNow();
    await backdateSchedule(fixture.app, id, minute(-1));
    const results = await Promise.allSettled(
      Array.from({ length: 12 }, () => fireOccurrence(id, minute(-1))),
    );
    const fired = results.filter(
      (result) => result.status === 'fulfilled' && result.value.outcome === 'fired',
    );
    expect(fired).toHaveLength(1);
    expect(await listRuns(client, id, `&until=${minute(0).toISOString()}`)).toHaveLength(1);
    const jobs = await client.get<PageOf<JobRecord>>('/api/jobs').expect(200);
    expect(jobs.items).toHaveLength(1);
  });

  it('is decided by the record: other starts by Temporal do nothing', async () => {
    const client = clientOfNewTenant();
    const { id } = await createMinutelySchedule(client, { cronExpression: '0 0 1 1 *' });
    expect(await fireOccurrence(id, minutesFromNow()(0))).toEqual({ outcome: 'not_due' });
    await waitForTemporalSchedule(id);
    await withTemporalSchedule(id, (handle) => handle.trigger());
    const { info } = await eventually(
      () => withTemporalSchedule(id, (handle) => handle.describe()),
      (found) => found.info.recentActions.length > 0,
    );
    const { workflow } = assertDefined(info.recentActions[0], 'recent action').action;
    const result = await fixture.app.deps.temporal.call(20_000, (temporal) =>
      temporal.workflow.getHandle(workflow.workflowId).result(),
    );
    expect(result).toEqual({ outcome: 'not_due' });
    expect(await listRuns(client, id)).toEqual([]);
  });

  it('in the future is not due', async () => {
    const { id } = await createMinutelySchedule(clientOfNewTenant());
    expect(await fireOccurrence(id, minutesFromNow()(60))).toEqual({ outcome: 'not_due' });
  });
});
