import { expect, test } from '@jest/globals';
import { allRoutes } from '../../api/app.ts';
import type { Route } from '../../api/http/route.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { TestApp } from '../support/app.ts';
import { comparable, idOfNone } from '../support/attacks/answers.ts';
import {
  seedAccount,
  type SharedEstate,
  type TenantEstate,
} from '../support/attacks/tenantEstate.ts';
import { dumpOutside, inParallel } from '../support/attacks/tenantRows.ts';
import { leaksOfAcme, withTwoTenants } from '../support/attacks/twoTenants.ts';
import { assignedToApprovers } from '../support/approvals.ts';
import type { TestClient, TestResponse } from '../support/client.ts';
import type { Schema } from '../support/hostile/document.ts';
import { PASSWORD } from '../support/users.ts';

/**
 * Fields that refer to records in the bodies of all other routes, in payloads of jobs, in filters and in cursors: what an
 * administrator of beta learns from the id of a record of acme is what he learns from the id of none, and nothing
 * outside beta changes. The fields come from the registry: a new one needs a line here.
 */
let app: TestApp;
let routes: Route[];
let mallory: TestClient;
let account: TestClient;
let acme: TenantEstate;
let beta: TenantEstate;
let shared: SharedEstate;
let ofAcme: ReadonlySet<string>;

withTwoTenants(async (fixture) => {
  ({ app, acme, beta, shared, ofAcme } = fixture);
  routes = allRoutes(app.deps, 'test');
  mallory = app.client.as({ actor: 'mallory', roles: 'platform-admin', tenant: 'beta' });
  const boss = { username: 'beta-boss', roleId: 'platform-admin', tenantId: 'beta' };
  account = (await seedAccount(app, boss)).client;
});

/** A body with a reference: what the reference is to, and who sends the rest of the body where. */
type Case = { to: keyof TenantEstate; send(value: string): Promise<TestResponse> };

/** Not ids of a tenant's records. */
const OF_THE_PLATFORM = new Set(['roleId', 'assignedRoleIds', 'providerId']);

const grant = (path: string, body: () => object) => (field: string) => (value: string) =>
  mallory.post(path, { roleId: 'viewer', ...body(), [field]: value });
const assignment = grant('/api/rbac/assignments', () => ({ userId: beta.user }));
const mapping = grant('/api/rbac/provider-mappings', () => ({
  providerId: shared.provider,
  externalGroup: 'people',
}));
const request = (field: string) => (value: unknown) =>
  mallory.post('/api/workflows', { ...assignedToApprovers, title: 'new', [field]: value });
const service = (field: string) => (value: unknown) =>
  mallory.post('/api/service-accounts', { name: 'new', ownerId: beta.user, [field]: value });
const signIn = (path: string) => (tenantId: string) =>
  app.client.as({ token: null }).post(path, { username: 'beta-ann', password: PASSWORD, tenantId });

const CASES: Readonly<Record<string, Case>> = {
  'POST /api/jobs createdBy': {
    to: 'user',
    send: (createdBy) => mallory.post('/api/jobs', { type: 'core.echo', payload: {}, createdBy }),
  },
  'POST /api/jobs target': {
    to: 'devices',
    send: (id) =>
      mallory.post('/api/jobs', {
        type: 'test.device',
        payload: {},
        target: { kind: 'device', id },
      }),
  },
  'POST /api/schedules target': {
    to: 'devices',
    send: (id) =>
      mallory.post('/api/schedules', {
        name: 'about a device',
        cronExpression: '0 3 1 1 *',
        jobType: 'test.device',
        target: { kind: 'device', id },
      }),
  },
  'PUT /api/schedules/{id} target': {
    to: 'devices',
    send: (id) =>
      mallory.put(`/api/schedules/${beta.schedule}`, {
        jobType: 'test.device',
        payload: {},
        target: { kind: 'device', id },
      }),
  },
  'POST /api/workflows jobTarget': {
    to: 'devices',
    send: (id) =>
      mallory.post('/api/workflows', {
        ...assignedToApprovers,
        title: 'new',
        jobType: 'test.device',
        jobTarget: { kind: 'device', id },
      }),
  },
  'POST /api/rbac/assignments tenantId': { to: 'tenants', send: assignment('tenantId') },
  'POST /api/rbac/assignments siteId': { to: 'sites', send: assignment('siteId') },
  'POST /api/rbac/assignments deviceId': { to: 'devices', send: assignment('deviceId') },
  'POST /api/rbac/assignments userId': { to: 'user', send: assignment('userId') },
  'POST /api/rbac/provider-mappings tenantId': { to: 'tenants', send: mapping('tenantId') },
  'POST /api/rbac/provider-mappings siteId': { to: 'sites', send: mapping('siteId') },
  'POST /api/rbac/provider-mappings deviceId': { to: 'devices', send: mapping('deviceId') },
  'POST /api/users tenantId': {
    to: 'tenants',
    send: (tenantId) => mallory.post('/api/users', { username: 'new', tenantId }),
  },
  'PUT /api/users/{id} tenantId': {
    to: 'tenants',
    send: (tenantId) => mallory.put(`/api/users/${beta.user}`, { tenantId }),
  },
  'POST /api/auth/tokens tenantId': {
    to: 'tenants',
    send: (tenantId) => account.post('/api/auth/tokens', { name: 'new', tenantId }),
  },
  'POST /api/service-accounts ownerId': { to: 'user', send: service('ownerId') },
  'POST /api/service-accounts tenantId': { to: 'tenants', send: service('tenantId') },
  'PUT /api/service-accounts/{id} ownerId': {
    to: 'user',
    send: (ownerId) => mallory.put(`/api/service-accounts/${beta.service}`, { ownerId }),
  },
  'PUT /api/service-accounts/{id} tenantId': {
    to: 'tenants',
    send: (tenantId) => mallory.put(`/api/service-accounts/${beta.service}`, { tenantId }),
  },
  'POST /api/service-accounts/{id}/tokens tenantId': {
    to: 'tenants',
    send: (tenantId) =>
      mallory.post(`/api/service-accounts/${beta.service}/tokens`, { name: 'new', tenantId }),
  },
  'POST /api/auth/login/local tenantId': { to: 'tenants', send: signIn('/api/auth/login/local') },
  'POST /api/auth/login/ldap tenantId': { to: 'tenants', send: signIn('/api/auth/login/ldap') },
  'PUT /api/auth/session tenantId': {
    to: 'tenants',
    send: (tenantId) => account.put('/api/auth/session', { tenantId }),
  },
  'POST /api/workflows assignedUserIds': {
    to: 'user',
    send: (id) => request('assignedUserIds')([id]),
  },
  'POST /api/workflows tenantId': { to: 'tenants', send: request('tenantId') },
  'POST /api/workflows siteId': { to: 'sites', send: request('siteId') },
  'POST /api/workflows deviceId': { to: 'devices', send: request('deviceId') },
  'POST /api/legal-holds tenantId': {
    to: 'tenants',
    send: (tenantId) => mallory.post('/api/legal-holds', { tenantId, reason: 'A case' }),
  },
  'POST /api/retention/preview tenantId': {
    to: 'tenants',
    send: (tenantId) => mallory.post('/api/retention/preview', { tenantId }),
  },
  'POST /api/backup/restore/validate backupId': {
    to: 'backup',
    send: (backupId) => mallory.post('/api/backup/restore/validate', { backupId }),
  },
  'POST /api/backup/restore backupId': {
    to: 'backup',
    send: (backupId) => mallory.post('/api/backup/restore', { backupId }),
  },
};

/** Differences that are known, each with the reason. */
const KNOWN: Readonly<Record<string, string>> = {
  'POST /api/rbac/assignments userId':
    'roles are granted to accounts of other tenants by their ids, which nobody can guess',
};

const isReference = (name: string) => /Ids?$|By$|^(?:target|jobTarget)$/.test(name);

/** The names of all fields of a schema that refer to records of tenants. */
const referencesIn = ({ properties = {} }: Schema): string[] =>
  Object.entries(properties).flatMap(([name, schema]) => [
    ...(isReference(name) && !OF_THE_PLATFORM.has(name) ? [name] : []),
    ...referencesIn(schema),
  ]);

/** What differs between two records of the same content. */
const NEW =
  /\b[a-z]{3}_[0-9a-z]{26}\b|"new \d+"|"version":\d+|"contentHash":"[^"]*"|"queue":\{[^}]*\}/g;

/** Sends a reference to a record of acme, then to none; says what was wrong. */
async function judge(name: string, { to, send }: Case): Promise<unknown> {
  const [id, none] = [acme[to], idOfNone(acme[to])];
  const given = comparable(await send(id), id);
  const other = comparable(await send(none), none);
  const found = leaksOfAcme(given, ofAcme);
  return found.length > 0 || given.replaceAll(NEW, '') !== other.replaceAll(NEW, '')
    ? [name, found, given, other]
    : undefined;
}

async function judgeAll(cases: Readonly<Record<string, Case>>, width?: number): Promise<unknown[]> {
  const before = await dumpOutside(app.deps.db, 'beta');
  const wrong: unknown[] = [];
  await inParallel(
    Object.entries(cases).filter(([name]) => !(name in KNOWN)),
    async ([name, each]) => {
      const finding = await judge(name, each);
      if (finding) wrong.push(finding);
    },
    width,
  );
  expect(await dumpOutside(app.deps.db, 'beta')).toEqual(before);
  return wrong;
}

// First: later, the audit log of beta has what was attempted.
test('a cursor of a list of another tenant shows nothing of it', async () => {
  type Answer = { nextCursor?: string | null };
  const owner = app.client.as({ actor: 'acme-admin', roles: 'platform-admin', tenant: 'acme' });
  const lists = routes.filter(
    ({ method, path, query, permission }) =>
      method === 'GET' &&
      permission !== undefined &&
      !path.includes('{') &&
      query?.properties.cursor !== undefined,
  );
  const wrong: unknown[] = [];
  let used = 0;
  await inParallel(lists, async ({ path }) => {
    const { body } = await owner.get<Answer>(`${path}?limit=1`);
    if (!body.nextCursor) return;
    used += 1;
    const answer = await mallory.get(`${path}?cursor=${body.nextCursor}`);
    const found = leaksOfAcme(comparable(answer), ofAcme);
    if (answer.status >= 500 || found.length > 0) wrong.push([path, answer.status, found]);
  });
  expect(wrong).toEqual([]);
  expect(used).toBeGreaterThan(3);
});

test('a reference in a body shows nothing of another tenant', async () => {
  const found = routes
    .filter(({ path }) => !/^\/api\/inventory\/[a-z-]+(\/\{id\})?$/.test(path))
    // Runners name only themselves.
    .filter(({ runner }) => runner === undefined)
    .flatMap(({ method, path, body }) =>
      referencesIn((body ?? {}) as Schema).map((field) => `${method} ${path} ${field}`),
    );
  expect(Object.keys(CASES).sort()).toEqual(found.sort());
  expect(await judgeAll(CASES)).toEqual([]);
});

test('a reference in the payload of a job, of a schedule and of a request shows nothing', async () => {
  type JobTypes = {
    items: { name: string; createdOnlyBy: string | null; payloadSchema: Schema }[];
  };
  const { items } = await mallory.get<JobTypes>('/api/job-types').expect(200);
  const fields = items
    .filter(({ createdOnlyBy }) => createdOnlyBy === null)
    .flatMap(({ name, payloadSchema }) =>
      referencesIn(payloadSchema).map((field) => ({ type: name, field })),
    );
  // Its schema marks them.
  fields.push({ type: 'test.refers', field: 'site' });
  expect([...new Set(fields.map(({ field }) => field))]).toEqual(['backupId', 'site']);
  let count = 0;
  const schedule = () => ({ name: `new ${++count}`, cronExpression: '0 3 1 1 *' });
  const cases = fields.flatMap(({ type, field }): [string, Case][] => {
    const doors: Record<string, (payload: object) => Promise<TestResponse>> = {
      job: (payload) => mallory.post('/api/jobs', { type, payload }),
      schedule: (payload) =>
        mallory.post('/api/schedules', { ...schedule(), jobType: type, payload }),
      'changed schedule': (payload) =>
        mallory.put(`/api/schedules/${beta.schedule}`, { jobType: type, payload }),
      request: (jobPayload) =>
        mallory.post('/api/workflows', {
          ...assignedToApprovers,
          title: 'new',
          jobType: type,
          jobPayload,
        }),
    };
    return Object.entries(doors).map(([door, send]) => [
      `${door} ${type}`,
      { to: field === 'site' ? 'sites' : 'backup', send: (id) => send({ [field]: id }) },
    ]);
  });
  // One by one: they change the same schedule.
  expect(await judgeAll(Object.fromEntries(cases), 1)).toEqual([]);
});

/** What the filters of lists outside the inventory refer to. */
const FILTERS: Readonly<Record<string, keyof TenantEstate>> = {
  actorId: 'user',
  approvalId: 'approval',
  createdBy: 'user',
  deviceId: 'devices',
  dryRunId: 'import',
  eventId: 'event',
  ownerId: 'user',
  requestId: 'audit',
  scheduleId: 'schedule',
  siteId: 'sites',
  subjectId: 'job',
  tokenId: 'token',
  tenantId: 'tenants',
  userId: 'user',
  webhookId: 'webhook',
};

/** What a filter of a list refers to; undefined for catalogues and what belongs to the platform. */
function targetOfFilter(path: string, name: string): keyof TenantEstate | undefined {
  const [, resource = ''] = /^\/api\/inventory\/([^/]+)/.exec(path) ?? [];
  const { reference } = RESOURCES[resource as ResourceName]?.fields[name] ?? {};
  if (reference !== undefined)
    return RESOURCES[reference].scopeKind === 'catalogue'
      ? undefined
      : (reference as keyof TenantEstate);
  if (OF_THE_PLATFORM.has(name)) return undefined;
  const target = FILTERS[name];
  if (target === undefined) throw new Error(`${path} ${name} is not in FILTERS`);
  return target;
}

/** Parameters without which a request ends early. */
const REQUIRED: Readonly<Record<string, () => string>> = {
  '/api/rbac/explain': () => `permission=job:write&userId=${beta.user}&`,
};

test('a filter by a record of another tenant finds what a filter by nothing finds', async () => {
  const cases = routes
    .filter(({ method, path }) => method === 'GET' && !path.includes('{'))
    .flatMap(({ path, query }) =>
      Object.keys(query?.properties ?? {})
        .filter(isReference)
        .flatMap((name): [string, Case][] => {
          const to = targetOfFilter(path, name);
          const required = name === 'userId' ? '' : (REQUIRED[path]?.() ?? '');
          const more =
            path === '/api/rbac/explain' && name === 'userId' ? 'permission=job:write&' : '';
          return to
            ? [
                [
                  `${path} ${name}`,
                  { to, send: (id) => mallory.get(`${path}?${required}${more}${name}=${id}`) },
                ],
              ]
            : [];
        }),
    );
  expect(cases.length).toBeGreaterThan(60);
  const [exports, others] = [true, false].map((isExport) =>
    Object.fromEntries(cases.filter(([name]) => name.includes('/export') === isExport)),
  );
  expect(await judgeAll(others ?? {})).toEqual([]);
  // One by one: a caller may have few exports concurrently.
  for (const [name, each] of Object.entries(exports ?? {}))
    expect(await judge(name, each)).toBeUndefined();
});
