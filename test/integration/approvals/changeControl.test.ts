import { beforeAll, describe, expect, test } from '@jest/globals';
import type { ApprovalRecord, EffectView } from '../../../api/approvals/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import type { ApplyResult } from '../../../services/inventory/approvedChanges.ts';
import {
  approve,
  approveAndWait,
  auditActionsOf,
  changeRequest,
  createPrefix,
  createRequest,
  eventTypesOf,
  readRequest,
  untilExecution,
  withApprovals,
} from '../../support/approvals.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { recordFactory } from '../../support/inventory.ts';
import { admin, createUser, seedTenant } from '../../support/users.ts';

const { fixture, users } = withApprovals();
let root: TestClient;
beforeAll(() => {
  root = admin(fixture.app);
});
const createRecord: (resource: string, record: object) => Promise<{ id: string }> = recordFactory(
  () => root,
);
const approver = () => fixture.app.client.as({ actor: 'decider', roles: 'approver' });

type Prefix = {
  id: string;
  cidr: string;
  status: string;
  version: number;
  parentPrefixId: string | null;
};
const readPrefix = (id: string) => root.get<Prefix>(`/api/inventory/prefixes/${id}`).expect(200);
const listRecords = async (query: string) =>
  (await root.get<{ items: { id: string }[] }>(`/api/inventory/${query}`).expect(200)).items;
const resultOf = async (jobId: string | null) =>
  (await root.get<JobRecord>(`/api/jobs/${String(jobId)}`).expect(200)).result as ApplyResult;

/** One effect of a request, and the changes of its fields by name. */
function effectOf({ effects }: { effects: EffectView[] }, resource: string, action: string) {
  const effect = effects.find((each) => each.resource === resource && each.action === action);
  const { id, changes, ...rest } = assertDefined(effect, `effect ${action} ${resource}`);
  const fields = Object.fromEntries(
    changes.map(({ field, before, after }) => [field, [before, after]]),
  );
  return { id, fields, ...rest };
}

describe('what is approved is what is executed', () => {
  test('a request shows every record that changes, with old and new values and cascades', async () => {
    const inner = await createRecord('prefixes', { cidr: '10.20.1.0/24', description: 'inner' });
    const vrf = await createRecord('vrfs', { name: 'blue' });
    const created = await createRequest(
      root,
      changeRequest(
        ['create', 'prefixes', { cidr: '10.20.0.0/16', description: 'outer' }],
        ['update', 'prefixes', { id: inner.id, status: 'reserved' }],
        ['delete', 'vrfs', { id: vrf.id }],
        ['create', 'regions', { name: 'north' }],
        ['create', 'sites', { name: 'n1', regionId: { name: 'north' } }],
      ),
    );
    expect(created.effects).toHaveLength(5);
    expect(effectOf(created, 'prefixes', 'create')).toMatchObject({
      id: 'new:1',
      label: '10.20.0.0/16',
      reason: 'requested',
      fields: { description: [null, 'outer'] },
    });
    expect(effectOf(created, 'prefixes', 'update')).toMatchObject({
      id: inner.id,
      version: 1,
      fields: { status: ['active', 'reserved'], parentPrefixId: [null, 'new:1'] },
    });
    expect(effectOf(created, 'vrfs', 'delete').fields).toMatchObject({ name: ['blue', null] });
    const region = effectOf(created, 'regions', 'create');
    expect(effectOf(created, 'sites', 'create').fields).toMatchObject({
      regionId: [null, region.id],
    });
    expect(created).toMatchObject({
      blocker: null,
      hiddenEffects: 0,
      requester: { id: 'root' },
      deciders: { users: [], roles: [{ id: 'approver', name: 'Approver', mayApprove: true }] },
      ifApproved:
        'Needs 1 approval. Then a job of the type inventory.apply changes all records of the plan (5), or none, immediately, with the rights that the gateway sent for root with the request. If the change would then do anything else, the job does not run.',
    });
    const finished = await approveAndWait(approver(), created.id);
    expect(finished).toMatchObject({ execution: 'succeeded', difference: null, error: null });
    const { changes } = await resultOf(finished.jobId);
    expect(changes.map(({ action, resource }) => `${action} ${resource}`).sort()).toEqual([
      'create prefixes',
      'create regions',
      'create sites',
      'delete vrfs',
      'update prefixes',
    ]);
    const parent = changes.find(
      ({ action, resource }) => action === 'create' && resource === 'prefixes',
    );
    expect(parent).toMatchObject({ planId: 'new:1' });
    expect(await readPrefix(inner.id)).toMatchObject({
      parentPrefixId: parent?.id,
      status: 'reserved',
    });
  });

  test('the history of the records names the requester and the job', async () => {
    const { requester, decider } = users();
    const created = await createRequest(requester, createPrefix('10.21.0.0/16'));
    const { jobId } = await approveAndWait(decider, created.id);
    const [change] = (await resultOf(jobId)).changes;
    const { items } = await requester
      .get<{ items: object[] }>(`/api/inventory/prefixes/${String(change?.id)}/changes`)
      .expect(200);
    expect(items).toMatchObject([
      { action: 'create', actorId: 'asker', requestId: `job:${String(jobId)}` },
    ]);
  });

  test('changes of other records do not make a request stale', async () => {
    const created = await createRequest(root, createPrefix('10.33.0.0/16'));
    await createRecord('prefixes', { cidr: '10.34.0.0/16' });
    expect(await approveAndWait(approver(), created.id)).toMatchObject({ execution: 'succeeded' });
  });

  test('a change bound to another job type guards the job and is not applied', async () => {
    const created = await createRequest(root, {
      ...createPrefix('10.36.0.0/16'),
      jobType: 'core.echo',
      jobPayload: { then: 'that' },
    });
    expect(await approveAndWait(approver(), created.id)).toMatchObject({
      execution: 'succeeded',
      jobType: 'core.echo',
    });
    expect(await listRecords('prefixes?cidr=10.36.0.0/16')).toEqual([]);
  });

  test('the job of a request cannot be retried', async () => {
    const created = await createRequest(root, createPrefix('10.41.0.0/16'));
    const jobId = String((await approveAndWait(approver(), created.id)).jobId);
    const [change] = (await resultOf(jobId)).changes;
    await root.delete(`/api/inventory/prefixes/${String(change?.id)}`).expect(204);
    expect(await root.post<ProblemBody>(`/api/jobs/${jobId}/retry`).expect(409)).toMatchObject({
      code: 'job_not_retryable',
    });
  });

  test('a request whose stored content was altered is not executed', async () => {
    const created = await createRequest(root, createPrefix('10.38.0.0/16'));
    const altered = [
      { resource: 'prefixes', operation: 'create', record: { cidr: '10.39.0.0/16' } },
    ];
    await fixture.app.deps
      .db('approvals')
      .where({ id: created.id })
      .update({ mutations: JSON.stringify(altered) });
    expect((await readRequest(root, created.id)).blocker).toMatchObject({
      code: 'content_mismatch',
    });
    await approve(approver(), created.id).expect(200);
    expect(await untilExecution(root, created.id, 'failed')).toMatchObject({
      error: { code: 'content_mismatch' },
    });
  });
});

describe('a stale request', () => {
  /**
   * Creates a request, disturbs its plan, approves it, and returns the difference when it is stale.
   */
  async function expectStale(requestBody: object, disturb: () => Promise<unknown>) {
    const created = await createRequest(root, requestBody);
    expect(created.blocker).toBeNull();
    expect(await readRequest(approver(), created.id)).toMatchObject({ blocker: null });
    await disturb();
    const { blocker, ifApproved } = await readRequest(approver(), created.id);
    expect(blocker).toMatchObject({ code: 'stale_plan' });
    expect(ifApproved).toMatch(/^The request could not be executed now: /);
    await approve(approver(), created.id).expect(200);
    const stale = await untilExecution(root, created.id, 'stale');
    expect(stale).toMatchObject({
      status: 'approved',
      error: { code: 'stale_plan' },
      jobId: null,
      blocker: null,
    });
    expect((await readRequest(approver(), created.id)).difference).toEqual(blocker?.difference);
    expect(await auditActionsOf(fixture.app, created.id)).toEqual([
      'workflow.create',
      'workflow.approve',
      'workflow.stale failed',
    ]);
    expect((await eventTypesOf(fixture.app, created.id)).at(-1)).toBe('workflow.executed');
    return assertDefined(stale.difference, 'difference');
  }

  test('a record that it changes has changed', async () => {
    const { id } = await createRecord('prefixes', { cidr: '10.30.0.0/16' });
    const { effects } = await expectStale(
      changeRequest(['update', 'prefixes', { id, status: 'reserved' }]),
      () => root.put(`/api/inventory/prefixes/${id}`, { description: 'changed' }),
    );
    expect(effects).toMatchObject([{ approved: { id, version: 1 }, now: { id, version: 2 } }]);
    expect(await readPrefix(id)).toMatchObject({ status: 'active', version: 2 });
  });

  test('it would change more than was approved', async () => {
    const { effects } = await expectStale(createPrefix('10.31.0.0/16'), () =>
      createRecord('prefixes', { cidr: '10.31.5.0/24' }),
    );
    expect(effects).toMatchObject([
      { approved: null, now: { action: 'update', label: '10.31.5.0/24', reason: 'reparented' } },
    ]);
  });

  test('it would refer to another record than was approved', async () => {
    const region = await createRecord('regions', { name: 'meant' });
    const body = changeRequest(['create', 'sites', { name: 'there', regionId: { name: 'meant' } }]);
    const { effects } = await expectStale(body, async () => {
      await root.put(`/api/inventory/regions/${region.id}`, { name: 'old' });
      await createRecord('regions', { name: 'meant' });
    });
    const regionIn = (effect: EffectView | null | undefined) =>
      effect?.changes.find(({ field }) => field === 'regionId')?.after;
    expect(regionIn(effects[0]?.approved)).toBe(region.id);
    expect(regionIn(effects[0]?.now)).toEqual(expect.any(String));
    expect(regionIn(effects[0]?.now)).not.toBe(region.id);
  });

  const grantAt = (siteId: string) => createUser(fixture.app, { roleId: 'viewer', siteId });
  const grantsAt = async (siteId: string) =>
    Number((await fixture.app.deps.db('grants').where({ site_id: siteId }).count())[0]?.count);
  const moved = (id: string) => changeRequest(['update', 'sites', { id, tenantId: 'afar' }]);

  test('it would remove role assignments of which the approved plan says nothing', async () => {
    const { id } = await createRecord('sites', { name: 'granted since' });
    await seedTenant(fixture.app, 'afar');
    const { errors, effects } = await expectStale(moved(id), () => grantAt(id));
    const code = 'grants_removed';
    expect([errors, effects]).toMatchObject([
      [{ pointer: '/mutations/0/record/tenantId', code }],
      [],
    ]);
    expect(await grantsAt(id)).toBe(1);
  });

  test('role assignments that the approved plan removes may be others by then', async () => {
    const { id } = await createRecord('sites', { name: 'granted before' });
    await seedTenant(fixture.app, 'afar');
    await grantAt(id);
    const created = await createRequest(root, moved(id));
    expect(created.warnings).toMatchObject([{ code: 'grants_removed' }]);
    await grantAt(id);
    expect(await approveAndWait(approver(), created.id)).toMatchObject({ execution: 'succeeded' });
    expect(await grantsAt(id)).toBe(0);
  });

  test('it is no longer valid', async () => {
    const body = changeRequest(
      ['create', 'regions', { name: 'first' }],
      ['create', 'prefixes', { cidr: '10.32.0.0/16' }],
    );
    const difference = await expectStale(body, () =>
      createRecord('prefixes', { cidr: '10.32.0.0/16' }),
    );
    expect(difference).toMatchObject({
      errors: [],
      effects: [],
      conflicts: [{ code: 'duplicate', pointer: expect.stringContaining('/mutations/1') }],
    });
    expect(await listRecords('regions?name=first')).toEqual([]);
  });

  test('the record that it deletes does not exist any more', async () => {
    const { id } = await createRecord('regions', { name: 'deleted' });
    const { errors } = await expectStale(changeRequest(['delete', 'regions', { id }]), () =>
      root.delete(`/api/inventory/regions/${id}`),
    );
    expect(errors).toMatchObject([{ code: 'not_found', pointer: '/mutations/0/record/id' }]);
  });

  test('another record was created under the id that it names', async () => {
    const now = Date.now();
    const tag = { id: `again-${now}`, name: `A ${now}` };
    await createRecord('tags', tag);
    const { effects } = await expectStale(
      changeRequest(['update', 'tags', { id: tag.id, name: `B ${now}` }]),
      async () => {
        await root.delete(`/api/inventory/tags/${tag.id}`);
        await createRecord('tags', { ...tag, description: 'another one' });
      },
    );
    expect(effects).toHaveLength(1);
  });

  test('the change that guards another job is stale', async () => {
    await expectStale({ ...createPrefix('10.37.0.0/16'), jobType: 'core.echo' }, () =>
      createRecord('prefixes', { cidr: '10.37.0.0/16' }),
    );
  });

  test('of concurrent requests for the same change one is executed, the others are stale', async () => {
    const requests = await Promise.all(
      Array.from({ length: 5 }, () => createRequest(root, createPrefix('10.35.0.0/16'))),
    );
    await Promise.all(requests.map(({ id }) => approve(approver(), id).expect(200)));
    const finished = await Promise.all(
      requests.map(({ id }) =>
        approver().get<ApprovalRecord>(`/api/workflows/${id}`, { prefer: 'wait=20' }).expect(200),
      ),
    );
    expect(finished.map(({ execution }) => execution).sort()).toEqual([
      'stale',
      'stale',
      'stale',
      'stale',
      'succeeded',
    ]);
    const codes = finished.flatMap(
      ({ difference }) => difference?.conflicts.map(({ code }) => code) ?? [],
    );
    expect(codes).toEqual(['duplicate', 'duplicate', 'duplicate', 'duplicate']);
  });
});

describe('a job inventory.apply without a request', () => {
  test('applies all changes or none, with the rights of the caller who created it', async () => {
    const { requester } = users();
    const run = (...mutations: object[]) =>
      requester
        .post<JobRecord>(
          '/api/jobs',
          { type: 'inventory.apply', payload: { mutations } },
          { prefer: 'wait=20' },
        )
        .expect(201);
    const create = (cidr: string, overrides: object = {}) => ({
      resource: 'prefixes',
      operation: 'create',
      record: { cidr, ...overrides },
    });
    expect(await run(create('10.50.0.0/16'), create('10.51.0.0/16'))).toMatchObject({
      status: 'succeeded',
      result: { changes: [{ action: 'create' }, { action: 'create' }] },
    });
    expect(await run(create('10.52.0.0/16'), create('10.50.0.0/16'))).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'change_rejected' },
    });
    expect(await run(create('10.53.0.0/16', { tenantId: 'elsewhere' }))).toMatchObject({
      status: 'failed',
      error: {
        code: 'permission_lost',
        message: 'Permission inventory:write is missing at tenant elsewhere.',
      },
    });
    expect(await listRecords('prefixes?within=10.52.0.0/15')).toEqual([]);
    const viewer = fixture.app.client.as({ actor: 'v', roles: 'viewer' });
    const body = { type: 'inventory.apply', payload: { mutations: [create('10.54.0.0/16')] } };
    await viewer.post('/api/jobs', body).expect(403);
  });

  test('shows its changes only to its author and to readers of the inventory', async () => {
    const { requester, tenant } = users();
    const record = { cidr: '10.57.0.0/16', description: 'hidden-57' };
    const mutation = { resource: 'prefixes', operation: 'create', record };
    const body = { type: 'inventory.apply', payload: { mutations: [mutation, mutation] } };
    const failed = await requester.post<JobRecord>('/api/jobs', body, { prefer: 'wait=20' });
    expect(failed.body).toMatchObject({
      ...body,
      error: { code: 'change_rejected', message: expect.stringContaining('10.57.0.0/16') },
    });
    const reader = async (name: string, permissions: string[]) => {
      const role = { id: name, name, permissions };
      await admin(fixture.app).post('/api/rbac/roles', role).expect(201);
      return fixture.app.client.as({ actor: name, roles: name, tenant });
    };
    const ofJobs = await reader('reads-jobs', ['job:read']);
    const ofInventory = await reader('reads-all', ['job:read', 'inventory:read']);
    const { id } = failed.body;
    for (const path of [`/${id}`, `/${id}/logs`, `/${id}/logs?follow=true`, `?id=${id}`]) {
      const { status, body: hidden } = await ofJobs.get(`/api/jobs${path}`);
      expect(status).toBe(200);
      expect(JSON.stringify(hidden)).not.toMatch(/hidden-57|10\.57/);
      const { body: shown } = await ofInventory.get(`/api/jobs${path}`);
      expect(JSON.stringify(shown)).toContain('10.57.0.0/16');
    }
    expect(await ofJobs.get<JobRecord>(`/api/jobs/${id}`).expect(200)).toMatchObject({
      payload: {},
      result: null,
      error: { code: 'change_rejected' },
    });
  });
});
