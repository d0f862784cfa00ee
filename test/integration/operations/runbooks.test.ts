import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
});
afterAll(() => app.stop());

const FOLDER = path.resolve(import.meta.dirname, '../../../ops/runbooks');

/** What the runbooks have as code: statements, requests and commands. */
async function readCode(): Promise<string[]> {
  const pages = await Promise.all(
    (await readdir(FOLDER)).map((page) => readFile(path.join(FOLDER, page), 'utf8')),
  );
  return pages.flatMap((page) => [...page.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code));
}

test('every statement of the runbooks can be run', async () => {
  const statements = (await readCode()).filter((code) => code.startsWith('SELECT '));
  // These end sessions.
  const harmless = statements.filter((sql) => !sql.includes('pg_terminate_backend'));
  expect(harmless.length).toBeGreaterThan(10);
  for (const sql of harmless) await app.deps.db.raw(`EXPLAIN ${sql}`);
});

test('every request of the runbooks is one of the API', async () => {
  const { paths } = await app.client
    .get<{ paths: Record<string, object> }>('/api/openapi.json')
    .expect(200);
  const templates = Object.keys(paths).map((each) => each.replaceAll(/\{[^}]*\}/g, '{}'));
  const requests = (await readCode()).flatMap((code) =>
    [...code.matchAll(/^(?:GET|POST|PUT|DELETE) (\/api\/[^? ]*)/g)].map(([, each = '']) => each),
  );
  expect(requests.length).toBeGreaterThan(5);
  const unknown = requests.filter(
    (each) => !templates.includes(each.replaceAll(/\{[^}]*\}/g, '{}')),
  );
  expect(unknown).toEqual([]);
});
