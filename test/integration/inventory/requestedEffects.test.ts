import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { freezePlan } from '../../../domain/inventory/frozenPlan.ts';
import type { Mutation } from '../../../domain/inventory/planning.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { recordFactory, type BatchValidation, type BulkReport } from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
const make = recordFactory(() => root);
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  root = admin(app);
});
afterAll(() => app.stop());

const validate = async (mutations: readonly Mutation[]) =>
  (await root.post<BatchValidation>('/api/validation/inventory', { mutations }).expect(200))
    .results;

/** The effects of each mutation in one word each: record, reason and changed fields. */
const effectsOf = async (mutations: readonly Mutation[]) =>
  (await validate(mutations)).map(({ effects }) =>
    effects.map(({ label, reason, changes }) =>
      [label, reason, ...changes.map(({ field }) => field)].join(' '),
    ),
  );

/** What an approval request shows. */
async function frozen(mutations: readonly Mutation[]) {
  const outcome = await app.deps.inventory.questions.dryRun(
    systemCaller('platform', 'req_requested'),
    mutations,
  );
  return freezePlan(outcome).effects.map(({ label, reason }) => `${label} ${reason}`);
}

test('a prefix that moves below a parent of the same request is shown as requested', async () => {
  const vrfId = (await make('vrfs', { name: 'blue' })).id;
  const prefix = (cidr: string) => make('prefixes', { cidr, vrfId });
  await prefix('10.0.0.0/8');
  const [moved, other] = [await prefix('10.1.0.0/24'), await prefix('10.1.1.0/24')];
  const parent = {
    resource: 'prefixes',
    operation: 'create',
    record: { cidr: '10.1.0.0/16', vrfId },
  };
  const move = (record: object) => ({
    resource: 'prefixes',
    operation: 'update',
    record: { id: moved.id, ...record },
  });
  const below = { parentPrefixId: { cidr: '10.1.0.0/16' } };
  expect(await effectsOf([parent, move(below)])).toEqual([
    ['10.1.0.0/16 requested', '10.1.1.0/24 reparented parentPrefixId'],
    ['10.1.0.0/24 requested parentPrefixId'],
  ]);
  expect(await effectsOf([parent, move({ ...below, description: 'x' })])).toEqual([
    ['10.1.0.0/16 requested', '10.1.1.0/24 reparented parentPrefixId'],
    ['10.1.0.0/24 requested description parentPrefixId'],
  ]);
  // What nobody requested stays a consequence.
  expect(await effectsOf([parent, move({ description: 'x' })])).toEqual([
    [
      '10.1.0.0/16 requested',
      '10.1.0.0/24 reparented parentPrefixId',
      '10.1.1.0/24 reparented parentPrefixId',
    ],
    ['10.1.0.0/24 requested description'],
  ]);
  for (const mutations of [
    [parent, move(below)],
    [move({ description: 'x' }), parent],
  ])
    expect((await frozen(mutations)).sort()).toEqual([
      '10.1.0.0/16 requested',
      '10.1.0.0/24 requested',
      '10.1.1.0/24 reparented',
    ]);
  const { counts, results } = await root
    .post<BulkReport>('/api/inventory/bulk', { mutations: [parent, move(below), move(below)] })
    .expect(200);
  expect(counts).toMatchObject({ created: 1, updated: 1, unchanged: 1 });
  expect(results.map(({ version }) => version)).toEqual([1, 2, 2]);
  expect((await root.get(`/api/inventory/prefixes/${other.id}`)).body).toMatchObject({
    version: 2,
  });
});

test('a reference that is cleared by a delete and by request is shown as requested', async () => {
  const site = await make('sites', { name: 's' });
  const maker = await make('manufacturers', { name: 'm' });
  const type = await make('device-types', { manufacturerId: maker.id, model: 't' });
  const device = await make('devices', { name: 'd', siteId: site.id, deviceTypeId: type.id });
  const port = await make('interfaces', { deviceId: device.id, name: 'p' });
  const address = await make('ip-addresses', { address: '192.0.2.1', interfaceId: port.id });
  const mutations = [
    { resource: 'interfaces', operation: 'delete', record: { id: port.id } },
    {
      resource: 'ip-addresses',
      operation: 'update',
      record: { id: address.id, interfaceId: null, dnsName: 'a.example' },
    },
  ];
  expect(await effectsOf(mutations)).toEqual([
    ['p requested', '192.0.2.1 reference_cleared deviceId'],
    ['192.0.2.1 requested dnsName interfaceId'],
  ]);
  expect(await frozen(mutations)).toContain('192.0.2.1 requested');
});
