import { beforeAll, expect, test } from '@jest/globals';
import type { ApprovalList, ApprovalRecord } from '../../../api/approvals/schemas.ts';
import { cancel, createRequest, echoJob, withApprovals } from '../../support/approvals.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { admin, createUser } from '../../support/users.ts';

const { fixture, users } = withApprovals({}, { idle: true });
let created: ApprovalRecord;
beforeAll(async () => {
  const requester = fixture.app.client.as({ actor: 'asker', roles: 'operator', tenant: 'seen' });
  created = await createRequest(requester, { ...echoJob, type: 'seen' });
});

const list = (client: TestClient, query = '') =>
  client.get<ApprovalList>(`/api/workflows${query}`).expect(200);

test('a user who must change the password can neither see nor do anything', async () => {
  const { tenant } = users();
  const user = await createUser(fixture.app, { roleId: 'operator', tenantId: tenant });
  const { id } = await createRequest(user.client, { tenantId: tenant });
  const { oneTimePassword } = await admin(fixture.app)
    .post<{ oneTimePassword: string }>(`/api/users/${user.id}/reset-password`, {})
    .expect(200);
  const { accessToken } = await fixture.app.client
    .as({ token: null })
    .post<{ accessToken: string }>('/api/auth/login/local', {
      username: user.username,
      password: oneTimePassword,
    })
    .expect(200);
  const limited = fixture.app.client.as({ token: accessToken });
  const attempts = [
    limited.get<ProblemBody>('/api/workflows'),
    limited.get<ProblemBody>(`/api/workflows/${id}`),
    cancel<ProblemBody>(limited, id),
  ];
  for (const attempt of attempts)
    expect((await attempt.expect(403)).code).toBe('password_change_required');
  await limited.get('/api/rbac/summary').expect(200);
});

test('requests of another tenant are invisible', async () => {
  const stranger = fixture.app.client.as({
    actor: 'decider',
    roles: 'platform-admin',
    tenant: 'unseen',
  });
  expect(await list(stranger)).toEqual({
    items: [],
    nextCursor: null,
    counts: { pending: 0, approved: 0, rejected: 0, expired: 0, cancelled: 0 },
    countsExact: true,
  });
  for (const action of ['approve', 'reject', 'cancel', 'comments']) {
    const body = action === 'comments' ? { text: 'x' } : {};
    const problem = await stranger
      .post<ProblemBody>(`/api/workflows/${created.id}/${action}`, body)
      .expect(404);
    expect(problem.code).toBe('not_found');
  }
  await stranger.get(`/api/workflows/${created.id}`).expect(404);
});

test('an actor of the same name in another tenant is another person', async () => {
  const namesake = fixture.app.client.as({ actor: 'asker', roles: 'operator', tenant: 'unseen' });
  await namesake.get(`/api/workflows/${created.id}`).expect(404);
  await cancel(namesake, created.id).expect(404);
  expect((await list(namesake, '?requestedByMe')).items).toEqual([]);
});

test('actors of one name, at the platform and at a tenant of its requests, are two people', async () => {
  const at = (tenant: string) =>
    fixture.app.client.as({ actor: 'ann', roles: 'platform-admin', tenant });
  const [platform, tenant] = [at('platform'), at('seen')];
  const ofTenant = await createRequest(tenant, { ...echoJob, payload: { password: 'of-tenant' } });
  const ofPlatform = await createRequest(platform, {
    ...echoJob,
    tenantId: 'seen',
    payload: { password: 'of-platform' },
  });
  for (const [client, own, other] of [
    [platform, ofPlatform, ofTenant],
    [tenant, ofTenant, ofPlatform],
  ] as const) {
    expect((await list(client, '?requestedByMe')).items.map(({ id }) => id)).toEqual([own.id]);
    const payloads = await Promise.all(
      [own, other].map(async ({ id }) => {
        const { payload } = await client.get<ApprovalRecord>(`/api/workflows/${id}`).expect(200);
        return payload;
      }),
    );
    expect(payloads).toEqual([own.payload, { password: '********' }]);
    expect((await cancel<ProblemBody>(client, other.id).expect(403)).code).toBe('not_requester');
  }
});

test('requesters see their own requests, deciders those that they may decide', async () => {
  const createRole = async (name: string, permissions: string[]): Promise<string> =>
    (
      await admin(fixture.app)
        .post<{ id: string }>('/api/rbac/roles', { name, permissions })
        .expect(201)
    ).id;
  const requests = await createRole('requests', ['workflow:write']);
  const decides = await createRole('decides', ['workflow:approve']);
  const requester = fixture.app.client.as({ actor: 'one', roles: requests, tenant: 'seen' });
  const decider = fixture.app.client.as({ actor: 'two', roles: decides, tenant: 'seen' });
  const own = await createRequest(requester, { type: 'seen', assignedRoleIds: [decides] });
  for (const client of [requester, decider]) {
    const { items, counts } = await list(client);
    expect(items.map(({ id }) => id)).toEqual([own.id]);
    expect(counts).toMatchObject({ pending: 1 });
    await client.get(`/api/workflows/${created.id}`).expect(404);
  }
  expect((await list(decider, '?assignedToMe')).items).toMatchObject([
    { id: own.id, mayDecide: true },
  ]);
  expect((await list(requester, '?assignedToMe')).items).toEqual([]);
  expect((await list(requester, '?requestedByMe=true')).items).toHaveLength(1);
});
