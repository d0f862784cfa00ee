import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import { createRequest, echoJob } from '../../support/approvals.ts';
import { expensiveStatements, type Statement } from '../../support/listPlans.ts';
import { admin, createUser } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

const create = (path: string, body: object) =>
  admin(app).post<{ id: string; version: number }>(`/api/inventory/${path}`, body).expect(201);

/** The statements of a request, as they were sent. */
async function statementsOf(request: () => PromiseLike<unknown>): Promise<Statement[]> {
  const statements = new Map<string, Statement>();
  const note = (statement: Statement) => {
    if (/^\s*(?:\(?select|with)\b/i.test(statement.sql)) statements.set(statement.sql, statement);
  };
  app.deps.db.on('query', note);
  await request();
  app.deps.db.removeListener('query', note);
  return [...statements.values()];
}

/** Large tables are imitated with a function of PostgreSQL 18, the version that is bundled. */
const testPlans = process.env.TEST_POSTGRES_BIN === undefined ? test : test.skip;

testPlans('what a change asks for reads no large table as a whole', async () => {
  await create('tenants', { id: 'one', name: 'One' });
  await create('tenants', { id: 'two', name: 'Two' });
  const site = await create('sites', { name: 'a', tenantId: 'one' });
  const other = await create('sites', { name: 'b', tenantId: 'two' });
  const { id: manufacturerId } = await create('manufacturers', { name: 'Acme' });
  const { id: deviceTypeId } = await create('device-types', { manufacturerId, model: 'X1' });
  const device = await create('devices', {
    name: 'sw1',
    tenantId: 'one',
    siteId: site.id,
    deviceTypeId,
  });
  // A table without rows has no pages, whatever its statistics say.
  const elsewhere = await create('devices', { name: 'sw2', siteId: other.id, deviceTypeId });
  await create('interfaces', { deviceId: elsewhere.id, name: 'e0', kind: 'fiber' });
  await createUser(app, { roleId: 'viewer', tenantId: 'two' });
  const asker = await createUser(app, { roleId: 'operator', tenantId: 'two' });
  await createRequest(asker.client, { siteId: other.id, ...echoJob });
  const field = await create('custom-fields', {
    name: 'rack_unit',
    resource: 'devices',
    type: 'integer',
    tenantId: 'one',
  });
  const move = { tenantId: 'two', siteId: other.id, version: device.version };
  const statements = await statementsOf(async () => {
    await admin(app).put(`/api/inventory/devices/${device.id}`, move).expect(200);
    await admin(app)
      .put(`/api/inventory/sites/${site.id}`, { tenantId: 'two', version: site.version })
      .expect(200);
    await admin(app).delete(`/api/inventory/custom-fields/${field.id}`).expect(204);
  });
  expect(statements.length).toBeGreaterThan(3);
  const found = await expensiveStatements(app.deps.db, statements, []);
  expect(found.map(({ statement, ...why }) => ({ sql: statement.sql, ...why }))).toEqual([]);
});
