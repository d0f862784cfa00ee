import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createClient } from '../../support/client.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { killAll, launchProcess } from '../../support/processes.ts';
import { testEnv } from '../../support/app.ts';

const PASSWORD = 'rotated-9b1f';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(async () => {
  await killAll();
  await database.drop();
});

type Line = { msg: string; level: string; err?: { code?: string; message: string } };

test('a process says in its log why it cannot use PostgreSQL, and shows no password', async () => {
  const url = new URL(database.url);
  url.password = PASSWORD;
  const launched = launchProcess(testEnv(url.href));
  const { base } = await launched.ready;
  const lines = () =>
    launched
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as Line);
  const warnings = () =>
    lines().filter(({ msg, err }) => msg === 'PostgreSQL cannot be used' && err?.code);
  const found = await eventually(warnings, ({ length }) => length > 0);
  expect(found[0]).toMatchObject({
    level: 'warn',
    err: { code: '28P01', message: expect.stringContaining('password authentication failed') },
  });
  expect((await createClient(base).get('/api/jobs')).status).toBe(503);
  await eventually(
    () => lines().filter(({ msg }) => msg === 'a request cannot be served'),
    ([line]) => line?.err !== undefined,
  );
  // It is asked four times a second.
  expect(warnings()).toHaveLength(1);
  expect(launched.output()).not.toContain(PASSWORD);
});
