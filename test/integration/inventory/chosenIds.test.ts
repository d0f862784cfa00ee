import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { importRowsAs, uploadAs } from '../../support/imports.ts';
import { recordFactory, type BulkReport, type InventoryRecord } from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp();
  root = admin(app);
});
afterAll(() => app.stop());

const make = recordFactory(() => root);

describe('rows of a file with ids of tags', () => {
  const outcomes = async (text: string, query: string, type?: string) => {
    const { id } = await uploadAs(root, text, query, type).expect(202);
    return (await importRowsAs(root, id)).map(({ outcome }) => outcome);
  };
  const NDJSON = 'application/x-ndjson';

  test.each(['each', 'all'])(
    'create what the rows before have not created or have deleted (mode %s)',
    async (mode) => {
      const id = `core-${mode}`;
      await make('tags', { id, name: 'Core' });
      const lines = [
        { resource: 'tags', operation: 'delete', record: { id } },
        { resource: 'tags', record: { id, name: 'Again' } },
        { resource: 'tags', record: { id, name: 'Twice' } },
      ];
      const text = lines.map((line) => JSON.stringify(line)).join('\n');
      for (const dryRun of [true, false])
        expect(await outcomes(text, `mode=${mode}&dryRun=${dryRun}`, NDJSON)).toEqual([
          ...['deleted', 'created', 'updated'],
        ]);
      expect(await root.get(`/api/inventory/tags/${id}`).expect(200)).toMatchObject({
        name: 'Twice',
      });
    },
  );

  test('create what an invalid row before has not created', async () => {
    const text = 'id,name,color\nedge,Edge,nocolor\nedge,Edge,00a1ff\nedge,Edge 2,00a1ff\n';
    for (const dryRun of [true, false])
      expect(await outcomes(text, `resource=tags&dryRun=${dryRun}`)).toEqual([
        ...['invalid', 'created', 'updated'],
      ]);
  });

  test('an operation of the file is not another one', async () => {
    const line = { resource: 'tags', operation: 'update', record: { id: 'none', name: 'None' } };
    expect(await outcomes(JSON.stringify(line), 'dryRun=false', NDJSON)).toEqual(['invalid']);
  });
});

describe('a record with the id of a deleted one', () => {
  const change = (id: string) =>
    root.put<InventoryRecord>(`/api/inventory/tags/${id}`, { name: id });

  test('goes on with its versions: a tag of the former record matches nothing', async () => {
    await make('tags', { id: 'x1', name: 'One' });
    const { version } = await change('x1').expect(200);
    await root.delete('/api/inventory/tags/x1').expect(204);
    const again = await make('tags', { id: 'x1', name: 'Two' });
    expect([version, again.version]).toEqual([2, 3]);
    const stale = { 'if-match': '"2"' };
    await root.put('/api/inventory/tags/x1', { name: 'Three' }, stale).expect(412);
    await root.delete('/api/inventory/tags/x1', stale).expect(412);
    await root.delete('/api/inventory/tags/x1').expect(204);
    expect((await make('tags', { id: 'x1', name: 'Four' })).version).toBe(4);
  });

  test('goes on with them in one request, too', async () => {
    await make('tags', { id: 'x2', name: 'One' });
    await change('x2').expect(200);
    const mutations = [
      { resource: 'tags', operation: 'update', record: { id: 'x2', name: 'Before' } },
      { resource: 'tags', operation: 'delete', record: { id: 'x2' } },
      { resource: 'tags', operation: 'create', record: { id: 'x2', name: 'After' } },
      { resource: 'tags', operation: 'update', record: { id: 'x2', name: 'Last' } },
    ];
    const { results } = await root
      .post<BulkReport>('/api/inventory/bulk', { mutations })
      .expect(200);
    expect(results.at(-1)).toMatchObject({ outcome: 'updated', version: 5 });
    expect(await root.get('/api/inventory/tags/x2').expect(200)).toMatchObject({
      ...{ name: 'Last', version: 5 },
    });
  });
});
