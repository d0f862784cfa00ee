import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from '../../support/users.ts';
import type { PermissionSummary } from '../../../api/access/routes.ts';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type {
  CurrentToken,
  ServiceAccountRecord,
  TokenRecord,
  TokenWithSecret,
} from '../../../api/auth/tokenSchemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { allRoutes } from '../../../api/app.ts';
import { findTokenByHash, findTokenState } from '../../../db/auth/tokens.ts';
import { findUserAuthState } from '../../../db/access/access.ts';
import { hashToken } from '../../../services/auth/hashToken.ts';
import { createTokenKeeper } from '../../../services/auth/apiTokens/keeper.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { expectInvalid, expectProblem } from '../../support/problem.ts';
import { expectRowShape } from '../../support/rowShape.ts';
import { createToken as createTokenOf, textOf } from '../../support/tokens.ts';
import { admin, createUser, seedSiteAndDevice, type TestUser } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api', HOLDFAST_TOKEN_REQUESTS_PER_MINUTE: '1000' });
  root = admin(app);
});
afterAll(() => app.stop());

const bearer = (token: string) => app.client.as({ token });
const createToken = (user: TestUser, request?: object) => createTokenOf(app, user, request);
const PLATFORM_OPERATOR = 'operator';
const red = { roleId: 'operator', tenantId: 'red' };
const blue = { roleId: 'operator', tenantId: 'blue' };
const echo = { type: 'core.echo', payload: {} };
const TENANT = 'x-service-tenant-id';
const ROLES = 'x-service-role-ids';
const ACTOR = 'x-service-actor-id';
const RESOURCE_SCOPES = '/resourceScopes';
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

describe('a token', () => {
  test('is returned once, works as its owner, and is stored as a hash only', async () => {
    const owner = await createUser(app, red);
    const { client, text, ...token } = await createToken(owner);
    expect(text).toMatch(/^hft_[0-9A-Za-z]{49}$/);
    expect(token).toMatchObject({ kind: 'personal', userId: owner.id, status: 'active' });
    const job = await client.post<JobRecord>('/api/jobs', echo).expect(201);
    expect(job).toMatchObject({ createdBy: owner.id, tenantId: 'red' });
    const entries = await root
      .get<Page<AuditEntryRecord>>(`/api/audit?subjectId=${job.id}&action=job.create`)
      .expect(200);
    expect(entries.items).toEqual([
      expect.objectContaining({ actorId: owner.id, via: `token:${token.id}` }),
    ]);
    expect(await client.get<CurrentToken>('/api/auth/token').expect(200)).toMatchObject({
      id: token.id,
      heldPermissions: expect.arrayContaining(['job:write']),
    });
    const read = await owner.client.get<object>(`/api/auth/tokens/${token.id}`).expect(200);
    const { db } = app.deps;
    const { rows } = await db.raw(`SELECT string_agg(t::text, ' ') AS text FROM tokens t`);
    const log = JSON.stringify([await db('audit_entries'), await db('events'), read]);
    expect(`${rows[0].text} ${log}`).not.toContain(text);
    expect(Object.keys(read)).not.toContain('token');
  });

  test('is not repeated to a request with the same Idempotency-Key', async () => {
    const owner = await createUser(app, red);
    const key = { 'idempotency-key': 'one' };
    const send = () =>
      owner.client.post<TokenWithSecret>('/api/auth/tokens', { name: 'once' }, key);
    const made = await send().expect(201);
    const again = await send();
    expect([again.status, again.headers.get('idempotent-replayed'), again.body]).toEqual([
      201,
      'true',
      { ...made, token: null },
    ]);
    const stored = JSON.stringify(await app.deps.db('idempotency_keys').where({ key: 'one' }));
    expect(stored).not.toContain(textOf(made));
  });

  test('with a wrong checksum costs no query, and an unknown one is refused', async () => {
    const { text } = await createToken(await createUser(app, red));
    const wrong = text.slice(0, -1) + (text.endsWith('0') ? '1' : '0');
    let queries = 0;
    const count = ({ sql }: { sql: string }) => {
      if (/\bFROM (session_)?tokens\b/.test(sql)) queries += 1;
    };
    app.deps.db.on('query', count);
    await expectProblem(bearer(wrong).get('/api/jobs'), 401, 'token_invalid');
    expect(queries).toBe(0);
    await app.deps
      .db('tokens')
      .where({ hash: hashToken(text) })
      .update({ hash: hashToken('x') });
    await expectProblem(bearer(text).get('/api/jobs'), 401, 'token_invalid');
    app.deps.db.off('query', count);
    expect(queries).toBeGreaterThan(0);
  });

  test('ends when it expires or is revoked, by its owner, by itself or by an administrator', async () => {
    const owner = await createUser(app, red);
    const expired = await createToken(owner);
    await app.deps.db('tokens').where({ id: expired.id }).update({ expires_at: new Date() });
    const byOwner = await createToken(owner);
    await owner.client.delete(`/api/auth/tokens/${byOwner.id}`).expect(204);
    const byItself = await createToken(owner, { readOnly: true });
    await byItself.client.delete('/api/auth/token').expect(204);
    const byOther = await createToken(owner);
    await root.delete(`/api/auth/tokens/${byOther.id}`).expect(204);
    await root.delete(`/api/auth/tokens/${byOther.id}`).expect(204);
    for (const { client } of [expired, byOwner, byItself, byOther])
      await expectProblem(client.get('/api/jobs'), 401, 'token_invalid');
    const list = (status: string) =>
      owner.client.get<Page<TokenRecord>>(`/api/auth/tokens?status=${status}`).expect(200);
    expect((await list('revoked')).items.map(({ id }) => id)).toEqual([
      byOther.id,
      byItself.id,
      byOwner.id,
    ]);
    expect((await list('expired')).items.map(({ id }) => id)).toEqual([expired.id]);
    expect((await list('active')).items).toEqual([]);
    expect((await list('expired,revoked')).items).toHaveLength(4);
    await expectProblem(
      owner.client.put(`/api/auth/tokens/${byOther.id}`, { name: 'again' }),
      409,
      'conflict',
    );
  });

  test('needs all rights of its owner to be made, and no one-time password', async () => {
    const owner = await createUser(app, red);
    const narrowed = { [ROLES]: 'operator' };
    const refused = await owner.client.post('/api/auth/tokens', { name: 'x' }, narrowed);
    expect(refused.body).toMatchObject({ status: 403, code: 'permission_denied' });
    await app.deps.db('users').where({ id: owner.id }).update({ must_change_password: true });
    await expectProblem(
      owner.client.post('/api/auth/tokens', { name: 'x' }),
      403,
      'password_change_required',
    );
  });

  test('must expire, within HOLDFAST_TOKEN_MAX_DAYS', async () => {
    const owner = await createUser(app);
    const { expiresAt } = await createToken(owner);
    expect(Math.round((Date.parse(expiresAt) - Date.now()) / 86_400_000)).toBe(90);
    for (const wrong of [inDays(-1), inDays(368)])
      await expectInvalid(
        owner.client.post('/api/auth/tokens', { name: 'x', expiresAt: wrong }),
        '/expiresAt',
      );
  });

  test('is rotated with an overlap: the same id, both good in the meantime', async () => {
    const owner = await createUser(app, red);
    const { id, client, expiresAt } = await createToken(owner);
    const rotate = (overlapSeconds: number) =>
      owner.client
        .post<TokenWithSecret>(`/api/auth/tokens/${id}/rotate`, { overlapSeconds })
        .expect(200);
    const made = await rotate(3_600);
    expect(made).toMatchObject({ id, expiresAt, status: 'active' });
    const second = bearer(textOf(made));
    await client.get('/api/jobs').expect(200);
    await second.get('/api/jobs').expect(200);
    await app.deps
      .db('tokens')
      .where({ id })
      .update({ previous_valid_until: new Date(Date.now() - 1) });
    await expectProblem(client.get('/api/jobs'), 401, 'token_invalid');
    const third = bearer(textOf(await rotate(0)));
    await expectProblem(second.get('/api/jobs'), 401, 'token_invalid');
    await third.get('/api/jobs').expect(200);
    await expectProblem(root.post(`/api/auth/tokens/${id}/rotate`, {}), 403, 'permission_denied');
  });

  test('makes no tokens, passwords or providers, and has no session', async () => {
    const owner = await createUser(app, 'platform-admin');
    const { id, client } = await createToken(owner);
    const refused = (request: ReturnType<TestClient['post']>) =>
      expectProblem(request, 403, 'token_not_accepted');
    const account = await client
      .post<ServiceAccountRecord>('/api/service-accounts', {
        name: 'made-by-token',
        ownerId: owner.id,
      })
      .expect(201);
    await refused(client.post(`/api/auth/tokens/${id}/rotate`, {}));
    await refused(client.post(`/api/service-accounts/${account.id}/tokens`, { name: 'x' }));
    await refused(client.post('/api/users', { username: 'by-token' }));
    await refused(client.post(`/api/users/${account.id}/reset-password`, {}));
    await refused(client.post('/api/auth/providers', { kind: 'oidc', name: 'x', config: {} }));
    for (const { method, path, session } of allRoutes(app.deps, '0'))
      if (session) await refused(client.send(method, path.replace(/\{\w+\}/g, 'ses_x')));
  });
});

test('tokens reach every route without a session, but those that make secrets or providers', () => {
  const refused = allRoutes(app.deps, 'test')
    .filter(({ refusesTokens, session }) => refusesTokens !== undefined && session === undefined)
    .map(({ method, path }) => `${method} ${path}`);
  expect(refused.sort()).toEqual([
    'DELETE /api/auth/providers/{id}',
    'POST /api/auth/providers',
    'POST /api/auth/providers/{id}/test',
    'POST /api/auth/tokens/{id}/rotate',
    'POST /api/service-accounts/{id}/tokens',
    'POST /api/users',
    'POST /api/users/{id}/reset-password',
    'PUT /api/auth/providers/{id}',
  ]);
});

describe('the scope of a token', () => {
  test('limits permissions, and reading', async () => {
    const owner = await createUser(app, PLATFORM_OPERATOR);
    const jobs = await createToken(owner, { permissions: ['job:read', 'job:write'] });
    await jobs.client.post('/api/jobs', echo).expect(201);
    await expectProblem(jobs.client.get('/api/webhooks'), 403, 'permission_denied');
    await expectProblem(jobs.client.get('/api/workflows'), 403, 'permission_denied');
    const reader = await createToken(owner, { readOnly: true });
    await reader.client.get('/api/webhooks').expect(200);
    await expectProblem(reader.client.post('/api/jobs', echo), 403, 'token_not_accepted');
    await reader.client
      .post('/api/validation/inventory', {
        resource: 'regions',
        operation: 'create',
        record: { name: 'asked' },
      })
      .expect(200);
  });

  test('limits tenants, sites and devices; a site that moves away leaves it', async () => {
    await seedSiteAndDevice(app, { tenant: 'red', site: 'site_red', device: 'device_red' });
    await seedSiteAndDevice(app, { tenant: 'blue', site: 'site_blue' });
    const owner = await createUser(app, red, blue);
    const site = await createToken(owner, { resourceScopes: [{ siteId: 'site_red' }] });
    expect([site.resourceScopes, site.requestTenantId]).toEqual([
      [{ tenantId: 'red', siteId: 'site_red', deviceId: null }],
      'platform',
    ]);
    const sites = (client: TestClient) =>
      client
        .get<Page<{ id: string }>>('/api/inventory/sites')
        .expect(200)
        .then(({ items }) => items.map(({ id }) => id));
    expect(await sites(site.client)).toEqual(['site_red']);
    const tenant = await createToken(owner, { resourceScopes: [{ tenantId: 'red' }] });
    expect(tenant.requestTenantId).toBe('red');
    expect(await sites(tenant.client)).toEqual(['site_red']);
    const device = await createToken(owner, { resourceScopes: [{ deviceId: 'device_red' }] });
    expect(await sites(device.client)).toEqual([]);
    const summary = await device.client.get<PermissionSummary>('/api/rbac/summary').expect(200);
    expect(summary.permissions['inventory:read']).toEqual({
      everywhere: false,
      complete: true,
      tenantIds: [],
      siteIds: [],
      deviceIds: ['device_red'],
    });
    const refused = (resourceScopes: object[], pointer: string) =>
      expectInvalid(owner.client.post('/api/auth/tokens', { name: 'x', resourceScopes }), pointer);
    await refused([{ tenantId: 'red' }, { siteId: 'site_none' }], '/resourceScopes/1/siteId');
    await refused([{}], '/resourceScopes/0');
    // One of a tenant where the owner holds nothing is the same as none.
    await seedSiteAndDevice(app, { tenant: 'green', site: 'site_hidden' });
    await refused([{ siteId: 'site_hidden' }], '/resourceScopes/0/siteId');
    await app.deps.db('sites').where({ id: 'site_red' }).update({ tenant_id: 'blue' });
    await expectProblem(site.client.get('/api/inventory/sites'), 403, 'permission_denied');
    expect(await sites(tenant.client)).toEqual([]);
    // Naming it again would bring it back: the owner holds a role at its tenant, the token does not.
    for (const resourceScopes of [[{ siteId: 'site_red' }], [{ tenantId: 'blue' }]]) {
      const path = `/api/auth/tokens/${site.id}`;
      const widened = await expectInvalid(
        owner.client.put(path, { resourceScopes }),
        RESOURCE_SCOPES,
      );
      expect(widened.errors?.map(({ code }) => code)).toEqual(['widened']);
    }
    await app.deps.db('sites').where({ id: 'site_red' }).update({ tenant_id: 'red' });
  });

  test('limits job types, for jobs, schedules and approvals', async () => {
    const owner = await createUser(app, PLATFORM_OPERATOR);
    const { client } = await createToken(owner, { jobTypes: ['core.*'] });
    await client.post('/api/jobs', echo).expect(201);
    await expectProblem(
      client.post('/api/jobs', { type: 'http.request', payload: { url: 'http://127.0.0.1:9/' } }),
      403,
      'permission_denied',
    );
    const csv = { 'content-type': 'text/csv' };
    await expectProblem(
      client.post('/api/inventory/import?resource=sites', 'name\na\n', csv),
      403,
      'permission_denied',
    );
    const cron = { cronExpression: '0 3 1 1 *', jobType: 'http.request' };
    const payload = { url: 'http://127.0.0.1:9/' };
    const schedule = await client
      .post<ScheduleRecord>('/api/schedules', { name: 'not-my-type', ...cron, payload })
      .expect(201);
    expect(schedule.warnings).toEqual([expect.objectContaining({ code: 'owner_denied' })]);
    await expectProblem(
      client.post(`/api/schedules/${schedule.id}/trigger`),
      403,
      'permission_denied',
    );
    await expectProblem(
      client.post('/api/workflows', {
        type: 'change',
        title: 'a request',
        payload: {},
        assignedUserIds: [],
        assignedRoleIds: ['approver'],
        jobType: 'http.request',
        jobPayload: payload,
      }),
      403,
      'permission_denied',
    );
  });

  test('that limits job types hands out no roles, which have no such limit', async () => {
    const owner = await createUser(app, 'platform-admin');
    const other = await createUser(app);
    const assignment = { userId: other.id, roleId: 'operator', tenantId: 'platform' };
    const limited = await createToken(owner, { jobTypes: ['core.*'] });
    await expectProblem(
      limited.client.post('/api/rbac/assignments', assignment),
      403,
      'permission_denied',
    );
    const { client } = await createToken(owner, {});
    await client.post('/api/rbac/assignments', assignment).expect(201);
  });

  test('is narrowed and never widened', async () => {
    const owner = await createUser(app, red, blue);
    const token = await createToken(owner, {
      permissions: ['job:read', 'job:write'],
      resourceScopes: [{ tenantId: 'red' }],
      jobTypes: ['core.*'],
      allowedNetworks: ['127.0.0.0/8'],
      requestsPerMinute: 100,
      expiresAt: inDays(30),
    });
    const path = `/api/auth/tokens/${token.id}`;
    for (const [field, value] of Object.entries({
      permissions: ['job:read', 'job:cancel'],
      resourceScopes: [{ tenantId: 'red' }, { tenantId: 'blue' }],
      jobTypes: null,
      allowedNetworks: ['0.0.0.0/0'],
      requestsPerMinute: 101,
      expiresAt: inDays(31),
    })) {
      const problem = await expectInvalid(owner.client.put(path, { [field]: value }), `/${field}`);
      expect(problem.errors?.map(({ code }) => code)).toEqual(['widened']);
    }
    const stale = { 'if-match': '"1"' };
    const narrowed = await owner.client
      .put<TokenRecord>(path, { permissions: ['job:read'], readOnly: true, name: 'less' }, stale)
      .expect(200);
    expect(narrowed).toMatchObject({ permissions: ['job:read'], name: 'less', version: 2 });
    await expectProblem(owner.client.put(path, { name: 'x' }, stale), 412, 'version_conflict');
    await expectProblem(token.client.post('/api/jobs', echo), 403, 'token_not_accepted');
    await expectInvalid(owner.client.put(path, { readOnly: false }), '/readOnly');
    await expectInvalid(owner.client.put(path, { userId: 'usr_x' }), '/userId');
    const other = await createUser(app, red);
    await expectProblem(other.client.get(path), 404, 'not_found');
    await expectProblem(other.client.put(path, { name: 'x' }), 404, 'not_found');
    // Callers who may change the account may narrow its tokens.
    await root.put(path, { name: 'by an administrator' }).expect(200);
  });

  test('limits the addresses; a refusal is audited', async () => {
    const { id, client } = await createToken(await createUser(app, red), {
      allowedNetworks: ['192.0.2.0/24', '2001:db8::/32'],
    });
    await expectProblem(client.get('/api/jobs'), 403, 'address_not_allowed');
    const forwarded = { 'x-forwarded-for': '192.0.2.7' };
    await client.get('/api/jobs', forwarded).expect(200);
    const denied = await root
      .get<Page<AuditEntryRecord>>(`/api/audit?subjectId=${id}&outcome=denied`)
      .expect(200);
    expect(denied.items.map(({ action, via }) => [action, via])).toEqual([
      ['token.address', `token:${id}`],
    ]);
    await expectInvalid(
      (await createUser(app)).client.post('/api/auth/tokens', {
        name: 'x',
        allowedNetworks: ['10.0.0.0/8', '10.20/16'],
      }),
      '/allowedNetworks/1',
    );
  });

  test('limits the requests a minute', async () => {
    const { client } = await createToken(await createUser(app, red), { requestsPerMinute: 2 });
    await client.get('/api/jobs').expect(200);
    await client.get('/api/jobs').expect(200);
    const refused = await client.get('/api/jobs');
    expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([
      429,
      expect.any(Number),
    ]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  });
});

describe('the rights of a token are those of its owner at that moment', () => {
  test('it loses a role, and gets another one', async () => {
    const owner = await createUser(app, red);
    const { client } = await createToken(owner);
    await client.post('/api/jobs', echo).expect(201);
    const assignments = await root
      .get<Page<{ id: string }>>(`/api/rbac/assignments?userId=${owner.id}`)
      .expect(200);
    await root.delete(`/api/rbac/assignments/${assignments.items[0]?.id}`).expect(204);
    await expectProblem(client.post('/api/jobs', echo), 403, 'permission_denied');
    await app.client
      .as({ actor: 'root', roles: 'platform-admin', tenant: 'red' })
      .post('/api/rbac/assignments', { userId: owner.id, ...red })
      .expect(201);
    await client.post('/api/jobs', echo).expect(201);
  });

  test('it is disabled, and moves to another tenant', async () => {
    const owner = await createUser(app, red);
    const { id, client } = await createToken(owner);
    await root.put(`/api/users/${owner.id}`, { enabled: false }).expect(200);
    await expectProblem(client.get('/api/jobs'), 401, 'token_invalid');
    await root.put(`/api/users/${owner.id}`, { enabled: true }).expect(200);
    await client.get('/api/jobs').expect(200);
    const blueAdmin = app.client.as({ actor: 'bo', roles: 'platform-admin', tenant: 'blue' });
    const own = await createUser(app);
    await app.deps.db('users').where({ id: own.id }).update({ tenant_id: 'red' });
    const moving = await createToken(own);
    await expectProblem(blueAdmin.get(`/api/auth/tokens/${moving.id}`), 404, 'not_found');
    await app.deps.db('users').where({ id: own.id }).update({ tenant_id: 'blue' });
    const moved = await blueAdmin.get<TokenRecord>(`/api/auth/tokens/${moving.id}`).expect(200);
    expect(moved.tenantId).toBe('blue');
    await blueAdmin.delete(`/api/auth/tokens/${moving.id}`).expect(204);
    await expectProblem(blueAdmin.get(`/api/auth/tokens/${id}`), 404, 'not_found');
  });

  test('jobs and schedules keep the token: its scope and its end by revocation, not its expiry', async () => {
    const owner = await createUser(app, red);
    const scope = { permissions: ['job:read', 'job:write', 'schedule:write'] };
    const { id, client } = await createToken(owner, scope);
    const job = await client.post<JobRecord>('/api/jobs', echo).expect(201);
    const schedule = await client
      .post<ScheduleRecord>('/api/schedules', {
        name: 'by token',
        cronExpression: '0 3 1 1 *',
        jobType: 'core.echo',
      })
      .expect(201);
    const { db, rights } = app.deps;
    const authorities = async () => [
      (await db('jobs').where({ id: job.id }).first('authority')).authority,
      (await db('schedules').where({ id: schedule.id }).first('owner')).owner,
    ];
    const held = async () => {
      const all = [];
      for (const authority of await authorities()) {
        const { grants } = await rights.forAuthority(authority);
        all.push(grants.map(({ role }) => [...role.permissions].sort()));
      }
      return all;
    };
    for (const authority of await authorities())
      expect(authority).toEqual({ actorId: owner.id, userId: owner.id, tokenId: id });
    const expected = [[[...scope.permissions].sort()], [[...scope.permissions].sort()]];
    expect(await held()).toEqual(expected);
    await db('tokens')
      .where({ id })
      .update({ expires_at: new Date(0) });
    expect(await held()).toEqual(expected);
    await owner.client.delete(`/api/auth/tokens/${id}`).expect(204);
    expect(await held()).toEqual([[], []]);
  });
});

describe('identity headers with a token', () => {
  test('choose the tenant, narrow to roles and must name the caller', async () => {
    const owner = await createUser(app, red, { roleId: 'viewer', tenantId: 'blue' });
    const { id, client } = await createToken(owner, {
      resourceScopes: [{ tenantId: 'red' }, { tenantId: 'blue' }],
    });
    const all = { [TENANT]: 'red', [ROLES]: 'operator', [ACTOR]: owner.username };
    const job = await client.post<JobRecord>('/api/jobs', echo, all).expect(201);
    expect(job.tenantId).toBe('red');
    const { authority } = await app.deps.db('jobs').where({ id: job.id }).first('authority');
    expect(authority).toEqual({
      actorId: owner.id,
      userId: owner.id,
      roleIds: ['operator'],
      tokenId: id,
    });
    await expectProblem(
      client.post('/api/jobs', echo, { ...all, [TENANT]: 'blue' }),
      403,
      'permission_denied',
    );
    for (const wrong of [
      { [TENANT]: 'green' },
      { [ROLES]: 'platform-admin' },
      { [ACTOR]: 'another' },
    ])
      await expectProblem(client.get('/api/jobs', wrong), 400, 'identity_mismatch');
    const redOnly = await createToken(owner, { resourceScopes: [{ tenantId: 'red' }] });
    await expectProblem(
      redOnly.client.get('/api/jobs', { [TENANT]: 'blue' }),
      400,
      'identity_mismatch',
    );
  });
});

describe('the keeper', () => {
  const keep = () => createTokenKeeper(app.deps)(new AbortController().signal);
  const eventsOf = async (id: string) =>
    app.deps.db('events').where({ subject_id: id }).orderBy('id').pluck('type');

  test('reports tokens that expire soon, once', async () => {
    const owner = await createUser(app, red);
    const soon = await createToken(owner);
    const later = await createToken(owner);
    const short = await createToken(owner, { expiresAt: inDays(1) });
    await app.deps
      .db('tokens')
      .where({ id: soon.id })
      .update({ expires_at: inDays(6) });
    await keep();
    await keep();
    expect(await eventsOf(soon.id)).toEqual(['token.expiring']);
    expect([await eventsOf(later.id), await eventsOf(short.id)]).toEqual([[], []]);
  });

  test('disables tokens that are not used, and last uses are noted once a minute', async () => {
    const owner = await createUser(app, red);
    const [used, unused] = [await createToken(owner), await createToken(owner)];
    const old = new Date(Date.now() - 91 * 86_400_000);
    await app.deps.db('tokens').whereIn('id', [used.id, unused.id]).update({ created_at: old });
    await used.client.get('/api/jobs').expect(200);
    await app.deps.tokenUses.flush();
    const first = await owner.client.get<TokenRecord>(`/api/auth/tokens/${used.id}`).expect(200);
    expect(first.lastUsedAddress).toBe('127.0.0.1');
    await used.client.get('/api/jobs').expect(200);
    await app.deps.tokenUses.flush();
    const second = await owner.client.get<TokenRecord>(`/api/auth/tokens/${used.id}`).expect(200);
    expect(second.lastUsedAt).toBe(first.lastUsedAt);
    await keep();
    await used.client.get('/api/jobs').expect(200);
    await expectProblem(unused.client.get('/api/jobs'), 401, 'token_invalid');
    expect(await eventsOf(unused.id)).toEqual(['token.unused']);
  });
});

test('raw queries return the columns that their types declare', async () => {
  const { db } = app.deps;
  const { id, text, userId } = await createToken(await createUser(app, red));
  const shape = {
    id: 'string',
    kind: 'string',
    pools: 'nullable',
    userId: 'string',
    tenantId: 'string',
    requestTenantId: 'string',
    permissions: 'nullable',
    resourceScopes: 'nullable',
    jobTypes: 'nullable',
    readOnly: 'boolean',
    allowedNetworks: 'nullable',
    requestsPerMinute: 'nullable',
    expiresAt: 'date',
    previousValidUntil: 'nullable',
    lastUsedAt: 'nullable',
    disabledAt: 'nullable',
    revokedAt: 'nullable',
    enabled: 'boolean',
    providerId: 'string',
    externalGroups: 'json',
    version: 'number',
  } as const;
  expectRowShape(await findTokenByHash(db, hashToken(text)), shape);
  expectRowShape(await findTokenState(db, id), shape);
  expect((await findUserAuthState(db, userId))?.enabled).toBe(true);
});
