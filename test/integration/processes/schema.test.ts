import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import { migrateDown, migrateUp } from '../../../db/core/migrate.ts';
import { createLog } from '../../../platform/log.ts';
import { APP_VERSION } from '../../../platform/version.ts';
import { createSchemaState } from '../../../services/shared/schemaState.ts';
import { createClient, type ProblemBody } from '../../support/client.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { killAll, launchProcess, runArchiveCommand, runCommand } from '../../support/processes.ts';
import { testEnv } from '../../support/app.ts';

let database: TestDatabase;
let db: Knex;
let env: Record<string, string>;
beforeAll(async () => {
  database = await createDatabase();
  const log = createLog('silent', false);
  db = openDatabase({ url: database.url, poolSize: 3, statementTimeoutMs: 0, log });
  env = testEnv(database.url);
});
afterAll(async () => {
  await killAll();
  await db.destroy();
  await database.drop();
});

const readyz = async (base: string) => {
  const response = await fetch(`${base}/readyz`);
  return { status: response.status, body: (await response.json()) as object };
};

test('a process waits with all its work for its schema, and ends when a contract step makes it too old', async () => {
  await migrateDown(db);
  const launched = launchProcess(env);
  const { base } = await launched.ready;
  const client = createClient(base);
  expect(await readyz(base)).toMatchObject({
    status: 503,
    body: {
      status: 'unready',
      version: APP_VERSION,
      components: { postgres: 'schema_outdated', worker: 'starting' },
    },
  });
  expect((await fetch(`${base}/livez`)).status).toBe(200);
  const refused = await client.post<ProblemBody>('/api/jobs', { type: 'core.echo', payload: {} });
  expect(refused).toMatchObject({ status: 503, body: { code: 'unavailable' } });
  expect(refused.headers.get('retry-after')).toBe('5');
  // The probes may find out first what requests are refused for.
  await eventually(
    () => Promise.resolve(launched.output()),
    (output) => output.includes('waiting for the database schema'),
  );
  expect(launched.output()).not.toContain('the worker is polling');

  await migrateUp(db);
  await eventually(
    () => readyz(base),
    ({ body }) => 'status' in body && body.status === 'ready',
  );
  const job = await client
    .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} }, { prefer: 'wait=20' })
    .expect(201);
  expect(job.status).toBe('succeeded');

  const step = { name: '9002_contract', needs: '9001_expand', reason: 'nothing reads it' };
  await db('schema_contracts').insert(step);
  // It finds the step by itself within a time; one that starts finds it immediately.
  const next = launchProcess(env);
  expect(await next.exited).toBe(1);
  expect(next.output()).toContain(
    'This version of Holdfast is too old for the database schema: 9002_contract has removed what it uses ' +
      '(nothing reads it). Start a version that has the migration 9001_expand.',
  );
});

test('a running process finds a contract step that makes it too old', async () => {
  await db('schema_contracts').delete();
  const schema = createSchemaState({ db, log: createLog('silent', false) });
  await schema.untilCurrent(AbortSignal.timeout(10_000));
  const found = Promise.withResolvers<Error>();
  const stop = schema.watch(found.resolve, 20);
  expect([await schema.check(), await schema.isOpen()]).toEqual(['current', true]);
  await db('schema_contracts').insert({ name: '9002', needs: '9001', reason: 'test' });
  expect((await found.promise).message).toContain('too old');
  expect([await schema.check(), await schema.isOpen()]).toEqual(['too_new', false]);
  await stop();
});

test('a command says in a sentence that the schema does not fit', async () => {
  const failed = (stderr: unknown) => ({ status: 1, stdout: '', stderr });
  expect(await runCommand(env, 'verify-audit')).toEqual(
    failed(expect.stringMatching(/^Failed: This version of Holdfast is too old .+\n$/)),
  );
  await db('schema_contracts').delete();
  await migrateDown(db);
  const outdated = failed(
    'Failed: the database schema lacks 1 migration of this version. ' +
      'Run `npm run migrate -- up` first.\n',
  );
  const results = await Promise.all([
    runCommand(env, 'demo-data'),
    runArchiveCommand({ ...env, HOLDFAST_BACKUP_DIR: '/nowhere' }, 'register'),
  ]);
  expect(results).toEqual([outdated, outdated]);
  await migrateUp(db);
  expect(await runCommand(env, 'verify-audit')).toMatchObject({ status: 0 });
});
