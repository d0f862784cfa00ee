import { beforeAll, describe, expect, test } from '@jest/globals';
import {
  approve,
  change,
  prefix,
  read,
  request,
  untilExecution,
  withApprovals,
} from '../support/approvals.ts';
import type { TestClient } from '../support/client.ts';
import { making } from '../support/inventory.ts';
import { admin } from '../support/users.ts';

const { bed, people } = withApprovals();
let root: TestClient;
beforeAll(() => {
  root = admin(bed.app);
});
const make = making(() => root);

const approver = () => bed.app.client.as({ actor: 'decider', roles: 'approver' });

describe('who is told what', () => {
  test('the page says what the plan advised, what references are called, and who is who', async () => {
    await make('regions', { name: 'west' });
    const site = await make('sites', { name: 'lab', regionId: { name: 'west' } });
    const region = await make('regions', { name: 'south' });
    const made = await request(
      root,
      change(
        ['update', 'sites', { id: site.id, regionId: { name: 'south' } }],
        ['create', 'ip-addresses', { address: '9.9.9.9/32' }],
      ),
    );
    expect(made.warnings).toMatchObject([
      { code: 'no_prefix', pointer: expect.stringContaining('/mutations/1') },
    ]);
    expect(made.labels).toMatchObject({ [region.id]: 'south' });
    expect(made.effects.map(({ resource }: any) => resource)).toEqual(['sites', 'ip-addresses']);
    const page = await read(approver(), made.id);
    expect(page.ifApproved).toContain('with the rights that the gateway gave root for the request');
    expect(page.labels[region.id]).toBe('south');
  });
  test('effects where a reader may read nothing are counted, not shown', async () => {
    const { tenant } = people();
    await make('tenants', { id: tenant, name: tenant });
    await make('prefixes', { cidr: '10.40.1.0/24', tenantId: tenant, description: 'theirs' });
    await make('prefixes', { cidr: '10.40.2.0/24', tenantId: 'platform' });
    const made = await request(root, prefix('10.40.0.0/16', { tenantId: 'platform' }));
    expect([made.effects.length, made.hiddenEffects]).toEqual([3, 0]);
    const role = (
      await root.post('/api/rbac/roles', { name: 'reads requests', permissions: ['workflow:read'] })
    ).body.id as string;
    const reader = bed.app.client.as({ actor: 'reader', roles: role });
    const seen = await read(reader, made.id);
    expect([seen.effects, seen.hiddenEffects, seen.validationRequest, seen.warnings]).toEqual([
      [],
      3,
      null,
      [],
    ]);
    const only = (
      await root.post('/api/rbac/roles', {
        name: 'only decides',
        permissions: ['workflow:approve'],
      })
    ).body.id as string;
    const decides = await request(root, {
      ...prefix('10.40.0.0/15', { tenantId: 'platform' }),
      assignedRoleIds: [only],
    });
    // Whoever decides about the platform has a say about what lies in it.
    expect(
      (await read(bed.app.client.as({ actor: 'd', roles: only }), decides.id)).effects
        .map(({ label }: any) => label)
        .sort(),
    ).toEqual(['10.40.0.0/15', '10.40.1.0/24', '10.40.2.0/24']);
  });
  test('of another tenant an approver and the job are told nothing, neither in effects nor in what stands against it', async () => {
    const [mine, theirs] = [`m${Date.now()}`, `o${Date.now()}`];
    for (const id of [mine, theirs]) await make('tenants', { id, name: id });
    await make('prefixes', { cidr: '10.60.1.0/24', tenantId: mine });
    await make('prefixes', {
      cidr: '10.60.2.0/24',
      tenantId: theirs,
      description: 'secret of theirs',
    });
    const decider = bed.app.client.as({ actor: 'decider', roles: 'approver', tenant: mine });
    const asker = bed.app.client.as({ actor: 'asker', roles: 'operator', tenant: mine });
    const own = await request(asker, prefix('10.60.0.0/16', { tenantId: mine }));
    expect([own.effects.map(({ label }: any) => label), own.hiddenEffects]).toEqual([
      ['10.60.0.0/16', '10.60.1.0/24'],
      1,
    ]);
    const wide = await request(root, {
      tenantId: mine,
      ...prefix('10.60.0.0/16', { tenantId: mine }),
    });
    expect(wide.effects).toHaveLength(3);
    const seen = await read(decider, wide.id);
    expect([seen.effects.length, seen.hiddenEffects]).toEqual([2, 1]);
    const done = (await approve(decider, own.id, {}, { prefer: 'wait=20' })).body;
    expect(done.execution).toBe('succeeded');
    expect((await root.get(`/api/jobs/${done.jobId as string}`)).body.result).toMatchObject({
      changes: [{ action: 'create' }, { action: 'update' }],
      others: 1,
    });
    // What was asked for by somebody who sees everything now stands against a record of mine, and one of theirs.
    const { changedSince } = await read(decider, wide.id);
    expect(changedSince.difference.conflicts).toMatchObject([
      { code: 'duplicate', resource: 'prefixes' },
    ]);
    const against = await request(root, {
      tenantId: mine,
      ...prefix('10.61.0.0/16', { tenantId: mine }),
    });
    const taken = await make('prefixes', { cidr: '10.61.0.0/16', tenantId: theirs });
    const told = async (client: TestClient) =>
      (await read(client, against.id)).changedSince.difference.conflicts;
    expect(await told(root)).toMatchObject([{ code: 'duplicate', id: taken.id }]);
    const masked = [
      {
        code: 'duplicate',
        pointer: '/mutations/0/record/cidr',
        message: 'a record stands against it',
        resource: null,
        id: null,
      },
    ];
    expect(await told(decider)).toEqual(masked);
    await approve(decider, against.id);
    expect((await untilExecution(decider, against.id, 'stale')).difference.conflicts).toEqual(
      masked,
    );
    expect((await read(asker, wide.id)).validationRequest.mutations).toHaveLength(1);
    // And effects of a difference, where only some may be seen.
    const moved = await request(root, {
      tenantId: mine,
      ...prefix('10.62.0.0/16', { tenantId: mine }),
    });
    await make('prefixes', { cidr: '10.62.1.0/24', tenantId: mine });
    await make('prefixes', { cidr: '10.62.2.0/24', tenantId: theirs });
    const labels = async (client: TestClient) =>
      (await read(client, moved.id)).changedSince.difference.effects
        .map(({ now }: any) => now.label)
        .sort();
    expect([await labels(root), await labels(decider)]).toEqual([
      ['10.62.1.0/24', '10.62.2.0/24'],
      ['10.62.1.0/24'],
    ]);
  });
});
