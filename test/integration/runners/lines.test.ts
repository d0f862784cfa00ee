import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord, LogRecord } from '../../../api/jobs/schemas.ts';
import { LOG_FULL } from '../../../domain/jobs/logLines.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { expectInvalid } from '../../support/problem.ts';
import { attemptCalls, createHandRunner } from '../../support/runner.ts';
import { admin, createUser, type Page } from '../../support/users.ts';

let app: TestApp;

beforeAll(async () => {
  app = await startApp();
  await createUser(app, 'viewer');
});
afterAll(() => app.stop());

/** A running attempt of a runner that is played by hand, and the lines that are in the log of its job. */
async function startAttempt(type: string) {
  const hand = await createHandRunner(app, type);
  const root = admin(app);
  const { id } = await root.post<JobRecord>('/api/jobs', { type, payload: {} }).expect(201);
  await hand.granted(id);
  const { attemptToken } = await hand.begin(id, 'run-1').expect(200);
  const { linesRequest, end } = attemptCalls(hand.client, id, attemptToken);
  return {
    id,
    linesRequest,
    /** Sends lines that are JSON already. */
    send: (firstLine: number, lines: readonly string[]) =>
      hand.client.post(`/api/runner/jobs/${id}/lines?firstLine=${firstLine}`, lines.join('\n'), {
        'attempt-token': attemptToken,
        'content-type': 'application/x-ndjson',
      }),
    /** Ends the attempt. Returns the lines with the message `line`. */
    async logged(): Promise<LogRecord[]> {
      await end({ result: {} }).expect(200);
      const { items } = await root.get<Page<LogRecord>>(`/api/jobs/${id}/logs`).expect(200);
      return items.filter(({ message }) => message === 'line');
    },
  };
}

test('data of a line of which JSON would lose a part is left out, and the line says so', async () => {
  const { send, logged } = await startAttempt('hand.strict');
  const deep = `${'['.repeat(101)}${']'.repeat(101)}`;
  const data = [
    ...['{"ns":1764288000123456789}', '{"a":{"b":1,"b":2}}', `{"deep":${deep}}`, '{"n":1}'],
    String.raw`{"a\u0000":"\ud800"}`,
  ];
  const lines = data.map((each) => `{"level":"info","message":"line","data":${each}}`);
  expect(await send(1, lines).expect(200)).toMatchObject({ have: 5 });
  await expectInvalid(send(6, ['{"level":"info","level":"warn","message":"x"}']), '/0/level');
  expect((await logged()).map((line) => line.data)).toEqual([
    { leftOut: '/ns is a number that a double (IEEE 754) cannot hold; send it as a string' },
    { leftOut: '/a/b is repeated in the same object' },
    { leftOut: 'is nested deeper than 100 levels' },
    { n: 1 },
    { 'a\uFFFD': '\uFFFD' },
  ]);
});

test('the time of a line is one in RFC 3339, or else that of the request', async () => {
  const { linesRequest, logged } = await startAttempt('hand.times');
  // The first two are as the runners of Holdfast write them.
  const kept = [
    ['2026-11-20T10:00:00.250Z', '2026-11-20T10:00:00.250Z'],
    ['2026-11-20T10:00:00.250999+00:00', '2026-11-20T10:00:00.250Z'],
    ['2026-11-20T12:00:00+02:00', '2026-11-20T10:00:00.000Z'],
  ] as const;
  const replaced = [
    '2026-11-20T10:00:00',
    '2026-11-20',
    '5',
    '0000-01-01T00:00:00Z',
    '0001-01-01T00:00:00+14:00',
    '2016-12-31T23:59:60Z',
    '9999-12-31T23:59:59Z',
  ];
  const times = [...kept.map(([at]) => at), ...replaced];
  const lines = times.map((at) => ({ level: 'info', message: 'line', at }));
  const before = Date.now();
  expect(await linesRequest(1, lines).expect(200)).toMatchObject({ have: times.length });
  const shown = (await logged()).map(({ at }) => at);
  expect(shown.slice(0, kept.length)).toEqual(kept.map(([, at]) => at));
  for (const at of shown.slice(kept.length))
    expect(Date.parse(at)).toBeGreaterThanOrEqual(before - 1_000);
});

test('a log ends after 10,000 lines, with one that says so', async () => {
  const { id, linesRequest } = await startAttempt('hand.full');
  await app.deps.db('jobs').where({ id }).update({ log_count: 9_998 });
  const send = (from: number, count: number) =>
    linesRequest(
      from,
      Array.from({ length: count }, (_, n) => ({ level: 'info', message: `line ${from + n}` })),
    ).expect(200);
  expect(await send(1, 1)).toMatchObject({ have: 1, remainingLines: 1 });
  expect(await send(2, 3)).toMatchObject({ have: 4, remainingLines: 0 });
  expect(await send(5, 1)).toMatchObject({ have: 5, remainingLines: 0 });
  const lines = await app.deps.db('job_logs').where({ job_id: id }).orderBy('line');
  expect(lines.slice(1)).toMatchObject([
    { line: 9_999, level: 'info', message: 'line 1' },
    { line: 10_000, level: 'warn', message: LOG_FULL },
  ]);
});
