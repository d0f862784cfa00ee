import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { TObject } from 'typebox';
import { allRoutes } from '../../../api/app.ts';
import type { Route } from '../../../api/http/route.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { sendRaw } from '../../support/rawHttp.ts';
import { createMinutelySchedule } from '../../support/schedules.ts';

/** Requests that mean nothing, or not what they seem to, are refused; two that mean the same are one. */
let app: TestApp;
let root: TestClient;
let routes: Route[];
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  root = app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' });
  routes = allRoutes(app.deps, 'test').filter(
    ({ permission, signedIn }) => (permission ?? signedIn) !== undefined,
  );
});
afterAll(() => app.stop());

type Pattern = { type?: string; pattern?: string };
const propertiesOf = (schema: TObject | undefined) =>
  Object.entries((schema?.properties ?? {}) as Record<string, Pattern>);

/** The path with ids that no record has. */
const pathOf = ({ path, params }: Route): string =>
  propertiesOf(params).reduce((text, [name, { pattern = '' }]) => {
    const [, prefix] = /^\^\(?(?:\?:)?([a-z]{3})_/.exec(pattern) ?? [];
    return text.replace(
      `{${name}}`,
      prefix === undefined ? 'nobody' : `${prefix}_01jd0cmxk5e5v8kyzwq0q8s3rt`,
    );
  }, path);

const errorsOf = async (request: Promise<{ status: number; body: ProblemBody }>) => {
  const { status, body } = await request;
  return { status, errors: body.errors?.map(({ pointer, code }) => [pointer, code]) };
};

describe('queries', () => {
  test('a flag with an empty value is no flag', async () => {
    const flags = routes.flatMap((route) =>
      propertiesOf(route.query)
        .filter(([, { type }]) => type === 'boolean')
        .map(([name]) => ({ route, name })),
    );
    expect(flags.length).toBeGreaterThan(80);
    for (const { route, name } of flags.filter(({ route: { params } }) => !params)) {
      const sent = root.send<ProblemBody>(route.method, `${route.path}?${name}=`);
      const { status, errors } = await errorsOf(sent);
      expect([route.path, status, errors]).toEqual([
        route.path,
        route.upload ? 415 : 400,
        route.upload ? undefined : expect.arrayContaining([[`/${name}`, 'type']]),
      ]);
    }
    await root.get('/api/jobs?count').expect(200);
    await root.get('/api/jobs?count&&internal=false').expect(200);
  });

  test('a stream refuses what only a page has', async () => {
    const { id } = await root
      .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} })
      .expect(201);
    for (const [path, parameter] of [
      ['/api/events', 'limit=50'],
      ['/api/events', 'sort=-sequence'],
      ['/api/events', 'count=true'],
      ['/api/events', 'facets=type'],
      ['/api/events', 'fields=id'],
      ['/api/events', 'until=2026-01-01T00:00:00Z'],
      [`/api/jobs/${id}/logs`, 'limit=200'],
    ] as const) {
      const { status, errors } = await errorsOf(
        root.get<ProblemBody>(`${path}?follow&${parameter}`),
      );
      expect([parameter, status, errors]).toEqual([
        parameter,
        400,
        [[`/${parameter.split('=')[0] ?? ''}`, 'notAllowed']],
      ]);
    }
  });
});

test('an operation without a body refuses every one but an empty object', async () => {
  const bodiless = routes.filter(
    ({ method, body, upload }) => (method === 'POST' || method === 'PUT') && !body && !upload,
  );
  expect(bodiless.length).toBeGreaterThan(5);
  for (const route of bodiless) {
    const path = pathOf(route);
    const statusOf = async (body: string) =>
      (await root.send<ProblemBody>(route.method, path, body)).status;
    for (const body of ['[]', '"x"', '1', '0', 'true', 'null', '{"a":1}'])
      expect([path, body, await statusOf(body)]).toEqual([path, body, 400]);
    for (const body of ['', '{}'])
      expect([path, body, await statusOf(body)]).not.toEqual([path, body, 400]);
  }
});

test('a HEAD with the tag of a record is 304, like a GET', async () => {
  const site = await root
    .post<{ id: string }>('/api/inventory/sites', { name: 'tagged' })
    .expect(201);
  const path = `/api/inventory/sites/${site.id}`;
  const { headers } = await root.get(path);
  const tag = { 'if-none-match': assertDefined(headers.get('etag'), 'ETag') };
  const statusOf = async (method: string, condition: Record<string, string>) =>
    (await sendRaw(root.base + path, { method, headers: { ...root.identity, ...condition } }))
      .status;
  for (const method of ['GET', 'HEAD']) expect(await statusOf(method, tag)).toBe(304);
  expect(await statusOf('HEAD', { 'if-none-match': '"1-0000000000000000"' })).toBe(200);
});

describe('a repeated request', () => {
  const keyed = (key: string) => ({ 'idempotency-key': key });
  const isReplay = (response: { status: number; headers: Headers }) => [
    response.status,
    response.headers.get('idempotent-replayed'),
  ];

  test('is the same with its names in another order, but not with other items of a list', async () => {
    const first = '{"type":"core.echo","payload":{"a":[1,2],"b":{"c":1,"d":2}}}';
    const again = '{"payload":{"b":{"d":2,"c":1},"a":[1,2]},"type":"core.echo"}';
    const other = '{"payload":{"b":{"d":2,"c":1},"a":[2,1]},"type":"core.echo"}';
    await root.post('/api/jobs', first, keyed('order')).expect(201);
    expect(isReplay(await root.post('/api/jobs', again, keyed('order')))).toEqual([201, 'true']);
    await root.post('/api/jobs', other, keyed('order')).expect(422);
  });

  test('is the same without a body and with an empty object', async () => {
    const { id } = await createMinutelySchedule(root, { overlapPolicy: 'allowAll' });
    const path = `/api/schedules/${id}/trigger`;
    await root.post(path, undefined, keyed('empty')).expect(202);
    expect(isReplay(await root.post(path, {}, keyed('empty')))).toEqual([202, 'true']);
  });

  test('is the same if the version before this one has remembered it', async () => {
    const { id } = await createMinutelySchedule(root, { overlapPolicy: 'allowAll' });
    for (const [path, body, status] of [
      ['/api/jobs', '{"type":"core.echo","payload":{"b":1,"a":2}}', 201],
      [`/api/schedules/${id}/trigger`, '{}', 202],
    ] as const) {
      const key = `older:${path}`;
      await root.post(path, body, keyed(key)).expect(status);
      const [fingerprint] = app.deps.vault.fingerprints(
        JSON.stringify(['POST', path, body]),
        JSON.stringify(['root', 'platform', key]),
      );
      const row = app.deps.db('idempotency_keys').where({ key });
      expect(await row.clone().update({ fingerprint })).toBe(1);
      expect(isReplay(await root.post(path, body, keyed(key)))).toEqual([status, 'true']);
      // Its process was lost before the commit.
      await row.clone().update({ subject_id: null, answer: null, lease_until: new Date(0) });
      expect(isReplay(await root.post(path, body, keyed(key)))).toEqual([status, null]);
    }
  });
});
