import { expect, test } from '@jest/globals';
import {
  approve,
  auditActionsOf,
  createRequest,
  echoJob,
  readRequest,
  reject,
  withApprovals,
} from '../../support/approvals.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { admin, createUser, seedSiteAndDevice } from '../../support/users.ts';

const { fixture, users } = withApprovals({}, { idle: true });

/** The code of the problem when a client approves a request. */
const codeOfApproval = async (client: TestClient, id: string, status = 403): Promise<string> =>
  (await approve<ProblemBody>(client, id).expect(status)).code;

test('a decider is assigned by id or role, and holds workflow:approve at the scope of the request', async () => {
  const { requester, tenant, as } = users();
  const named = await createUser(fixture.app, { roleId: 'approver', tenantId: tenant });
  const elsewhere = await createUser(fixture.app, { roleId: 'approver', tenantId: 'elsewhere' });
  const noRight = await createUser(fixture.app, { roleId: 'operator', tenantId: tenant });
  const created = await createRequest(requester, {
    assignedUserIds: [named.id, noRight.id, elsewhere.id],
    assignedRoleIds: ['auditor'],
  });
  expect(await codeOfApproval(noRight.client, created.id)).toBe('permission_denied');
  expect(await codeOfApproval(elsewhere.client, created.id, 404)).toBe('not_found');
  expect(await codeOfApproval(as('eve', 'approver'), created.id)).toBe('not_assigned');
  expect(await codeOfApproval(as('eve', 'auditor'), created.id)).toBe('permission_denied');
  const { deciders } = await readRequest(requester, created.id);
  expect(deciders.users.map(({ id, mayDecide, reason }) => [id, mayDecide, reason]).sort()).toEqual(
    [
      [named.id, true, null],
      [noRight.id, false, 'permission_denied'],
      [elsewhere.id, false, 'permission_denied'],
    ].sort(),
  );
  await approve(as('eve', 'auditor,approver'), created.id).expect(200);
  const another = await createRequest(requester, {
    assignedUserIds: [named.id],
    assignedRoleIds: [],
  });
  await reject(named.client, another.id).expect(200);
  const denied = (await auditActionsOf(fixture.app, created.id)).filter((entry) =>
    entry.endsWith('denied'),
  );
  expect(denied).toEqual(Array(3).fill('workflow.approve denied'));
});

test('people whom a gateway authenticates are assigned by the ids that it sends', async () => {
  const { requester, tenant, as } = users();
  const assignedOnly = (...assignedUserIds: string[]) => ({ assignedUserIds, assignedRoleIds: [] });
  const mail = 'jo.smith+noc@example.net';
  const first = await createRequest(requester, assignedOnly('bob', mail));
  const unknown = { username: null, displayName: null, provider: null };
  expect(first.deciders.users).toEqual([
    { id: 'bob', ...unknown, mayDecide: true, reason: null },
    { id: mail, ...unknown, mayDecide: true, reason: null },
  ]);
  // The same id at another tenant is another person.
  const elsewhere = fixture.app.client.as({ actor: 'bob', roles: 'approver', tenant: 'elsewhere' });
  expect(await codeOfApproval(elsewhere, first.id, 404)).toBe('not_found');
  expect(await codeOfApproval(as('eve', 'approver'), first.id)).toBe('not_assigned');
  expect(await codeOfApproval(as('bob', 'viewer'), first.id)).toBe('permission_denied');
  await approve(as('bob', 'approver'), first.id).expect(200);
  const { deciders } = await readRequest(requester, first.id);
  expect(deciders.users.map(({ id, reason }) => [id, reason])).toEqual([
    ['bob', 'already_decided'],
    [mail, 'approved'],
  ]);
  const second = await createRequest(requester, assignedOnly(mail));
  await reject(as(mail, 'approver'), second.id).expect(200);
  // Only the requester, or only an account that does not exist: nobody could decide.
  const asker = fixture.app.client.as({ actor: 'asker', roles: 'operator', tenant });
  for (const [id, code] of [
    ['asker', 'too_few_approvers'],
    ['usr_unknown', 'not_found'],
  ] as const) {
    const { errors } = await asker
      .post<ProblemBody>('/api/workflows', {
        ...{ type: 'change', title: 'x', payload: {} },
        ...assignedOnly(id),
      })
      .expect(400);
    expect(errors).toMatchObject([{ code }]);
  }
});

test('a role held at a site counts for requests of that site', async () => {
  const { tenant } = users();
  const [one, two] = [`${tenant}-s1`, `${tenant}-s2`];
  for (const site of [one, two]) await seedSiteAndDevice(fixture.app, { tenant, site });
  const decider = await createUser(fixture.app, { roleId: 'approver', siteId: one });
  const requester = admin(fixture.app).as({ actor: 'asker', roles: 'operator', tenant });
  const here = await createRequest(requester, { siteId: one });
  const there = await createRequest(requester, { siteId: two });
  expect(await codeOfApproval(decider.client, there.id, 404)).toBe('not_found');
  await approve(decider.client, here.id).expect(200);
  expect(await readRequest(requester, here.id)).toMatchObject({
    tenantId: tenant,
    siteId: one,
    status: 'approved',
  });
});

test('of concurrent decisions one counts, the others are refused', async () => {
  const { requester, as } = users();
  for (let round = 0; round < 5; round++) {
    const { id } = await createRequest(requester, echoJob);
    const responses = await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        (i % 2 ? approve<ProblemBody> : reject<ProblemBody>)(as(`decider-${i}`, 'approver'), id),
      ),
    );
    const results = responses.map(({ status, body }) => (status === 200 ? 'decided' : body.code));
    expect(results.sort()).toEqual([...Array<string>(5).fill('already_decided'), 'decided']);
    expect(await fixture.app.deps.db('approval_decisions').where({ approval_id: id })).toHaveLength(
      1,
    );
  }
});

test('two required approvals come from two people', async () => {
  const { requester, as } = users();
  const { id } = await createRequest(requester, { ...echoJob, requiredApprovals: 2 });
  const responses = await Promise.all(
    ['one', 'one', 'One '].map((actor) => approve(as(actor, 'approver'), id)),
  );
  expect(responses.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
  expect(await readRequest(requester, id)).toMatchObject({
    status: 'pending',
    approvals: 1,
    execution: 'none',
  });
  expect(await approve(as('two', 'approver'), id).expect(200)).toMatchObject({
    status: 'approved',
    approvals: 2,
    execution: 'queued',
  });
});

test('one rejection closes the request', async () => {
  const { requester, as } = users();
  const { id } = await createRequest(requester, { ...echoJob, requiredApprovals: 3 });
  await approve(as('one', 'approver'), id).expect(200);
  expect(await reject(as('two', 'approver'), id).expect(200)).toMatchObject({
    status: 'rejected',
    approvals: 1,
  });
  expect(await codeOfApproval(as('three', 'approver'), id, 409)).toBe('already_decided');
});

test('a decision with another contentHash or an old version is refused', async () => {
  const { requester, decider, other } = users();
  const { id, contentHash } = await createRequest(requester, { requiredApprovals: 2 });
  const wrongHash = { contentHash: 'f'.repeat(64) };
  const mismatch = await approve<ProblemBody>(decider, id, wrongHash).expect(409);
  expect(mismatch.code).toBe('content_mismatch');
  const ifMatch = { 'if-match': '"1"' };
  await approve(other, id, { contentHash }, ifMatch).expect(200);
  const conflict = await approve<ProblemBody>(decider, id, {}, ifMatch).expect(412);
  expect(conflict.code).toBe('version_conflict');
});
