import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ping } from '../../../db/core/knex.ts';
import { readConfig } from '../../../platform/config.ts';
import { createLog } from '../../../platform/log.ts';
import { startProcess, type RunningProcess } from '../../../processes/start.ts';
import { testEnv } from '../../support/app.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';

let database: TestDatabase;
let running: RunningProcess;
let stopped: Promise<void> | undefined;

beforeAll(async () => {
  database = await createDatabase();
  const env = testEnv(database.url, { HOLDFAST_ROLE: 'api', HOLDFAST_STOP_DELAY_MS: '500' });
  running = await startProcess(readConfig(env), createLog('silent', false));
});
afterAll(async () => {
  await (stopped ?? running.stop());
  await database.drop();
});

const probe = async (path: string) => {
  const response = await fetch(`http://127.0.0.1:${running.port}${path}`);
  return {
    status: response.status,
    connection: response.headers.get('connection'),
    body: (await response.json()) as Record<string, unknown>,
  };
};

test('probes are answered from what the last round in the background found', async () => {
  await eventually(
    () => probe('/readyz'),
    ({ status }) => status === 200,
  );
  await running.deps.readiness.stop();
  let pings = 0;
  running.deps.db.on('query', ({ sql }: { sql: string }) => {
    if (sql.includes('transaction_read_only')) pings += 1;
  });
  for (const path of ['/readyz', '/routez', '/livez'])
    expect(await probe(path)).toMatchObject({ status: 200, connection: 'keep-alive' });
  expect(pings).toBe(0);
  await ping(running.deps.db);
  expect(pings).toBe(1);
});

test('a process that stops is not ready before its listener closes, and serves until then', async () => {
  stopped = running.stop();
  expect(await probe('/readyz')).toMatchObject({
    status: 503,
    body: { status: 'unready', stopping: true, components: { postgres: 'ready' } },
  });
  expect(await probe('/routez')).toEqual({
    status: 503,
    // Clients that keep connections open one to another process.
    connection: 'close',
    body: { status: 'closed' },
  });
  expect(await probe('/livez')).toMatchObject({ status: 200 });
  expect(await probe('/api/auth/providers/enabled')).toMatchObject({ status: 200 });
  await stopped;
  await expect(probe('/livez')).rejects.toThrow('fetch failed');
});
