import { describe, expect, test } from '@jest/globals';
import { allRoutes } from '../../api/app.ts';
import type { TokenWithSecret } from '../../api/auth/tokenSchemas.ts';
import { compileReferences } from '../../api/http/references.ts';
import type { Route } from '../../api/http/route.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { LabelKind, Names } from '../../domain/shared/labels.ts';
import type { TestApp } from '../support/app.ts';
import { pathOf, targetOf } from '../support/attacks/routes.ts';
import {
  seedAccount,
  type SharedEstate,
  type TenantEstate,
} from '../support/attacks/tenantEstate.ts';
import { isThorough } from '../support/effort.ts';
import { idOfNone, learned } from '../support/attacks/answers.ts';
import { dumpOutside, inParallel } from '../support/attacks/tenantRows.ts';
import { leaksOfAcme, withTwoTenants } from '../support/attacks/twoTenants.ts';
import type { TestClient, TestResponse } from '../support/client.ts';

/**
 * People of beta, with each of five roles, through a gateway and with an API token, send a request to every route with an id, for a record of acme: the answer is
 * the one for a record that does not exist, has nothing of acme, and changes nothing outside beta. Routes come from the
 * registry: a new one needs a line in
 * `test/support/attacks/routes.ts`. Public routes are for strangers, who belong to no tenant.
 */
const ROLES = ['platform-admin', 'operator', 'approver', 'auditor', 'viewer'];

let app: TestApp;
let routes: Route[];
let acme: TenantEstate;
let beta: TenantEstate;
let shared: SharedEstate;
let callers: { name: string; client: TestClient }[];
let ofAcme: ReadonlySet<string>;

withTwoTenants(async (fixture) => {
  ({ app, acme, beta, shared, ofAcme } = fixture);
  routes = allRoutes(app.deps, 'test').filter(
    ({ path, public: isPublic }) => path.includes('{') && isPublic === undefined,
  );
  const accounts = ROLES.map(async (roleId) => {
    const account = { username: `beta-${roleId}`, roleId, tenantId: 'beta' };
    return { name: `account ${roleId}`, client: (await seedAccount(app, account)).client };
  });
  // With the other roles, a token has the rights of its account.
  const tokens = ROLES.slice(0, isThorough() ? ROLES.length : 1).map(async (roleId) => {
    const account = { username: `beta-token-${roleId}`, roleId, tenantId: 'beta' };
    const { client } = await seedAccount(app, account);
    const made = await client
      .post<TokenWithSecret>('/api/auth/tokens', { name: roleId })
      .expect(201);
    return { name: `token ${roleId}`, client: app.client.as({ token: made.token }) };
  });
  callers = [
    // With the other roles, a gateway's caller has the rights of an account.
    ...ROLES.slice(0, isThorough() ? ROLES.length : 1).map((roles) => ({
      name: `gateway ${roles}`,
      client: app.client.as({ actor: `mallory-${roles}`, roles, tenant: 'beta' }),
    })),
    ...(await Promise.all([...accounts, ...tokens])),
  ];
});

type Attack = { route: Route; id: string; isShared: boolean };

function attackOn(route: Route): Attack {
  const own = targetOf(route, acme);
  return own === undefined
    ? { route, id: assertDefined(targetOf(route, shared), route.path), isShared: true }
    : { route, id: own, isShared: false };
}

const send = ({ route }: Attack, client: TestClient, id: string): Promise<TestResponse> =>
  client.send(
    route.method,
    pathOf(route, id),
    route.method === 'GET' ? undefined : (route.example ?? (route.body ? {} : undefined)),
  );

/** What is wrong with the answers to one attack of one caller. */
async function judge(attack: Attack, client: TestClient): Promise<unknown> {
  const answer = await send(attack, client, attack.id);
  const text = learned(answer, attack.id);
  const found = leaksOfAcme(text, ofAcme);
  if (found.length > 0) return { found, text };
  // Without a session there are no sessions.
  const isRefused = [403, 404, ...(attack.route.session ? [401] : [])].includes(answer.status);
  if (attack.isShared) {
    const isRead = attack.route.method === 'GET' && answer.status === 200;
    return isRefused || isRead ? undefined : text;
  }
  // Sessions and headers have the same rights: comparing for one of them is enough.
  if (!isRefused || !('authorization' in client.identity)) return isRefused ? undefined : text;
  const id = idOfNone(attack.id);
  const other = learned(await send(attack, client, id), id);
  return text === other ? undefined : { exists: text, missing: other };
}

describe('records of another tenant', () => {
  test('do not exist for any role, on any route, and nothing is written', async () => {
    const attacks = routes.map(attackOn);
    const before = await dumpOutside(app.deps.db, 'beta');
    const wrong: unknown[] = [];
    await inParallel(
      callers.flatMap((caller) => attacks.map((attack) => ({ caller, attack }))),
      async ({ caller, attack }) => {
        const finding = await judge(attack, caller.client);
        if (finding !== undefined)
          wrong.push([caller.name, attack.route.method, attack.route.path, finding]);
      },
    );
    expect(wrong).toEqual([]);
    expect(await dumpOutside(app.deps.db, 'beta')).toEqual(before);
  }, 60_000);

  test('and the attacks reach real records: their own administrator gets them', async () => {
    const own = app.client.as({ actor: 'acme-admin', roles: 'platform-admin', tenant: 'acme' });
    const reads = routes
      .filter(({ method, path }) => method === 'GET' && path.split('{').length === 2)
      .map(attackOn);
    const wrong: unknown[] = [];
    await inParallel(
      reads.filter(({ isShared, route }) => !isShared && route.permission !== undefined),
      async (attack) => {
        const { status } = await send(attack, own, attack.id);
        if (status !== 200) wrong.push([attack.route.path, status]);
      },
    );
    expect(wrong).toEqual([]);
  });
});

describe('names beside ids', () => {
  /** Where a record with a label is read. */
  const COLLECTIONS: Readonly<Partial<Record<LabelKind, string>>> = {
    backups: '/api/backup',
    providers: '/api/auth/providers',
    roles: '/api/rbac/roles',
    jobs: '/api/jobs',
    schedules: '/api/schedules',
    webhooks: '/api/webhooks',
    workflows: '/api/workflows',
  };
  const urlOf = (kind: LabelKind, id: string) =>
    `${COLLECTIONS[kind] ?? `/api/inventory/${kind}`}/${encodeURIComponent(id)}`;

  /** Requesters and deciders read requests for changes too, but have no labels of them. */
  const isExact = (kind: LabelKind) => kind !== 'workflows';

  type Body = Record<string, unknown> & { included?: Names };

  const reads = new Map<string, Promise<TestResponse>>();
  const readOnce = (client: TestClient, url: string): Promise<TestResponse> => {
    const key = `${JSON.stringify(client.identity)} ${url}`;
    const read = reads.get(key) ?? client.get(url);
    reads.set(key, read);
    return read;
  };

  /** Parameters that a route needs. */
  const QUESTIONS: Readonly<Record<string, string>> = { '/api/search': '&q=beta' };

  /** Routes with required parameters or with two ids, and one that is about an API token only. */
  const ASKS_MORE = /\/explain$|\}.*\}$|^\/api\/auth\/token$/;

  /** What is wrong with the labels of one answer, compared with reads of the same caller. */
  async function judgeLabels(client: TestClient, route: Route, url: string): Promise<unknown[]> {
    const query = `include=labels,people${QUESTIONS[url] ?? ''}`;
    const { status, body } = await client.get<Body>(`${url}?${query}`);
    // Of callers without a permission, some routes show only what is their own.
    const isRefused = status === 403 || (status === 404 && route.signedIn !== undefined);
    if (status !== 200) return isRefused ? [] : [[url, status]];
    const { included, ...rest } = body;
    const { labels } = assertDefined(included, url);
    const { records } = compileReferences(
      assertDefined(route.responses[200], url),
      route.changesOf,
    )(rest);
    const named = [...records].flatMap(([kind, ids]) => [...ids].map((id) => ({ kind, id })));
    expect(Object.values(labels).flatMap(Object.keys).length).toBeLessThanOrEqual(named.length);
    const wrong: unknown[] = [];
    for (const { kind, id } of named) {
      const label = labels[kind]?.[id];
      const read = await readOnce(client, urlOf(kind, id));
      const isRead = read.status === 200 && Object.values(read.body as object).includes(label);
      if (label === undefined ? read.status === 200 && isExact(kind) : !isRead)
        wrong.push([url, kind, id, label, read.status]);
    }
    return wrong;
  }

  test('are those of records that the caller can read, and all of these', async () => {
    const included = allRoutes(app.deps, 'test').filter(
      ({ includes, session, path }) => includes && session === undefined && !ASKS_MORE.test(path),
    );
    const estate = { ...shared, ...beta };
    const wrong: unknown[] = [];
    await inParallel(
      callers
        .filter(({ name }) => ['gateway platform-admin', 'account viewer'].includes(name))
        .flatMap(({ client }) => included.map((route) => ({ client, route }))),
      async ({ client, route }) => {
        const id = route.path.includes('{') ? targetOf(route, estate) : '';
        const url = pathOf(route, assertDefined(id, route.path));
        wrong.push(...(await judgeLabels(client, route, url)));
      },
    );
    expect(wrong).toEqual([]);
  });
});
