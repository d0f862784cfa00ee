import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ApprovalList } from '../../../api/approvals/schemas.ts';
import type { JobSummary } from '../../../api/jobs/schemas.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import type { Names } from '../../../domain/shared/labels.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { recordFactory, type InventoryRecord } from '../../support/inventory.ts';
import { statementsOf } from '../../support/statements.ts';
import {
  admin,
  createUser,
  login,
  PASSWORD,
  type Page,
  type TestUser,
} from '../../support/users.ts';

type Included = { included: Partial<Names> };
type Records = Page<InventoryRecord> & Included;

let app: TestApp;
/** An administrator of the tenant acme behind the gateway. */
let acme: TestClient;
let site: InventoryRecord;
let device: InventoryRecord;

const DEVICES = '/api/inventory/devices';

beforeAll(async () => {
  app = await startApp({}, { idle: true });
  acme = app.client.as({ actor: 'boss', roles: 'platform-admin', tenant: 'acme' });
  const ofPlatform = recordFactory(() => admin(app));
  const ofAcme = recordFactory(() => acme);
  await ofPlatform('tenants', { id: 'acme', name: 'Acme Ltd' });
  await ofPlatform('tags', { id: 'core', name: 'Core network' });
  const maker = await ofPlatform('manufacturers', { name: 'maker' });
  const type = await ofPlatform('device-types', { manufacturerId: maker.id, model: 'M 1' });
  site = await ofAcme('sites', { name: 'Berlin' });
  const record = { siteId: site.id, deviceTypeId: type.id, tags: ['core'] };
  for (const name of ['leaf1', 'leaf2', 'leaf3'])
    device = await ofAcme('devices', { ...record, name });
});
afterAll(() => app.stop());

describe('include=labels', () => {
  test('adds the labels of what the records of a list refer to, and leaves the records alone', async () => {
    const plain = await acme.get<Records>(DEVICES).expect(200);
    const { included, ...page } = await acme.get<Records>(`${DEVICES}?include=labels`).expect(200);
    expect(page).toEqual(plain);
    expect(included).toEqual({
      labels: {
        'device-types': { [String(device.deviceTypeId)]: 'M 1' },
        sites: { [site.id]: 'Berlin' },
        tags: { core: 'Core network' },
        tenants: { acme: 'Acme Ltd' },
      },
    });
  });

  test('covers the values of facets', async () => {
    const path = `${DEVICES}?include=labels&fields=name&facets=siteId,rackId,status&limit=1`;
    const { included } = await acme.get<Included>(path).expect(200);
    expect(included.labels).toEqual({ sites: { [site.id]: 'Berlin' } });
  });

  test('adds one statement, however many records and references there are', async () => {
    const one = await statementsOf(app, () => acme.get(`${DEVICES}?limit=1`).expect(200));
    for (const limit of [1, 3])
      expect(
        await statementsOf(app, () =>
          acme.get(`${DEVICES}?include=people,labels&limit=${limit}`).expect(200),
        ),
      ).toBe(one + 1);
    // Nothing is named: nothing is read.
    const tags = '/api/inventory/manufacturers';
    const none = await statementsOf(app, () => acme.get(tags).expect(200));
    expect(await statementsOf(app, () => acme.get(`${tags}?include=people`).expect(200))).toBe(
      none,
    );
  });

  test('writes IPv6 networks as records have them', async () => {
    const create = recordFactory(() => acme);
    const parent = await create('prefixes', { cidr: '2001:DB8::102:0/112' });
    const child = await create('prefixes', { cidr: '2001:db8::102:300/120' });
    const { included } = await acme
      .get<Included>(`/api/inventory/prefixes/${child.id}?include=labels`)
      .expect(200);
    expect(included.labels?.prefixes).toEqual({ [parent.id]: parent.cidr });
  });

  test('covers the values before and after a change', async () => {
    const other = await recordFactory(() => acme)('sites', { name: 'Paris' });
    await acme.put(`${DEVICES}/${device.id}`, { siteId: other.id }).expect(200);
    const path = `${DEVICES}/${device.id}/changes`;
    const { included } = await acme.get<Included>(`${path}?include=labels`).expect(200);
    expect(included.labels).toMatchObject({
      sites: { [site.id]: 'Berlin', [other.id]: 'Paris' },
      tags: { core: 'Core network' },
    });
  });

  test('names what subjects of events and sources of jobs are', async () => {
    const { included } = await acme
      .get<Included>(`/api/events?include=labels&subject=device:${device.id}`)
      .expect(200);
    expect(included.labels?.devices).toEqual({ [device.id]: 'leaf3' });
  });

  test('leaves out what is outside the scope of the caller', async () => {
    const scope = { roleId: 'viewer', tenantId: 'acme', siteId: site.id };
    const { client } = await createUser(app, scope);
    const path = `${DEVICES}?include=labels&limit=1&siteId=${site.id}`;
    const { included } = await client.get<Included>(path).expect(200);
    expect(included.labels).toMatchObject({ sites: { [site.id]: 'Berlin' } });
    expect(included.labels?.tenants).toBeUndefined();
    expect((await client.get('/api/inventory/tenants/acme')).status).toBe(404);
  });

  test('covers what another tenant shares, until it does not', async () => {
    const other = app.client.as({ actor: 'boss', roles: 'platform-admin', tenant: 'other' });
    const vrf = await recordFactory(() => other)('vrfs', { name: 'transit', sharedWith: ['acme'] });
    const prefix = await recordFactory(() => acme)('prefixes', {
      cidr: '10.9.0.0/16',
      vrfId: vrf.id,
    });
    const labels = async () =>
      (await acme.get<Included>(`/api/inventory/prefixes/${prefix.id}?include=labels`).expect(200))
        .included.labels;
    expect((await labels())?.vrfs).toEqual({ [vrf.id]: 'transit' });
    await app.deps.db('vrfs').where({ id: vrf.id }).update({ shared_with: [] });
    expect((await labels())?.vrfs).toBeUndefined();
  });

  test('is empty for what the caller may not read', async () => {
    const { id } = await acme
      .post<{ id: string }>('/api/jobs', { type: 'core.echo', payload: {} })
      .expect(201);
    const role = { name: 'Jobs only', permissions: ['job:read'] };
    const { id: roleId } = await admin(app)
      .post<{ id: string }>('/api/rbac/roles', role)
      .expect(201);
    const jobsOnly = app.client.as({ actor: 'eve', roles: roleId, tenant: 'acme' });
    const path = `/api/jobs/${id}?include=labels,people`;
    expect((await jobsOnly.get<Included>(path).expect(200)).included).toEqual({
      labels: {},
      people: {},
    });
    expect((await acme.get<Included>(path).expect(200)).included.labels).toEqual({
      tenants: { acme: 'Acme Ltd' },
    });
  });
});

describe('include=usage', () => {
  type WithUsage = { items: InventoryRecord[]; included: { usage: Record<string, object> } };

  test('has the usage of each prefix of a page, with one statement', async () => {
    const create = recordFactory(() => acme);
    const outer = await create('prefixes', { cidr: '172.16.0.0/16', allocationMode: 'pool' });
    const inner = await create('prefixes', { cidr: '172.16.1.0/25' });
    for (const address of ['172.16.0.1', '172.16.1.1', '172.16.1.200', '172.16.9.1'])
      await create('ip-addresses', { address });
    const path = '/api/inventory/prefixes?within=172.16.0.0/16';
    const plain = await statementsOf(app, () => acme.get(path).expect(200));
    const asked = () => acme.get<WithUsage>(`${path}&include=usage`).expect(200);
    expect(await statementsOf(app, asked)).toBe(plain + 1);
    const { included, items } = await asked();
    expect(items).toHaveLength(2);
    for (const { id } of [outer, inner]) {
      const record = `/api/inventory/prefixes/${id}`;
      const usage = await acme.get<object>(`${record}/usage`).expect(200);
      expect(included.usage[id]).toEqual(usage);
      const read = await acme.get<WithUsage>(`${record}?include=usage`).expect(200);
      expect(read.included).toEqual({ usage: { [id]: usage } });
    }
    expect(included.usage[outer.id]).toMatchObject({ used: '131', addresses: 4, children: 1 });
    expect((await acme.get(`${DEVICES}?include=usage`)).status).toBe(400);
  });
});

describe('include=people', () => {
  /** An account of the tenant other with a role at acme, signed in there. */
  async function guest(displayName: string, ...roles: string[]): Promise<TestUser> {
    const username = displayName.toLowerCase().replaceAll(' ', '.');
    const other = app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'other' });
    const account = { username, displayName, email: `${username}@example.net` };
    const { id } = await other
      .post<{ id: string }>('/api/users', {
        ...{ ...account, password: PASSWORD, mustChangePassword: false },
      })
      .expect(201);
    for (const roleId of roles)
      await admin(app)
        .post('/api/rbac/assignments', { userId: id, roleId, tenantId: 'acme' })
        .expect(201);
    const { accessToken } = await login(app, username, PASSWORD, { tenantId: 'acme' }).expect(200);
    const client = app.client.as({ token: accessToken });
    return { id, username, client, accessToken, refreshToken: '' };
  }

  let ada: TestUser;
  beforeAll(async () => {
    ada = await guest('Ada Lovelace', 'operator');
  });
  const viewer = () => app.client.as({ actor: 'vera', roles: 'viewer', tenant: 'acme' });

  test('has the display name of who did something, of any tenant, also when disabled', async () => {
    const { id } = await ada.client
      .post<{ id: string }>('/api/jobs', { type: 'core.echo', payload: {} })
      .expect(201);
    const path = `/api/jobs?include=people&createdBy=${ada.id}`;
    const expected = { people: { [ada.id]: { displayName: 'Ada Lovelace' } } };
    const list = await viewer().get<Page<JobSummary> & Included>(path).expect(200);
    expect(list.items.map((job) => job.id)).toEqual([id]);
    expect(list.included).toEqual(expected);
    await admin(app).put(`/api/users/${ada.id}`, { enabled: false }).expect(200);
    expect((await viewer().get<Included>(path).expect(200)).included).toEqual(expected);
    expect((await viewer().get(`/api/users/${ada.id}`)).status).toBe(403);
  });

  test('has the platform itself, and nobody for an actor of a gateway', async () => {
    const { findNames } = app.deps;
    const actors = new Set(['system', 'boss']);
    const caller = systemCaller('acme', 'req_test');
    const { people } = await findNames(caller, { records: new Map(), actors, accounts: new Set() });
    expect(people).toEqual({ system: { displayName: 'Holdfast' } });
  });

  test('names accounts that did nothing only to those who may read accounts', async () => {
    const bert = await guest('Bert Brecht', 'approver');
    const request = {
      ...{ type: 'maintenance', title: 'Replace leaf1', payload: {} },
      assignedUserIds: [bert.id],
      assignedRoleIds: [],
    };
    await acme.post('/api/workflows', request).expect(201);
    const path = '/api/workflows?include=people,labels';
    const asked = async (client: TestClient) =>
      (await client.get<ApprovalList & Included>(path).expect(200)).included.people;
    expect(await asked(viewer())).toEqual({});
    // An administrator of acme reads accounts of acme; Bert's belongs to another tenant.
    expect(await asked(acme)).toEqual({});
    expect(await asked(admin(app))).toEqual({ [bert.id]: { displayName: 'Bert Brecht' } });
  });
});

describe('the ETag of a record with names', () => {
  const path = () => `${DEVICES}/${device.id}?include=labels`;

  test('changes with a label, and If-Match accepts it for the version', async () => {
    const { headers, body } = await acme.get<InventoryRecord & Included>(path());
    const etag = headers.get('etag') ?? '';
    expect(etag).toMatch(new RegExp(`^"${body.version}-[0-9a-f]{16}"$`));
    expect((await acme.get(path(), { 'if-none-match': etag })).status).toBe(304);
    expect((await acme.get(path(), { 'if-none-match': `"${body.version}"` })).status).toBe(200);

    await acme.put(`/api/inventory/sites/${String(body.siteId)}`, { name: 'Renamed' }).expect(200);
    const renamed = await acme.get<Included>(path(), { 'if-none-match': etag });
    expect(renamed.status).toBe(200);
    expect(Object.values(renamed.body.included.labels?.sites ?? {})).toEqual(['Renamed']);

    const record = `${DEVICES}/${device.id}`;
    const change = { ...body, description: 'new' };
    expect((await acme.put(record, change, { 'if-match': etag })).status).toBe(200);
    expect((await acme.put(record, { description: 'x' }, { 'if-match': etag })).status).toBe(412);
  });
});

describe('the ETag of a response with names', () => {
  const paths: [string, () => Promise<string>][] = [
    [
      'a queued job',
      async () => {
        const job = { type: 'core.echo', payload: {} };
        return `/api/jobs/${(await acme.post<JobSummary>('/api/jobs', job).expect(201)).id}`;
      },
    ],
    ['the resources', () => Promise.resolve('/api/inventory/resources')],
  ];

  test.each(paths)('is another one than without, for %s', async (_, pathOf) => {
    const path = await pathOf();
    const tagOf = async (query: string) =>
      (await acme.get(`${path}${query}`)).headers.get('etag') ?? '';
    const plain = await tagOf('');
    const tag = await tagOf('?include=labels');
    expect(plain).toMatch(/^"/);
    expect([plain, await tagOf('?include=people')]).not.toContain(tag);
    const read = (etag: string) => acme.get(`${path}?include=labels`, { 'if-none-match': etag });
    expect([(await read(plain)).status, (await read(tag)).status]).toEqual([200, 304]);
  });

  test('of a queued job changes with a label', async () => {
    const [[, pathOf]] = paths as [(typeof paths)[number]];
    const path = `${await pathOf()}?include=labels`;
    const before = (await acme.get(path)).headers.get('etag');
    const tenant = '/api/inventory/tenants/acme';
    await admin(app).put(tenant, { name: 'Acme Inc' }).expect(200);
    expect((await acme.get(path)).headers.get('etag')).not.toBe(before);
    await admin(app).put(tenant, { name: 'Acme Ltd' }).expect(200);
  });
});

describe('include', () => {
  test.each([
    ['an unknown name', `${DEVICES}?include=labels,secrets`],
    ['an empty value', `${DEVICES}?include=`],
    ['an export', `${DEVICES}/export?include=labels`],
  ])('is refused for %s', async (_, path) => {
    const { status, body } = await acme.get<ProblemBody>(path);
    expect([status, body.errors?.[0]?.pointer]).toEqual([400, '/include']);
  });

  test('is refused for a stream, which ends', async () => {
    const { items } = await acme.get<Page<JobSummary>>('/api/jobs?limit=1').expect(200);
    const path = `/api/jobs/${items[0]?.id ?? ''}/logs?follow&include=people`;
    const { status, body } = await acme.get<ProblemBody>(path);
    expect([status, body.errors?.[0]?.code]).toEqual([400, 'stream']);
  });

  test('needs a password of one’s own', async () => {
    const { client } = await createUser(app, 'viewer');
    await client.get('/api/auth/session?include=labels').expect(200);
    const { id } = await client
      .get<{ user: { id: string } }>('/api/auth/session')
      .expect(200)
      .then(({ user }) => user);
    const { oneTimePassword, username } = await admin(app)
      .post<{ oneTimePassword: string; username: string }>(`/api/users/${id}/reset-password`, {})
      .expect(200);
    const { accessToken } = await login(app, username, oneTimePassword).expect(200);
    const { status, body } = await app.client
      .as({ token: accessToken })
      .get<ProblemBody>('/api/auth/session?include=labels');
    expect([status, body.code]).toEqual([403, 'password_change_required']);
  });
});
