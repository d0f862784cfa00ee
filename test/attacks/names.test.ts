import { describe, expect, test } from '@jest/globals';
import type { ApprovalList, ApprovalRecord } from '../../api/approvals/schemas.ts';
import type { UserWithPassword } from '../../api/auth/schemas.ts';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import type { ScheduleRecord } from '../../api/schedules/schemas.ts';
import type { WebhookRecord } from '../../api/webhooks/schemas.ts';
import { withNewTenants, type NewTenants } from '../support/attacks/twoTenants.ts';
import {
  approve,
  assignedToApprovers,
  createPrefix,
  createRequest,
  readRequest,
} from '../support/approvals.ts';
import type { ProblemBody, TestClient } from '../support/client.ts';
import { recordFactory, type InventoryRecord, type Validation } from '../support/inventory.ts';
import { admin, createUser, login, PASSWORD, type TestUser } from '../support/users.ts';

let app: NewTenants['app'];
let count: NewTenants['count'];
let ours: NewTenants['ours'];
let theirs: NewTenants['theirs'];
let actor: NewTenants['actor'];
withNewTenants((fixture) => ({ app, count, ours, theirs, actor } = fixture));

const roleWith = async (...permissions: string[]): Promise<string> =>
  (
    await admin(app)
      .post<{ id: string }>('/api/rbac/roles', { name: `role ${Math.random()}`, permissions })
      .expect(201)
  ).id;

type Account = TestUser & { email: string };

/** An account that the administrator of `tenant` names, with roles at `at`. */
async function accountOf(
  tenant: string,
  names: { username?: string; email?: string },
  { roles = [], at = tenant }: { roles?: string[]; at?: string } = {},
): Promise<Account> {
  const username = names.username ?? `p${Math.random().toString(36).slice(2)}`;
  const email = names.email ?? `${username}@example.net`;
  const by = actor('root', 'platform-admin', tenant);
  const { id } = await by
    .post<UserWithPassword>('/api/users', {
      ...{ username, email, password: PASSWORD, mustChangePassword: false },
    })
    .expect(201);
  for (const roleId of roles)
    await actor('root', 'platform-admin', at)
      .post('/api/rbac/assignments', { userId: id, roleId, tenantId: at })
      .expect(201);
  const { accessToken } = await login(app, username, PASSWORD, { tenantId: at }).expect(200);
  const client = app.client.as({ token: accessToken });
  return { id, username, email, client, accessToken, refreshToken: '' };
}

const BOTH = ['operator', 'approver'];

describe('an account of another tenant that is named like others', () => {
  test('keeps nobody from deciding, on open and on new requests', async () => {
    const requester = await accountOf(ours, {}, { roles: BOTH });
    const approver = await accountOf(ours, {}, { roles: BOTH });
    const open = await createRequest(requester.client, { tenantId: ours });
    const byGateway = await createRequest(actor('gate', 'operator', ours));
    // Names of both, so that either is taken for the other.
    await accountOf(theirs, { username: requester.id, email: approver.email });
    await accountOf(theirs, { username: approver.id, email: requester.email });
    await accountOf(theirs, { username: 'gate', email: approver.email });
    const later = await createRequest(requester.client, { tenantId: ours });
    const laterByGateway = await createRequest(actor('gate', 'operator', ours));
    const all = [open, byGateway, later, laterByGateway];
    const { items } = await approver.client
      .get<ApprovalList>('/api/workflows?assignedToMe&status=pending')
      .expect(200);
    expect(items.filter(({ mayDecide }) => mayDecide).map(({ id }) => id)).toEqual(
      expect.arrayContaining(all.map(({ id }) => id)),
    );
    for (const { id } of all) {
      expect((await readRequest(approver.client, id)).you).toMatchObject({ mayDecide: true });
      await approve(approver.client, id).expect(200);
    }
  });

  test('keeps nobody from deciding as a guest who requests or has decided', async () => {
    const approver = await accountOf(ours, {}, { roles: BOTH });
    const names = { username: approver.id, email: approver.email };
    const guest = await accountOf(theirs, names, { roles: BOTH, at: ours });
    const requested = await createRequest(guest.client, { tenantId: ours });
    await approve(approver.client, requested.id).expect(200);
    const request = { requiredApprovals: 2 };
    const decided = await createRequest(actor('gate', 'operator', ours), request);
    await approve(guest.client, decided.id).expect(200);
    await approve(approver.client, decided.id).expect(200);
  });
});

describe('nobody approves their own request', () => {
  const ends = async (client: TestClient, { id }: ApprovalRecord) =>
    (await approve<ProblemBody>(client, id).expect(403)).code;

  test.each([
    ['two accounts of the tenant', () => [ours, ours]],
    ['an account of the platform and one of the tenant', () => ['platform', ours]],
    ['an account of the tenant and one of the platform', () => [ours, 'platform']],
    ['two accounts of a tenant as guests', () => [theirs, theirs]],
    ['an account of the tenant and one as a guest', () => [ours, theirs]],
  ])('with %s and one address', async (_, tenants) => {
    const [one = '', two = ''] = tenants();
    const email = `same${count}@example.net`;
    const requester = await accountOf(one, { email }, { roles: BOTH, at: ours });
    const decider = await accountOf(two, { email }, { roles: BOTH, at: ours });
    const request = await createRequest(requester.client, { tenantId: ours });
    expect(await ends(decider.client, request)).toBe('self_approval');
  });

  test('with an account and any of its names through a gateway, at the tenant and at the platform', async () => {
    for (const home of [ours, 'platform']) {
      const account = await accountOf(home, {}, { roles: BOTH, at: ours });
      const request = await createRequest(account.client, { tenantId: ours });
      for (const name of [account.id, account.username, account.email]) {
        expect(await ends(actor(name, 'approver', ours), request)).toBe('self_approval');
        expect(await ends(actor(name, 'approver'), request)).toBe('self_approval');
        const through = await createRequest(actor(name, 'operator', ours));
        expect(await ends(account.client, through)).toBe('self_approval');
        const atPlatform = await createRequest(actor(name, 'operator'), { tenantId: ours });
        expect(await ends(account.client, atPlatform)).toBe('self_approval');
      }
    }
  });

  test('with an account of a tenant and one of the platform, at the platform', async () => {
    const email = `root${count}@example.net`;
    const one = await accountOf(ours, { email }, { roles: BOTH, at: 'platform' });
    const two = await accountOf('platform', { email }, { roles: BOTH, at: 'platform' });
    const request = await createRequest(one.client, { tenantId: 'platform' });
    expect(await ends(two.client, request)).toBe('self_approval');
  });
});

describe('a route distinguisher', () => {
  test('can be used by every tenant', async () => {
    const rd = `65000:${count}`;
    for (const [tenant, name, status] of [
      [theirs, 'one', 201],
      [theirs, 'two', 409],
      [ours, 'one', 201],
    ] as const)
      await actor('net', 'operator', tenant)
        .post('/api/inventory/vrfs', { name, rd })
        .expect(status);
  });
});

describe('names at a shared record', () => {
  test('are neither taken from its owner nor shown to others', async () => {
    const root = admin(app);
    const make = recordFactory(() => root);
    const mine = (resource: string, record: object) =>
      make(resource, { tenantId: ours, ...record, sharedWith: ['*'] });
    const manufacturerId = (await make('manufacturers', { name: `m${count}` })).id;
    const deviceTypeId = (await make('device-types', { manufacturerId, model: 't' })).id;
    for (const id of [ours, theirs]) await make('tenants', { id, name: id });
    const siteId = (await mine('sites', { name: 'site' })).id;
    const groupId = (await mine('vlan-groups', { name: 'group' })).id;
    const operator = (tenant: string) => actor('net', 'operator', tenant);
    const [a, b] = [operator(ours), operator(theirs)];
    for (const [resource, at] of [
      ['locations', () => ({ siteId })],
      ['racks', () => ({ siteId })],
      ['devices', () => ({ siteId, deviceTypeId })],
      ['vlans', (vid: number) => ({ groupId, vid })],
    ] as const) {
      const path = `/api/inventory/${resource}`;
      const create = (client: TestClient, name: string, vid: number) =>
        client.post<InventoryRecord>(path, { name, ...at(vid) });
      const taken = await create(b, 'squatted', 1).expect(201);
      const own = await create(a, 'squatted', 2).expect(201);
      await create(a, 'secret', 3).expect(201);
      const validate = (client: TestClient, name: string, vid: number) =>
        client
          .post<Validation>('/api/validation/inventory', {
            ...{ resource, operation: 'create', record: { name, ...at(vid) } },
          })
          .expect(200);
      expect([resource, (await validate(b, 'secret', 4)).validation.conflicts]).toEqual([
        resource,
        [],
      ]);
      await create(b, 'secret', 4).expect(201);
      await b.put(`${path}/${taken.id}`, { name: 'renamed' }).expect(200);
      await b.put(`${path}/${taken.id}`, { name: 'squatted' }).expect(200);
      // Within a tenant they are unique, and a name means the record of one's own tenant.
      expect((await create(b, 'secret', 5)).status).toBe(409);
      expect((await b.put(`${path}/${taken.id}`, { name: 'secret' })).status).toBe(409);
      expect((await root.put(`${path}/${taken.id}`, { tenantId: ours })).status).toBe(409);
      expect(own.tenantId).toBe(ours);
    }
    const mounted = await a
      .post<InventoryRecord>('/api/inventory/devices', {
        ...{ name: 'mounted', siteId, deviceTypeId, rackId: { name: 'squatted' } },
      })
      .expect(201);
    const rack = await a.get<InventoryRecord>(`/api/inventory/racks/${String(mounted.rackId)}`);
    expect(rack.body.tenantId).toBe(ours);
  });
});

describe('names of accounts', () => {
  test('are shown to those who may read the account, and to the others once it has acted', async () => {
    const stranger = await accountOf(ours, {});
    const guest = await accountOf(ours, {}, { roles: BOTH, at: theirs });
    const asker = actor('asker', 'operator', theirs);
    const created = await createRequest(asker, { assignedUserIds: [guest.id] });
    const seenBy = async (client: TestClient) => {
      const { deciders, people } = await readRequest(client, created.id);
      return [deciders.users[0]?.username, people[guest.id]?.username];
    };
    expect(JSON.stringify(created)).not.toContain(guest.username);
    expect(await seenBy(asker)).toEqual([null, undefined]);
    // An administrator of the tenant may not read accounts of another one either.
    expect(await seenBy(actor('boss', 'platform-admin', theirs))).toEqual([null, undefined]);
    const both = [guest.username, guest.username];
    expect(await seenBy(admin(app))).toEqual(both);
    expect(await seenBy(guest.client)).toEqual(both);
    await approve(guest.client, created.id).expect(200);
    expect(await seenBy(asker)).toEqual(both);
    // An account that has nothing to do with the tenant does not exist there.
    const unknown = { ...assignedToApprovers, title: 'x', assignedUserIds: [stranger.id] };
    const problem = await asker.post<ProblemBody>('/api/workflows', unknown).expect(400);
    expect(problem.errors).toMatchObject([{ pointer: '/assignedUserIds/0', code: 'not_found' }]);
  });
});

describe('what prevents the deletion of a tenant', () => {
  test('is named to those who may list it, and otherwise only counted', async () => {
    await admin(app).post('/api/inventory/tenants', { id: ours, name: ours }).expect(201);
    const root = actor('root', 'platform-admin', ours);
    const account = await accountOf(ours, {}, { roles: ['viewer'] });
    const webhook = await root
      .post<{ id: string }>('/api/webhooks', {
        ...{ endpointUrl: 'https://hooks.example.net/x', eventTypes: ['job.failed'] },
      })
      .expect(201);
    const schedule = await root
      .post<{ id: string; name: string }>('/api/schedules', {
        ...{ name: 'hidden', cronExpression: '@yearly', jobType: 'core.echo', payload: {} },
      })
      .expect(201);
    const labels = [account.username, account.id, webhook.id, schedule.id, schedule.name];
    const deletion = { resource: 'tenants', operation: 'delete', record: { id: ours } };
    const seenBy = async (roles: string) => {
      const { body, status } = await actor('eve', roles, ours).post<Validation>(
        '/api/validation/inventory',
        deletion,
      );
      expect([status, body.validation.conflicts.length]).toEqual([409, 4]);
      return labels.map((label) => JSON.stringify(body).includes(label));
    };
    expect(await seenBy(await roleWith('inventory:read'))).toEqual(labels.map(() => false));
    expect(await seenBy('platform-admin')).toEqual(labels.map(() => true));
    const some = await roleWith('inventory:read', 'schedule:read');
    expect(await seenBy(some)).toEqual([false, false, false, true, true]);
    expect(await seenBy(await roleWith('inventory:read', 'user:read'))).toEqual([
      ...[true, true, false, false, false],
    ]);
  });
});

describe('a request for a change', () => {
  test('shows those who may not read the inventory neither the plan nor how much it changes', async () => {
    await admin(app).post('/api/inventory/tenants', { id: ours, name: ours }).expect(201);
    const root = actor('root', 'platform-admin', ours);
    const inside = await root
      .post<InventoryRecord>('/api/inventory/prefixes', { cidr: `10.${count}.1.0/24` })
      .expect(201);
    const writer = await roleWith('workflow:write', 'inventory:write');
    const reader = await roleWith('workflow:read');
    const asker = actor('asker', writer, ours);
    const created = await createRequest(asker, createPrefix(`10.${count}.0.0/16`));
    const seen = [
      created,
      await readRequest(asker, created.id),
      await readRequest(actor('eve', reader, ours), created.id),
    ];
    for (const body of seen) {
      expect(body).toMatchObject({ effects: [], hiddenEffects: null, warnings: [], labels: {} });
      expect(JSON.stringify(body)).not.toContain(inside.id);
      expect(body.ifApproved.replace('Needs 1 approval.', '')).not.toMatch(/\d/);
    }
    expect(seen[0]?.validationRequest?.mutations).toHaveLength(1);
    expect(seen[2]?.validationRequest).toBeNull();
    expect(await readRequest(root, created.id)).toMatchObject({ hiddenEffects: 0 });
  });

  test('with an error shows nothing else of the plan to those who may not read where it would go', async () => {
    await admin(app).post('/api/inventory/tenants', { id: ours, name: ours }).expect(201);
    const root = actor('root', 'platform-admin', ours);
    const cidr = `10.${count}.1.0/24`;
    const existing = await root
      .post<InventoryRecord>('/api/inventory/prefixes', { cidr })
      .expect(201);
    const site = await root
      .post<InventoryRecord>('/api/inventory/sites', { name: 'eve' })
      .expect(201);
    const eve = await createUser(
      app,
      { roleId: await roleWith('inventory:write'), siteId: site.id },
      { roleId: await roleWith('workflow:write'), tenantId: ours },
    );
    const answerTo = async (network: string) => {
      const { status, body } = await eve.client.post<Validation>('/api/workflows', {
        ...{ ...assignedToApprovers, title: 'x', tenantId: ours },
        validationRequest: {
          ...{ resource: 'prefixes', operation: 'create' },
          record: { cidr: network, tenantId: ours, siteId: site.id, vlanId: 'vln_unknown' },
        },
      });
      expect(JSON.stringify(body)).not.toContain(existing.id);
      expect([status, body.candidateRecord]).toMatchObject([400, { cidr: network }]);
      return body.validation;
    };
    expect(await answerTo(cidr)).toEqual(await answerTo(`10.${count}.2.0/24`));
  });
});

describe('a repeated request with an Idempotency-Key', () => {
  test('is answered as the rights of its caller are today', async () => {
    const user = await createUser(
      app,
      { roleId: 'viewer', tenantId: theirs },
      { roleId: 'operator', tenantId: theirs },
    );
    const granted = await actor('root', 'platform-admin', ours)
      .post<{ id: string }>('/api/rbac/assignments', {
        ...{ userId: user.id, roleId: 'operator', tenantId: ours },
      })
      .expect(201);
    const headers = { 'x-service-tenant-id': ours };
    const bodies: [path: string, body: object][] = [
      ['/api/inventory/sites', { name: `site ${count}` }],
      ['/api/jobs', { type: 'core.echo', payload: { secret: 'inside' } }],
      [
        '/api/schedules',
        { name: 's', cronExpression: '@yearly', jobType: 'core.echo', payload: {} },
      ],
      ['/api/workflows', { ...assignedToApprovers, title: 'x', ...createPrefix('10.9.0.0/16') }],
      ['/api/webhooks', { endpointUrl: 'https://hooks.example.net/k', eventTypes: ['job.failed'] }],
    ];
    const send = (path: string, body: object) =>
      user.client.post<{ id: string; effects?: object[] }>(path, body, {
        ...headers,
        'idempotency-key': `key ${count}`.replace(' ', '-') + path,
      });
    const made = new Map<string, string>();
    for (const [path, body] of bodies) {
      const first = await send(path, body).expect(201);
      made.set(path, first.id);
      const again = await send(path, body);
      expect([again.status, again.headers.get('idempotent-replayed'), again.body.id]).toEqual([
        ...[201, 'true', first.id],
      ]);
    }
    await admin(app).delete(`/api/rbac/assignments/${granted.id}`).expect(204);
    // The tenant of the request is a claim that is checked first; the grant there is a narrower one.
    const left = await roleWith('backup:read');
    await admin(app)
      .post('/api/rbac/assignments', { userId: user.id, roleId: left, tenantId: ours })
      .expect(201);
    for (const [path, body] of bodies) {
      const { status, body: answer } = await send(path, body);
      if (path === '/api/workflows') {
        // The requester still sees the own request, but not what it would change.
        expect([status, answer.id, answer.effects]).toEqual([201, made.get(path), []]);
      } else {
        expect([path, status]).toEqual([path, 404]);
        expect(JSON.stringify(answer)).not.toContain('inside');
      }
    }
  });
});

describe('the id of a request', () => {
  const id = 'victim-1';
  const header = { 'x-request-id': id };

  test('is chosen by a gateway, and by nobody else', async () => {
    const user = await createUser(app, { roleId: 'operator', tenantId: ours });
    const echo = { type: 'core.echo', payload: {} };
    const sent = [
      await user.client.post('/api/jobs', echo, header),
      await user.client.post('/api/jobs', echo, { ...header, ...actor('x', 'operator').identity }),
      await app.client.as({ token: null }).post('/api/jobs', echo, header),
      await app.client
        .as({ token: null })
        .post('/api/auth/login/local', { username: 'nobody', password: 'wrong' }, header),
      await app.client.as({ token: null }).get('/livez', header),
      await app.client.as({ token: null }).get('/no/such/path', header),
    ];
    expect(sent.map(({ headers }) => headers.get('x-request-id'))).toEqual(
      sent.map(() => expect.stringMatching(/^req_/)),
    );
    expect(await app.deps.db('audit_entries').where({ request_id: id })).toEqual([]);
    const byGateway = await actor('g', 'operator', ours).post('/api/jobs', echo, header);
    expect(byGateway.headers.get('x-request-id')).toBe(id);
    expect(await app.deps.db('audit_entries').where({ request_id: id })).toHaveLength(1);
  });
});

describe('a schedule of an administrator', () => {
  const restore = {
    name: 'restore',
    cronExpression: '0 0 1 1 *',
    jobType: 'backup.restore',
    payload: { backupId: `bkp_${'0'.repeat(26)}` },
  };
  const createRestore = () =>
    actor('root', 'platform-admin', ours)
      .post<ScheduleRecord>('/api/schedules', restore)
      .expect(201);

  test('is not run by those who may not start such a job', async () => {
    const { id } = await createRestore();
    const operator = actor('op', 'operator', ours);
    const path = `/api/schedules/${id}`;
    await operator.post(`${path}/pause`, {}).expect(200);
    const since = '2020-01-01T00:00:00Z';
    for (const [verb, body] of [
      ['trigger', undefined],
      ['resume', {}],
      ['backfill', { since, until: since }],
    ] as const) {
      const problem = await operator.post<ProblemBody>(`${path}/${verb}`, body).expect(403);
      expect(problem.detail).toContain('backup:restore');
    }
    const root = actor('root', 'platform-admin', ours);
    await root.post(`${path}/resume`, {}).expect(200);
    await root.post(`${path}/trigger`).expect(202);
    await root.post(`${path}/backfill`, { since, until: since }).expect(202);
  });

  test.each([
    ['its expression', { cronExpression: '* * * * *' }, 'op'],
    ['its time zone', { timezone: 'Asia/Tokyo' }, 'op'],
    ['its start', { startAt: '2090-01-01T00:00:00Z' }, 'op'],
    ['its jitter', { jitterSeconds: 5 }, 'op'],
    ['the overlap policy', { overlapPolicy: 'allowAll' }, 'op'],
    ['its name only', { name: 'other' }, 'root'],
    ['nothing', {}, 'root'],
    ['the pause only', { enabled: false }, 'root'],
  ])('belongs to those who change %s', async (_, change, owner) => {
    const { id } = await createRestore();
    const path = `/api/schedules/${id}`;
    const operator = actor('op', 'operator', ours);
    const read = await operator.get<ScheduleRecord>(path).expect(200);
    const saved = await operator.put<ScheduleRecord>(path, { ...read, ...change }).expect(200);
    expect(saved.owner).toBe(owner);
    expect(saved.warnings?.map(({ code }) => code)).toEqual(
      owner === 'op' ? ['owner_denied'] : undefined,
    );
    await operator.put(path, { enabled: false }).expect(200);
    const enabled = await operator.put<ScheduleRecord>(path, { enabled: true }).expect(200);
    expect(enabled.owner).toBe('op');
  });
});

describe('credentials', () => {
  const masked = { password: '********' };
  const [hers, his] = [{ password: 'of alice' }, { password: 'of bob' }];

  test('in a payload are shown to who wrote it, also after the schedule has another owner', async () => {
    const [alice, bob] = [actor('alice', 'operator', ours), actor('bob', 'operator', ours)];
    const { id } = await alice
      .post<ScheduleRecord>('/api/schedules', {
        ...{ name: 's', cronExpression: '@yearly', jobType: 'core.echo', payload: hers },
      })
      .expect(201);
    const path = `/api/schedules/${id}`;
    const payloadSeenBy = async (client: TestClient) =>
      (await client.get<ScheduleRecord>(path).expect(200)).payload;
    expect([await payloadSeenBy(alice), await payloadSeenBy(bob)]).toEqual([hers, masked]);
    // The same actor id at the platform is another person.
    expect(await payloadSeenBy(actor('alice', 'platform-admin'))).toEqual(masked);
    await bob.put(path, { payload: his }).expect(200);
    expect([await payloadSeenBy(alice), await payloadSeenBy(bob)]).toEqual([masked, his]);
    const taken = await alice.put<ScheduleRecord>(path, { takeOver: true }).expect(200);
    expect([taken.owner, taken.payload]).toEqual(['alice', masked]);
    // Sending back what was read changes neither the payload nor its author.
    await alice.put(path, { payload: taken.payload }).expect(200);
    expect([await payloadSeenBy(alice), await payloadSeenBy(bob)]).toEqual([masked, his]);
  });

  test('in the URL of a webhook are shown to who wrote it', async () => {
    const [alice, bob] = [actor('alice', 'operator', ours), actor('bob', 'operator', ours)];
    const url = (token: string) => `https://hooks.example.net/x?token=${token}`;
    const { id } = await alice
      .post<WebhookRecord>('/api/webhooks', { endpointUrl: url('alice'), eventTypes: '*' })
      .expect(201);
    const seenBy = async (client: TestClient) =>
      (await client.get<WebhookRecord>(`/api/webhooks/${id}`).expect(200)).endpointUrl;
    expect([await seenBy(alice), await seenBy(bob)]).toEqual([url('alice'), url('********')]);
    await bob.put(`/api/webhooks/${id}`, { endpointUrl: url('bob') }).expect(200);
    expect([await seenBy(alice), await seenBy(bob)]).toEqual([url('********'), url('bob')]);
  });

  test('in the payload of a job are shown to who sent it, not to whom it names as creator', async () => {
    const root = actor('root', 'platform-admin', ours);
    const { id } = await root
      .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: hers, createdBy: 'bob' })
      .expect(201);
    const seenBy = async (client: TestClient) =>
      (await client.get<JobRecord>(`/api/jobs/${id}`).expect(200)).payload;
    expect([await seenBy(root), await seenBy(actor('bob', 'operator', ours))]).toEqual([
      ...[hers, masked],
    ]);
  });
});

test('a tenant does not reserve names of custom fields against the platform', async () => {
  const root = actor('root', 'platform-admin');
  const make = recordFactory(() => root);
  for (const id of [ours, theirs]) await make('tenants', { id, name: id });
  const [alice, mallory] = [actor('alice', 'operator', ours), actor('mallory', 'operator', theirs)];
  const field = { resource: 'regions', name: `field_${count}` };
  const path = '/api/inventory/custom-fields';
  const valued = (value: unknown) => ({
    name: `r-${Math.random()}`,
    customFields: { [field.name]: value },
  });
  const reserved = await mallory
    .post<InventoryRecord>(path, { ...field, type: 'text' })
    .expect(201);
  const stored = await mallory.post<InventoryRecord>('/api/inventory/regions', valued('text'));
  const { id } = await make('custom-fields', { ...field, type: 'integer' });

  // It holds for all, whatever a tenant has defined and stored.
  for (const tenant of [alice, mallory]) {
    await tenant.post('/api/inventory/regions', valued(1)).expect(201);
    await tenant.post('/api/inventory/regions', valued('text')).expect(400);
  }
  await mallory
    .put(`/api/inventory/regions/${stored.body.id}`, { description: 'kept' })
    .expect(200);
  // Its readers know which definitions hold, and why they cannot define theirs.
  const { items } = await alice
    .get<{ items: InventoryRecord[] }>(`${path}?shared=true&name=${field.name}`)
    .expect(200);
  expect(items.map((each) => each.id)).toEqual([id]);
  await alice.get(`${path}/${id}`).expect(200);
  await alice.get(`${path}/${reserved.id}`).expect(404);
  expect((await alice.put(`${path}/${id}`, { required: true })).status).toBe(403);
  const { conflicts } = await alice.post<ProblemBody>(path, { ...field, type: 'text' }).expect(409);
  expect(conflicts).toMatchObject([{ code: 'duplicate', id }]);
  // What has no effect can be deleted, whatever has values.
  await mallory.delete(`${path}/${reserved.id}`).expect(204);
});

test('values under definitions of tenants do not keep a definition of the platform', async () => {
  const root = actor('root', 'platform-admin');
  const make = recordFactory(() => root);
  for (const id of [ours, theirs]) await make('tenants', { id, name: id });
  const [alice, mallory] = [actor('alice', 'operator', ours), actor('mallory', 'operator', theirs)];
  const field = { resource: 'regions', name: `kept_${count}` };
  const path = '/api/inventory/custom-fields';
  const region = (value: unknown) => ({
    name: `k-${Math.random()}`,
    customFields: { [field.name]: value },
  });
  const regions = '/api/inventory/regions';
  await mallory.post(path, { ...field, type: 'text' }).expect(201);
  await mallory.post(regions, region('text')).expect(201);
  const { id } = await make('custom-fields', { ...field, type: 'integer' });
  await mallory.post(regions, region(1)).expect(201);
  const valued = await alice.post<InventoryRecord>(regions, region(1)).expect(201);

  // Only a value that no other definition holds for.
  const { conflicts } = await root.delete<ProblemBody>(`${path}/${id}`).expect(409);
  expect(conflicts).toMatchObject([{ code: 'in_use', id: valued.id }]);
  const removal = { resource: 'custom-fields', operation: 'delete', record: { id } };
  const cleared = { id: valued.id, customFields: { [field.name]: null } };
  await root
    .post('/api/inventory/bulk', {
      mutations: [{ resource: 'regions', operation: 'update', record: cleared }, removal],
    })
    .expect(200);
  await mallory.post(regions, region('text')).expect(201);
  await mallory.post(regions, region(1)).expect(400);
});
