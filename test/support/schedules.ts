import type { TestApp } from './app.ts';
import type { TestClient } from './client.ts';
import { eventually } from './eventually.ts';

const MINUTE_MS = 60_000;

/** The beginning of the minute that is `minutes` away from this one. */
export const minute = (minutes = 0, from = Date.now()): Date => new Date(Math.floor(from / MINUTE_MS + minutes) * MINUTE_MS);

/** A schedule that is due every minute, of a job that is done at once. */
export async function everyMinute(client: TestClient, more: object = {}): Promise<any> {
  const answer = await client.post('/api/schedules', { name: 'minutely', cronExpression: '* * * * *', jobType: 'core.echo', payload: {}, ...more });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body;
}

/** As if the schedule had been made earlier, and nobody had looked after it since: `from` is the first time due. */
export const neglect = async ({ deps }: TestApp, id: string, from: Date): Promise<void> =>
  void (await deps.db('schedules').where({ id }).update({ next_due_at: from, created_at: new Date(from.getTime() - MINUTE_MS) }));

/** The log of a schedule, earliest first. */
export const logOf = async (client: TestClient, id: string, more = ''): Promise<any[]> =>
  (await client.get(`/api/schedules/logs?limit=200&scheduleId=${id}${more}`)).body.items.toReversed();

export const untilLog = (client: TestClient, id: string, isEnough: (runs: any[]) => boolean, withinMs = 20_000): Promise<any[]> =>
  eventually(() => logOf(client, id), isEnough, { withinMs });

/** What a log says in short: `12:05 fired`, `12:06 skipped overlap`. */
export const inShort = (runs: readonly any[]): string[] =>
  runs.map(({ dueAt, outcome, reason }) => [dueAt.slice(11, 16), outcome, ...(reason ? [reason] : [])].join(' '));

export const clockTime = (at: Date): string => at.toISOString().slice(11, 16);
