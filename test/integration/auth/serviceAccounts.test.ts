import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type {
  CurrentToken,
  ServiceAccountRecord,
  TokenRecord,
  TokenWithSecret,
} from '../../../api/auth/tokenSchemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { createTokenKeeper } from '../../../services/auth/apiTokens/keeper.ts';
import { token as tokenCommand } from '../../../processes/cli/token.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient, TestResponse } from '../../support/client.ts';
import { runHere } from '../../support/commands.ts';
import { expectInvalid, expectProblem } from '../../support/problem.ts';
import { createToken, textOf } from '../../support/tokens.ts';
import { admin, createUser, seedTenant, type Page, type TestUser } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' });
  root = admin(app);
});
afterAll(() => app.stop());

type Five<T> = [T, T, T, T, T];
const bearer = (token: string) => app.client.as({ token });
const echo = { type: 'core.echo', payload: {} };

describe('service accounts', () => {
  const change = {
    type: 'change',
    title: 'a request',
    payload: {},
    assignedUserIds: [],
    assignedRoleIds: ['platform-admin', 'approver'],
  };
  const create = (body: object, client = root) =>
    client.post<ServiceAccountRecord>('/api/service-accounts', body);
  const request = async (by: TestClient) =>
    (await by.post<{ id: string }>('/api/workflows', change).expect(201)).id;
  const approve = (by: TestClient, id: string) =>
    by.post<ProblemBody>(`/api/workflows/${id}/approve`, {});
  const isRefused = (code: string) => (answer: TestResponse<ProblemBody>) =>
    expect([answer.status, answer.body.code]).toEqual([403, code]);

  test('have tokens each: a cursor of the list of one is none of another', async () => {
    const { client } = await createUser(app, 'platform-admin');
    const tokensOf = async (name: string) => {
      const { id } = await create({ name, displayName: name }, client).expect(201);
      const tokens = `/api/service-accounts/${id}/tokens`;
      for (const each of ['one', 'two']) await client.post(tokens, { name: each }).expect(201);
      return tokens;
    };
    const [first, second] = [await tokensOf('first-ci'), await tokensOf('second-ci')];
    const page = await client.get<Page<TokenRecord>>(`${first}?limit=1`).expect(200);
    const next = `?limit=1&cursor=${String(page.nextCursor)}`;
    expect((await client.get<Page<TokenRecord>>(first + next).expect(200)).items).toHaveLength(1);
    await expectInvalid(client.get(second + next), '/cursor');
    await expectInvalid(client.get(`/api/auth/tokens${next}`), '/cursor');
  });

  test('work by tokens with the roles they are assigned, but never decide approvals', async () => {
    const person = await createUser(app, 'platform-admin');
    const account = await create({ name: 'ci', displayName: 'Pipelines' }, person.client).expect(
      201,
    );
    expect(account).toMatchObject({ ownerId: person.id, enabled: true, tenantId: 'platform' });
    const tokens = `/api/service-accounts/${account.id}/tokens`;
    const made = await person.client
      .post<TokenWithSecret>(tokens, { name: 'pipeline' })
      .expect(201);
    expect(textOf(made)).toMatch(/^hfv_/);
    const client = bearer(textOf(made));
    await expectProblem(client.post('/api/jobs', echo), 403, 'permission_denied');
    for (const roleId of ['operator', 'approver'])
      await root.post('/api/rbac/assignments', { userId: account.id, roleId }).expect(201);
    const job = await client.post<JobRecord>('/api/jobs', echo).expect(201);
    expect(job.createdBy).toBe(account.id);
    const { heldPermissions } = await client.get<CurrentToken>('/api/auth/token').expect(200);
    expect(heldPermissions).toContain('workflow:write');
    expect(heldPermissions).not.toContain('workflow:approve');
    const explained = await root
      .get<{ allowed: boolean }>(
        `/api/rbac/explain?userId=${account.id}&permission=workflow:approve`,
      )
      .expect(200);
    expect(explained.allowed).toBe(false);
    const list = await root.get<Page<TokenRecord>>(tokens).expect(200);
    expect(list.items.map(({ id }) => id)).toEqual([made.id]);
    // What it requests, its owner does not decide.
    await approve(person.client, await request(client)).then(isRefused('self_approval'));
    await approve(client, await request(root)).then(isRefused('permission_denied'));
    await root.put(`/api/service-accounts/${account.id}`, { enabled: false }).expect(200);
    await expectProblem(client.get('/api/jobs'), 401, 'token_invalid');
  });

  test('request what nobody decides who has had control of them', async () => {
    const people = [];
    for (let i = 0; i < 5; i++) people.push(await createUser(app, 'platform-admin'));
    const [owner, changer, next, issuer, rotator] = people as Five<TestUser>;
    const account = await create({ name: 'controlled', ownerId: owner.id }).expect(201);
    await root
      .post('/api/rbac/assignments', { userId: account.id, roleId: 'operator' })
      .expect(201);
    const tokens = `/api/service-accounts/${account.id}/tokens`;
    const issued = await issuer.client.post<TokenWithSecret>(tokens, { name: 'x' }).expect(201);
    const client = bearer(textOf(issued));
    const changeOwner = (by: TestClient, ownerId: string) =>
      by.put(`/api/service-accounts/${account.id}`, { ownerId }).expect(200);
    /** Made before the first change, between the changes, and after all of them. */
    const requests = [await request(client)];
    // An owner who leaves, and someone who passes the account on.
    await changeOwner(owner.client, changer.id);
    requests.push(await request(client));
    await changeOwner(changer.client, next.id);
    await changeOwner(app.client.as({ actor: 'Passer', roles: 'platform-admin' }), next.id);
    await changeOwner(app.client.as({ actor: 'Passer', roles: 'platform-admin' }), owner.id);
    // A program of someone else's passes it on, too.
    const program = await create({ name: 'passes-on', ownerId: rotator.id }).expect(201);
    await root
      .post('/api/rbac/assignments', { userId: program.id, roleId: 'platform-admin' })
      .expect(201);
    const made = await root
      .post<TokenWithSecret>(`/api/service-accounts/${program.id}/tokens`, { name: 'y' })
      .expect(201);
    await changeOwner(bearer(textOf(made)), next.id);
    requests.push(await request(client));
    const passer = app.client.as({ actor: 'PASSER', roles: 'platform-admin,approver' });
    for (const id of requests) {
      for (const { client: by } of people) await approve(by, id).then(isRefused('self_approval'));
      await approve(passer, id).then(isRefused('self_approval'));
    }
    const another = await createUser(app, 'platform-admin');
    for (const id of requests) expect((await approve(another.client, id)).status).toBe(200);
    // Who replaces a secret knows it.
    const rotate = `/api/auth/tokens/${issued.id}/rotate`;
    const fresh = await another.client.post<TokenWithSecret>(rotate, {}).expect(200);
    const id = await request(bearer(textOf(fresh)));
    await approve(another.client, id).then(isRefused('self_approval'));
  });

  test('are neither users who sign in nor assignees of requests', async () => {
    const person = await createUser(app);
    const account = await create({ name: 'exporter', ownerId: person.id }).expect(201);
    await expectProblem(root.get(`/api/users/${account.id}`), 404, 'not_found');
    await expectProblem(
      app.client
        .as({ token: null })
        .post('/api/auth/login/local', { username: 'exporter', password: 'correct horse battery' }),
      401,
      'login_failed',
    );
    await expectInvalid(
      root.post('/api/workflows', {
        type: 'change',
        title: 'x',
        payload: {},
        assignedUserIds: [account.id],
        assignedRoleIds: ['approver'],
      }),
      '/assignedUserIds/0',
    );
    await expectProblem(create({ name: 'EXPORTER', ownerId: person.id }), 409, 'conflict');
    const other = await create({ name: 'Översikt', ownerId: person.id }).expect(201);
    await expectProblem(create({ name: 'översikt', ownerId: person.id }), 409, 'conflict');
    await expectProblem(
      root.put(`/api/service-accounts/${other.id}`, { name: 'exPorter' }),
      409,
      'conflict',
    );
    await expectInvalid(create({ name: 'no-owner' }), '/ownerId');
    await expectInvalid(create({ name: 'x', ownerId: account.id }), '/ownerId');
    const found = await root
      .get<Page<ServiceAccountRecord>>('/api/service-accounts?name=Exporter')
      .expect(200);
    expect(found.items.map(({ id }) => id)).toEqual([account.id]);
    expect(
      await root
        .get('/api/service-accounts?q=xport&count=true&facets=enabled&fields=name')
        .expect(200),
    ).toEqual({
      items: [{ id: account.id, name: found.items[0]?.name }],
      nextCursor: null,
      count: { value: 1, exact: true },
      facets: { enabled: { values: [{ value: true, count: 1 }], exact: true, others: 0 } },
    });
    await root
      .put(`/api/service-accounts/${account.id}`, { name: 'renamed', tenantId: 'platform' })
      .expect(200);
  });

  test('get tokens only from callers who hold what the account holds', async () => {
    const person = await createUser(app);
    const account = await create({ name: 'strong', ownerId: person.id }).expect(201);
    await root
      .post('/api/rbac/assignments', { userId: account.id, roleId: 'platform-admin' })
      .expect(201);
    await root
      .post('/api/rbac/roles', {
        id: 'account-admin',
        name: 'Accounts',
        permissions: ['user:read', 'user:write'],
      })
      .expect(201);
    const helper = await createUser(app, 'account-admin');
    const tokens = `/api/service-accounts/${account.id}/tokens`;
    await expectProblem(helper.client.post(tokens, { name: 'mine' }), 403, 'permission_denied');
    const made = await root.post<TokenWithSecret>(tokens, { name: 'x' }).expect(201);
    await expectProblem(
      helper.client.post(`/api/auth/tokens/${made.id}/rotate`, {}),
      403,
      'permission_denied',
    );
    await expectProblem(
      helper.client.put(`/api/service-accounts/${account.id}`, { ownerId: helper.id }),
      403,
      'permission_denied',
    );
    await helper.client.delete(`/api/auth/tokens/${made.id}`).expect(204);
  });

  test('with a token of runners are in the hands of who may make one', async () => {
    const account = await create({ name: 'runners', ownerId: (await createUser(app)).id }).expect(
      201,
    );
    const permissions = ['user:read', 'user:write'];
    await root.post('/api/rbac/roles', { id: 'keeper', name: 'Accounts', permissions }).expect(201);
    await root
      .post('/api/rbac/roles', {
        id: 'runner-keeper',
        name: 'Runners',
        permissions: [...permissions, 'jobtype:write'],
      })
      .expect(201);
    const helper = await createUser(app, 'keeper');
    const may = await createUser(app, 'runner-keeper');
    const tokens = `/api/service-accounts/${account.id}/tokens`;
    const pools = ['edge'];
    await seedTenant(app, 'red');
    await root.post('/api/pools', { name: 'edge' }).expect(201);
    const ofRunners = { name: 'r', pools };
    await expectProblem(helper.client.post(tokens, ofRunners), 403, 'permission_denied');
    const plain = await helper.client.post<TokenWithSecret>(tokens, { name: 'p' }).expect(201);
    const made = await may.client.post<TokenWithSecret>(tokens, ofRunners).expect(201);
    const rotate = (client: TestClient, { id }: TokenRecord) =>
      client.post(`/api/auth/tokens/${id}/rotate`, {});
    const change = (client: TestClient, body: object) =>
      client.put(`/api/service-accounts/${account.id}`, body);
    const doors: ((client: TestClient) => ReturnType<typeof rotate>)[] = [
      (client) => rotate(client, made),
      (client) => change(client, { enabled: true }),
      (client) => change(client, { tenantId: 'red' }),
      (client) => change(client, { ownerId: helper.id }),
    ];
    await change(helper.client, { enabled: false }).expect(200);
    const statusesOf = async (client: TestClient) => {
      const statuses = [];
      for (const door of doors) statuses.push((await door(client)).status);
      return statuses;
    };
    expect(await statusesOf(helper.client)).toEqual([403, 403, 403, 403]);
    expect(await statusesOf(may.client)).toEqual([200, 200, 200, 200]);
    await rotate(helper.client, plain).expect(200);
    // What is revoked runs nothing.
    await helper.client.delete(`/api/auth/tokens/${made.id}`).expect(204);
    await change(helper.client, { enabled: true, ownerId: may.id }).expect(200);
  });
});

test('a token with metrics:read at the platform reads the metrics, whatever the client', async () => {
  const proxied = { 'x-forwarded-for': '192.0.2.7' };
  const owner = await createUser(app, 'auditor');
  const metrics = (permissions: string[]) =>
    createToken(app, owner, { permissions }).then(({ client }) => client.get('/metrics', proxied));
  expect((await metrics(['metrics:read'])).status).toBe(200);
  expect((await metrics(['audit:read'])).status).toBe(404);
  const ofTenant = await createToken(
    app,
    await createUser(app, { roleId: 'platform-admin', tenantId: 'red' }),
  );
  expect((await ofTenant.client.get('/metrics', proxied)).status).toBe(404);
  expect((await bearer('hft_x').get('/metrics', proxied)).status).toBe(404);
});

test('a token that was rotated is not disabled as unused', async () => {
  const { id: ownerId } = await createUser(app, 'operator');
  const account = await root
    .post<ServiceAccountRecord>('/api/service-accounts', {
      name: 'quarterly',
      displayName: 'Q',
      ownerId,
    })
    .expect(201);
  const tokens = `/api/service-accounts/${account.id}/tokens`;
  const create = (name: string) => root.post<TokenWithSecret>(tokens, { name }).expect(201);
  const [kept, unused] = [await create('kept'), await create('unused')];
  const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);
  const { db } = app.deps;
  await db('tokens')
    .whereIn('id', [kept.id, unused.id])
    .update({ created_at: daysAgo(200), last_used_at: daysAgo(91), rotated_at: daysAgo(100) });
  await root.post(`/api/auth/tokens/${kept.id}/rotate`, {}).expect(200);
  await createTokenKeeper(app.deps)(new AbortController().signal);
  const { items } = await root.get<Page<TokenRecord>>(tokens).expect(200);
  expect(Object.fromEntries(items.map(({ name, status }) => [name, status]))).toEqual({
    kept: 'active',
    unused: 'disabled',
  });
});

test('npm run token', async () => {
  const run = (...args: string[]) => runHere(app, tokenCommand, ...args);
  const create = ['create', '--service', 'robot', '--permissions', 'job:write'];
  const made = await run(...create, '--role', 'operator', '--days', '30');
  expect(made.status).toBe(0);
  const [, secret = ''] = /^Secret +(\S+)$/m.exec(made.text) ?? [];
  const [, id = ''] = /^Token +(tok_\w+)/m.exec(made.text) ?? [];
  await bearer(secret).post('/api/jobs', echo).expect(201);
  const again = await run(...create, '--role', 'operator', '--read-only');
  expect([again.status, again.text]).toEqual([0, expect.stringContaining('exists')]);
  expect((await run('list', '--service', 'robot')).text).toMatch(new RegExp(`^${id}  active`, 'm'));
  expect((await run('revoke', id)).status).toBe(0);
  await expectProblem(bearer(secret).get('/api/jobs'), 401, 'token_invalid');
  expect((await run('list', '--service', 'robot')).text).toMatch(
    new RegExp(`^${id}  revoked`, 'm'),
  );
  const other = id.replace(/.$/, (last) => (last === 'x' ? 'y' : 'x'));
  expect((await run('revoke', other)).status).toBe(1);
  for (const wrong of [
    ['create'],
    ['create', '--service', 'x', '--permissions', 'job:fly'],
    ['create', '--service', 'x', '--days', 'soon'],
    ['list', '--unknown'],
    ['revoke'],
  ])
    expect((await run(...wrong)).status).toBe(2);
});
