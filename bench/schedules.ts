import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Agent, request } from 'undici';
import { MINUTE_MS } from '../domain/shared/durations.ts';
import { startBenchEnvironment, startProgram } from './fixture.ts';
import { load } from './load.ts';
import { ms, quantile, type BenchResult } from './report.ts';

const SCHEDULES = 1_000;
const ROUNDS = 3;
const EVERY_MINUTES = 2;
const PATIENCE_MS = 4 * MINUTE_MS;

/** Delay of the jobs of many schedules with an occurrence in the same minute. */
export async function bench(): Promise<BenchResult[]> {
  const environment = await startBenchEnvironment();
  const env = {
    HOLDFAST_PORT: '0',
    HOLDFAST_TRUSTED_GATEWAYS: '127.0.0.0/8',
    HOLDFAST_LOG_LEVEL: 'info',
    TEMPORAL_ADDRESS: environment.temporalAddress,
    DATABASE_URL: environment.databaseUrl,
  };
  const product = await startProgram(
    ['processes/main.ts'],
    env,
    /"port":(\d+)[^]*the worker is polling/,
  );
  const agent = new Agent({ connections: 20 });
  try {
    const rounds: Lateness[] = [];
    // First one schedule alone, then all of them several times.
    const one = upcomingMinute(1);
    const batches = Array.from(
      { length: ROUNDS },
      (_, round) => new Date(one.getTime() + (1 + round * EVERY_MINUTES) * MINUTE_MS),
    );
    await createSchedule(agent, product.ready, { ...scheduleAt([one]), name: 'alone' });
    await load({ concurrency: 10, total: SCHEDULES }, (n) =>
      createSchedule(agent, product.ready, { ...scheduleAt(batches), name: `n${n}` }),
    );
    if (Date.now() > one.getTime()) throw new Error('Creating the schedules took too long');
    const alone = await measureLateness(environment.databaseUrl, one, 1);
    for (const at of batches)
      rounds.push(await measureLateness(environment.databaseUrl, at, SCHEDULES));
    await product.stop();
    return results(rounds, alone, await measureBareLateness(environment.temporalAddress));
  } finally {
    await product.stop();
    await agent.close();
    await environment.stop();
  }
}

/**
 * Delays of bare Temporal Schedules in milliseconds, of those that started within the time limit.
 */
async function measureBareLateness(temporalAddress: string): Promise<number[]> {
  const bare = await startProgram(
    ['bench/schedules/bare.ts'],
    { TEMPORAL_ADDRESS: temporalAddress },
    /bare on (\d+)/,
  );
  const ask = async (query: string) =>
    (await (
      await request(`http://127.0.0.1:${bare.ready}/?${query}`, { headersTimeout: 0 })
    ).body.json()) as number[];
  try {
    const at = upcomingMinute(1);
    await ask(`total=${SCHEDULES}&at=${at.toISOString()}`);
    if (Date.now() > at.getTime()) throw new Error('Creating the Temporal Schedules took too long');
    for (;;) {
      const began = await ask('total=0');
      if (began.length >= SCHEDULES || Date.now() > at.getTime() + PATIENCE_MS)
        return began.map((time) => time - at.getTime());
      await sleep(500);
    }
  } finally {
    await bare.stop();
  }
}

type Lateness = { began: number[]; notFired: number };

/** The start of a minute in the near future, with time to create the schedules before it. */
const upcomingMinute = (minutes: number): Date =>
  new Date((Math.floor(Date.now() / MINUTE_MS) + minutes + 1) * MINUTE_MS);

const scheduleAt = (times: readonly Date[]) => ({
  cronExpression: `${times.map((time) => time.getUTCMinutes()).join()} * * * *`,
  startAt: times[0],
  endAt: times.at(-1),
  jobType: 'core.echo',
  catchupWindowSeconds: 600,
});

async function createSchedule(agent: Agent, port: string, body: object): Promise<void> {
  const answer = await request(`http://127.0.0.1:${port}/api/schedules`, {
    method: 'POST',
    dispatcher: agent,
    body: JSON.stringify(body),
    headers: {
      'content-type': 'application/json',
      'x-service-actor-id': 'bench',
      'x-service-role-ids': 'operator',
    },
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 201) throw new Error(`${answer.statusCode} ${text}`);
}

/** Waits for the jobs of an occurrence. Returns their delays in milliseconds. */
async function measureLateness(
  url: string,
  scheduledTime: Date,
  expected: number,
): Promise<Lateness> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (;;) {
      const { rows } = await client.query<{ outcome: string; late: number | null }>(
        `SELECT r.outcome, extract(epoch FROM j.started_at - r.due_at) * 1000 ::float AS late FROM schedule_runs AS r LEFT JOIN jobs AS j ON j.id = r.job_id WHERE r.due_at = $1`,
        [scheduledTime],
      );
      const began = rows.flatMap(({ late }) => (late === null ? [] : [late]));
      const notFired = rows.filter(({ outcome }) => outcome !== 'fired').length;
      if (began.length + notFired >= expected) return { began, notFired };
      if (Date.now() > scheduledTime.getTime() + PATIENCE_MS)
        throw new Error(`Only ${began.length} of ${expected} jobs began`);
      await sleep(100);
    }
  } finally {
    await client.end();
  }
}

function results(
  rounds: readonly Lateness[],
  alone: Lateness,
  bare: readonly number[],
): BenchResult[] {
  const of = (part: number) =>
    rounds.map(({ began }) => quantile(began, part)).sort((a, b) => a - b);
  const [last, middle] = [of(1), of(0.5)];
  const lost = rounds.reduce((sum, { notFired }) => sum + notFired, 0);
  const row = (measure: string, value: number, reference: number): BenchResult => ({
    measure,
    value: ms(value),
    reference: `${ms(reference)} bare Temporal Schedules`,
    ratio: (value / reference).toFixed(2),
    target: '',
    met: true,
  });
  const missing = SCHEDULES - bare.length;
  return [
    row(
      `${SCHEDULES} schedules with one occurrence in the same minute, start of the last job, median of ${rounds.length} times (${last.map(ms).join(', ')})`,
      quantile(last, 0.5),
      quantile(bare, 1),
    ),
    row('the same, start of half of the jobs', quantile(middle, 0.5), quantile(bare, 0.5)),
    {
      measure: 'the same, occurrences without a job',
      value: String(lost),
      reference: `${missing} bare Temporal Schedules`,
      ratio: '',
      target: '0',
      met: lost === 0,
    },
    {
      measure: 'one schedule, start of its job',
      value: ms(alone.began[0] ?? 0),
      reference: '',
      ratio: '',
      target: '',
      met: true,
    },
  ];
}
