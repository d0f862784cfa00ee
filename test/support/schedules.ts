import { afterAll, beforeAll } from '@jest/globals';
import type { EventRecord } from '../../api/events/schemas.ts';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import type { RunRecord, ScheduleRecord } from '../../api/schedules/schemas.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { MINUTE_MS } from '../../domain/shared/durations.ts';
import { startApp, type TestApp } from './app.ts';
import type { ProblemBody, TestClient } from './client.ts';
import { eventually } from './eventually.ts';

/** A page of a list. */
export type PageOf<T> = { items: T[]; nextCursor: string | null };

export type AuditItem = { action: string; actorId: string; after: Record<string, unknown> };

/** The start of a minute, counted from the minute that contains `from`. */
export const minuteFromNow = (minutes = 0, from = Date.now()): Date =>
  new Date(Math.floor(from / MINUTE_MS + minutes) * MINUTE_MS);

/** Counts minutes from the present one, also when the clock reaches the next minute. */
export function minutesFromNow(): (minutes: number) => Date {
  const start = Date.now();
  return (minutes) => minuteFromNow(minutes, start);
}

let minutelySchedules = 0;

/** Creates a schedule that runs every minute; its jobs end immediately. */
export const createMinutelySchedule = (
  client: TestClient,
  fields: object = {},
): Promise<ScheduleRecord> =>
  client
    .post<ScheduleRecord>('/api/schedules', {
      name: `minutely ${++minutelySchedules}`,
      cronExpression: '* * * * *',
      jobType: 'core.echo',
      payload: {},
      ...fields,
    })
    .expect(201);

/** Changes a schedule as if nothing had decided its occurrences since `from`, the first of them. */
export const backdateSchedule = async ({ deps }: TestApp, id: string, from: Date): Promise<void> =>
  void (await deps
    .db('schedules')
    .where({ id })
    .update({ next_due_at: from, created_at: new Date(from.getTime() - MINUTE_MS) }));

export const readSchedule = (client: TestClient, id: string): Promise<ScheduleRecord> =>
  client.get<ScheduleRecord>(`/api/schedules/${id}`).expect(200);

/** Runs a schedule now. */
export const triggerSchedule = (client: TestClient, id: string): Promise<RunRecord> =>
  client.post<RunRecord>(`/api/schedules/${id}/trigger`).expect(202);

/** The runs of a schedule, earliest first. */
export const listRuns = async (
  client: TestClient,
  id: string,
  query = '',
): Promise<RunRecord[]> => {
  const { items } = await client
    .get<PageOf<RunRecord>>(`/api/schedules/logs?limit=200&scheduleId=${id}${query}`)
    .expect(200);
  return items.toReversed();
};

export const waitForRuns = (
  client: TestClient,
  id: string,
  isEnough: (runs: RunRecord[]) => boolean,
  withinMs = 20_000,
): Promise<RunRecord[]> => eventually(() => listRuns(client, id), isEnough, { withinMs });

/** Summarizes runs: `12:05 fired`, `12:06 skipped overlap`. */
export const summarizeRuns = (runs: readonly RunRecord[]): string[] =>
  runs.map(({ dueAt, outcome, reason }) =>
    [dueAt.slice(11, 16), outcome, ...(reason === null ? [] : [reason])].join(' '),
  );

/** Summarizes runs without their times: `fired`, `skipped overlap`. */
export const summarizeOutcomes = (runs: readonly RunRecord[]): string[] =>
  summarizeRuns(runs).map((line) => line.slice('12:05 '.length));

export const clockTime = (at: Date): string => at.toISOString().slice(11, 16);

/** The data of the events of one type about a schedule. */
export const listEventData = async (
  client: TestClient,
  type: string,
  scheduleId: string,
): Promise<Record<string, unknown>[]> => {
  const { items } = await client
    .get<PageOf<EventRecord>>(`/api/events?type=${type}&subject=${scheduleId}`)
    .expect(200);
  return items.map(({ data }) => data as Record<string, unknown>);
};

/** The audit entries about a schedule. */
export const listAudit = async (
  client: TestClient,
  scheduleId: string,
  query = '',
): Promise<AuditItem[]> =>
  (await client.get<PageOf<AuditItem>>(`/api/audit?subjectId=${scheduleId}${query}`).expect(200))
    .items;

/** The invalid fields of a problem response, as pairs of pointer and code. */
export const fieldErrors = ({ errors = [] }: ProblemBody): [string, string][] =>
  errors.map(({ pointer, code }) => [pointer, code]);

type ScheduleHandle = ReturnType<
  Awaited<
    Parameters<Parameters<TestApp['deps']['temporal']['call']>[1]>[0]
  >['schedule']['getHandle']
>;

export const sleepingJob = { jobType: 'core.sleep', payload: { durationMs: 60_000 } };
export const timeoutSignal = (): AbortSignal => AbortSignal.timeout(10_000);
export const readJob = (client: TestClient, id: string): Promise<JobRecord> =>
  client.get<JobRecord>(`/api/jobs/${id}`).expect(200);

/** The id of the job that a run created. */
export const jobIdOf = ({ jobId }: { jobId?: string | null }): string =>
  assertDefined(jobId, 'run.jobId');

/** One application for all tests of a file, with helpers for its schedules. */
export function useScheduleFixture() {
  const fixture = {} as { app: TestApp };
  beforeAll(async () => {
    fixture.app = await startApp();
  });
  afterAll(() => fixture.app.stop());

  let tenants = 0;
  /** Passes the handle of the Temporal Schedule of a schedule to `callback`. */
  const withTemporalSchedule = <T>(
    id: string,
    callback: (handle: ScheduleHandle) => Promise<T>,
    testApp: TestApp = fixture.app,
  ): Promise<T> =>
    testApp.deps.temporal.call(20_000, (client) =>
      callback(client.schedule.getHandle(`schedule:${id}`)),
    );
  const describeTemporalSchedule = (id: string, testApp: TestApp = fixture.app) =>
    withTemporalSchedule(id, (handle) => handle.describe(), testApp).catch(() => null);
  return {
    fixture,
    /** An operator of a tenant that no other test uses. */
    clientOfNewTenant: (testApp: TestApp = fixture.app): TestClient =>
      testApp.client.as({ tenant: `t${tenants++}` }),
    fireOccurrence: (id: string, dueAt: Date) => fixture.app.deps.runner.fireOccurrence(id, dueAt),
    withTemporalSchedule,
    describeTemporalSchedule,
    waitForTemporalSchedule: async (id: string, testApp: TestApp = fixture.app) =>
      assertDefined(
        await eventually(
          () => describeTemporalSchedule(id, testApp),
          (found) => found !== null,
        ),
        'Temporal Schedule',
      ),
    waitUntilNoTemporalSchedule: (id: string) =>
      eventually(
        () =>
          withTemporalSchedule(id, (handle) => handle.describe()).then(
            () => true,
            () => false,
          ),
        (exists) => !exists,
      ),
  };
}
