import { readFile } from 'node:fs/promises';
import type pg from 'pg';

/** Lines that a command prints in each attempt. */
export const LINES = 5;

/** A job at its end, with what its command has noted by itself. */
type EndedJob = {
  id: string;
  type: string;
  status: string;
  attempts: number;
  code: string | null;
  ends: number;
  starts: number[];
  lines: { attempt: number; message: string }[];
};

const QUERY = `
  SELECT j.id, j.type, j.status, j.attempts, j.error ->> 'code' AS code,
    (SELECT count(*)::integer FROM events AS e WHERE e.subject_id = j.id
       AND e.type IN ('job.succeeded', 'job.failed', 'job.cancelled')) AS ends,
    (SELECT coalesce(json_agg(l.attempt ORDER BY l.line), '[]') FROM job_logs AS l
       WHERE l.job_id = j.id AND l.message LIKE 'Attempt % started') AS starts,
    (SELECT coalesce(json_agg(json_build_object('attempt', l.attempt, 'message', l.message) ORDER BY l.line), '[]')
       FROM job_logs AS l WHERE l.job_id = j.id AND l.message LIKE 'line %') AS lines
  FROM jobs AS j WHERE j.pool <> '' ORDER BY j.id`;

/** Which attempts of a command have run, by job: each notes itself when it starts. */
async function readRuns(file: string): Promise<Map<string, string[]>> {
  const runs = new Map<string, string[]>();
  const text = await readFile(file, 'utf8').catch(() => '');
  for (const line of text.split('\n').filter(Boolean)) {
    const [job = '', what = ''] = line.split(' ');
    runs.set(job, [...(runs.get(job) ?? []), what]);
  }
  return runs;
}

function problemsOf(job: EndedJob, runs: readonly string[], single: string): string[] {
  const problems: string[] = [];
  if (job.ends !== 1) problems.push(`has ended ${job.ends} times`);
  if (job.type !== single && job.status !== 'succeeded')
    problems.push(`is ${job.status} (${job.code})`);
  if (new Set(runs).size !== runs.length)
    problems.push(`has run an attempt twice: ${runs.join(' ')}`);
  if (runs.includes('overlap')) problems.push('has run twice at a time');
  if (runs.length > job.attempts) problems.push(`has more runs than its ${job.attempts} attempts`);
  const expected = Array.from({ length: job.attempts }, (_, n) => n + 1);
  if (job.starts.join() !== expected.join())
    problems.push(`has the starts ${job.starts.join()} of ${job.attempts} attempts`);
  for (const attempt of expected) {
    const numbers = job.lines
      .filter((line) => line.attempt === attempt)
      .map(({ message }) => Number(message.slice(5)));
    const isOrdered = numbers.every((number, i) => number === i + 1);
    const isComplete = numbers.length === LINES;
    const mustBeComplete = job.status === 'succeeded' && attempt === job.attempts;
    if (!isOrdered || (mustBeComplete && !isComplete))
      problems.push(`has the lines ${numbers.join()} in attempt ${attempt}`);
  }
  return problems;
}

/**
 * What is wrong with the jobs of runners after all have ended; empty if nothing. Jobs of the type `single`
 * have one attempt, which a kill may cost.
 */
export async function checkJobs(client: pg.Client, runsFile: string, single: string) {
  const { rows } = await client.query<EndedJob>(QUERY);
  const runs = await readRuns(runsFile);
  const problems = rows.flatMap((job) =>
    problemsOf(job, runs.get(job.id) ?? [], single).map((problem) => `${job.id} ${problem}`),
  );
  const { rows: held } = await client.query<{ id: string }>(
    `SELECT id FROM jobs WHERE status IN ('queued', 'running')`,
  );
  problems.push(...held.map(({ id }) => `${id} has not ended`));
  const attempts = rows.reduce((sum, job) => sum + job.attempts, 0);
  const succeeded = rows.filter(({ status }) => status === 'succeeded').length;
  return { jobs: rows.length, succeeded, attempts, problems };
}
