import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { writableFields } from '../../../domain/inventory/resource.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { attemptFactory, recordFactory, type RecordPage } from '../../support/inventory.ts';
import { admin, type Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
const make = recordFactory(() => root);
const attempt = attemptFactory(() => root);
let deviceId: string;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  root = admin(app);
  const site = await make('sites', { name: 'ams1' });
  const maker = await make('manufacturers', { name: 'Maker' });
  const type = await make('device-types', { manufacturerId: maker.id, model: 'm1' });
  deviceId = (await make('devices', { name: 'd1', siteId: site.id, deviceTypeId: type.id })).id;
});
afterAll(() => app.stop());

const find = async (path: string) =>
  (await root.get<RecordPage>(`/api/inventory/${path}`).expect(200)).items.map(({ name }) => name);

const MAC = '00:1b:2c:3d:4e:5f';
const MAC_NOTATIONS = [
  MAC,
  '00-1B-2C-3D-4E-5F',
  '001b.2c3d.4e5f',
  '001B2C3D4E5F',
  '00:1B:2c:3D:4e:5F',
  '001b-2c3d-4e5f',
  '001B:2C3D:4E5F',
  '001b2c-3d4e5f',
  '001B2C.3D4E5F',
  '00.1b.2c.3d.4e.5f',
  '00 1b 2c 3d 4e 5f',
];

test('a MAC address is stored in one form and found in every notation', async () => {
  for (const [i, macAddress] of MAC_NOTATIONS.entries()) {
    const created = await make('interfaces', { deviceId, name: `e${i}`, macAddress });
    expect(created.macAddress).toBe(MAC);
    const changed = await root
      .put(`/api/inventory/interfaces/${created.id}`, { macAddress: MAC_NOTATIONS.at(i - 1) })
      .expect(200);
    expect(changed).toMatchObject({ macAddress: MAC, version: 1 });
    await root.delete(`/api/inventory/interfaces/${created.id}`).expect(204);
  }
  const port = await make('interfaces', { deviceId, name: 'port', macAddress: MAC });
  for (const notation of MAC_NOTATIONS) {
    const text = encodeURIComponent(notation);
    expect(await find(`interfaces?macAddress=${text}`)).toEqual(['port']);
    expect(await find(`interfaces?q=${text}`)).toEqual(['port']);
    expect(
      await make('ip-addresses', {
        address: '192.0.2.1',
        interfaceId: { macAddress: notation },
        role: 'vip',
      }),
    ).toMatchObject({ interfaceId: port.id });
  }
  await make('interfaces', { deviceId, name: 'uplink 001b2c3d4e5f' });
  expect((await find('interfaces?q=001b2c3d4e5f')).sort()).toEqual(['port', 'uplink 001b2c3d4e5f']);
});

test('a colour is stored in one form and found with or without #', async () => {
  for (const resource of ['tags', 'device-roles'])
    for (const [i, color] of ['#00a1ff', '00a1ff', '#00A1FF', '00A1FF'].entries()) {
      const id = resource === 'tags' ? { id: `t${i}` } : {};
      expect(await make(resource, { ...id, name: `n${i}`, color })).toMatchObject({
        color: '#00a1ff',
      });
      expect(await find(`${resource}?color=${encodeURIComponent(color)}`)).toHaveLength(i + 1);
    }
});

test.each([
  [
    'interfaces',
    'macAddress',
    [
      '00:1b:2c:3d:4e',
      '00:1b-2c:3d:4e:5f',
      '001b.2c3d4e5f',
      '001b.2c3d-4e5f',
      '001-b2c-3d4-e5f',
      'x',
      '',
      `${MAC}:00`,
    ],
  ],
  ['tags', 'color', ['##00a1ff', '#00a1f', '#00a1fg', 'red', '#']],
])('%s: what is no %s is an error that shows the forms', async (resource, field, values) => {
  for (const value of values) {
    const { status, errors } = await attempt(resource, {
      ...(resource === 'tags' ? { id: 'x', name: 'x' } : { deviceId, name: 'x' }),
      [field]: value,
    });
    expect([status, errors.map(({ pointer }) => pointer)]).toEqual([400, [`/${field}`]]);
    expect(errors[0]?.message).toMatch(/^must be a \w+.* such as/);
    if (value !== '')
      await root
        .get(`/api/inventory/${resource}?${field}=${encodeURIComponent(value)}`)
        .expect(400);
  }
});

test('canonical forms are idempotent and match the schema of their field', () => {
  const examples: Record<string, string> = { macAddress: '001B.2C3D.4E5F', color: '00A1FF' };
  let count = 0;
  for (const resource of Object.values(RESOURCES))
    for (const [name, { canonical, type, schema }] of writableFields(resource)) {
      if (!canonical || type !== 'text') continue;
      const form = canonical(examples[name] ?? '');
      if (typeof form !== 'string') throw new Error(`${name} has no form of its example`);
      expect(canonical(form)).toBe(form);
      expect(form).toMatch(new RegExp((schema as { pattern?: string }).pattern ?? ''));
      count++;
    }
  expect(count).toBe(3);
});

test('a record keeps its tenant when an update sends null for it', async () => {
  const site = await make('sites', { name: 'kept' });
  const path = `/api/inventory/sites/${site.id}`;
  expect(await root.put(path, { tenantId: null }).expect(200)).toMatchObject({
    tenantId: 'platform',
    version: 1,
  });
});

test('an update of one custom field keeps the others; null removes one', async () => {
  for (const [name, type] of [
    ['owner', 'text'],
    ['rank', 'integer'],
    ['state', 'choice'],
  ] as const)
    await make('custom-fields', {
      resource: 'sites',
      name,
      type,
      ...(type === 'choice' && { choices: ['new', 'old'] }),
    });
  const site = await make('sites', { name: 'cf', customFields: { owner: 'netops', state: 'old' } });
  const put = async (fields: object) =>
    await root
      .put<{ customFields: object; version: number }>(`/api/inventory/sites/${site.id}`, fields)
      .expect(200);
  expect((await put({ customFields: { rank: 3 } })).customFields).toEqual({
    owner: 'netops',
    rank: 3,
    state: 'old',
  });
  expect((await put({ customFields: { owner: null } })).customFields).toEqual({
    rank: 3,
    state: 'old',
  });
  const unchanged = await put({ customFields: { rank: 3, owner: null } });
  expect([unchanged.customFields, unchanged.version]).toEqual([{ rank: 3, state: 'old' }, 3]);
  // A value that the request does not name does not stop the change of another.
  const { items } = await root
    .get<RecordPage>('/api/inventory/custom-fields?name=state')
    .expect(200);
  await root.put(`/api/inventory/custom-fields/${items[0]?.id}`, { choices: ['new'] }).expect(200);
  expect((await put({ customFields: { rank: 4 } })).customFields).toEqual({
    rank: 4,
    state: 'old',
  });
  const refused = await attempt(
    'sites',
    { id: site.id, customFields: { rank: 'x', nobody: 1 } },
    'update',
  );
  expect(refused.found.sort()).toEqual([
    '/customFields/nobody unknown_field',
    '/customFields/rank custom_field',
  ]);
});

describe('the description of the resources', () => {
  type Described = {
    name: keyof typeof RESOURCES;
    sorts: string[];
    facets: string[];
    filters: string[];
    fields: { name: string; choices: string[] | null; reference: string | null; rules: string[] }[];
    customFields: { name: string; tenantId: string; type: string }[];
  };
  const PATH = '/api/inventory/resources';
  const describedBy = async (client: TestClient, name: string): Promise<Described> => {
    const { items } = await client.get<Page<Described>>(PATH).expect(200);
    return assertDefined(
      items.find((each) => each.name === name),
      name,
    );
  };

  test('has every resource with its fields; lists accept the sorts and filters that it names', async () => {
    const { items } = await root.get<Page<Described>>(PATH).expect(200);
    expect(items.map(({ name }) => name)).toEqual(Object.keys(RESOURCES));
    for (const { name, fields, sorts, facets, filters } of items) {
      expect(fields.map((field) => field.name)).toEqual(Object.keys(RESOURCES[name].fields));
      for (const sort of sorts)
        await root.get(`/api/inventory/${name}?limit=1&sort=${sort}`).expect(200);
      if (facets.length > 0)
        await root.get(`/api/inventory/${name}?limit=1&facets=${facets.join(',')}`).expect(200);
      // A value that no parameter has is refused for the value, not for the parameter.
      const query = filters.map((filter) => `${filter}=%00`).join('&');
      const refused = await root.get<ProblemBody>(`/api/inventory/${name}?${query}`).expect(400);
      expect((refused.errors ?? []).map(({ code }) => code)).not.toContain('unknown_field');
    }
    const devices = await describedBy(root, 'devices');
    expect(devices.fields).toContainEqual({
      name: 'position',
      type: 'integer',
      description: 'The lowest rack unit that it takes; 1 is at the bottom.',
      reference: null,
      choices: null,
      required: false,
      nullable: true,
      default: null,
      derived: false,
      immutable: false,
      rules: ['must be at least 1', 'must be at most 100'],
    });
    expect(devices.fields).toContainEqual(
      expect.objectContaining({ name: 'siteId', reference: 'sites', required: true, rules: [] }),
    );
    expect(devices.fields).toContainEqual(
      expect.objectContaining({ name: 'face', choices: ['front', 'rear'] }),
    );
  });

  test('has the custom fields that are in force for the tenant of the caller, and no others', async () => {
    for (const id of ['ours', 'theirs']) await make('tenants', { id, name: id });
    const field = (tenantId: string | null, name: string, type: string) =>
      make('custom-fields', {
        resource: 'vrfs',
        name,
        type,
        ...(tenantId !== null && { tenantId }),
      });
    await field('ours', 'owner', 'text');
    await field('ours', 'cost', 'integer');
    await field('theirs', 'secret_plan', 'text');
    const client = app.client.as({ actor: 'bob', roles: 'operator', tenant: 'ours' });
    expect((await describedBy(client, 'vrfs')).customFields).toMatchObject([
      { name: 'cost', type: 'integer', tenantId: 'ours' },
      { name: 'owner', type: 'text', tenantId: 'ours' },
    ]);
    expect((await describedBy(client, 'devices')).customFields).toEqual([]);

    const before = await client.get(PATH);
    const tag = before.headers.get('etag') ?? '';
    expect((await client.get(PATH, { 'if-none-match': tag })).status).toBe(304);
    await field('platform', 'contract', 'text');
    const after = await client.get(PATH, { 'if-none-match': tag });
    expect(after.status).toBe(200);
    const names = (await describedBy(client, 'vrfs')).customFields.map(({ name }) => name);
    expect(names).toEqual(['contract', 'cost', 'owner']);
  });
});
