import { beforeAll, describe, expect, test } from '@jest/globals';
import type { ApprovalList, ApprovalRecord } from '../../../api/approvals/schemas.ts';
import {
  approve,
  approveAndWait,
  changeRequest,
  createPrefix,
  createRequest,
  readRequest,
  untilExecution,
  withApprovals,
} from '../../support/approvals.ts';
import type { TestClient } from '../../support/client.ts';
import { recordFactory } from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

const { fixture, users } = withApprovals();
let root: TestClient;
beforeAll(() => {
  root = admin(fixture.app);
});
const createRecord: (resource: string, record: object) => Promise<{ id: string }> = recordFactory(
  () => root,
);

const approver = () => fixture.app.client.as({ actor: 'decider', roles: 'approver' });
const createRole = async (name: string, permissions: string[]): Promise<string> =>
  (await root.post<{ id: string }>('/api/rbac/roles', { name, permissions }).expect(201)).id;
const labelsOf = ({ effects }: ApprovalRecord) => effects.map(({ label }) => label).sort();

describe('what readers of a request see', () => {
  test('the request shows the warnings of the plan, labels of references and the people involved', async () => {
    await createRecord('regions', { name: 'west' });
    const site = await createRecord('sites', { name: 'lab', regionId: { name: 'west' } });
    const region = await createRecord('regions', { name: 'south' });
    const created = await createRequest(
      root,
      changeRequest(
        ['update', 'sites', { id: site.id, regionId: { name: 'south' } }],
        ['create', 'ip-addresses', { address: '9.9.9.9/32' }],
      ),
    );
    expect(created.warnings).toMatchObject([
      { code: 'no_prefix', pointer: expect.stringContaining('/mutations/1') },
    ]);
    expect(created.labels).toMatchObject({ [region.id]: 'south' });
    expect(created.effects.map(({ resource }) => resource)).toEqual(['sites', 'ip-addresses']);
    const page = await readRequest(approver(), created.id);
    expect(page.ifApproved).toContain(
      'with the rights that the gateway sent for root with the request',
    );
    expect(page.labels[region.id]).toBe('south');
  });

  test('effects that a reader may not read are not shown, without inventory:read not counted', async () => {
    const { tenant } = users();
    await createRecord('tenants', { id: tenant, name: tenant });
    await createRecord('prefixes', {
      cidr: '10.40.1.0/24',
      tenantId: tenant,
      description: 'theirs',
    });
    await createRecord('prefixes', { cidr: '10.40.2.0/24', tenantId: 'platform' });
    const created = await createRequest(
      root,
      createPrefix('10.40.0.0/16', { tenantId: 'platform' }),
    );
    expect([created.effects.length, created.hiddenEffects]).toEqual([3, 0]);
    const readsRequests = await createRole('reads requests', ['workflow:read']);
    const reader = fixture.app.client.as({ actor: 'reader', roles: readsRequests });
    expect(await readRequest(reader, created.id)).toMatchObject({
      effects: [],
      hiddenEffects: null,
      validationRequest: null,
      warnings: [],
    });
    const onlyDecides = await createRole('only decides', ['workflow:approve']);
    const assigned = await createRequest(root, {
      ...createPrefix('10.40.0.0/15', { tenantId: 'platform' }),
      assignedRoleIds: [onlyDecides],
    });
    // A decider of the platform sees the effects in every tenant.
    const decider = fixture.app.client.as({ actor: 'd', roles: onlyDecides });
    expect(labelsOf(await readRequest(decider, assigned.id))).toEqual([
      '10.40.0.0/15',
      '10.40.1.0/24',
      '10.40.2.0/24',
    ]);
  });
});

describe('what deciders of one tenant see of another tenant', () => {
  const seedTenants = async (suffix: string) => {
    const [mine, theirs] = [`m${suffix}`, `o${suffix}`];
    for (const id of [mine, theirs]) await createRecord('tenants', { id, name: id });
    // In a VRF of a tenant, the records of all who may write there are one tree.
    const { id: vrfId } = await createRecord('vrfs', { name: `shared ${suffix}`, tenantId: mine });
    return {
      vrfId,
      mine,
      theirs,
      decider: fixture.app.client.as({ actor: 'decider', roles: 'approver', tenant: mine }),
      requester: fixture.app.client.as({ actor: 'asker', roles: 'operator', tenant: mine }),
    };
  };

  test('neither effects nor job results show records of the other tenant', async () => {
    const { vrfId, mine, theirs, decider, requester } = await seedTenants(`a${Date.now()}`);
    await createRecord('prefixes', { cidr: '10.60.1.0/24', tenantId: mine, vrfId });
    await createRecord('prefixes', {
      cidr: '10.60.2.0/24',
      tenantId: theirs,
      vrfId,
      description: 'secret of theirs',
    });
    const own = await createRequest(
      requester,
      createPrefix('10.60.0.0/16', { tenantId: mine, vrfId }),
    );
    expect(labelsOf(own)).toEqual(['10.60.0.0/16', '10.60.1.0/24']);
    expect(own.hiddenEffects).toBe(1);
    const wide = await createRequest(root, {
      tenantId: mine,
      ...createPrefix('10.60.0.0/16', { tenantId: mine, vrfId }),
    });
    expect(wide.effects).toHaveLength(3);
    const seen = await readRequest(decider, wide.id);
    expect([seen.effects.length, seen.hiddenEffects]).toEqual([2, 1]);
    const finished = await approveAndWait(decider, own.id);
    expect(finished.execution).toBe('succeeded');
    const job = await root
      .get<{ result: object }>(`/api/jobs/${String(finished.jobId)}`)
      .expect(200);
    expect(job.result).toMatchObject({
      changes: [{ action: 'create' }, { action: 'update' }],
      hiddenChanges: 1,
    });
    // The request of root now conflicts with a record of the reader's tenant.
    const { blocker } = await readRequest(decider, wide.id);
    expect(blocker?.difference?.conflicts).toMatchObject([
      { code: 'duplicate', resource: 'prefixes' },
    ]);
    expect((await readRequest(requester, wide.id)).validationRequest?.mutations).toHaveLength(1);
  });

  test('the error of its job names records only to readers of the inventory', async () => {
    const { id, tenantId } = await createRequest(root, createPrefix('10.63.0.0/16'));
    const error = { code: 'change_rejected', message: 'exists as 10.63.9.9' };
    await fixture.app.deps.db('approvals').where({ id }).update({ error });
    const reads = await createRole('reads errors', ['workflow:read']);
    const reader = fixture.app.client.as({ actor: 'reader', roles: reads, tenant: tenantId });
    const messages = async (client: TestClient) => [
      (await readRequest(client, id)).error?.message,
      (await client.get<ApprovalList>('/api/workflows').expect(200)).items.find(
        (item) => item.id === id,
      )?.error?.message,
    ];
    const hidden = 'Only readers of the inventory see what the change is about';
    expect(await messages(reader)).toEqual([hidden, hidden]);
    expect(await messages(root)).toEqual([error.message, error.message]);
  });

  test('conflicts with records of the other tenant are redacted', async () => {
    const { vrfId, mine, theirs, decider } = await seedTenants(`b${Date.now()}`);
    const created = await createRequest(root, {
      tenantId: mine,
      ...createPrefix('10.61.0.0/16', { tenantId: mine, vrfId }),
    });
    const duplicate = await createRecord('prefixes', {
      cidr: '10.61.0.0/16',
      tenantId: theirs,
      vrfId,
    });
    const conflictsSeenBy = async (client: TestClient) =>
      (await readRequest(client, created.id)).blocker?.difference?.conflicts;
    expect(await conflictsSeenBy(root)).toMatchObject([{ code: 'duplicate', id: duplicate.id }]);
    const redacted = [
      {
        code: 'duplicate',
        pointer: '/mutations/0/record/cidr',
        message: 'conflicts with another record',
        resource: null,
        id: null,
      },
    ];
    expect(await conflictsSeenBy(decider)).toEqual(redacted);
    await approve(decider, created.id).expect(200);
    const stale = await untilExecution(decider, created.id, 'stale');
    expect(stale.difference?.conflicts).toEqual(redacted);
  });

  test('differences show only the effects that the reader may read', async () => {
    const { vrfId, mine, theirs, decider } = await seedTenants(`c${Date.now()}`);
    const created = await createRequest(root, {
      tenantId: mine,
      ...createPrefix('10.62.0.0/16', { tenantId: mine, vrfId }),
    });
    await createRecord('prefixes', { cidr: '10.62.1.0/24', tenantId: mine, vrfId });
    await createRecord('prefixes', { cidr: '10.62.2.0/24', tenantId: theirs, vrfId });
    const labelsSeenBy = async (client: TestClient) =>
      (await readRequest(client, created.id)).blocker?.difference?.effects
        .map(({ now }) => now?.label)
        .sort();
    expect(await labelsSeenBy(root)).toEqual(['10.62.1.0/24', '10.62.2.0/24']);
    expect(await labelsSeenBy(decider)).toEqual(['10.62.1.0/24']);
  });
});
