import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
});
afterAll(() => app.stop());

type Versioned = { version: number };

/** Reads a record, changes its representation without a new version, and reads it with the tag. */
async function expectModified(path: string, change: () => Promise<unknown>) {
  const root = admin(app);
  const before = await root.get<Versioned>(path);
  const tag = { 'if-none-match': assertDefined(before.headers.get('etag'), 'ETag') };
  expect((await root.get(path, tag)).status).toBe(304);
  await change();
  const after = await root.get<Versioned>(path, tag);
  expect([after.status, after.body.version]).toEqual([200, before.body.version]);
  expect(after.body).not.toEqual(before.body);
}

test('quotas are modified when the tenant owns more', async () => {
  const root = admin(app);
  await root.post('/api/inventory/tenants', { id: 'acme', name: 'Acme' }).expect(201);
  const schedule = { name: 'one', cronExpression: '@daily', jobType: 'core.echo' };
  await expectModified('/api/quotas/acme', () =>
    app.client.as({ tenant: 'acme' }).post('/api/schedules', schedule).expect(201),
  );
});

test('a queued job is modified when it advances', async () => {
  const createJob = () =>
    app.client
      .post<JobRecord>('/api/jobs', {
        type: 'http.request',
        payload: { url: 'https://example.net/' },
      })
      .expect(201);
  const [first, second] = [await createJob(), await createJob()];
  await expectModified(`/api/jobs/${second.id}`, () =>
    app.client.post(`/api/jobs/${first.id}/cancel`, {}).expect(202),
  );
});
