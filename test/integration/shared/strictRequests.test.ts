import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { TObject } from 'typebox';
import { allRoutes } from '../../../api/app.ts';
import type { Route } from '../../../api/http/route.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';

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
