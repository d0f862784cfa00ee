import { afterAll, beforeAll } from '@jest/globals';
import { startApp, type TestApp } from './app.ts';
import type { TestClient } from './client.ts';
import { eventually } from './eventually.ts';

const MINUTE_MS = 60_000;

/** The beginning of the minute that is `minutes` away from this one. */
export const minute = (minutes = 0, from = Date.now()): Date =>
  new Date(Math.floor(from / MINUTE_MS + minutes) * MINUTE_MS);

/** A schedule that is due every minute, of a job that is done at once. */
export async function everyMinute(client: TestClient, more: object = {}): Promise<any> {
  const answer = await client.post('/api/schedules', {
    name: 'minutely',
    cronExpression: '* * * * *',
    jobType: 'core.echo',
    payload: {},
    ...more,
  });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body;
}

/** As if the schedule had been made earlier, and nobody had looked after it since: `from` is the first time due. */
export const neglect = async ({ deps }: TestApp, id: string, from: Date): Promise<void> =>
  void (await deps
    .db('schedules')
    .where({ id })
    .update({ next_due_at: from, created_at: new Date(from.getTime() - MINUTE_MS) }));

/** The log of a schedule, earliest first. */
export const logOf = async (client: TestClient, id: string, more = ''): Promise<any[]> =>
  (
    await client.get(`/api/schedules/logs?limit=200&scheduleId=${id}${more}`)
  ).body.items.toReversed();

export const untilLog = (
  client: TestClient,
  id: string,
  isEnough: (runs: any[]) => boolean,
  withinMs = 20_000,
): Promise<any[]> => eventually(() => logOf(client, id), isEnough, { withinMs });

/** What a log says in short: `12:05 fired`, `12:06 skipped overlap`. */
export const inShort = (runs: readonly any[]): string[] =>
  runs.map(({ dueAt, outcome, reason }) =>
    [dueAt.slice(11, 16), outcome, ...(reason ? [reason] : [])].join(' '),
  );

export const clockTime = (at: Date): string => at.toISOString().slice(11, 16);

type Handle = ReturnType<
  Awaited<Parameters<Parameters<TestApp['deps']['link']['call']>[1]>[0]>['schedule']['getHandle']
>;

export const sleeping = { jobType: 'core.sleep', payload: { durationMs: 60_000 } };
export const patience = (): AbortSignal => AbortSignal.timeout(10_000);
export const jobOf = async (client: TestClient, id: string): Promise<any> =>
  (await client.get(`/api/jobs/${id}`)).body;

/** The product for all tests of a file, and what they do with its schedules. */
export function withSchedules() {
  const bed = {} as { app: TestApp };
  beforeAll(async () => {
    bed.app = await startApp();
  });
  afterAll(() => bed.app.stop());

  let tenants = 0;
  /** The Temporal Schedule of a schedule. */
  const schedule = <T>(
    id: string,
    use: (handle: Handle) => Promise<T>,
    of: TestApp = bed.app,
  ): Promise<T> =>
    of.deps.link.call(5_000, (client) => use(client.schedule.getHandle(`schedule:${id}`)));
  return {
    bed,
    /** An operator of a tenant that no other test has. */
    inTenant: (of: TestApp = bed.app): TestClient => of.client.as({ tenant: `t${tenants++}` }),
    fire: (id: string, dueAt: Date) => bed.app.deps.fires.fire(id, dueAt),
    schedule,
    untilMirrored: (id: string, of: TestApp = bed.app) =>
      eventually(
        () => schedule(id, (handle) => handle.describe(), of).catch(() => null),
        (found) => found !== null,
      ),
  };
}
