import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { PROBLEMS } from '../../api/kit/problem.ts';
import type { Route } from '../../api/kit/route.ts';
import { allRoutes } from '../../api/app.ts';
import { EVENT_DATA } from '../../domain/events/events.ts';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
let document: any;
let routes: Route[];
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' });
  document = (await app.client.get('/api/openapi.json')).body;
  routes = allRoutes(app.deps, 'test');
});
afterAll(() => app.stop());

/** What interface.md promises of the areas that are built. */
const PROMISED = [
  'POST /api/jobs',
  'GET /api/jobs',
  'GET /api/jobs/{jobId}',
  'GET /api/jobs/{jobId}/logs',
  'GET /api/rbac',
  'GET /api/rbac/summary',
  'POST /api/rbac/assignments',
  'DELETE /api/rbac/assignments/{id}',
  'POST /api/rbac/provider-mappings',
  'DELETE /api/rbac/provider-mappings/{id}',
  'GET /api/auth/providers',
  'POST /api/auth/providers',
  'GET /api/auth/providers/{id}',
  'PUT /api/auth/providers/{id}',
  'DELETE /api/auth/providers/{id}',
  'POST /api/auth/providers/{id}/test',
  'GET /api/auth/providers/enabled',
  'POST /api/auth/login/local',
  'POST /api/auth/login/ldap',
  'POST /api/auth/login/oidc/start',
  'GET /api/auth/oidc/callback',
  'POST /api/auth/login/saml/start',
  'POST /api/auth/saml/callback',
  'GET /api/auth/session',
  'POST /api/auth/refresh',
  'POST /api/auth/logout',
  'GET /api/webhooks',
  'POST /api/webhooks',
  'GET /api/webhooks/{id}',
  'PUT /api/webhooks/{id}',
  'DELETE /api/webhooks/{id}',
  'GET /api/events',
  'GET /api/events/{id}',
  'GET /api/schedules',
  'POST /api/schedules',
  'GET /api/schedules/{id}',
  'PUT /api/schedules/{id}',
  'DELETE /api/schedules/{id}',
  'GET /api/schedules/logs',
  'POST /api/backup/schedules',
  'GET /api/backup',
  'POST /api/backup/create',
  'GET /api/backup/{backupId}',
  'DELETE /api/backup/{backupId}',
  'POST /api/backup/restore/validate',
  'POST /api/backup/restore',
  'GET /api/workflows',
  'POST /api/workflows',
  'GET /api/workflows/{id}',
  'POST /api/workflows/{id}/approve',
  'POST /api/workflows/{id}/reject',
  'POST /api/validation/inventory',
];

/** What providers send has parts of their own making; it is never stored or answered. */
const OPEN = ['/api/auth/oidc/callback', '/api/auth/oidc/callback/{id}', '/api/auth/saml/callback'];

test.each(PROMISED)('%s is there', (operation) => {
  const [method = '', path = ''] = operation.split(' ');
  expect(document.paths[path]?.[method.toLowerCase()]).toBeDefined();
});

test('every route is described, with an id of its own, its permission and its failures', () => {
  const described = routes.filter((route) => !route.path.startsWith('/api/docs'));
  const operations = described.map(
    (route) => document.paths[route.path]?.[route.method.toLowerCase()],
  );
  expect(operations.every(Boolean)).toBe(true);
  expect(new Set(operations.map((operation) => operation.operationId)).size).toBe(described.length);
  for (const [i, route] of described.entries()) {
    expect(operations[i].description).toContain(
      route.permission ?? route.signedIn ?? route.session ?? route.public,
    );
    expect(Object.keys(operations[i].responses)).toContain('400');
  }
});

test('every reference in the document resolves', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(
    (match) => match[1] ?? '',
  );
  expect(references.length).toBeGreaterThan(10);
  for (const reference of references) {
    expect(reference.split('/').reduce((node, step) => node?.[step], document)).toBeDefined();
  }
});

test('every type of event that is emitted is described as a webhook, with what it tells', () => {
  expect(Object.keys(document.webhooks).sort()).toEqual(Object.keys(EVENT_DATA).sort());
  for (const [type, data] of Object.entries(EVENT_DATA)) {
    const { properties } =
      document.webhooks[type].post.requestBody.content['application/json'].schema;
    expect(properties.type.const).toBe(type);
    expect(properties.data).toEqual(JSON.parse(JSON.stringify(data)));
  }
});

test('webhooks and events want the tenant named', () => {
  const areas = (named: boolean) =>
    new Set(
      routes.filter((route) => (route.tenantNamed ?? false) === named).map((route) => route.area),
    );
  expect(areas(true)).toEqual(new Set(['Webhooks', 'Events']));
  expect(areas(false)).not.toContain('Webhooks');
  expect(areas(false)).not.toContain('Events');
});

test('every POST that creates takes an Idempotency-Key', () => {
  const creating = routes.filter((route) => route.method === 'POST' && '201' in route.answers);
  expect(creating.length).toBeGreaterThan(0);
  expect(creating.filter((route) => route.recover === undefined)).toEqual([]);
});

test('no route lets a body or a query through unchecked', () => {
  for (const { method, path, body, query, params } of routes.filter(
    (route) => !OPEN.includes(route.path),
  )) {
    for (const schema of [body, query, params]) {
      expect([method, path, schema && (schema as any).additionalProperties]).toEqual([
        method,
        path,
        schema && false,
      ]);
    }
  }
});

describe('error codes', () => {
  test('each is thrown somewhere in the code', async () => {
    const folders = ['api', 'services', 'domain', 'db', 'platform'];
    const sources = await Promise.all(
      folders.map(async (folder) => {
        const root = path.join(import.meta.dirname, '../..', folder);
        const files = (await readdir(root, { recursive: true })).filter((file) =>
          file.endsWith('.ts'),
        );
        return Promise.all(
          files
            .filter((f) => !/errors\.ts|problem\.ts/.test(f))
            .map((file) => readFile(path.join(root, file), 'utf8')),
        );
      }),
    );
    const code = sources.flat().join('\n');
    const throwable = Object.keys(PROBLEMS).filter(
      (name) => !['internal', 'unavailable', 'invalid_request', 'not_found'].includes(name),
    );
    expect(throwable.filter((name) => !code.includes(`'${name}'`))).toEqual([]);
  });
});
