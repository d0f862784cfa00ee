import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody } from '../../support/client.ts';
import { createUser } from '../../support/users.ts';

const BODY_TIMEOUT_MS = 2_000;
/** The time between two parts of a body. */
const PART_MS = 800;

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true, bodyTimeoutMs: BODY_TIMEOUT_MS });
});
afterAll(() => app.stop());

type Answer = { status: number | undefined; body: ProblemBody };

/** Sends a body part by part, as a client with a slow line does. */
async function sendSlowly(
  path: string,
  headers: Record<string, string>,
  parts: readonly string[],
): Promise<Answer> {
  const sent = request(app.client.base + path, { method: 'POST', agent: false, headers });
  const answer = new Promise<Answer>((resolve, reject) => {
    sent.once('response', (response) => {
      const status = response.statusCode;
      text(response).then((body) => {
        resolve({ status, body: JSON.parse(body) as ProblemBody });
      }, reject);
    });
    // After an answer that comes before the end of the body, the connection closes.
    sent.on('error', reject);
  });
  answer.catch(() => undefined);
  for (const part of parts) {
    sent.write(part);
    await sleep(PART_MS);
  }
  sent.end();
  return answer;
}

const IMPORT = '/api/inventory/import?resource=sites&dryRun=true';
const CSV = { 'content-type': 'text/csv' };
/** A header line, and 70 KB in each part. */
const FILE = [
  'name\n',
  ...['a', 'b', 'c', 'd'].map((letter) => `${letter.repeat(99)}\n`.repeat(700)),
];
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

test('an upload may take longer than other bodies', async () => {
  const { accessToken } = await createUser(app, 'operator');
  const [file, body] = await Promise.all([
    sendSlowly(IMPORT, { ...CSV, ...bearer(accessToken) }, FILE),
    sendSlowly(
      '/api/jobs',
      { 'content-type': 'application/json', ...bearer(accessToken) },
      Array.from('{"type"'),
    ),
  ]);
  expect(file).toMatchObject({ status: 202, body: { rows: 2_800 } });
  expect(body).toMatchObject({ status: 408, body: { code: 'invalid_request' } });
});

test('an upload whose sender has lost the session in the meantime is refused', async () => {
  const { client, accessToken } = await createUser(app, 'operator');
  const answer = sendSlowly(IMPORT, { ...CSV, ...bearer(accessToken) }, FILE.slice(0, 3));
  await sleep(PART_MS);
  await client.post('/api/auth/logout').expect(204);
  expect(await answer).toMatchObject({ status: 401, body: { code: 'session_invalid' } });
});
