import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord, LogRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { expectInvalid } from '../../support/problem.ts';
import { attemptCalls, createHandRunner } from '../../support/runner.ts';
import { admin, type Page } from '../../support/users.ts';

let app: TestApp;

beforeAll(async () => void (app = await startApp()));
afterAll(() => app.stop());

/** A running attempt of a runner that is played by hand, and the lines that are in the log of its job. */
async function startAttempt(type: string) {
  const hand = await createHandRunner(app, type);
  const root = admin(app);
  const { id } = await root.post<JobRecord>('/api/jobs', { type, payload: {} }).expect(201);
  await hand.granted(id);
  const { attemptToken } = await hand.begin(id, 'run-1').expect(200);
  const { end } = attemptCalls(hand.client, id, attemptToken);
  return {
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
  const data = ['{"ns":1764288000123456789}', '{"a":{"b":1,"b":2}}', `{"deep":${deep}}`, '{"n":1}'];
  const lines = data.map((each) => `{"level":"info","message":"line","data":${each}}`);
  expect(await send(1, lines).expect(200)).toMatchObject({ have: 4 });
  await expectInvalid(send(5, ['{"level":"info","level":"warn","message":"x"}']), '/0/level');
  expect((await logged()).map((line) => line.data)).toEqual([
    { leftOut: '/ns is a number that a double (IEEE 754) cannot hold; send it as a string' },
    { leftOut: '/a/b is repeated in the same object' },
    { leftOut: 'is nested deeper than 100 levels' },
    { n: 1 },
  ]);
});
