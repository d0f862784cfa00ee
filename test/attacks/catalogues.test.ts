import { describe, expect, test } from '@jest/globals';
import { assertDefined } from '../../domain/shared/assert.ts';
import { withNewTenants, type NewTenants } from '../support/attacks/twoTenants.ts';
import type { ProblemBody, TestClient } from '../support/client.ts';
import type { BulkReport, InventoryRecord } from '../support/inventory.ts';
import { expectProblem } from '../support/problem.ts';

let count: NewTenants['count'];
let ours: NewTenants['ours'];
let theirs: NewTenants['theirs'];
let actor: NewTenants['actor'];
withNewTenants((fixture) => ({ count, ours, theirs, actor } = fixture));

describe('what all tenants use', () => {
  const make = (by: TestClient, resource: string, record: object) =>
    by.post<InventoryRecord>(`/api/inventory/${resource}`, record).expect(201);
  const ourAdmin = () => actor('root', 'platform-admin', ours);

  /** A device type with two devices of ours, which have an interface each. */
  async function estate() {
    const platform = actor('root', 'platform-admin');
    for (const id of [ours, theirs]) await make(platform, 'tenants', { id, name: id });
    const name = `n${count}`;
    const manufacturer = await make(platform, 'manufacturers', { name });
    const ofMaker = { manufacturerId: manufacturer.id, model: name };
    const type = await make(platform, 'device-types', ofMaker);
    const role = await make(platform, 'device-roles', { name });
    const tag = await make(platform, 'tags', { id: name, name });
    const deviceIn = async (tenant: string, device: string) => {
      const by = actor('root', 'platform-admin', tenant);
      const site = await make(by, 'sites', { name: `${tenant}-${device}`, tags: [tag.id] });
      const { id } = await make(by, 'devices', {
        ...{ name: device, siteId: site.id, deviceTypeId: type.id, roleId: role.id },
      });
      return make(by, 'interfaces', { deviceId: id, name: 'et-0' });
    };
    return { platform, manufacturer, type, role, tag, deviceIn };
  }

  const denied = [expect.objectContaining({ code: 'permission_denied' })];

  /** A validation says what the write would answer, and names the right that its plan needs to be seen. */
  async function expectUnseen(client: TestClient, mutation: object) {
    const asked = client.post<ProblemBody>('/api/validation/inventory', mutation);
    const { detail } = await expectProblem(asked, 403, 'permission_denied');
    expect(detail).toBe('Permission inventory:read is missing at the platform.');
  }

  test('shows nobody else how much others use it', async () => {
    const { platform, type, role, tag, deviceIn } = await estate();
    await deviceIn(ours, 'core');
    const unused = await make(platform, 'tags', { id: `unused${count}`, name: 'unused' });
    const viewer = actor('v', 'viewer', theirs);
    const their = actor('o', 'operator', theirs);
    for (const [resource, { id }] of Object.entries({
      'device-types': type,
      'device-roles': role,
      tags: tag,
    })) {
      const mutation = { resource, operation: 'delete', record: { id } };
      for (const client of [viewer, their]) await expectUnseen(client, mutation);
      const bulk = { mode: 'each', mutations: [mutation] };
      const { results } = await their.post<BulkReport>('/api/inventory/bulk', bulk).expect(200);
      expect(results).toMatchObject([{ errors: denied, conflicts: [], outcome: 'invalid' }]);
      expect((await their.delete<ProblemBody>(`/api/inventory/${resource}/${id}`)).status).toBe(
        403,
      );
      // The platform may know.
      await actor('p', 'viewer').post('/api/validation/inventory', mutation).expect(409);
    }
    const ofUnused = { resource: 'tags', operation: 'delete', record: { id: unused.id } };
    await expectUnseen(viewer, ofUnused);
  });

  test.each(['manufacturers', 'device-types', 'device-roles', 'platforms', 'tags'])(
    'an update of %s is planned for those alone who may see the platform',
    async (resource) => {
      const { platform, manufacturer, type, role, tag } = await estate();
      const os = await make(platform, 'platforms', { name: `os${count}` });
      const { id } = assertDefined(
        {
          ...{ manufacturers: manufacturer, 'device-types': type, 'device-roles': role },
          ...{ platforms: os, tags: tag },
        }[resource],
        resource,
      );
      const mutation = { resource, operation: 'update', record: { id, description: 'x' } };
      await expectUnseen(actor('v', 'viewer', theirs), mutation);
      await actor('p', 'viewer').post('/api/validation/inventory', mutation).expect(200);
      // A new record shows nothing of others.
      if (resource !== 'manufacturers') return;
      const create = { resource, operation: 'create', record: { name: `other${count}` } };
      await actor('v', 'viewer', theirs).post('/api/validation/inventory', create).expect(200);
    },
  );

  test('does not show which tenants there are', async () => {
    await make(actor('root', 'platform-admin'), 'tenants', { id: ours, name: ours });
    const create = (id: string) => ({
      ...{ resource: 'tenants', operation: 'create', record: { id, name: 'x' } },
    });
    for (const mutation of [create(ours), create(`${ours}-none`)]) {
      await expectUnseen(actor('v', 'viewer', theirs), mutation);
      await expectUnseen(actor('v', 'viewer', theirs), { mutations: [mutation] });
      const bulk = { mode: 'each', mutations: [mutation] };
      const their = actor('o', 'operator', theirs);
      const { results } = await their.post<BulkReport>('/api/inventory/bulk', bulk).expect(200);
      expect(results).toMatchObject([{ errors: denied, conflicts: [] }]);
      await their.post('/api/inventory/tenants', mutation.record).expect(403);
    }
  });

  test('names evict where a record of another tenant is in the way', async () => {
    const { deviceIn } = await estate();
    const [one, two] = [await deviceIn(ours, 'one'), await deviceIn(ours, 'two')];
    const foreign = await deviceIn(theirs, 'three');
    const at = `/api/inventory/interfaces/${one.id}`;
    await ourAdmin()
      .put(at, { sharedWith: [theirs] })
      .expect(200);
    const attacker = actor('root', 'platform-admin', theirs);
    await make(attacker, 'cables', { aInterfaceId: one.id, bInterfaceId: foreign.id });
    const cable = { aInterfaceId: one.id, bInterfaceId: two.id };
    const refused = await ourAdmin().post<ProblemBody>('/api/inventory/cables', cable).expect(409);
    expect(refused.detail).toBe(
      'conflicts with a record that you may not read; evict on interface et-0 removes it',
    );
    await ourAdmin().put(at, { evict: true }).expect(200);
    await make(ourAdmin(), 'cables', cable);
  });
});
