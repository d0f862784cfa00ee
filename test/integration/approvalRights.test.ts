import { beforeAll, describe, expect, test } from '@jest/globals';
import {
  approve,
  byRole,
  cancel,
  echo,
  prefix,
  read,
  reject,
  request,
  trailOf,
  untilExecution,
  withApprovals,
} from '../support/approvals.ts';
import type { TestClient } from '../support/client.ts';
import { admin, person, place } from '../support/users.ts';

const { bed, people } = withApprovals();
const refused = async (answer: Promise<{ status: number; body: any }>) => {
  const { status, body } = await answer;
  return [status, body.code];
};

describe('who may decide', () => {
  test('workflow:approve where the request stands, and named by id or by a role held there', async () => {
    const { asker, tenant, as } = people();
    const [named, elsewhere, noRight] = [
      await person(bed.app, { roleId: 'approver', tenantId: tenant }),
      await person(bed.app, { roleId: 'approver', tenantId: 'elsewhere' }),
      await person(bed.app, { roleId: 'operator', tenantId: tenant }),
    ];
    const made = await request(asker, {
      assignedUserIds: [named.id, noRight.id, elsewhere.id],
      assignedRoleIds: ['auditor'],
    });
    expect(await refused(approve(noRight.client, made.id))).toEqual([403, 'permission_denied']);
    expect(await refused(approve(elsewhere.client, made.id))).toEqual([404, 'not_found']);
    expect(await refused(approve(as('eve', 'approver'), made.id))).toEqual([403, 'not_assigned']);
    expect(await refused(approve(as('eve', 'auditor'), made.id))).toEqual([
      403,
      'permission_denied',
    ]);
    const { deciders } = await read(asker, made.id);
    expect(
      deciders.users.map(({ id, mayDecide, reason }: any) => [id, mayDecide, reason]).sort(),
    ).toEqual(
      [
        [named.id, true, null],
        [noRight.id, false, 'permission_denied'],
        [elsewhere.id, false, 'permission_denied'],
      ].sort(),
    );
    expect(await refused(approve(as('eve', 'auditor,approver'), made.id))).toEqual([
      200,
      undefined,
    ]);
    const other = await request(asker, { assignedUserIds: [named.id], assignedRoleIds: [] });
    expect(await refused(reject(named.client, other.id))).toEqual([200, undefined]);
    expect((await trailOf(bed.app, made.id)).filter((entry) => entry.endsWith('denied'))).toEqual(
      Array(3).fill('workflow.approve denied'),
    );
  });
  test('a role counts where it is held: at a site for what stands there', async () => {
    const { tenant } = people();
    await place(bed.app, { tenant, site: `${tenant}-s1` });
    await place(bed.app, { tenant, site: `${tenant}-s2` });
    const here = await person(bed.app, { roleId: 'approver', siteId: `${tenant}-s1` });
    const asker = admin(bed.app).as({ actor: 'asker', roles: 'operator', tenant });
    const [one, two] = [
      await request(asker, { siteId: `${tenant}-s1` }),
      await request(asker, { siteId: `${tenant}-s2` }),
    ];
    expect(await refused(approve(here.client, two.id))).toEqual([404, 'not_found']);
    expect(await refused(approve(here.client, one.id))).toEqual([200, undefined]);
    expect(await read(asker, one.id)).toMatchObject({
      tenantId: tenant,
      siteId: `${tenant}-s1`,
      status: 'approved',
    });
  });
  test('of two deciders at once one decides, the other is told that it is decided', async () => {
    const { asker, as } = people();
    for (let round = 0; round < 5; round++) {
      const made = await request(asker, echo);
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, i) =>
          (i % 2 ? approve : reject)(as(`decider-${i}`, 'approver'), made.id),
        ),
      );
      expect(answers.map(({ status, body }) => (status === 200 ? 200 : body.code)).sort()).toEqual([
        200,
        ...Array<string>(5).fill('already_decided'),
      ]);
      expect(
        await bed.app.deps.db('approval_decisions').where({ approval_id: made.id }),
      ).toHaveLength(1);
    }
  });
  test('two approvals are those of two people; a rejection ends it', async () => {
    const { asker, as } = people();
    const made = await request(asker, { ...echo, requiredApprovals: 2 });
    const both = await Promise.all([
      approve(as('one', 'approver'), made.id),
      approve(as('one', 'approver'), made.id),
      approve(as('One ', 'approver'), made.id),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    expect(await read(asker, made.id)).toMatchObject({
      status: 'pending',
      approvals: 1,
      execution: 'none',
    });
    expect(
      (await approve(as('two', 'approver'), made.id, {}, { prefer: 'wait=20' })).body,
    ).toMatchObject({ status: 'approved', approvals: 2, execution: 'succeeded' });
    const other = await request(asker, { ...echo, requiredApprovals: 3 });
    await approve(as('one', 'approver'), other.id);
    expect((await reject(as('two', 'approver'), other.id)).body).toMatchObject({
      status: 'rejected',
      approvals: 1,
    });
    expect(await refused(approve(as('three', 'approver'), other.id))).toEqual([
      409,
      'already_decided',
    ]);
  });
  test('what was looked at: another contentHash or an old version is refused', async () => {
    const { asker, decider, other } = people();
    const made = await request(asker, { requiredApprovals: 2 });
    expect(await refused(approve(decider, made.id, { contentHash: 'f'.repeat(64) }))).toEqual([
      409,
      'content_changed',
    ]);
    expect(
      await refused(
        approve(other, made.id, { contentHash: made.contentHash }, { 'if-match': '"1"' }),
      ),
    ).toEqual([200, undefined]);
    expect(await refused(approve(decider, made.id, {}, { 'if-match': '"1"' }))).toEqual([
      412,
      'version_stale',
    ]);
  });
});

describe('nobody approves what they asked for', () => {
  const both = 'operator,approver,platform-admin';
  test('by another role, in another tenant, in other letters', async () => {
    const { tenant, as } = people();
    const made = await request(as('asker', both));
    for (const actor of ['asker', 'ASKER', 'Asker']) {
      expect(await refused(approve(as(actor, both), made.id))).toEqual([403, 'self_approval']);
      expect(await refused(reject(as(actor, 'approver'), made.id))).toEqual([403, 'self_approval']);
    }
    expect(
      await refused(
        approve(admin(bed.app).as({ actor: 'asker', roles: 'platform-admin' }), made.id),
      ),
    ).toEqual([403, 'self_approval']);
    expect(
      (await trailOf(bed.app, made.id)).filter((entry) => entry.includes('denied')),
    ).toHaveLength(7);
    expect(
      await refused(
        approve(admin(bed.app).as({ actor: 'root', roles: 'platform-admin', tenant }), made.id),
      ),
    ).toEqual([403, 'not_assigned']);
  });
  test('through the gateway what was asked in a session, and the other way round', async () => {
    const { tenant } = people();
    const somebody = await person(
      bed.app,
      { roleId: 'operator', tenantId: tenant },
      { roleId: 'approver', tenantId: tenant },
    );
    const made = await request(somebody.client, { tenantId: tenant });
    const gateway = (actor: string) => bed.app.client.as({ actor, roles: both, tenant });
    for (const actor of [somebody.id, somebody.username, somebody.username.toUpperCase()])
      expect(await refused(approve(gateway(actor), made.id))).toEqual([403, 'self_approval']);
    const another = await request(gateway(somebody.username));
    expect(await refused(approve(somebody.client, another.id))).toEqual([403, 'self_approval']);
    expect(await refused(approve(gateway('somebody-else'), another.id))).toEqual([200, undefined]);
  });
  test('through the gateway by two names of one account', async () => {
    const { tenant } = people();
    const somebody = await person(bed.app);
    const email = `${somebody.username}@Example.org`;
    await admin(bed.app).put(`/api/users/${somebody.id}`, { email });
    const gateway = (actor: string) => bed.app.client.as({ actor, roles: both, tenant });
    const made = await request(gateway(somebody.username));
    for (const actor of [email, email.toUpperCase(), somebody.id, somebody.id.toUpperCase()])
      expect(await refused(approve(gateway(actor), made.id))).toEqual([403, 'self_approval']);
    const two = await request(gateway('requester'), { requiredApprovals: 2 });
    expect(await refused(approve(gateway(somebody.username), two.id))).toEqual([200, undefined]);
    for (const actor of [email, somebody.id.toUpperCase()])
      expect(await refused(approve(gateway(actor), two.id))).toEqual([409, 'already_decided']);
    expect(
      (await gateway(email).get('/api/workflows?assignedToMe&status=pending')).body.items.map(
        ({ id }: any) => id,
      ),
    ).not.toContain(two.id);
    expect((await read(gateway(email), two.id)).you).toEqual({
      mayDecide: false,
      reason: 'already_decided',
      mayCancel: false,
    });
  });
  test('with a second account of the same e-mail address, given before or after', async () => {
    const { tenant } = people();
    const [one, two] = [
      await person(bed.app, { roleId: 'operator', tenantId: tenant }),
      await person(bed.app, { roleId: 'approver', tenantId: tenant }),
    ];
    const made = await request(one.client, { tenantId: tenant });
    for (const { id } of [one, two])
      expect(
        (await admin(bed.app).put(`/api/users/${id}`, { email: 'Same@Example.org' })).status,
      ).toBe(200);
    expect(await refused(approve(two.client, made.id))).toEqual([403, 'self_approval']);
    // To be taken for somebody takes rights, it gives none.
    expect(await refused(cancel(two.client, made.id))).toEqual([403, 'not_requester']);
    const four = await request(one.client, { tenantId: tenant, requiredApprovals: 2 });
    expect(await refused(approve(two.client, four.id))).toEqual([403, 'self_approval']);
  });
  test('by asking in somebody else’s name, which no request takes', async () => {
    const { asker } = people();
    const answer = await asker.post('/api/workflows', { ...byRole, title: 't', createdBy: 'bob' });
    expect([answer.status, answer.body.errors]).toMatchObject([
      400,
      [{ pointer: '/createdBy', code: 'unknown_field' }],
    ]);
  });
  test('by naming nobody but oneself', async () => {
    const { tenant } = people();
    const [one, two] = [
      await person(
        bed.app,
        { roleId: 'operator', tenantId: tenant },
        { roleId: 'approver', tenantId: tenant },
      ),
      await person(bed.app, { roleId: 'approver', tenantId: tenant }),
    ];
    const ask = (more: object) =>
      one.client.post('/api/workflows', {
        type: 'x',
        title: 't',
        payload: {},
        tenantId: tenant,
        assignedRoleIds: [],
        ...more,
      });
    expect((await ask({ assignedUserIds: [one.id] })).body.errors).toMatchObject([
      { pointer: '/assignedUserIds', code: 'too_few' },
    ]);
    expect((await ask({ assignedUserIds: [] })).body.errors).toMatchObject([
      { pointer: '/assignedUserIds', code: 'too_few' },
    ]);
    expect(
      (await ask({ assignedUserIds: [one.id, two.id], requiredApprovals: 2 })).body.errors,
    ).toMatchObject([{ pointer: '/assignedUserIds', code: 'too_few' }]);
    expect((await ask({ assignedUserIds: [one.id, two.id] })).status).toBe(201);
    const cannot = await person(
      bed.app,
      { roleId: 'operator', tenantId: tenant },
      { roleId: 'approver', tenantId: 'elsewhere' },
    );
    expect((await ask({ assignedUserIds: [cannot.id] })).body.errors).toMatchObject([
      { pointer: '/assignedUserIds', code: 'too_few' },
    ]);
    const gateway = bed.app.client.as({ actor: one.username, roles: 'operator', tenant });
    expect(
      (
        await gateway.post('/api/workflows', {
          type: 'x',
          title: 't',
          payload: {},
          assignedRoleIds: [],
          assignedUserIds: [one.id],
        })
      ).body.errors,
    ).toMatchObject([{ code: 'too_few' }]);
  });
});

describe('what a request may ask for', () => {
  test('no more than its requester may do: by type, by place, by scope', async () => {
    const { tenant, as, decider } = people();
    const role = (
      await admin(bed.app).post('/api/rbac/roles', {
        name: `asks only ${tenant}`,
        permissions: ['workflow:write', 'inventory:read'],
      })
    ).body.id as string;
    const asks = as('asks', role);
    expect(await refused(asks.post('/api/workflows', { ...byRole, ...echo, title: 't' }))).toEqual([
      403,
      'permission_denied',
    ]);
    expect(
      await refused(
        asks.post('/api/workflows', { ...byRole, ...prefix('10.0.0.0/8'), title: 't' }),
      ),
    ).toEqual([403, 'permission_denied']);
    expect((await request(asks)).execution).toBe('none');
    expect(await refused(decider.post('/api/workflows', { ...byRole, title: 't' }))).toEqual([
      403,
      'permission_denied',
    ]);
    expect(
      await refused(asks.post('/api/workflows', { ...byRole, title: 't', tenantId: 'elsewhere' })),
    ).toEqual([403, 'permission_denied']);
    const operator = as('asker', 'operator');
    const made = await operator.post('/api/workflows', {
      ...byRole,
      title: 't',
      jobType: 'inventory.import',
      jobPayload: { importId: 'x' },
    });
    expect([made.status, made.body.errors]).toMatchObject([
      400,
      [{ pointer: '/jobType', code: 'not_direct' }],
    ]);
  });
  test('a request reaches no further than those who decide: the change must lie inside its place', async () => {
    const { tenant } = people();
    const root = admin(bed.app);
    const outside = await root.post('/api/workflows', {
      ...byRole,
      title: 't',
      tenantId: tenant,
      ...prefix('10.200.0.0/16', { tenantId: 'platform' }),
    });
    expect([outside.status, outside.body.errors]).toMatchObject([
      400,
      [{ pointer: '/tenantId', code: 'outside' }],
    ]);
    await place(bed.app, { tenant, site: `${tenant}-a` });
    await place(bed.app, { tenant, site: `${tenant}-b` });
    const rack = (siteId: string) => ({
      validationRequest: { resource: 'racks', operation: 'create', record: { name: 'r1', siteId } },
    });
    const asker = root.as({ actor: 'asker', roles: 'operator', tenant });
    const other = await asker.post('/api/workflows', {
      ...byRole,
      title: 't',
      siteId: `${tenant}-a`,
      ...rack(`${tenant}-b`),
    });
    expect([other.status, other.body.errors]).toMatchObject([
      400,
      [{ pointer: '/tenantId', code: 'outside' }],
    ]);
    const here = await person(bed.app, { roleId: 'operator', siteId: `${tenant}-a` });
    const made = await request(here.client, { siteId: `${tenant}-a`, ...rack(`${tenant}-a`) });
    const decider = root.as({ actor: 'decider', roles: 'approver', tenant });
    // Somebody whose rights are those of a site makes a change there, though jobs stand at the tenant.
    expect((await approve(decider, made.id, {}, { prefer: 'wait=20' })).body).toMatchObject({
      execution: 'succeeded',
    });
    expect(
      await refused(
        here.client.post('/api/workflows', {
          ...byRole,
          ...echo,
          title: 't',
          siteId: `${tenant}-a`,
        }),
      ),
    ).toEqual([403, 'permission_denied']);
  });
  test('who loses the right before it is carried out, has it not carried out: job, change, account', async () => {
    const { tenant } = people();
    const decider = bed.app.client.as({ actor: 'decider', roles: 'approver', tenant });
    const root = admin(bed.app);
    const lost = async (
      more: object,
      lose: (who: { id: string; client: TestClient }) => Promise<unknown>,
    ) => {
      const who = await person(bed.app, { roleId: 'operator', tenantId: tenant });
      const made = await request(who.client, { tenantId: tenant, ...more });
      await lose(who);
      expect((await read(decider, made.id)).changedSince).toMatchObject({
        code: 'permission_lost',
      });
      await approve(decider, made.id);
      const end = await untilExecution(decider, made.id, 'failed');
      expect(end).toMatchObject({
        status: 'approved',
        error: { code: 'permission_lost' },
        jobId: null,
      });
      expect(await trailOf(bed.app, made.id)).toEqual([
        'workflow.create',
        'workflow.approve',
        'workflow.fail denied',
      ]);
    };
    const takeRole = async ({ id }: { id: string }) => {
      const { items } = (await root.get(`/api/rbac/assignments?userId=${id}`)).body;
      for (const each of items) await root.delete(`/api/rbac/assignments/${each.id as string}`);
    };
    await lost(echo, takeRole);
    await lost(prefix('10.77.0.0/16'), takeRole);
    await lost(prefix('10.78.0.0/16'), ({ id }) =>
      root.put(`/api/users/${id}`, { enabled: false }),
    );
    expect((await root.get('/api/inventory/prefixes?within=10.76.0.0/14')).body.items).toEqual([]);
  });
});

describe('who may cancel', () => {
  test('the requester; who may decide only between approval and begin; nobody when it runs', async () => {
    const { asker, decider, as } = people();
    const made = await request(asker, {
      ...echo,
      executeAt: new Date(Date.now() + 3_600_000).toISOString(),
    });
    expect(await refused(cancel(decider, made.id))).toEqual([403, 'not_requester']);
    expect(await refused(cancel(as('eve', 'operator'), made.id))).toEqual([403, 'not_requester']);
    await approve(decider, made.id);
    expect(await read(asker, made.id)).toMatchObject({ status: 'approved', execution: 'queued' });
    expect(await refused(cancel(as('eve', 'operator'), made.id))).toEqual([403, 'not_requester']);
    expect((await cancel(as('late', 'approver'), made.id, { comment: 'stop' })).body).toMatchObject(
      { status: 'cancelled', execution: 'none', jobId: null },
    );
    const slow = await request(asker, {
      jobType: 'core.sleep',
      jobPayload: { durationMs: 60_000 },
    });
    await approve(decider, slow.id);
    const { jobId } = await untilExecution(asker, slow.id, 'running');
    expect(await refused(cancel(asker, slow.id))).toEqual([409, 'execution_begun']);
    expect((await asker.post(`/api/jobs/${jobId as string}/cancel`)).status).toBe(202);
    expect(await untilExecution(asker, slow.id, 'failed')).toMatchObject({
      error: { code: 'job_cancelled' },
    });
    expect(await trailOf(bed.app, made.id)).toEqual([
      'workflow.create',
      'workflow.cancel denied',
      'workflow.cancel denied',
      'workflow.approve',
      'workflow.cancel denied',
      'workflow.cancel',
    ]);
  });
});

test('with a password for one login nothing is seen or done', async () => {
  const { tenant } = people();
  const somebody = await person(bed.app, { roleId: 'operator', tenantId: tenant });
  const made = await request(somebody.client, { tenantId: tenant });
  const { body } = await admin(bed.app).post(`/api/users/${somebody.id}/reset-password`, {});
  const token = (
    await bed.app.client
      .as({ token: null })
      .post('/api/auth/login/local', {
        username: somebody.username,
        password: body.oneTimePassword,
      })
  ).body.accessToken as string;
  const limited = bed.app.client.as({ token });
  for (const path of ['/api/workflows', `/api/workflows/${made.id as string}`])
    expect(await refused(limited.get(path))).toEqual([403, 'password_change_required']);
  expect(await refused(cancel(limited, made.id))).toEqual([403, 'password_change_required']);
  expect((await limited.get('/api/rbac/summary')).status).toBe(200);
});

describe('who sees what', () => {
  let asker: TestClient;
  let made: any;
  beforeAll(async () => {
    asker = bed.app.client.as({ actor: 'asker', roles: 'operator', tenant: 'seen' });
    made = await request(asker, { ...echo, type: 'seen' });
  });
  test('a tenant that is not theirs is not there, in any way', async () => {
    const stranger = bed.app.client.as({
      actor: 'decider',
      roles: 'platform-admin',
      tenant: 'unseen',
    });
    expect((await stranger.get('/api/workflows')).body).toEqual({
      items: [],
      nextCursor: null,
      counts: { pending: 0, approved: 0, rejected: 0, expired: 0, cancelled: 0 },
    });
    for (const path of ['approve', 'reject', 'cancel', 'comments']) {
      expect(
        await refused(
          stranger.post(
            `/api/workflows/${made.id as string}/${path}`,
            path === 'comments' ? { text: 'x' } : {},
          ),
        ),
      ).toEqual([404, 'not_found']);
    }
    expect((await stranger.get(`/api/workflows/${made.id as string}`)).status).toBe(404);
    // Whom a gateway calls by the same name in another tenant need not be the same.
    const namesake = bed.app.client.as({ actor: 'asker', roles: 'operator', tenant: 'unseen' });
    expect((await namesake.get(`/api/workflows/${made.id as string}`)).status).toBe(404);
    expect(await refused(cancel(namesake, made.id))).toEqual([404, 'not_found']);
    expect((await namesake.get('/api/workflows?requestedByMe')).body.items).toEqual([]);
  });
  test('a requester without any read permission sees their own; somebody named sees what they may decide', async () => {
    const role = async (name: string, permissions: string[]) =>
      (await admin(bed.app).post('/api/rbac/roles', { name, permissions })).body.id as string;
    const [asks, decides] = [
      await role('asks', ['workflow:write']),
      await role('decides', ['workflow:approve']),
    ];
    const [one, two] = [
      bed.app.client.as({ actor: 'one', roles: asks, tenant: 'seen' }),
      bed.app.client.as({ actor: 'two', roles: decides, tenant: 'seen' }),
    ];
    const own = await request(one, { type: 'seen', assignedRoleIds: [decides] });
    for (const client of [one, two]) {
      const { items, counts } = (await client.get('/api/workflows')).body;
      expect([items.map(({ id }: any) => id), counts.pending]).toEqual([[own.id], 1]);
      expect((await client.get(`/api/workflows/${made.id as string}`)).status).toBe(404);
    }
    expect((await two.get('/api/workflows?assignedToMe')).body.items[0]).toMatchObject({
      id: own.id,
      mayDecide: true,
    });
    expect((await one.get('/api/workflows?assignedToMe')).body.items).toEqual([]);
    expect((await one.get('/api/workflows?requestedByMe=true')).body.items).toHaveLength(1);
  });
});
