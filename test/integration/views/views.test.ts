import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type { ViewRecord } from '../../../api/views/schemas.ts';
import { MAX_VIEWS } from '../../../domain/views/views.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { expectInvalid, expectProblem } from '../../support/problem.ts';
import { createToken } from '../../support/tokens.ts';
import { createUser, seedTenant, type Page } from '../../support/users.ts';

let app: TestApp;
let ann: TestClient;
let bob: TestClient;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  [ann, bob] = [at('ann'), at('bob')];
});
afterAll(() => app.stop());

const at = (actor: string, roles = 'operator', tenant = 'red') =>
  app.client.as({ actor, roles, tenant });

let names = 0;
const create = (client: TestClient, fields: object = {}, headers?: Record<string, string>) =>
  client.post<ViewRecord>(
    '/api/views',
    { list: '/inventory/sites', name: `view ${names++}`, search: { status: 'active' }, ...fields },
    headers,
  );
const make = (client: TestClient, fields: object = {}) => create(client, fields).expect(201);
const namesOf = async (client: TestClient, query = '') =>
  (await client.get<Page<ViewRecord>>(`/api/views?limit=200${query}`).expect(200)).items.map(
    ({ name }) => name,
  );

test('a token that may only read changes none of the views of its owner that others see', async () => {
  const user = await createUser(app, { roleId: 'operator', tenantId: 'red' });
  const ofRed = { 'x-service-tenant-id': 'red' };
  const made = (fields: object) =>
    user.client
      .post<ViewRecord>(
        '/api/views',
        { list: '/inventory/sites', name: `view ${names++}`, search: {}, ...fields },
        ofRed,
      )
      .expect(201);
  const [shared, own] = [await made({ shared: true }), await made({})];
  const reader = await createToken(app, user, { permissions: ['inventory:read'] });
  const writer = await createToken(app, user, {
    permissions: ['inventory:read', 'inventory:write'],
  });
  const path = `/api/views/${shared.id}`;
  await reader.client.put(path, { shared: false }, ofRed).expect(403);
  await reader.client.delete(path, ofRed).expect(403);
  await reader.client.delete(`/api/views/${own.id}`, ofRed).expect(204);
  await writer.client.put(path, { shared: false }, ofRed).expect(200);
  await user.client.put(path, { shared: true }, ofRed).expect(200);
  await user.client.delete(path, ofRed).expect(204);
});

describe('a view', () => {
  test('is private at first: nobody else finds it, whatever their roles', async () => {
    const { id, shared, isOwn } = await make(ann, { name: 'of ann alone' });
    expect([shared, isOwn]).toEqual([false, true]);
    expect(await namesOf(ann)).toContain('of ann alone');
    const admin = at('root', 'platform-admin');
    const platform = at('root', 'platform-admin', 'platform');
    // The same actor id at another tenant is another person.
    for (const other of [bob, admin, platform, at('ann', 'platform-admin', 'blue')]) {
      expect(await namesOf(other)).not.toContain('of ann alone');
      expect(await namesOf(other, '&name=of+ann+alone')).toEqual([]);
      await other.get(`/api/views/${id}`).expect(404);
      await other.put(`/api/views/${id}`, { name: 'x' }).expect(404);
      await other.delete(`/api/views/${id}`).expect(404);
      await other.post(`/api/views/${id}/default`).expect(404);
      const found = await other.get(`/api/search?q=${encodeURIComponent('of ann alone')}`);
      expect(JSON.stringify(found.body)).not.toContain(id);
    }
    // The audit log says that there is one, and no more.
    const entries = await admin
      .get<Page<AuditEntryRecord>>(`/api/audit?subjectId=${id}`)
      .expect(200);
    expect(entries.items).toMatchObject([
      { action: 'view.create', after: { list: '/inventory/sites', shared: false } },
    ]);
    expect(JSON.stringify(entries)).not.toContain('alone');
    await ann.delete(`/api/views/${id}`).expect(204);
  });

  test('that is shared is for readers of the list in its tenant', async () => {
    const { id } = await make(ann, { name: 'for all', shared: true, list: '/secrets' }).catch(() =>
      make(at('eve', 'platform-admin'), { name: 'for all', shared: true, list: '/secrets' }),
    );
    // Viewers read no secrets, so that a view of their list is not theirs to see.
    await at('vic', 'viewer').get(`/api/views/${id}`).expect(404);
    await at('aud', 'auditor').get<ViewRecord>(`/api/views/${id}`).expect(200);
    await at('aud', 'auditor', 'blue').get(`/api/views/${id}`).expect(404);
    const sites = await make(ann, { name: 'sites for all', shared: true });
    const seen = await at('vic', 'viewer').get<ViewRecord>(`/api/views/${sites.id}`).expect(200);
    expect(seen).toMatchObject({ isOwn: false, shared: true, search: { status: 'active' } });
    // A viewer may not write sites: it changes no shared view of them, and shares none.
    const vic = at('vic', 'viewer');
    await vic.put(`/api/views/${sites.id}`, { name: 'mine' }).expect(403);
    await vic.delete(`/api/views/${sites.id}`).expect(403);
    await create(vic, { shared: true }).expect(403);
    const own = await make(vic);
    await vic.put(`/api/views/${own.id}`, { shared: true }).expect(403);
    // Who may share changes those of others, and only the owner hides one.
    await bob.put(`/api/views/${sites.id}`, { name: 'all sites' }).expect(200);
    await bob.put(`/api/views/${sites.id}`, { shared: false }).expect(403);
    await ann.put(`/api/views/${sites.id}`, { shared: false }).expect(200);
    await bob.get(`/api/views/${sites.id}`).expect(404);
  });

  test('of a tenant is seen by users with a part of it, and not by those of another', async () => {
    await Promise.all([seedTenant(app, 'red'), seedTenant(app, 'blue')]);
    const { id } = await make(ann, { name: 'with parts', shared: true });
    const root = at('root', 'platform-admin');
    const site = await root
      .post<{ id: string }>('/api/inventory/sites', { name: 'part' })
      .expect(201);
    const partial = await createUser(app, { roleId: 'viewer', tenantId: 'red', siteId: site.id });
    const other = await createUser(app, { roleId: 'viewer', tenantId: 'blue' });
    await partial.client.get(`/api/views/${id}`, { 'x-service-tenant-id': 'red' }).expect(200);
    await other.client.get(`/api/views/${id}`, { 'x-service-tenant-id': 'blue' }).expect(404);
    await other.client.get(`/api/views/${id}`, { 'x-service-tenant-id': 'red' }).expect(400);
  });

  test('has a version, one name beside others, and is created once for a key', async () => {
    const key = { 'idempotency-key': 'view-once' };
    const fields = { name: 'once', list: '/jobs' };
    const first = await create(ann, fields, key).expect(201);
    expect((await create(ann, fields, key).expect(201)).id).toBe(first.id);
    await create(ann, fields).expect(409);
    await create(bob, fields).expect(201);
    const path = `/api/views/${first.id}`;
    const put = (body: object, tag: string) => ann.put<ViewRecord>(path, body, { 'if-match': tag });
    const changed = await put({ search: { sort: '-createdAt' } }, '"1.0"').expect(200);
    expect(changed).toMatchObject({ version: 2, name: 'once', search: { sort: '-createdAt' } });
    await expectProblem(put({ name: 'late' }, '"1.0"'), 412, 'version_conflict');
    // What a GET has returned is accepted again.
    const { body } = await ann.get<ViewRecord>(path);
    await ann.put(path, body).expect(200);
  });

  test('can be the one that a list opens with, for each user', async () => {
    const { id } = await make(ann, { shared: true, list: '/schedules' });
    const next = await make(bob, { list: '/schedules' });
    const isDefault = async (client: TestClient, which: string) =>
      (await client.get<ViewRecord>(`/api/views/${which}`).expect(200)).isDefault;
    await bob.post(`/api/views/${id}/default`).expect(200);
    expect([await isDefault(bob, id), await isDefault(ann, id)]).toEqual([true, false]);
    // A list has one.
    await bob.post(`/api/views/${next.id}/default`).expect(200);
    expect([await isDefault(bob, id), await isDefault(bob, next.id)]).toEqual([false, true]);
    await bob.delete(`/api/views/${next.id}/default`).expect(200);
    expect(await isDefault(bob, next.id)).toBe(false);
    await ann.post(`/api/views/${id}/default`).expect(200);
    await ann.delete(`/api/views/${id}`).expect(204);
    expect(await app.deps.db('view_defaults').where({ view_id: id })).toEqual([]);
  });

  test.each([
    [{ list: '/nowhere' }, '/list'],
    [{ list: '/inventory/../jobs' }, '/list'],
    [{ name: ' ' }, '/name'],
    [{ search: { a: 'x'.repeat(4_001) } }, '/search/a'],
    [{ search: { a: 'x'.repeat(4_000), b: 'x'.repeat(4_000), c: 'x'.repeat(400) } }, '/search'],
    [{ search: { 'a b': 'x' } }, '/search/a b'],
  ])('that makes no sense is refused: %#', async (fields, pointer) => {
    await expectInvalid(create(ann, fields), pointer);
  });

  test('is one of a limited number', async () => {
    const max = at('max');
    await make(max);
    await app.deps.db.raw(
      `INSERT INTO views SELECT 'viw_' || lpad(n::text, 26, '0'), tenant_id, list, 'more ' || n, search, shared, owner,
         created_by, created_at, updated_at, version
       FROM views, generate_series(2, ?) AS n WHERE owner = 'red/max'`,
      [MAX_VIEWS],
    );
    await expectProblem(create(max), 409, 'limit_reached');
    await create(bob).expect(201);
  });
});
