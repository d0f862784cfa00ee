import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { PROBLEMS } from '../../api/kit/problem.ts';
import type { Route } from '../../api/kit/route.ts';
import { allRoutes } from '../../api/app.ts';
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
const PROMISED = ['POST /api/jobs', 'GET /api/jobs', 'GET /api/jobs/{jobId}', 'GET /api/jobs/{jobId}/logs'];

test.each(PROMISED)('%s is there', (operation) => {
  const [method = '', path = ''] = operation.split(' ');
  expect(document.paths[path]?.[method.toLowerCase()]).toBeDefined();
});

test('every route is described, with an id of its own, its permission and its failures', () => {
  const described = routes.filter((route) => !route.path.startsWith('/api/docs'));
  const operations = described.map((route) => document.paths[route.path]?.[route.method.toLowerCase()]);
  expect(operations.every(Boolean)).toBe(true);
  expect(new Set(operations.map((operation) => operation.operationId)).size).toBe(described.length);
  for (const [i, route] of described.entries()) {
    expect(operations[i].description).toContain(route.permission ?? route.public);
    expect(Object.keys(operations[i].responses)).toContain('400');
  }
});

test('every reference in the document resolves', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map((match) => match[1] ?? '');
  expect(references.length).toBeGreaterThan(10);
  for (const reference of references) {
    expect(reference.split('/').reduce((node, step) => node?.[step], document)).toBeDefined();
  }
});

test('every POST that creates takes an Idempotency-Key', () => {
  const creating = routes.filter((route) => route.method === 'POST' && '201' in route.answers);
  expect(creating.length).toBeGreaterThan(0);
  expect(creating.filter((route) => route.recover === undefined)).toEqual([]);
});

test('no route lets a body or a query through unchecked', () => {
  for (const { method, path, body, query, params } of routes) {
    for (const schema of [body, query, params]) {
      expect([method, path, schema && (schema as any).additionalProperties]).toEqual([method, path, schema && false]);
    }
  }
});

describe('error codes', () => {
  test('each is thrown somewhere in the code', async () => {
    const folders = ['api', 'services', 'domain', 'db'];
    const sources = await Promise.all(
      folders.map(async (folder) => {
        const root = path.join(import.meta.dirname, '../..', folder);
        const files = (await readdir(root, { recursive: true })).filter((file) => file.endsWith('.ts'));
        return Promise.all(files.filter((f) => !/errors\.ts|problem\.ts/.test(f)).map((file) => readFile(path.join(root, file), 'utf8')));
      }),
    );
    const code = sources.flat().join('\n');
    const throwable = Object.keys(PROBLEMS).filter((name) => !['internal', 'unavailable', 'invalid_request', 'not_found'].includes(name));
    expect(throwable.filter((name) => !code.includes(`'${name}'`))).toEqual([]);
  });
});
