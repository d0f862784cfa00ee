import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { importRowsAs, uploadAs } from '../../support/imports.ts';
import { recordFactory } from '../../support/inventory.ts';
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
