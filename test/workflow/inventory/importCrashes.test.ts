import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { admin } from '../../support/users.ts';
import { killAll, startProcess } from '../../support/processes.ts';

/** The API in this process, workers in processes of their own that can be killed. */
let api: TestApp;
beforeAll(async () => {
  api = await startApp({ HOLDFAST_ROLE: 'api' });
});
afterEach(killAll);
afterAll(() => api.stop());

const ROWS = 6_000;

test('a worker is killed while it takes a file in, three times: every row is there, once', async () => {
  const root = admin(api);
  const start = () => startProcess({ ...api.env, HOLDFAST_ROLE: 'worker' });
  let worker = await start();
  const file = [
    'cidr',
    ...Array.from({ length: ROWS }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`),
  ].join('\n');
  const { body: sent } = await root.post('/api/inventory/import?resource=prefixes', file, {
    'content-type': 'text/csv',
  });
  const read = async () => (await root.get(`/api/inventory/imports/${sent.id as string}`)).body;
  for (let kills = 0; kills < 3; kills++) {
    const before = (await read()).done as number;
    await eventually(read, ({ done }) => done > before || done === ROWS, { withinMs: 45_000 });
    await worker.kill();
    worker = await start();
  }
  const done = await eventually(read, (now) => now.done === ROWS, { withinMs: 90_000 });
  expect(done.counts).toEqual({ created: ROWS, updated: 0, deleted: 0, invalid: 0, conflict: 0 });
  const job = await eventually(
    async () => (await root.get(`/api/jobs/${sent.jobId as string}`)).body,
    ({ status }) => status === 'succeeded',
    { withinMs: 45_000 },
  );
  expect(job.attempts).toBeGreaterThan(1);
  const { db } = api.deps;
  const count = async (table: string, where: object = {}) =>
    Number((await db(table).where(where).count('* as n'))[0]?.n);
  expect([
    await count('prefixes'),
    await count('audit_entries', { action: 'inventory.prefix.create' }),
    await count('events', { type: 'inventory.prefix.created' }),
  ]).toEqual([ROWS, ROWS, ROWS]);
  const { rows } = await db.raw(
    'SELECT count(*) AS n FROM import_rows AS r JOIN prefixes AS p ON p.id = r.record_id',
  );
  expect(rows[0].n).toBe(ROWS);
}, 240_000);
