import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { Static } from 'typebox';
import type { ImportRecord } from '../../../api/inventory/fileRoutes.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { killRounds } from '../../support/effort.ts';
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

type Import = Static<typeof ImportRecord>;
const ROWS = 6_000;

test('every row is imported once when workers are killed', async () => {
  const root = admin(api);
  const start = () => startProcess({ ...api.env, HOLDFAST_ROLE: 'worker' });
  let worker = await start();
  const file = [
    'cidr',
    ...Array.from({ length: ROWS }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`),
  ].join('\n');
  const sent = await root
    .post<Import>('/api/inventory/import?resource=prefixes', file, { 'content-type': 'text/csv' })
    .expect(202);
  const read = () => root.get<Import>(`/api/inventory/imports/${sent.id}`).expect(200);
  for (let kills = 0; kills < killRounds(); kills++) {
    const before = (await read()).done;
    await eventually(read, ({ done }) => done > before || done === ROWS, { withinMs: 45_000 });
    await worker.kill();
    worker = await start();
  }
  const done = await eventually(read, (now) => now.done === ROWS, { withinMs: 90_000 });
  const { created, ...others } = done.counts;
  expect([created, new Set(Object.values(others))]).toEqual([ROWS, new Set([0])]);
  const job = await eventually(
    () => root.get<JobRecord>(`/api/jobs/${sent.jobId}`).expect(200),
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
