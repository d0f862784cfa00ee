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

describe('nobody is named like Holdfast itself', () => {
  test('by a gateway', async () => {
    for (const actor of ['system', 'SYSTEM', 'anonymous', 'other-tenant', 'Holdfast']) {
      const asActor = app.client.as({ actor });
      await expectInvalid(asActor.get('/api/jobs'), '/x-service-actor-id');
      await expectInvalid(asActor.post('/api/jobs', echo), '/x-service-actor-id');
    }
    await app.client.as({ actor: 'system-1' }).get('/api/jobs').expect(200);
  });

  test('in what a request names', async () => {
    const root = app.client.as({ actor: 'root', roles: 'platform-admin' });
    const job = { ...echo, createdBy: 'system' };
    await expectInvalid(root.post('/api/jobs', job), '/createdBy');
    const request = {
      type: 'change',
      title: 'a change',
      payload: {},
      assignedRoleIds: ['approver'],
    };
    const assigned = { ...request, assignedUserIds: ['olga', 'System'] };
    await expectInvalid(root.post('/api/workflows', assigned), '/assignedUserIds/1');
    // Jobs of Holdfast are found.
    await root.get('/api/jobs?createdBy=system').expect(200);
  });

  test('as an account', async () => {
    const root = app.client.as({ actor: 'root', roles: 'platform-admin' });
    const reserved = { displayName: 'holdfast' };
    const create = async (path: string, body: object) =>
      (await root.post<{ id: string }>(path, body).expect(201)).id;
    const ada = await create('/api/users', { username: 'ada' });
    const robot = await create('/api/service-accounts', { name: 'robot', ownerId: ada });
    for (const [path, name, body] of [
      ['/api/users', 'username', {}],
      ['/api/service-accounts', 'name', { ownerId: ada }],
    ] as const) {
      const named = root.post(path, { ...body, [name]: 'System' });
      await expectInvalid(named, `/${name}`);
      const shown = root.post(path, { ...body, ...reserved, [name]: 'bob' });
      await expectInvalid(shown, '/displayName');
    }
    for (const path of [`/api/users/${ada}`, `/api/service-accounts/${robot}`])
      await expectInvalid(root.put(path, reserved), '/displayName');
    const renamed = root.put(`/api/service-accounts/${robot}`, { name: 'system' });
    await expectInvalid(renamed, '/name');
  });
});
