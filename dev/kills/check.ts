import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import { ARTIFACT, artifactOf, LINES, runsFile } from './command.ts';

/** Why the only attempt of a job ends whose processes were killed. */
const KILLED = ['outcome_unknown', 'command_killed', 'command_not_run'];

/** A job at its end, with what its command has noted by itself. */
type EndedJob = {
  id: string;
  maxAttempts: number;
  status: string;
  attempts: number;
  code: string | null;
  ends: number;
  starts: number[];
  lines: { attempt: number; message: string }[];
  artifacts: { name: string; attempt: number; sha256: string }[];
};

const QUERY = `
  SELECT j.id, (j.retry_policy ->> 'maxAttempts')::integer AS "maxAttempts", j.status, j.attempts,
    j.error ->> 'code' AS code,
    (SELECT count(*)::integer FROM events AS e WHERE e.subject_id = j.id
       AND e.type IN ('job.succeeded', 'job.failed', 'job.cancelled')) AS ends,
    (SELECT coalesce(json_agg(l.attempt ORDER BY l.line), '[]') FROM job_logs AS l
       WHERE l.job_id = j.id AND l.message LIKE 'Attempt % started') AS starts,
    (SELECT coalesce(json_agg(json_build_object('attempt', l.attempt, 'message', l.message) ORDER BY l.line), '[]')
       FROM job_logs AS l WHERE l.job_id = j.id AND l.message LIKE 'line %') AS lines,
    (SELECT coalesce(json_agg(json_build_object('name', a.name, 'attempt', a.attempt, 'sha256', a.sha256)), '[]')
       FROM job_artifacts AS a WHERE a.job_id = j.id) AS artifacts
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

function endProblems(job: EndedJob): string[] {
  const problems: string[] = [];
  if (job.ends !== 1) problems.push(`has ended ${job.ends} times`);
  const wasKilled = job.maxAttempts === 1 && KILLED.includes(job.code ?? '');
  if (job.status !== 'succeeded' && !wasKilled) problems.push(`is ${job.status} (${job.code})`);
  if (job.status !== 'succeeded') return problems;
  const expected = {
    name: ARTIFACT,
    attempt: job.attempts,
    sha256: hash('sha256', artifactOf(job.attempts), 'hex'),
  };
  if (JSON.stringify(job.artifacts) !== JSON.stringify([expected]))
    problems.push(`has the artifacts ${JSON.stringify(job.artifacts)}`);
  return problems;
}

function runProblems(job: EndedJob, runs: readonly string[]): string[] {
  const problems: string[] = [];
  if (new Set(runs).size !== runs.length)
    problems.push(`has run an attempt twice: ${runs.join(' ')}`);
  if (runs.includes('overlap')) problems.push('has run twice at a time');
  if (runs.length > job.attempts) problems.push(`has more runs than its ${job.attempts} attempts`);
  if (job.status === 'succeeded' && !runs.includes(String(job.attempts)))
    problems.push('has succeeded without a run');
  return problems;
}

function logProblems(job: EndedJob): string[] {
  const problems: string[] = [];
  const expected = Array.from({ length: job.attempts }, (_, n) => n + 1);
  if (job.starts.join() !== expected.join())
    problems.push(`has the starts ${job.starts.join()} of ${job.attempts} attempts`);
  for (const attempt of expected) {
    const numbers = job.lines
      .filter((line) => line.attempt === attempt)
      .map(({ message }) => Number(message.slice('line '.length)));
    const isOrdered = numbers.every((number, i) => number === i + 1);
    const isComplete = numbers.length === LINES;
    const mustBeComplete = job.status === 'succeeded' && attempt === job.attempts;
    if (!isOrdered || (mustBeComplete && !isComplete))
      problems.push(`has the lines ${numbers.join()} in attempt ${attempt}`);
  }
  return problems;
}

/**
 * What is wrong with the jobs of runners after all have ended; `problems` is empty if nothing. Their type
 * has the command of `killedCommand(folder)`. A kill may cost a job its only attempt, if it has but one.
 */
export async function checkJobs(client: pg.Client, folder: string, expectedJobs: number) {
  const { rows } = await client.query<EndedJob>(QUERY);
  const runs = await readRuns(runsFile(folder));
  const problems = rows.flatMap((job) =>
    [...endProblems(job), ...runProblems(job, runs.get(job.id) ?? []), ...logProblems(job)].map(
      (problem) => `${job.id} ${problem}`,
    ),
  );
  if (rows.length !== expectedJobs)
    problems.push(`${rows.length} jobs exist, ${expectedJobs} were created`);
  const attempts = rows.reduce((sum, job) => sum + job.attempts, 0);
  const succeeded = rows.filter(({ status }) => status === 'succeeded').length;
  return { jobs: rows.length, succeeded, attempts, problems };
}
