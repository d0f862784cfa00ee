import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { admin, seedTenant, type Page } from '../../support/users.ts';

const MANY = 12_000;

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  await app.deps.db.raw(
    `INSERT INTO ip_addresses (id, tenant_id, address, status, unique_in_vrf)
     SELECT 'ipa_' || lpad(n::text, 26, '0'), 'platform', '10.0.0.0'::inet + n, 'active', false
     FROM generate_series(0, ?::int - 1) AS n`,
    [MANY],
  );
  await seedTenant(app, 'red');
  await app.deps.db.raw(
    `INSERT INTO ip_addresses (id, tenant_id, address, status)
     VALUES ('ipa_red', 'red', '10.0.200.1', 'active')`,
  );
  await app.deps.db.raw('ANALYZE ip_addresses');
});
afterAll(() => app.stop());

type Statement = { sql: string; bindings: readonly string[] };

/** The statement that reads the page of a list. */
async function statementOf(
  query: string,
  addresses: readonly string[],
  client = admin(app),
): Promise<Statement> {
  const statements: Statement[] = [];
  const note = (each: Statement) => void statements.push(each);
  app.deps.db.on('query', note);
  const page = await client
    .get<Page<{ address: string }>>(`/api/inventory/ip-addresses?${query}`)
    .expect(200);
  app.deps.db.off('query', note);
  expect([query, page.items.map(({ address }) => address)]).toEqual([query, addresses]);
  const found = statements.find(({ sql }) => sql.includes('(select id AS "id"'));
  return assertDefined(found, 'statement of the page');
}

/** A number of each step of the plan of a statement that is executed. */
async function numbersOf({ sql, bindings }: Statement, name: string): Promise<number[]> {
  const { rows } = await app.deps.db.raw<{ rows: object[] }>(
    `EXPLAIN (ANALYZE, FORMAT JSON) ${sql.replaceAll(/\$\d+/g, '?')}`,
    bindings,
  );
  const found = JSON.stringify(rows).matchAll(new RegExp(`"${name}":([\\d.]+)`, 'g'));
  return [...found].map(([, count]) => Number(count));
}

/** How many rows a statement reads in vain. */
const countRemoved = async (statement: Statement): Promise<number> =>
  (await numbersOf(statement, 'Rows Removed by Filter')).reduce((sum, count) => sum + count, 0);

test('addresses of a network that were created together are found without reading all later ones', async () => {
  for (const [query, addresses] of [
    ['within=10.0.0.0/20&limit=2', ['10.0.15.255', '10.0.15.254']],
    ['within=10.0.0.0/20&limit=2&status=active', ['10.0.15.255', '10.0.15.254']],
    ['within=10.0.16.0/20&limit=1&sort=updatedAt', ['10.0.16.0']],
    ['within=10.0.40.0/21&limit=1&sort=address', ['10.0.40.0']],
  ] as const)
    expect([query, await countRemoved(await statementOf(query, addresses))]).toEqual([query, 0]);
});

test('the few records without a value that nearly all have are found without reading these', async () => {
  for (const query of ['tenantId.not=platform', 'tenantId.not=platform,blue,none-such&limit=2'])
    expect([query, await countRemoved(await statementOf(query, ['10.0.200.1']))]).toEqual([
      query,
      0,
    ]);
});

test('a tenant does not read the addresses of others in the network', async () => {
  const red = app.client.as({ actor: 'vic', roles: 'viewer', tenant: 'red' });
  const statement = await statementOf('within=10.0.0.0/16', ['10.0.200.1'], red);
  expect(await countRemoved(statement)).toBe(0);
});

test('later pages continue where the last one ended, without reading the network again', async () => {
  const query = 'within=10.0.0.0/20&limit=2';
  const { nextCursor } = await admin(app)
    .get<Page<object>>(`/api/inventory/ip-addresses?${query}`)
    .expect(200);
  const later = await statementOf(`${query}&cursor=${String(nextCursor)}`, [
    '10.0.15.253',
    '10.0.15.252',
  ]);
  expect(Math.max(...(await numbersOf(later, 'Actual Rows')))).toBeLessThan(10);
});
