import { expect, test } from '@jest/globals';
import { pino } from 'pino';
import { createWriteUnaudited } from '../../../db/core/commit.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { prepared } from '../../../db/core/prepared.ts';
import { View } from '../../../db/models/View.ts';
import { Job } from '../../../db/models/Job.ts';
import { logOptions } from '../../../platform/log.ts';
import { createRunLog } from '../../../services/jobs/runLog.ts';
import { withDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';

const CANARY = 'canary-77d0';

let db: Knex;
withDatabase((opened) => (db = opened));

type Line = { level: string; err: { type: string; message: string; stack: string; code?: string } };

function capture() {
  const lines: string[] = [];
  const log = pino(logOptions('debug', { role: 'cli', instance: 'test' }), {
    write: (text: string) => void lines.push(text),
  });
  return { log, lines, lastLine: () => JSON.parse(lines.at(-1) ?? '{}') as Line };
}

/** The log of an error, as a failed request and as a warning. */
async function logOf(work: () => Promise<unknown>) {
  const { log, lines, lastLine } = capture();
  const error = await Promise.resolve()
    .then(work)
    .catch((reason: unknown) => reason);
  log.child({ requestId: 'req_1' }).warn({ err: error }, 'failed');
  log.child({ error }).error({ error }, 'Activity failed');
  log.error({ err: error }, 'failed');
  return { text: lines.join(''), ...lastLine() };
}

const failures: [string, string, () => Promise<unknown>][] = [
  [
    'a statement of a builder',
    '23502',
    () => db('jobs').insert({ id: 'job_1', type: 'core.echo', payload: { note: CANARY } }),
  ],
  ['a raw statement', '42P01', () => db.raw('SELECT ? FROM nowhere', [CANARY])],
  ['an operator with a mark', '42P01', () => db.raw('SELECT a \\? ? FROM nowhere', [CANARY])],
  [
    'a statement of a transaction',
    '42P01',
    () => db.transaction((trx) => trx.raw('SELECT ?::text FROM nowhere', [CANARY])),
  ],
  ['a refused value', '22P02', () => db.raw('SELECT ?::int', [CANARY])],
  ['a refused document', '22P02', () => db.raw('SELECT ?::jsonb', [`{"a": ${CANARY}`])],
  [
    'a refused value of several lines',
    '22P02',
    () => db.raw('SELECT ?::inet', [`x\n    at ${CANARY}`]),
  ],
  [
    'a statement of a model',
    '23502',
    () => View.query(db).insert({ id: 'view_1', name: CANARY }).execute(),
  ],
  ['a prepared statement', '22P02', () => prepared(db, 'SELECT ?::int', [CANARY])],
];

test.each(failures)('the log has no value of %s that fails', async (_case, code, work) => {
  const { text, err } = await logOf(work);
  expect(text).not.toContain(CANARY);
  expect(err.code).toBe(code);
});

test('the log says which statement has failed and where', async () => {
  const select = (from: Knex) => logOf(() => from.raw('SELECT ?::int', ['x']));
  for (const { err } of [await select(db), await db.transaction(select)]) {
    expect(err.message).toBe('SELECT $1::int - PostgreSQL does not accept a value');
    expect(err.stack).toMatch(/^DatabaseError: SELECT .*\n {4}at /);
  }
});

test('causes and parts of an error have no data either', async () => {
  const { text, err } = await logOf(() => {
    const parse = (): unknown => JSON.parse(`${CANARY}!`);
    const answer = Object.assign(new Error('refused', { cause: error(parse) }), { body: CANARY });
    throw new AggregateError([answer, Object.assign(new Error('b'), { code: 'EPIPE' })], 'both');
  });
  expect(text).not.toContain(CANARY);
  expect(err).toMatchObject({
    type: 'AggregateError',
    message: 'both',
    errors: [
      { message: 'refused', cause: { message: 'The text is not valid JSON' } },
      { message: 'b', code: 'EPIPE' },
    ],
  });
});

function error(work: () => unknown): unknown {
  try {
    return work();
  } catch (thrown) {
    return thrown;
  }
}

test('lines of a job that cannot be written are not in the log, and the warning is written once', async () => {
  const { log, lines } = capture();
  const job = Job.fromDatabaseJson({ id: 'job_1', run_id: 'run_1', attempts: 1, log_count: 0 });
  let writes = 0;
  const write = createWriteUnaudited({ db });
  const runLog = createRunLog({
    writeUnaudited: (statement) => {
      writes += 1;
      return write((inner, now) => statement(inner, now));
    },
    log,
    job,
  });
  await db.raw('ALTER TABLE job_logs RENAME TO hidden_job_logs');
  try {
    runLog.log('info', `${CANARY} 1`);
    await eventually(
      () => writes,
      (count) => count > 0,
    );
    runLog.log('info', `${CANARY} 2`);
    await eventually(
      () => writes,
      (count) => count > 2,
    );
    await runLog.stopFlushing();
  } finally {
    await db.raw('ALTER TABLE hidden_job_logs RENAME TO job_logs');
  }
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('could not write job log lines yet');
  expect(lines.join('')).not.toContain(CANARY);
});
