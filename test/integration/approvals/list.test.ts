import { beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { APPROVAL_STATUSES, MAX_COUNTED_REQUESTS } from '../../../domain/approvals/approvals.ts';
import type {
  ApprovalList,
  ApprovalRecord,
  ApprovalSummary,
} from '../../../api/approvals/schemas.ts';
import {
  approve,
  assignedToApprovers,
  cancel,
  createRequest,
  readRequest,
  reject,
  withApprovals,
} from '../../support/approvals.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { propertyRuns } from '../../support/effort.ts';
import { admin, createUser, seedSiteAndDevice, type TestUser } from '../../support/users.ts';

const { fixture } = withApprovals({}, { idle: true });
const TENANTS = ['la', 'lb'];
const SITES = ['la-1', 'la-2', 'lb-1'];
/** Every user reads every request, so the work grows with both. */
const USERS = propertyRuns(8);
const REQUESTS = propertyRuns(30);
let root: TestClient;
/** The ids of all requests. */
const created: string[] = [];
const users: TestUser[] = [];

type Listed = { ids: string[]; counts: ApprovalList['counts']; items: ApprovalSummary[] };

type Counted = ApprovalList & {
  count?: { value: number; exact: boolean };
  facets?: Partial<Record<'status' | 'siteId', { values: { value: string; count: number }[] }>>;
};

/** Reads every page of a list. What it counts is what the pages have. */
async function listAll(client: TestClient, query: string, limit = 200): Promise<Listed> {
  const items: ApprovalSummary[] = [];
  for (let cursor = ''; ;) {
    const page = await client
      .get<Counted>(`/api/workflows?limit=${limit}${query}${cursor}&count=true&facets=status`)
      .expect(200);
    items.push(...page.items);
    if (page.nextCursor === null) {
      expect(page.count).toEqual({ value: items.length, exact: true });
      const byStatus = page.facets?.status?.values.map(({ value, count }) => [value, count]) ?? [];
      expect({ ...page.counts, ...Object.fromEntries(byStatus) }).toEqual(page.counts);
      return { ids: items.map(({ id }) => id), counts: page.counts, items };
    }
    cursor = `&cursor=${page.nextCursor}`;
  }
}

const createRole = async (name: string, permissions: string[]): Promise<string> =>
  (await root.post<{ id: string }>('/api/rbac/roles', { name, permissions }).expect(201)).id;

/** Creates users with one to three roles at scopes of every kind. */
async function seedUsers(roles: readonly string[], scopes: readonly object[]): Promise<void> {
  const grant = fc.tuple(fc.constantFrom(...roles), fc.constantFrom(...scopes));
  const grants = fc.array(grant, { minLength: 1, maxLength: 3 });
  const create = fc.asyncProperty(grants, async (chosen) => {
    const distinct = [...new Map(chosen.map((each) => [JSON.stringify(each), each])).values()];
    const user = await createUser(
      fixture.app,
      ...distinct.map(([roleId, scope]) => ({ roleId, ...scope })),
    );
    users.push(user);
  });
  await fc.assert(create, { numRuns: USERS });
}

/** The user that the request with this number is assigned to, if it is assigned to a user. */
const assigneeOf = (i: number): TestUser | undefined => users[(i * 7 + 3) % users.length];

/** Creates the request with this number: by a user if that user may, otherwise by root. */
async function seedRequest(
  i: number,
  roles: readonly string[],
  scopes: readonly object[],
): Promise<string> {
  const assigned =
    i % 3 === 0
      ? { assignedUserIds: [assigneeOf(i)?.id], assignedRoleIds: ['platform-admin'] }
      : { assignedUserIds: [], assignedRoleIds: [roles[i % roles.length]] };
  const scope = scopes[i % scopes.length];
  const body = {
    ...assignedToApprovers,
    ...assigned,
    ...scope,
    title: `r${i}`,
    type: i % 2 ? 'odd' : 'even',
  };
  const requester = users[i % users.length]?.client ?? root;
  const own = await requester.post<ApprovalRecord>('/api/workflows', body);
  return own.status === 201 ? own.body.id : (await createRequest(root, body)).id;
}

beforeAll(async () => {
  root = admin(fixture.app);
  for (const site of SITES)
    await seedSiteAndDevice(fixture.app, { tenant: site.slice(0, 2), site });
  const requestOnly = await createRole('only requests', ['workflow:write']);
  const approveOnly = await createRole('only approves', ['workflow:approve']);
  const roles = ['operator', 'approver', 'viewer', requestOnly, approveOnly];
  const scopes = [
    ...TENANTS.map((tenantId) => ({ tenantId })),
    ...SITES.map((siteId) => ({ siteId })),
  ];
  await seedUsers(roles, scopes);
  for (let i = 0; i < REQUESTS; i++) created.push(await seedRequest(i, roles, scopes));
  for (const [i, id] of created.entries()) {
    const decider = assigneeOf(i)?.client ?? root;
    if (i % 4 === 1) await cancel(root, id);
    if (i % 4 === 2) await approve(decider, id);
    if (i % 4 === 3) await reject(decider, id);
  }
}, 60_000);

/** Every request that a client can read one by one, newest first. */
async function readable(client: TestClient): Promise<ApprovalRecord[]> {
  const reads = await Promise.all(
    created.map((id) => client.get<ApprovalRecord>(`/api/workflows/${id}`)),
  );
  const found = reads.filter(({ status }) => status === 200).map(({ body }) => body);
  return found.sort((one, other) => (one.id < other.id ? 1 : -1));
}

const idsOf = (requests: readonly { id: string }[]) => requests.map(({ id }) => id);

/** True if the reader may decide, or could if the request were not closed. */
const isAssigned = ({ you, status }: ApprovalRecord): boolean =>
  you.mayDecide ||
  (you.reason === 'already_decided' && status !== 'pending') ||
  ['approved', 'rejected', 'cancelled', 'expired'].includes(String(you.reason));

test('a list holds exactly the requests that the reader can read, on pages, with counts', async () => {
  const visibleCounts: number[] = [];
  for (const { client, id } of [...users, { client: root, id: 'root' }]) {
    const visible = await readable(client);
    visibleCounts.push(visible.length);
    const list = await listAll(client, '');
    expect(list.ids).toEqual(idsOf(visible));
    expect((await listAll(client, '', 7)).ids).toEqual(idsOf(visible));
    const byChange = visible.toSorted((a, b) =>
      `${a.updatedAt} ${a.id}` < `${b.updatedAt} ${b.id}` ? -1 : 1,
    );
    expect((await listAll(client, '&sort=updatedAt', 7)).ids).toEqual(idsOf(byChange));
    expect((await listAll(client, '&sort=-updatedAt', 11)).ids).toEqual(
      idsOf(byChange.toReversed()),
    );
    const withStatus = (status: string) => visible.filter((each) => each.status === status).length;
    expect(list.counts).toEqual(
      Object.fromEntries(APPROVAL_STATUSES.map((status) => [status, withStatus(status)])),
    );
    expect(list.items.map(({ mayDecide }) => mayDecide)).toEqual(
      visible.map(({ you }) => you.mayDecide),
    );
    expect((await listAll(client, '&assignedToMe')).ids).toEqual(idsOf(visible.filter(isAssigned)));
    expect((await listAll(client, '&requestedByMe=true')).ids).toEqual(
      idsOf(visible.filter(({ createdBy }) => createdBy === id)),
    );
    expect((await listAll(client, '&assignedToMe=false')).ids).toEqual(
      idsOf(visible.filter((each) => !isAssigned(each))),
    );
    expect((await listAll(client, '&requestedByMe=false', 7)).ids).toEqual(
      idsOf(visible.filter(({ createdBy }) => createdBy !== id)),
    );
    const inFilter = visible.filter(({ type, tenantId }) => type === 'odd' && tenantId === 'la');
    const filtered = await listAll(
      client,
      '&status=pending&status=rejected&type=odd&tenantId=la',
      5,
    );
    expect(filtered.ids).toEqual(
      idsOf(inFilter.filter(({ status }) => ['pending', 'rejected'].includes(status))),
    );
    expect(filtered.counts).toMatchObject({
      cancelled: inFilter.filter(({ status }) => status === 'cancelled').length,
    });
  }
  // The users must see different requests, or the test proves nothing.
  expect(new Set(visibleCounts).size).toBeGreaterThan(3);
  expect(Math.max(...visibleCounts)).toBe(REQUESTS);
}, 60_000);

test('a role shows requests only where it is held', async () => {
  const { items } = await root
    .get<{ items: { id: string; name: string }[] }>('/api/rbac/roles')
    .expect(200);
  const idOf = (name: string) => String(items.find((each) => each.name === name)?.id);
  const [requests, approves] = [idOf('only requests'), idOf('only approves')];
  const user = await createUser(
    fixture.app,
    { roleId: requests, tenantId: 'lb' },
    { roleId: approves, tenantId: 'la' },
  );
  const here = await createRequest(root, { tenantId: 'la', assignedRoleIds: [requests] });
  const there = await createRequest(root, { tenantId: 'lb', assignedRoleIds: [requests] });
  expect((await listAll(user.client, '')).ids).toEqual([]);
  for (const { id } of [here, there]) await user.client.get(`/api/workflows/${id}`).expect(404);
  await root
    .post('/api/rbac/assignments', { userId: user.id, roleId: requests, tenantId: 'la' })
    .expect(201);
  const { ids } = await listAll(user.client, '');
  expect([ids.includes(here.id), ids.includes(there.id)]).toEqual([true, false]);
});

test('requests are listed by their site', async () => {
  const site = await root
    .post<{ id: string }>('/api/inventory/sites', { name: 'asked' })
    .expect(201);
  const { id } = await createRequest(root, { siteId: site.id });
  const list = await listAll(root, `&siteId=${site.id}`);
  expect([list.ids, list.counts.pending]).toEqual([[id], 1]);
  const elsewhere = await listAll(root, `&siteId.not=${site.id}`);
  expect(elsewhere.ids).not.toContain(id);
  const { facets } = await root
    .get<Counted>(`/api/workflows?siteId=${site.id}&facets=siteId`)
    .expect(200);
  expect(facets?.siteId?.values).toContainEqual({ value: site.id, count: 1 });
});

test('counts have a limit, and pending requests do not disappear among closed ones', async () => {
  await createRequest(root, { type: 'many' });
  const closed = ['expired', ...Array<string>(MAX_COUNTED_REQUESTS).fill('rejected'), 'cancelled'];
  await fixture.app.deps.db.raw(
    `INSERT INTO approvals (id, tenant_id, type, title, payload, status, execution, required_approvals, content_key,
       content_hash, expires_at, created_by, requester_names, authority, closed_by, closed_at, check_at, created_at, updated_at)
     SELECT 'apr_zz' || lpad(n::text, 24, '0'), 'platform', 'many', 'request', '{}', status, 'none', 1, 'key', 'hash',
       now(), 'other', '[]', '{"actorId": "other", "grants": []}', 'other', now(), now(), now(), now()
     FROM unnest(?::text[]) WITH ORDINALITY AS closed (status, n)`,
    [closed],
  );
  const reader = await createUser(fixture.app, 'viewer');
  for (const client of [root, reader.client]) {
    const page = await client.get<Counted>('/api/workflows?type=many&limit=1').expect(200);
    // The oldest closed ones, of which one has expired, are not counted.
    const counts = {
      pending: 1,
      rejected: MAX_COUNTED_REQUESTS - 1,
      cancelled: 1,
      expired: 0,
      approved: 0,
    };
    expect([page.counts, page.countsExact]).toEqual([counts, false]);
  }
  await fixture.app.deps.db.raw(
    "DELETE FROM approvals WHERE id LIKE 'apr_zz%' AND status = 'rejected'",
  );
  const { counts, countsExact } = await root
    .get<Counted>('/api/workflows?type=many&status=pending')
    .expect(200);
  expect([counts, countsExact]).toEqual([
    { pending: 1, rejected: 0, cancelled: 1, expired: 1, approved: 0 },
    true,
  ]);
});

test('invalid cursors, filters and statuses are refused', async () => {
  for (const query of ['cursor=x', 'status=odd', 'assignedToMe=maybe', 'sort=title', 'limit=0'])
    await root.get(`/api/workflows?${query}`).expect(400);
});

test('requesters and deciders can comment, other readers cannot', async () => {
  const { id } = await createRequest(root, { title: 'commented' });
  const comment = <T = ApprovalRecord>(client: TestClient, text: string) =>
    client.post<T>(`/api/workflows/${id}/comments`, { text });
  expect((await comment(root, 'why this').expect(200)).comments).toMatchObject([
    { number: 1, actorId: 'root', text: 'why this' },
  ]);
  const decider = fixture.app.client.as({ actor: 'decider', roles: 'approver' });
  await Promise.all(
    Array.from({ length: 5 }, (_, i) => comment(decider, `answer ${i}`).expect(200)),
  );
  const viewer = fixture.app.client.as({ actor: 'viewer', roles: 'viewer' });
  expect((await comment<ProblemBody>(viewer, 'me too').expect(403)).code).toBe('permission_denied');
  const { comments } = await readRequest(viewer, id);
  expect(comments.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6]);
  await comment(root, '').expect(400);
});

test('who asks finds who could decide: accounts of the tenant, and roles', async () => {
  type Deciders = { items: { id: string; username: string }[]; roles: { id: string }[] };
  const decider = await createUser(fixture.app, { roleId: 'approver', tenantId: 'la' });
  const elsewhere = await createUser(fixture.app, { roleId: 'approver', tenantId: 'lb' });
  const asker = await createUser(fixture.app, { roleId: 'operator', tenantId: 'la' });
  await root.put(`/api/users/${decider.id}`, { tenantId: 'la' }).expect(200);
  const ask = (query = '') =>
    asker.client.get<Deciders>(`/api/workflows/deciders?tenantId=la&limit=200${query}`);
  const { items, roles } = await ask().expect(200);
  const ids = items.map(({ id }) => id);
  expect(ids).toContain(decider.id);
  expect(ids).not.toContain(elsewhere.id);
  expect(ids).not.toContain(asker.id);
  expect(roles.map(({ id }) => id)).toEqual(expect.arrayContaining(['platform-admin', 'approver']));
  const found = await ask(`&q=${decider.username.slice(1)}`).expect(200);
  expect(found.items.map(({ id }) => id)).toEqual([decider.id]);
  expect((await ask('&tenantId=lb')).status).toBe(400);
  expect((await asker.client.get('/api/workflows/deciders?tenantId=lb')).status).toBe(403);
});

test('who asks reads the names of those who could decide, and of no other assigned accounts', async () => {
  const decider = await createUser(fixture.app, { roleId: 'approver', tenantId: 'na' });
  const elsewhere = await createUser(fixture.app, { roleId: 'approver', tenantId: 'nb' });
  const asker = await createUser(fixture.app, { roleId: 'operator', tenantId: 'na' });
  const role = { name: 'reads requests', permissions: ['workflow:read'] };
  const { id: roleId } = await root.post<{ id: string }>('/api/rbac/roles', role).expect(201);
  const reader = await createUser(fixture.app, { roleId, tenantId: 'na' });
  await root.put(`/api/users/${decider.id}`, { tenantId: 'na' }).expect(200);
  const { id } = await createRequest(asker.client, {
    tenantId: 'na',
    assignedUserIds: [decider.id, elsewhere.id],
    assignedRoleIds: [],
  });
  const namesFor = async (client: TestClient) =>
    (await readRequest(client, id)).deciders.users.map(({ username }) => username);
  expect(await namesFor(asker.client)).toEqual([decider.username, null]);
  // Who may not ask there finds nobody.
  expect(await namesFor(reader.client)).toEqual([null, null]);
});
