import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { importRowsAs, NO_ROWS, uploadAs } from '../../support/imports.ts';
import { recordFactory, type InventoryRecord, type WriteProblem } from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp();
  root = admin(app);
  for (const id of ['acme', 'blue']) await make('tenants', { id, name: id });
});
afterAll(() => app.stop());

const make = recordFactory(() => root);
const define = (name: string, more: object = {}) =>
  make('custom-fields', { resource: 'sites', name, type: 'text', ...more });
const pathOf = ({ id }: InventoryRecord) => `/api/inventory/sites/${id}`;

describe('a field that becomes required', () => {
  let without: InventoryRecord;
  let having: InventoryRecord;
  beforeAll(async () => {
    const field = await define('owner');
    without = await make('sites', { name: 'without' });
    having = await make('sites', { name: 'having', customFields: { owner: 'ann' } });
    await root.put(`/api/inventory/custom-fields/${field.id}`, { required: true }).expect(200);
  });
  const missing = { errors: [{ pointer: '/customFields/owner', code: 'required' }] };

  test('is not asked for where a record has had no value', async () => {
    for (const body of [{ ...without }, { customFields: {} }, { customFields: { owner: null } }])
      expect(await root.put(pathOf(without), body).expect(200)).toEqual(without);
    const { body } = await root.get('/api/inventory/sites/export?format=csv&q=without');
    const { counts } = await uploadAs(root, String(body), 'resource=sites').expect(202);
    expect(counts).toEqual({ ...NO_ROWS, unchanged: 1 });
  });

  test('is asked for where a value is removed, and where the record or its tenant is new', async () => {
    const removal = { customFields: { owner: null } };
    expect(await root.put(pathOf(having), removal).expect(400)).toMatchObject(missing);
    expect(await root.put(pathOf(without), { tenantId: 'acme' }).expect(400)).toMatchObject(
      missing,
    );
    for (const more of [{}, { customFields: {} }])
      expect(
        await root.post('/api/inventory/sites', { name: 'new', ...more }).expect(400),
      ).toMatchObject(missing);
  });
});

describe('a definition that moves to another tenant', () => {
  test('does not leave values without a definition', async () => {
    const field = await make('custom-fields', {
      ...{ resource: 'regions', name: 'crew', type: 'text', tenantId: 'acme' },
    });
    const region = await make('regions', {
      ...{ name: 'north', tenantId: 'acme', customFields: { crew: 'a' } },
    });
    const move = (tenantId: string) =>
      root.put<WriteProblem>(`/api/inventory/custom-fields/${field.id}`, { tenantId });
    const refused = {
      code: 'in_use',
      conflicts: [{ code: 'in_use', resource: 'regions', id: region.id }],
    };
    expect(await move('blue').expect(409)).toMatchObject(refused);
    await move('platform').expect(200);
    expect(await move('blue').expect(409)).toMatchObject(refused);
    await move('acme').expect(200);
    await root
      .put(`/api/inventory/regions/${region.id}`, { customFields: { crew: null } })
      .expect(200);
    await move('blue').expect(200);
  });

  test('counts the changes of the same request', async () => {
    const field = await make('custom-fields', {
      ...{ resource: 'regions', name: 'shift', type: 'text', tenantId: 'acme' },
    });
    const region = await make('regions', { name: 'south', tenantId: 'acme' });
    const mutations = [
      {
        ...{ resource: 'regions', operation: 'update' },
        record: { id: region.id, customFields: { shift: 'b' } },
      },
      {
        ...{ resource: 'custom-fields', operation: 'update' },
        record: { id: field.id, tenantId: 'blue' },
      },
    ];
    expect(await root.post('/api/inventory/bulk', { mutations }).expect(409)).toMatchObject({
      conflicts: [{ code: 'in_use', id: region.id }],
    });
  });
});

test('an empty cell removes the values of an existing record; an empty object changes nothing', async () => {
  const customFields = { floor: '3', hall: 'b' };
  for (const name of Object.keys(customFields)) await define(name, { resource: 'regions' });
  const { id } = await make('regions', { name: 'east', customFields });
  const send = async (cell: string) =>
    (await uploadAs(root, `id,customFields\n${id},${cell}\n`, 'resource=regions').expect(202))
      .counts;
  const read = async () =>
    (await root.get<InventoryRecord>(`/api/inventory/regions/${id}`).expect(200)).customFields;
  expect(await send('{}')).toEqual({ ...NO_ROWS, unchanged: 1 });
  expect(await send('"{""hall"":null}"')).toEqual({ ...NO_ROWS, updated: 1 });
  expect(await read()).toEqual({ floor: '3' });
  expect(await send('')).toEqual({ ...NO_ROWS, updated: 1 });
  expect(await read()).toEqual({});
  expect(await send('')).toEqual({ ...NO_ROWS, unchanged: 1 });
});

test('an empty cell does not remove a required value', async () => {
  const field = await define('desk', { resource: 'regions' });
  const { id } = await make('regions', { name: 'west', customFields: { desk: '1' } });
  await root.put(`/api/inventory/custom-fields/${field.id}`, { required: true }).expect(200);
  const sent = await uploadAs(root, `id,customFields\n${id},\n`, 'resource=regions').expect(202);
  expect(await importRowsAs(root, sent.id)).toMatchObject([
    { outcome: 'invalid', errors: [{ pointer: '/customFields/desk', code: 'required' }] },
  ]);
});
