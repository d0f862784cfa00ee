import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

const execute = promisify(execFile);

/** Runs the inventory of the Ansible example with an API that answers with these pages. */
async function ansibleInventory(pages: readonly { items: object[]; included: object }[]) {
  const server = createServer((request, response) => {
    const page = Number(new URL(request.url ?? '', 'http://x').searchParams.get('cursor') ?? 0);
    const nextCursor = page + 1 < pages.length ? String(page + 1) : null;
    response.end(JSON.stringify({ ...pages[page], nextCursor }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const script = path.resolve(import.meta.dirname, '../../../examples/ansible/inventory.py');
  const env = {
    PATH: process.env.PATH,
    INVENTORY_URL: `http://127.0.0.1:${port}`,
    INVENTORY_TOKEN: 'x',
  };
  try {
    return JSON.parse((await execute('python3', [script], { env })).stdout) as Record<
      string,
      unknown
    >;
  } finally {
    server.close();
  }
}

const device = (id: string, name: string, siteId: string, primaryIp4Id: string | null = null) => ({
  ...{ id, name, siteId, primaryIp4Id, primaryIp6Id: null, roleId: null },
});
const included = {
  labels: {
    sites: { a: 'AMS-1', b: 'AMS-2', c: 'ams 1' },
    'ip-addresses': { x: '192.0.2.1/24', y: '192.0.2.2/24' },
  },
};

test('devices of the same name are hosts of their own in the inventory of the Ansible example', async () => {
  const inventory = await ansibleInventory([
    { items: [device('1', 'sw1', 'a', 'x'), device('2', 'sw2', 'a')], included },
    {
      items: [device('3', 'sw1', 'b', 'y'), device('4', 'sw3', 'not-readable', 'not-readable')],
      included,
    },
  ]);
  expect(inventory).toEqual({
    site_ams_1_a: { hosts: ['sw1.1', 'sw2'] },
    site_ams_2: { hosts: ['sw1.3'] },
    _meta: {
      hostvars: {
        'sw1.1': { holdfast_id: '1', holdfast_name: 'sw1', ansible_host: '192.0.2.1' },
        sw2: { holdfast_id: '2', holdfast_name: 'sw2' },
        'sw1.3': { holdfast_id: '3', holdfast_name: 'sw1', ansible_host: '192.0.2.2' },
        sw3: { holdfast_id: '4', holdfast_name: 'sw3' },
      },
    },
  });
});

test('sites of the same name are groups of their own', async () => {
  const items = [device('1', 'sw1', 'a'), device('2', 'sw2', 'c')];
  expect(await ansibleInventory([{ items, included }])).toMatchObject({
    site_ams_1_a: { hosts: ['sw1'] },
    site_ams_1_c: { hosts: ['sw2'] },
  });
});
