import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { MAX_RESULT_BYTES } from '../../../domain/jobs/jobs.ts';
import { serializeResult } from '../../../services/shared/serializeResult.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { attemptCalls, createHandRunner } from '../../support/runner.ts';
import { admin, createUser } from '../../support/users.ts';

let app: TestApp;

beforeAll(async () => {
  app = await startApp();
  await createUser(app, 'viewer');
});
afterAll(() => app.stop());

/** Ends the attempt of a job with a result, as a runner sends it. Returns the job. */
async function jobWith(type: string, sent: object | string): Promise<JobRecord> {
  const hand = await createHandRunner(app, type);
  const root = admin(app);
  const { id } = await root.post<JobRecord>('/api/jobs', { type, payload: {} }).expect(201);
  await hand.granted(id);
  const { attemptToken } = await hand.begin(id, 'run-1').expect(200);
  const { end } = attemptCalls(hand.client, id, attemptToken);
  await end(sent as object).expect(200);
  return root.get<JobRecord>(`/api/jobs/${id}`).expect(200);
}

/** A result with this number of bytes as JSON. */
const resultOf = (bytes: number) => ({ text: 'x'.repeat(bytes - '{"text":""}'.length) });

test('the largest result that is allowed can be sent', async () => {
  const { status, result } = await jobWith('hand.largest', {
    result: resultOf(MAX_RESULT_BYTES),
  });
  expect(status).toBe('succeeded');
  expect(JSON.stringify(result)).toHaveLength(MAX_RESULT_BYTES);
});

test('characters that cannot be stored are replaced in results and failures', async () => {
  const { result } = await jobWith(
    'hand.characters',
    String.raw`{"result":{"k\u0000":["\ud800x","\ud83d\ude00"]}}`,
  );
  expect(result).toEqual({ 'k\uFFFD': ['\uFFFDx', '\u{1F600}'] });
  const failure = String.raw`{"failure":{"code":"busy","message":"a\u0000b\udfff","retryable":false}}`;
  const { error } = await jobWith('hand.message', failure);
  expect(error).toMatchObject({ code: 'busy', message: 'a\uFFFDb\uFFFD' });
});

test('lines that the runner has dropped are counted in the log', async () => {
  const { logs } = await jobWith('hand.dropped', { result: {}, droppedLines: 290_002 });
  expect(logs.map(({ message }) => message)).toContain(
    'Lines of attempt 1 that were left out: 290002',
  );
  const whole = await jobWith('hand.whole', { result: {}, droppedLines: 0 });
  expect(whole.logs.filter(({ message }) => message.includes('left out'))).toEqual([]);
});

test('a result that is sent in ASCII has the size that it has without escapes', async () => {
  const text = 'я'.repeat(MAX_RESULT_BYTES / 2 - 20);
  const ascii = `{"result":{"text":"${text.replaceAll('я', '\\u044f')}"}}`;
  expect((await jobWith('hand.ascii', ascii)).status).toBe('succeeded');
});

test('a job with a larger result fails with the reason', async () => {
  const { status, error } = await jobWith('hand.larger', {
    result: resultOf(MAX_RESULT_BYTES + 1),
  });
  expect(status).toBe('failed');
  expect(error).toMatchObject({ code: 'result_too_large' });
});

/** JSON of an object with this number of levels. */
const nested = (levels: number): string =>
  `${'{"value":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;

test('a result may have 99 levels, from runners and from modules', async () => {
  const { status, result } = await jobWith('hand.deepest', `{"result":${nested(99)}}`);
  expect([status, JSON.stringify(result)]).toEqual(['succeeded', nested(99)]);
  await expect(jobWith('hand.deeper', `{"result":${nested(100)}}`)).rejects.toThrow(/400/);
  expect(serializeResult(JSON.parse(nested(99)) as object)).toBe(nested(99));
  expect(() => serializeResult(JSON.parse(nested(100)) as object)).toThrow(/99 levels/);
});

test('a deeper result of an earlier version, such as of a backup, can be read', async () => {
  const { id } = await jobWith('hand.earlier', { result: {} });
  await app.deps
    .db('jobs')
    .where({ id })
    .update({ result: nested(4_000) });
  const { result } = await admin(app).get<JobRecord>(`/api/jobs/${id}`).expect(200);
  expect(result).toHaveProperty('value');
});
