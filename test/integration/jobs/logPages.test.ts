import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Static } from 'typebox';
import type { JobRecord, LogRecord } from '../../../api/jobs/schemas.ts';
import { followLog } from '../../../services/jobs/followLog.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { Page } from '../../support/users.ts';

/** Lines of a log have up to 8,192 characters and 16 KiB of data: the size of what is read is bounded, too. */
const LINES = 600;
const LINE_BYTES = 8_000 + 16_000;
const MIB = 1_048_576;

let app: TestApp;
let id: string;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  const job = await app.client
    .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} })
    .expect(201);
  ({ id } = job);
  const { db } = app.deps;
  await db.raw(
    `INSERT INTO job_logs (job_id, line, attempt, level, message, data, at)
     SELECT ?, n, 1, 'info', repeat('x', 8000), json_build_object('text', repeat('y', 15989)), now()
     FROM generate_series(1, ?::int) AS n`,
    [id, LINES],
  );
  await db('jobs')
    .where({ id })
    .update({ log_count: LINES, status: 'succeeded', attempts: 1, finished_at: new Date() });
});
afterAll(() => app.stop());

test('a page of a log has a bounded size, and a cursor to the next one', async () => {
  const lines: number[] = [];
  const counts: number[] = [];
  for (let query = 'limit=1000'; query !== '';) {
    const { items, nextCursor } = await app.client
      .get<Page<Static<typeof LogRecord>>>(`/api/jobs/${id}/logs?${query}`)
      .expect(200);
    lines.push(...items.map(({ line }) => line));
    counts.push(items.length);
    query = nextCursor === null ? '' : `limit=1000&cursor=${nextCursor}`;
  }
  expect(lines).toEqual(Array.from({ length: LINES }, (_, i) => i + 1));
  expect(Math.max(...counts)).toBe(Math.floor((8 * MIB) / LINE_BYTES));
});

test('a job comes with its last lines, as many as have 1 MiB', async () => {
  const { logs } = await app.client.get<JobRecord>(`/api/jobs/${id}`).expect(200);
  const count = Math.ceil(MIB / LINE_BYTES);
  expect(logs.map(({ line }) => line)).toEqual(
    Array.from({ length: count }, (_, i) => LINES - count + 1 + i),
  );
});

test('a stream of a log reads little at a time', async () => {
  const { db } = app.deps;
  const read: number[] = [];
  const note = ({ rows }: { rows?: object[] }, { sql }: { sql: string }) => {
    if (sql.includes('job_logs')) read.push(rows?.length ?? LINES);
  };
  db.on('query-response', note);
  const lines: number[] = [];
  for await (const item of followLog(app.deps, id, 0, new AbortController().signal))
    if (item.kind === 'line') lines.push(item.line.line);
  db.off('query-response', note);
  expect(lines).toHaveLength(LINES);
  expect(Math.max(...read) * LINE_BYTES).toBeLessThan(MIB / 2);
});
