import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';

let app: TestApp;
beforeAll(async () => {
  // No worker: jobs stay queued.
  app = await startApp(
    { HOLDFAST_QUEUE_LIMIT: '10', HOLDFAST_QUEUE_LIMIT_TENANT: '6' },
    { idle: true },
  );
});
afterAll(() => app.stop());

const ECHO = { type: 'core.echo', payload: {} };
const as = (tenant: string) => app.client.as({ roles: 'platform-admin', tenant });
const create = (tenant: string) => as(tenant).post<JobRecord & ProblemBody>('/api/jobs', ECHO);

/** Creates jobs, and expects that all are accepted. */
async function createMany(tenant: string, count: number): Promise<JobRecord[]> {
  const jobs: JobRecord[] = [];
  for (let n = 0; n < count; n++)
    jobs.push(await as(tenant).post<JobRecord>('/api/jobs', ECHO).expect(201));
  return jobs;
}

test('a queued job has its position; beyond the limits jobs are refused, each tenant for itself', async () => {
  const red = await createMany('red', 6);
  expect(red.map(({ queue }) => queue?.position)).toEqual([1, 2, 3, 4, 5, 6]);
  const refused = await create('red');
  expect(refused).toMatchObject({ status: 429, body: { code: 'queue_full' } });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(2);

  // All together may have 10: blue has its half of them, and a third tenant is not refused.
  await createMany('blue', 5);
  const busy = await create('blue');
  expect(busy).toMatchObject({ status: 503, body: { code: 'server_busy' } });
  expect(busy.headers.get('retry-after')).toBe('2');
  await createMany('green', 1);

  const position = async () =>
    (await as('red').get<JobRecord>(`/api/jobs/${red[5]?.id}`).expect(200)).queue;
  expect(await position()).toEqual({ position: 6, oldestSeconds: expect.any(Number) });
  for (const { id } of red.slice(0, 3)) {
    const cancelled = as('red').post<JobRecord>(`/api/jobs/${id}/cancel`).expect(202);
    expect(await cancelled).toMatchObject({ status: 'cancelled', queue: null });
  }
  expect((await position())?.position).toBe(3);
  await eventually(
    () => create('red'),
    ({ status }) => status === 201,
  );
});
