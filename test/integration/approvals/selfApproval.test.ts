import { expect, test } from '@jest/globals';
import type { ApprovalList, ApprovalRecord } from '../../../api/approvals/schemas.ts';
import type { ProviderRecord } from '../../../api/auth/providerRoutes.ts';
import {
  approve,
  assignedToApprovers,
  auditActionsOf,
  cancel,
  createRequest,
  readRequest,
  reject,
  withApprovals,
} from '../../support/approvals.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { admin, createUser } from '../../support/users.ts';

const { fixture, users } = withApprovals({}, { idle: true });
const ROLES = 'operator,approver,platform-admin';
const OIDC = { issuer: 'https://login.example.net', clientId: 'holdfast', ownCallback: true };

const codeOfApproval = async (client: TestClient, id: string, status = 403): Promise<string> =>
  (await approve<ProblemBody>(client, id).expect(status)).code;

test('requesters cannot decide with another role, in another tenant or in other letters', async () => {
  const { tenant, as } = users();
  const { id } = await createRequest(as('asker', ROLES));
  for (const actor of ['asker', 'ASKER', 'Asker']) {
    expect(await codeOfApproval(as(actor, ROLES), id)).toBe('self_approval');
    const rejection = await reject<ProblemBody>(as(actor, 'approver'), id).expect(403);
    expect(rejection.code).toBe('self_approval');
  }
  const platform = admin(fixture.app).as({ actor: 'asker', roles: 'platform-admin' });
  expect(await codeOfApproval(platform, id)).toBe('self_approval');
  const denied = (await auditActionsOf(fixture.app, id)).filter((entry) =>
    entry.includes('denied'),
  );
  expect(denied).toHaveLength(7);
  const root = admin(fixture.app).as({ actor: 'root', roles: 'platform-admin', tenant });
  expect(await codeOfApproval(root, id)).toBe('not_assigned');
});

test('a user is the same person in a session and through the gateway', async () => {
  const { tenant } = users();
  const user = await createUser(
    fixture.app,
    { roleId: 'operator', tenantId: tenant },
    { roleId: 'approver', tenantId: tenant },
  );
  const gateway = (actor: string) => fixture.app.client.as({ actor, roles: ROLES, tenant });
  const inSession = await createRequest(user.client, { tenantId: tenant });
  for (const actor of [user.id, user.username, user.username.toUpperCase()])
    expect(await codeOfApproval(gateway(actor), inSession.id)).toBe('self_approval');
  const throughGateway = await createRequest(gateway(user.username));
  expect(await codeOfApproval(user.client, throughGateway.id)).toBe('self_approval');
  await approve(gateway('another-user'), throughGateway.id).expect(200);
});

test('all names of one account are the same person', async () => {
  const { tenant } = users();
  const user = await createUser(fixture.app);
  const email = `${user.username}@Example.org`;
  await admin(fixture.app).put(`/api/users/${user.id}`, { email }).expect(200);
  const gateway = (actor: string) => fixture.app.client.as({ actor, roles: ROLES, tenant });
  const own = await createRequest(gateway(user.username));
  for (const actor of [email, email.toUpperCase(), user.id, user.id.toUpperCase()])
    expect(await codeOfApproval(gateway(actor), own.id)).toBe('self_approval');
  const { id } = await createRequest(gateway('requester'), { requiredApprovals: 2 });
  await approve(gateway(user.username), id).expect(200);
  for (const actor of [email, user.id.toUpperCase()])
    expect(await codeOfApproval(gateway(actor), id, 409)).toBe('already_decided');
  const { items } = await gateway(email)
    .get<ApprovalList>('/api/workflows?assignedToMe&status=pending')
    .expect(200);
  expect(items.map((item) => item.id)).not.toContain(id);
  expect((await readRequest(gateway(email), id)).you).toEqual({
    mayDecide: false,
    reason: 'already_decided',
    mayCancel: false,
  });
});

test('accounts with the same e-mail address are the same person', async () => {
  const { tenant } = users();
  const one = await createUser(fixture.app, { roleId: 'operator', tenantId: tenant });
  const two = await createUser(fixture.app, { roleId: 'approver', tenantId: tenant });
  const before = await createRequest(one.client, { tenantId: tenant });
  for (const { id } of [one, two])
    await admin(fixture.app).put(`/api/users/${id}`, { email: 'Same@Example.org' }).expect(200);
  expect(await codeOfApproval(two.client, before.id)).toBe('self_approval');
  // A shared name takes rights away. It never grants any.
  expect(await cancel<ProblemBody>(two.client, before.id).expect(403)).toMatchObject({
    code: 'not_requester',
  });
  const after = await createRequest(one.client, { tenantId: tenant, requiredApprovals: 2 });
  expect(await codeOfApproval(two.client, after.id)).toBe('self_approval');
});

test('equal ids at two identity providers are two people, a gateway means both', async () => {
  const { tenant } = users();
  const { app } = fixture;
  const atProvider = async (name: string, roleId: string) => {
    const provider = await admin(app)
      .post<ProviderRecord>('/api/auth/providers', { kind: 'oidc', name, config: OIDC })
      .expect(201);
    const user = await createUser(app, { roleId, tenantId: tenant });
    await app.deps
      .db('users')
      .where({ id: user.id })
      .update({ provider_id: provider.id, external_id: '42', password_hash: null });
    return user;
  };
  const one = await atProvider('One', 'operator');
  const two = await atProvider('Two', 'approver');
  const gateway = app.client.as({ actor: '42', roles: ROLES, tenant });
  const { id } = await createRequest(one.client, { tenantId: tenant, requiredApprovals: 2 });
  expect(await codeOfApproval(gateway, id)).toBe('self_approval');
  await approve(two.client, id).expect(200);
  const ofGateway = await createRequest(gateway);
  expect(await codeOfApproval(two.client, ofGateway.id)).toBe('self_approval');
});

test('a request cannot be created in the name of another user', async () => {
  const { requester } = users();
  const body = { ...assignedToApprovers, title: 't', createdBy: 'bob' };
  const { errors } = await requester.post<ProblemBody>('/api/workflows', body).expect(400);
  expect(errors).toMatchObject([{ pointer: '/createdBy', code: 'unknown_field' }]);
});

test('the assigned users must include enough other approvers', async () => {
  const { tenant } = users();
  const one = await createUser(
    fixture.app,
    { roleId: 'operator', tenantId: tenant },
    { roleId: 'approver', tenantId: tenant },
  );
  const two = await createUser(fixture.app, { roleId: 'approver', tenantId: tenant });
  const cannot = await createUser(
    fixture.app,
    { roleId: 'operator', tenantId: tenant },
    { roleId: 'approver', tenantId: 'elsewhere' },
  );
  const body = { type: 'x', title: 't', payload: {}, tenantId: tenant, assignedRoleIds: [] };
  const errorsOf = async (client: TestClient, overrides: object) =>
    (await client.post<ProblemBody>('/api/workflows', { ...body, ...overrides }).expect(400))
      .errors;
  const tooFew = [{ pointer: '/assignedUserIds', code: 'too_few_approvers' }];
  expect(await errorsOf(one.client, { assignedUserIds: [one.id] })).toMatchObject(tooFew);
  expect(await errorsOf(one.client, { assignedUserIds: [] })).toMatchObject(tooFew);
  const both = { assignedUserIds: [one.id, two.id] };
  expect(await errorsOf(one.client, { ...both, requiredApprovals: 2 })).toMatchObject(tooFew);
  await one.client.post<ApprovalRecord>('/api/workflows', { ...body, ...both }).expect(201);
  expect(await errorsOf(one.client, { assignedUserIds: [cannot.id] })).toMatchObject(tooFew);
  const gateway = fixture.app.client.as({ actor: one.username, roles: 'operator', tenant });
  expect(await errorsOf(gateway, { assignedUserIds: [one.id] })).toMatchObject(tooFew);
});
