import { beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { approve, byRole, cancel, reject, request, withApprovals } from '../support/approvals.ts';
import type { TestClient } from '../support/client.ts';
import { admin, person, place, type Person } from '../support/users.ts';

const { bed } = withApprovals({}, { idle: true });
const TENANTS = ['la', 'lb'];
const SITES = ['la-1', 'la-2', 'lb-1'];
let root: TestClient;
let made: string[];
const everybody: Person[] = [];

/** Every page of a list. */
async function all(
  client: TestClient,
  query: string,
  limit = 200,
): Promise<{ ids: string[]; counts: any; items: any[] }> {
  const items: any[] = [];
  let counts: any;
  for (let cursor = ''; ;) {
    const { status, body } = await client.get(`/api/workflows?limit=${limit}${query}${cursor}`);
    expect([status, body]).toEqual([200, body]);
    items.push(...body.items);
    counts = body.counts;
    if (body.nextCursor === null) return { ids: items.map(({ id }) => id), counts, items };
    cursor = `&cursor=${body.nextCursor as string}`;
  }
}

beforeAll(async () => {
  root = admin(bed.app);
  for (const site of SITES) await place(bed.app, { tenant: site.slice(0, 2), site });
  const custom = (
    await root.post('/api/rbac/roles', { name: 'only asks', permissions: ['workflow:write'] })
  ).body.id as string;
  const approves = (
    await root.post('/api/rbac/roles', { name: 'only approves', permissions: ['workflow:approve'] })
  ).body.id as string;
  const roles = ['operator', 'approver', 'viewer', custom, approves];
  const places = [
    {},
    ...TENANTS.map((tenantId) => ({ tenantId })),
    ...SITES.map((siteId) => ({ siteId })),
  ];
  // People with one or two roles at places of every kind.
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...roles), fc.constantFrom(...places.slice(1))), {
        minLength: 1,
        maxLength: 3,
      }),
      async (grants) => {
        const distinct = [
          ...new Map(grants.map((grant) => [JSON.stringify(grant), grant])).values(),
        ];
        everybody.push(
          await person(bed.app, ...distinct.map(([roleId, where]) => ({ roleId, ...where }))),
        );
      },
    ),
    { numRuns: 12 },
  );
  made = [];
  for (let i = 0; i < 60; i++) {
    const [who, named, where] = [
      everybody[i % everybody.length],
      everybody[(i * 7 + 3) % everybody.length],
      places[1 + (i % (places.length - 1))],
    ];
    const assigned =
      i % 3 === 0
        ? { assignedUserIds: [named?.id ?? ''], assignedRoleIds: ['platform-admin'] }
        : { assignedUserIds: [], assignedRoleIds: [roles[i % roles.length] ?? ''] };
    const body = { ...byRole, ...assigned, ...where, title: `r${i}`, type: i % 2 ? 'odd' : 'even' };
    const own = await (who?.client ?? root).post('/api/workflows', body);
    made.push((own.status === 201 ? own.body : await request(root, body)).id);
  }
  for (const [i, id] of made.entries()) {
    if (i % 4 === 1) await cancel(root, id);
    const decider = everybody[(i * 7 + 3) % everybody.length];
    if (i % 4 === 2) await approve(decider?.client ?? root, id);
    if (i % 4 === 3) await reject(decider?.client ?? root, id);
  }
}, 60_000);

test('a list holds what a read shows, and nothing else, page by page, with its counts', async () => {
  const seen: number[] = [];
  for (const { client, id } of [...everybody, { client: root, id: 'root' }]) {
    const reads = await Promise.all(
      made.map(async (one) => ({ one, answer: await client.get(`/api/workflows/${one}`) })),
    );
    const visible = reads
      .filter(({ answer }) => answer.status === 200)
      .map(({ one, answer }) => ({ one, ...answer.body }));
    const ids = visible
      .map(({ one }) => one as string)
      .sort()
      .reverse();
    seen.push(ids.length);
    const list = await all(client, '');
    expect(list.ids).toEqual(ids);
    expect((await all(client, '', 7)).ids).toEqual(ids);
    const byStatus = (status: string) => visible.filter((each) => each.status === status).length;
    expect(list.counts).toEqual(
      Object.fromEntries(
        ['pending', 'approved', 'rejected', 'expired', 'cancelled'].map((status) => [
          status,
          byStatus(status),
        ]),
      ),
    );
    expect(list.items.map(({ mayDecide }) => mayDecide as boolean)).toEqual(
      list.ids.map((one) => visible.find((each) => each.one === one)?.you.mayDecide),
    );
    const assigned = visible
      .filter(
        ({ you, status }) =>
          you.mayDecide === true ||
          (you.reason === 'already_decided' && status !== 'pending') ||
          ['approved', 'rejected', 'cancelled', 'expired'].includes(you.reason),
      )
      .map(({ one }) => one as string)
      .sort()
      .reverse();
    expect((await all(client, '&assignedToMe')).ids).toEqual(assigned);
    expect((await all(client, '&requestedByMe=true')).ids).toEqual(
      visible
        .filter(({ createdBy }) => createdBy === id)
        .map(({ one }) => one as string)
        .sort()
        .reverse(),
    );
    const narrowed = await all(client, '&status=pending&status=rejected&type=odd&tenantId=la', 5);
    expect(narrowed.ids).toEqual(
      visible
        .filter(
          ({ status, type, tenantId }) =>
            ['pending', 'rejected'].includes(status) && type === 'odd' && tenantId === 'la',
        )
        .map(({ one }) => one as string)
        .sort()
        .reverse(),
    );
    expect(narrowed.counts.cancelled).toBe(
      visible.filter(
        ({ status, type, tenantId }) =>
          status === 'cancelled' && type === 'odd' && tenantId === 'la',
      ).length,
    );
  }
  // The people differ, or the test says nothing.
  expect(new Set(seen).size).toBeGreaterThan(3);
  expect(Math.max(...seen)).toBe(60);
}, 60_000);

test('a role that is held elsewhere shows nothing here', async () => {
  const { items } = (await root.get('/api/rbac/roles')).body;
  const idOf = (name: string) => items.find((each: any) => each.name === name).id as string;
  const somebody = await person(
    bed.app,
    { roleId: idOf('only asks'), tenantId: 'lb' },
    { roleId: idOf('only approves'), tenantId: 'la' },
  );
  const [here, there] = await Promise.all(
    ['la', 'lb'].map((tenantId) =>
      request(root, { tenantId, assignedRoleIds: [idOf('only asks')] }),
    ),
  );
  expect((await all(somebody.client, '')).ids).toEqual([]);
  for (const { id } of [here, there])
    expect((await somebody.client.get(`/api/workflows/${id as string}`)).status).toBe(404);
  await root.post('/api/rbac/assignments', {
    userId: somebody.id,
    roleId: idOf('only asks'),
    tenantId: 'la',
  });
  const { ids } = await all(somebody.client, '');
  expect([ids.includes(here.id), ids.includes(there.id)]).toEqual([true, false]);
});

test('what is no cursor, filter or status is refused', async () => {
  for (const query of ['cursor=x', 'status=odd', 'assignedToMe=maybe', 'sort=title', 'limit=0'])
    expect((await root.get(`/api/workflows?${query}`)).status).toBe(400);
});

test('a comment is for those concerned, and is told', async () => {
  const made2 = await request(root, { title: 'commented' });
  const say = (client: TestClient, text: string) =>
    client.post(`/api/workflows/${made2.id as string}/comments`, { text });
  expect((await say(root, 'why this')).body.comments).toMatchObject([
    { number: 1, actorId: 'root', text: 'why this' },
  ]);
  const decider = bed.app.client.as({ actor: 'decider', roles: 'approver' });
  await Promise.all(Array.from({ length: 5 }, (_, i) => say(decider, `answer ${i}`)));
  const viewer = bed.app.client.as({ actor: 'viewer', roles: 'viewer' });
  expect((await say(viewer, 'me too')).body.code).toBe('permission_denied');
  const { comments } = (await viewer.get(`/api/workflows/${made2.id as string}`)).body;
  expect(comments.map(({ number }: any) => number)).toEqual([1, 2, 3, 4, 5, 6]);
  expect((await say(root, '')).status).toBe(400);
});
