import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { assertDefined } from '../../domain/shared/assert.ts';
import { startAppOn, type TestApp } from '../support/app.ts';
import { createArchiveFolder } from '../support/backups.ts';
import { dereference } from '../support/contract/dereference.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { propertyRuns } from '../support/effort.ts';
import { attackOperation, inOrder, type Amount, type Attacker } from '../support/hostile/attack.ts';
import {
  readOperations,
  type OpenApiDocument,
  type Operation,
} from '../support/hostile/document.ts';
import { createExchange } from '../support/hostile/exchange.ts';
import { createJudge } from '../support/hostile/judge.ts';
import { describeFailures } from '../support/hostile/report.ts';
import { seedTargets } from '../support/hostile/targets.ts';
import { findVariants } from '../support/hostile/variants.ts';
import { admin, createUser, first, type Page } from '../support/users.ts';

/**
 * Requests with one mistake each, made from the OpenAPI document for every position of every operation: whatever is sent,
 * the answer is complete and one of those that the document declares. The default run makes some mistakes in each
 * position; PROPERTY_RUNS=100 makes all.
 */
let database: TestDatabase;
let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
let app: TestApp;
let exchange: ReturnType<typeof createExchange>;
let document: OpenApiDocument;
let operations: Operation[];

/** Jobs of the estate may wait for a busy machine. */
const SEED_MS = 180_000;

beforeAll(async () => {
  database = await createDatabase();
  archives = await createArchiveFolder();
  const complete = await startAppOn(database.url, archives.env);
  document = dereference(
    await complete.client.get<OpenApiDocument>('/api/openapi.json').expect(200),
  );
  const documented = readOperations(document);
  await seedTargets(complete, documented);
  await complete.stop();
  // From here on nothing runs in the background: a restore that is accepted restores nothing.
  app = await startAppOn(database.url, archives.env, { idle: true });
  exchange = createExchange(app.client.base);
  const variants = await findVariants(admin(app), documented);
  operations = inOrder([...documented, ...variants]);
}, SEED_MS);
afterAll(async () => {
  exchange.close();
  await app.stop();
  await database.drop();
  await archives.remove();
});

const ALL_RUNS_MS = 3_600_000;

/** A user who may do most things, but at one site only. */
async function siteOperator(): Promise<Attacker> {
  const sites = await admin(app).get<Page<{ id: string }>>('/api/inventory/sites').expect(200);
  const { client } = await createUser(app, { roleId: 'operator', siteId: first(sites).id });
  return { headers: client.identity };
}

/** The default run makes this share of what it could; more runs make all. */
const amountFor = (share: number): Amount => ({
  perPosition: propertyRuns(1),
  share: Math.min(1, share * propertyRuns(1)),
});

async function attackAll(attacker: Attacker, amount: Amount): Promise<string> {
  const campaign = { app, exchange, judge: createJudge(document), amount };
  const failures = [];
  for (const operation of operations)
    failures.push(...(await attackOperation(campaign, operation, attacker)));
  return failures.length === 0 ? '' : describeFailures(failures);
}

test(
  'whatever an administrator sends, the answer is documented',
  async () => {
    expect(await attackAll('administrator', amountFor(0.05))).toBe('');
  },
  ALL_RUNS_MS,
);

test(
  'whatever an operator of one site sends, the answer is documented',
  async () => {
    expect(await attackAll(await siteOperator(), amountFor(0.02))).toBe('');
  },
  ALL_RUNS_MS,
);

/** Sends bytes as they are and returns the status line of what comes back until the server closes. */
const sendBytes = (bytes: string): Promise<string> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(app.client.base);
    const socket = connect(Number(port), hostname, () => socket.end(bytes, 'latin1'));
    let received = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => (received += chunk));
    socket.once('error', () => undefined);
    socket.once('close', () => resolve(assertDefined(received.split('\r\n')[0], 'line')));
  });

const HEAD = 'GET /api/jobs HTTP/1.1\r\nHost: a\r\n';
test.each([
  ['a NUL byte in the path', 'GET /api/jobs/\0 HTTP/1.1\r\nHost: a\r\n\r\n', 'HTTP/1.1 400'],
  ['a NUL byte in a header', `${HEAD}X-Service-Actor-Id: a\0b\r\n\r\n`, 'HTTP/1.1 400'],
  ['a method that nobody has', 'STEAL /api/jobs HTTP/1.1\r\nHost: a\r\n\r\n', 'HTTP/1.1 400'],
  ['headers without end', `${HEAD}X-Long: ${'a'.repeat(70_000)}\r\n\r\n`, 'HTTP/1.1 431'],
  ['no host', 'GET /api/jobs HTTP/1.1\r\n\r\n', 'HTTP/1.1 400'],
  ['no path', 'GET http:// HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 'HTTP/1.1 404'],
  [
    'two lengths',
    'POST /api/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}',
    'HTTP/1.1 400',
  ],
  [
    'a chunk that is cut',
    'POST /api/auth/login/local HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{"a',
    'HTTP/1.1 400',
  ],
])('%s is refused', async (_, bytes, status) => {
  expect(await sendBytes(bytes)).toContain(status);
  expect((await app.client.get('/livez')).status).toBe(200);
});
