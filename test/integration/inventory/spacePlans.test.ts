import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import { recordFactory } from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

const OTHERS = 3_000;

const questions = (net: number): string[] => [
  'usage',
  ...['tree', `tree?from=${net}.3.0.0/16`],
  ...['map', `map?within=${net}.3.0.0/16`],
  ...['contents', `contents?within=${net}.3.0.0/16`],
];

type Statement = { sql: string; bindings: readonly unknown[] };

test('no question about a prefix reads those of all spaces, whose prefix it is', async () => {
  const { db } = app.deps;
  const root = admin(app);
  const make = recordFactory(() => root);
  await make('tenants', { id: 'acme', name: 'Acme' });
  const other = await make('vrfs', { name: 'other' });
  const mutations = Array.from({ length: OTHERS }, (_, n) => ({
    resource: 'prefixes',
    operation: 'create',
    record: { cidr: `10.${n >> 8}.${n & 255}.0/24`, vrfId: other.id },
  }));
  for (let at = 0; at < OTHERS; at += 1_000)
    await root
      .post('/api/inventory/bulk', { mutations: mutations.slice(at, at + 1_000) })
      .expect(200);
  await db.raw('ANALYZE prefixes');
  const statements: (Statement & { question: string })[] = [];
  for (const [tenantId, net] of [
    ['platform', 10],
    ['acme', 11],
  ] as const)
    for (const hasVrf of [false, true]) {
      const vrf = hasVrf ? await make('vrfs', { name: 'plans', tenantId }) : undefined;
      const of = { tenantId, ...(vrf && { vrfId: vrf.id }) };
      const prefix = await make('prefixes', { cidr: `${net}.0.0.0/8`, ...of });
      await make('prefixes', { cidr: `${net}.3.0.0/16`, ...of });
      await make('ip-addresses', { address: `${net}.3.0.1`, ...of });
      for (const question of questions(net)) {
        const note = ({ sql, bindings }: Statement) =>
          statements.push({ sql, bindings, question: `${tenantId} ${hasVrf} ${question}` });
        db.on('query', note);
        await root.get(`/api/inventory/prefixes/${prefix.id}/${question}`).expect(200);
        db.removeListener('query', note);
      }
    }
  const asked = statements.filter(({ sql }) => /\bprefixes\b/.test(sql));
  expect(asked.length).toBeGreaterThan(4 * questions(10).length);
  const found = [];
  for (const { question, sql, bindings } of asked) {
    const { rows } = await db.raw<{ rows: { 'QUERY PLAN': string }[] }>(
      `EXPLAIN ${sql.replaceAll('?', '\\?').replaceAll(/\$\d+/g, '?')}`,
      bindings as never,
    );
    if (rows.some((row) => row['QUERY PLAN'].includes('Seq Scan on prefixes')))
      found.push(question);
  }
  expect(found).toEqual([]);
});
