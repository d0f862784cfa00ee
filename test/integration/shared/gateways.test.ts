import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { expectInvalid, expectProblem } from '../../support/problem.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
});
afterAll(() => app.stop());

const echo = { type: 'core.echo', payload: {} };

describe('identity headers of a gateway that a browser can be made to send', () => {
  test('count only for the hosts of gateways, so that no page can change what its name means', async () => {
    const local = await startApp(
      { HOLDFAST_GATEWAY_HOSTS: 'localhost,127.0.0.1', HOLDFAST_PUBLIC_URL: 'https://hf.example' },
      { idle: true },
    );
    try {
      for (const host of ['127.0.0.1:8080', 'localhost', 'LOCALHOST:1', 'hf.example'])
        await local.client.get('/api/jobs', { host }).expect(200);
      for (const host of ['rb.evil.example:8080', 'localhost.evil.example', 'localhost@evil', ''])
        await expectProblem(local.client.get('/api/jobs', { host }), 401, 'identity_required');
    } finally {
      await local.stop();
    }
  });

  test('do not count for what a form of another site sends', async () => {
    const { id } = await app.client.post<JobRecord>('/api/jobs', echo).expect(201);
    const retry = (headers: Record<string, string>) =>
      app.client.post(`/api/jobs/${id}/cancel`, undefined, headers);
    const form = 'application/x-www-form-urlencoded';
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site', 'content-type': form },
      { origin: 'https://evil.example' },
      { origin: 'null', 'content-type': 'text/plain;charset=utf-8' },
      { origin: 'https://evil.example', 'content-type': 'multipart/form-data; boundary=x' },
    ])
      await expectInvalid(retry(headers), '/Origin');
    for (const headers of [
      {},
      { 'sec-fetch-site': 'same-origin' },
      { origin: app.client.base },
      // A browser asks before it sends these.
      { 'sec-fetch-site': 'cross-site', 'content-type': 'application/json' },
    ] as Record<string, string>[])
      expect([headers, (await retry(headers)).status]).not.toEqual([headers, 400]);
  });
});
