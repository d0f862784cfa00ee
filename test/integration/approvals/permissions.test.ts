import { describe, expect, test } from '@jest/globals';
import {
  approve,
  approveAndWait,
  assignedToApprovers,
  auditActionsOf,
  cancel,
  createPrefix,
  createRequest,
  echoJob,
  readRequest,
  sleepJob,
  untilExecution,
  withApprovals,
} from '../../support/approvals.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { admin, createUser, seedSiteAndDevice } from '../../support/users.ts';

const { fixture, users } = withApprovals();

/** Creates a request that the API must refuse, and returns the problem. */
const refusedRequest = (
  client: TestClient,
  overrides: object,
  status: number,
): Promise<ProblemBody> =>
  client
    .post<ProblemBody>('/api/workflows', { ...assignedToApprovers, title: 't', ...overrides })
    .expect(status);

describe('what a requester may request', () => {
  test('nothing that the requester may not do', async () => {
    const { tenant, as, decider } = users();
    const permissions = ['workflow:write', 'inventory:read'];
    const { id: role } = await admin(fixture.app)
      .post<{ id: string }>('/api/rbac/roles', { name: `requests only ${tenant}`, permissions })
      .expect(201);
    const requestsOnly = as('asks', role);
    const denied: [TestClient, object][] = [
      [requestsOnly, echoJob],
      [requestsOnly, createPrefix('10.0.0.0/8')],
      [requestsOnly, { tenantId: 'elsewhere' }],
      [decider, {}],
    ];
    for (const [client, body] of denied)
      expect((await refusedRequest(client, body, 403)).code).toBe('permission_denied');
    expect((await createRequest(requestsOnly)).execution).toBe('none');
    const internal = { jobType: 'inventory.import', jobPayload: { importId: 'x' } };
    expect((await refusedRequest(as('asker', 'operator'), internal, 400)).errors).toMatchObject([
      { pointer: '/jobType', code: 'job_type_internal' },
    ]);
  });

  test('no change outside the scope of the request', async () => {
    const { tenant } = users();
    const root = admin(fixture.app);
    const outside = [{ pointer: '/tenantId', code: 'outside_scope' }];
    const platformPrefix = {
      tenantId: tenant,
      ...createPrefix('10.200.0.0/16', { tenantId: 'platform' }),
    };
    expect((await refusedRequest(root, platformPrefix, 400)).errors).toMatchObject([
      { pointer: '/tenantId', code: 'not_found' },
    ]);
    const [a, b] = [`${tenant}-a`, `${tenant}-b`];
    for (const site of [a, b]) await seedSiteAndDevice(fixture.app, { tenant, site });
    expect((await refusedRequest(root, platformPrefix, 400)).errors).toMatchObject(outside);
    const rack = (siteId: string) => ({
      validationRequest: { resource: 'racks', operation: 'create', record: { name: 'r1', siteId } },
    });
    const requester = root.as({ actor: 'asker', roles: 'operator', tenant });
    const otherSite = await refusedRequest(requester, { siteId: a, ...rack(b) }, 400);
    expect(otherSite.errors).toMatchObject(outside);
    const { client } = await createUser(fixture.app, { roleId: 'operator', siteId: a });
    const created = await createRequest(client, { siteId: a, ...rack(a) });
    const decider = root.as({ actor: 'decider', roles: 'approver', tenant });
    // Rights at a site suffice for a change there. Jobs belong to the tenant, so they need rights
    // there.
    expect(await approveAndWait(decider, created.id)).toMatchObject({ execution: 'succeeded' });
    const job = await refusedRequest(client, { ...echoJob, siteId: a }, 403);
    expect(job.code).toBe('permission_denied');
  });

  test('no change of a record that got another site since, though its version is the same', async () => {
    const { tenant } = users();
    const root = admin(fixture.app);
    const [a, b] = [`${tenant}-a`, `${tenant}-b`];
    for (const site of [a, b]) await seedSiteAndDevice(fixture.app, { tenant, site });
    const create = (resource: string, record: object) =>
      root.post<{ id: string }>(`/api/inventory/${resource}`, record).expect(201);
    const network = { cidr: '10.90.0.0/16', tenantId: tenant, siteId: a };
    const prefix = await create('prefixes', network);
    const address = await create('ip-addresses', { address: '10.90.0.1', tenantId: tenant });
    const change = (description: string) => ({
      validationRequest: {
        resource: 'ip-addresses',
        operation: 'update',
        record: { id: address.id, description },
      },
    });
    const requester = root.as({ actor: 'asker', roles: 'operator', tenant });
    const decider = root.as({ actor: 'decider', roles: 'approver', tenant });
    const atSite = await createRequest(requester, { siteId: a, ...change('at the site') });
    const atTenant = await createRequest(requester, {
      tenantId: tenant,
      ...change('at the tenant'),
    });
    const user = await createUser(fixture.app, { roleId: 'operator', siteId: a });
    const permissions = ['workflow:write', 'inventory:read'];
    const { id: roleId } = await root
      .post<{ id: string }>('/api/rbac/roles', { name: `asks at ${tenant}`, permissions })
      .expect(201);
    await root
      .post('/api/rbac/assignments', { userId: user.id, roleId, tenantId: tenant })
      .expect(201);
    const asksAtTenant = { tenantId: tenant, ...change('with rights at the site') };
    const lost = await createRequest(user.client, asksAtTenant);
    await root.put(`/api/inventory/prefixes/${prefix.id}`, { siteId: b }).expect(200);
    expect((await readRequest(decider, atSite.id)).blocker).toMatchObject({
      code: 'stale_plan',
      difference: { errors: [{ pointer: '/mutations/0', code: 'outside_scope' }], effects: [] },
    });
    expect((await readRequest(decider, lost.id)).blocker).toMatchObject({
      code: 'permission_lost',
    });
    await approve(decider, atSite.id).expect(200);
    expect(await untilExecution(decider, atSite.id, 'stale')).toMatchObject({ jobId: null });
    expect(await approveAndWait(decider, atTenant.id)).toMatchObject({ execution: 'succeeded' });
  });

  describe('a requester who loses the permission before the execution', () => {
    const revokeRoles = async ({ id }: { id: string }) => {
      const { items } = await admin(fixture.app)
        .get<{ items: { id: string }[] }>(`/api/rbac/assignments?userId=${id}`)
        .expect(200);
      for (const each of items) await admin(fixture.app).delete(`/api/rbac/assignments/${each.id}`);
    };
    const disable = ({ id }: { id: string }) =>
      admin(fixture.app).put(`/api/users/${id}`, { enabled: false });

    test.each([
      ['a job, role revoked', echoJob, revokeRoles],
      ['a change, role revoked', createPrefix('10.77.0.0/16'), revokeRoles],
      ['a change, account disabled', createPrefix('10.78.0.0/16'), disable],
    ])(
      'does not get %s',
      async (_, requestBody, revoke: (user: { id: string }) => Promise<unknown>) => {
        const { tenant, decider } = users();
        const user = await createUser(fixture.app, { roleId: 'operator', tenantId: tenant });
        const created = await createRequest(user.client, { tenantId: tenant, ...requestBody });
        await revoke(user);
        expect((await readRequest(decider, created.id)).blocker).toMatchObject({
          code: 'permission_lost',
        });
        await approve(decider, created.id).expect(200);
        expect(await untilExecution(decider, created.id, 'failed')).toMatchObject({
          status: 'approved',
          error: { code: 'permission_lost' },
          jobId: null,
        });
        expect(await auditActionsOf(fixture.app, created.id)).toEqual([
          'workflow.create',
          'workflow.approve',
          'workflow.fail denied',
        ]);
        const { items } = await admin(fixture.app)
          .get<{ items: object[] }>('/api/inventory/prefixes?within=10.76.0.0/14')
          .expect(200);
        expect(items).toEqual([]);
      },
    );
  });
});

describe('who may cancel', () => {
  const codeOfCancel = async (client: TestClient, id: string, status = 403): Promise<string> =>
    (await cancel<ProblemBody>(client, id).expect(status)).code;

  test('the requester, and between approval and start also deciders', async () => {
    const { requester, decider, as } = users();
    const executeAt = new Date(Date.now() + 3_600_000).toISOString();
    const { id } = await createRequest(requester, { ...echoJob, executeAt });
    expect(await codeOfCancel(decider, id)).toBe('not_requester');
    expect(await codeOfCancel(as('eve', 'operator'), id)).toBe('not_requester');
    await approve(decider, id).expect(200);
    expect(await readRequest(requester, id)).toMatchObject({
      status: 'approved',
      execution: 'queued',
    });
    expect(await codeOfCancel(as('eve', 'operator'), id)).toBe('not_requester');
    expect(await cancel(as('late', 'approver'), id, { comment: 'stop' }).expect(200)).toMatchObject(
      {
        status: 'cancelled',
        execution: 'none',
        jobId: null,
      },
    );
    expect(await auditActionsOf(fixture.app, id)).toEqual([
      'workflow.create',
      'workflow.cancel denied',
      'workflow.cancel denied',
      'workflow.approve',
      'workflow.cancel denied',
      'workflow.cancel',
    ]);
  });

  test('nobody after the start; the job is cancelled instead', async () => {
    const { requester, decider } = users();
    const { id } = await createRequest(requester, sleepJob(60_000));
    await approve(decider, id).expect(200);
    const { jobId } = await untilExecution(requester, id, 'running');
    expect(await codeOfCancel(requester, id, 409)).toBe('execution_started');
    await requester.post(`/api/jobs/${String(jobId)}/cancel`).expect(202);
    expect(await untilExecution(requester, id, 'failed')).toMatchObject({
      error: { code: 'job_cancelled' },
    });
  });
});
