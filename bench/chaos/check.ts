import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type pg from 'pg';
import { ROOT } from '../fixture.ts';

/** What requests were answered with, and what has arrived. */
type Seen = {
  /** The job of each request that was accepted. */
  accepted: ReadonlySet<string>;
  /** Messages at the endpoint that were accepted there, by event. */
  arrived: ReadonlyMap<string, number>;
};

export type Checked = {
  jobs: number;
  /** Attempts that jobs have needed beyond their first. */
  repeated: number;
  deliveries: number;
  /** Messages that arrived again, because what had been sent was not recorded yet. */
  again: number;
  problems: string[];
};

type Job = { id: string; status: string; attempts: number; ends: number };
type Delivery = { event: string; status: string };

const JOBS = `
  SELECT j.id, j.status, j.attempts,
    (SELECT count(*)::integer FROM events AS e WHERE e.subject_id = j.id
       AND e.type IN ('job.succeeded', 'job.failed', 'job.cancelled')) AS ends
  FROM jobs AS j WHERE j.type = 'core.echo'`;

const DELIVERIES = 'SELECT d.event_id AS event, d.status FROM deliveries AS d';

/** Whether the chain of the audit log is whole, by the command that operators use. */
const auditProblems = (databaseUrl: string): Promise<string[]> =>
  promisify(execFile)(process.execPath, ['processes/cli/main.ts', 'verify-audit'], {
    cwd: ROOT,
    env: { ...process.env, DATABASE_URL: databaseUrl },
  }).then(
    () => [],
    (error: unknown) => [`the audit log: ${String(error)}`],
  );

/** Compares what was promised with what is recorded: each job done once, each event delivered. */
export async function checkPromises(
  client: pg.Client,
  databaseUrl: string,
  { accepted, arrived }: Seen,
): Promise<Checked> {
  const { rows: jobs } = await client.query<Job>(JOBS);
  const { rows: deliveries } = await client.query<Delivery>(DELIVERIES);
  const known = new Set(jobs.map(({ id }) => id));
  const problems = [
    ...[...accepted].filter((id) => !known.has(id)).map((id) => `job ${id} is lost`),
    ...jobs
      .filter(({ id }) => !accepted.has(id))
      .map(({ id }) => `job ${id} belongs to no request`),
    ...jobs
      .filter(({ status, ends }) => status !== 'succeeded' || ends !== 1)
      .map(({ id, status, ends }) => `job ${id} is ${status} and has ended ${ends} times`),
    ...deliveries
      .filter(({ status }) => status !== 'succeeded')
      .map(({ event, status }) => `the delivery of ${event} is ${status}`),
    ...deliveries
      .filter(({ event }) => !arrived.has(event))
      .map(({ event }) => `${event} has not arrived`),
    ...(deliveries.length === jobs.length
      ? []
      : [`${jobs.length} jobs have ${deliveries.length} deliveries`]),
    ...(await auditProblems(databaseUrl)),
  ];
  return {
    jobs: jobs.length,
    repeated: jobs.reduce((sum, { attempts }) => sum + attempts - 1, 0),
    deliveries: deliveries.length,
    again: [...arrived.values()].reduce((sum, count) => sum + count - 1, 0),
    problems,
  };
}
