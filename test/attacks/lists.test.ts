import { expect, test } from '@jest/globals';
import { allRoutes } from '../../api/app.ts';
import type { HttpResponse } from '../../api/http/response.ts';
import { declaredParameters } from '../../api/http/queryParameters.ts';
import type { Route } from '../../api/http/route.ts';
import { BUILT_IN_ROLES } from '../../domain/access/roles.ts';
import { grantAtTenant, type Grant } from '../../domain/access/scope.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { compileCheck } from '../../platform/schemaCheck.ts';
import type { Schema } from '../support/hostile/document.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { TestApp } from '../support/app.ts';
import { isThorough } from '../support/effort.ts';
import { learned } from '../support/attacks/answers.ts';
import { pathOf, targetOf } from '../support/attacks/routes.ts';
import {
  seedAccount,
  seedShared,
  seedTenantEstate,
  type SharedEstate,
  type TenantEstate,
} from '../support/attacks/tenantEstate.ts';
import { inParallel } from '../support/attacks/tenantRows.ts';
import { withIdleApp } from '../support/attacks/twoTenants.ts';
import { expensiveStatements, type Statement } from '../support/listPlans.ts';
import { sampleOf } from '../support/hostile/values.ts';
import type { TestClient } from '../support/client.ts';

/**
 * Every GET route with every filter and every sort order, asked by beta before and after acme has records of every kind
 * with the same names and numbers: no answer differs. Routes and parameters come from the registry.
 */
let app: TestApp;
let routes: Route[];
let beta: TenantEstate;
let shared: SharedEstate;
/**
 * Administrators: a denied attempt would be in the audit log of beta. They have the same rights: one asks every question,
 * the other one question of each route.
 */
let callers: { name: string; client: TestClient; asksAll: boolean }[];

/** Refused to people of a tenant, which would be in their audit log; and what is about an API token only. */
const OF_OTHERS = /^\/api\/auth\/(providers\b|token$)/;

const LABEL = 'double';

withIdleApp(async (started) => {
  app = started;
  routes = allRoutes(app.deps, 'test').filter(
    ({ method, path, permission, signedIn }) =>
      method === 'GET' &&
      (permission !== undefined || signedIn !== undefined) &&
      !OF_OTHERS.test(path),
  );
  shared = await seedShared(app);
  beta = await seedTenantEstate(app, { tenant: 'beta', label: LABEL, network: 12 }, shared);
  const account = { username: 'beta-boss', roleId: 'platform-admin', tenantId: 'beta' };
  const wide = await seedAccount(app, { ...account, username: 'beta-boss-of-many' });
  await grantMuchElsewhere(wide.user);
  // An idle application does not.
  while ((await app.deps.auditSealer.seal()) > 0);
  callers = [
    {
      name: 'gateway',
      client: app.client.as({ actor: 'beta-admin', roles: 'platform-admin', tenant: 'beta' }),
      asksAll: isThorough(),
    },
    { name: 'account', client: (await seedAccount(app, account)).client, asksAll: true },
    { name: 'account with many grants', client: wide.client, asksAll: isThorough() },
  ];
});

/** Its scope is then too large to be sent with a query (`MAX_IDS_SENT`), and of every level. */
async function grantMuchElsewhere(userId: string): Promise<void> {
  const grant = { roleId: 'platform-admin', userId };
  const root = app.client.as({ actor: 'root', roles: 'platform-admin' });
  await root.post('/api/rbac/assignments', { ...grant, siteId: beta.sites }).expect(201);
  await root.post('/api/rbac/assignments', { ...grant, deviceId: beta.devices }).expect(201);
  await app.deps.db.raw(
    `INSERT INTO grants (id, kind, user_id, role_id, level, tenant_id, created_by, created_at)
     SELECT 'asg_' || lpad(n::text, 26, '0'), 'assignment', ?, 'platform-admin', 'tenant', 'elsewhere' || n, 'test', now()
     FROM generate_series(1, 1001) AS n`,
    [userId],
  );
}

type Item = Record<string, unknown>;
type Answer = { items?: Item[]; backups?: Item[]; nextCursor?: string | null };

/** Parameters that are no filters, and one that opens a stream. */
const NOT_FILTERS = new Set([
  'limit',
  'cursor',
  'sort',
  'format',
  'follow',
  'at',
  'fields',
  'count',
]);

/** The operators of a filter use its mechanism, which the filter itself tries: they repeat. */
const OPERATOR = /\.(?:not|gte|gt|lte|lt)$/;

/** Filters that no field of the records has the name of. */
const VALUES: Readonly<Record<string, (record: Item) => unknown>> = {
  after: () => 0,
  deviceId: () => beta.devices,
  siteId: () => beta.sites,
  contains: () => '10.12.2.3',
  createdAfter: () => '2020-01-01T00:00:00Z',
  createdBefore: () => '2090-01-01T00:00:00Z',
  eventType: () => 'schedule.created',
  color: () => '#00a1ff',
  include: () => 'labels,people',
  jobType: () => 'core.echo',
  macAddress: () => '00:1b:2c:3d:4e:5f',
  permission: () => 'job:write',
  q: () => LABEL,
  rd: () => '65000:100',
  source: ({ source }) => (source as { kind: string }).kind,
  since: () => '2020-01-01T00:00:00Z',
  subject: ({ subject }) => (subject as { id: string }).id,
  subjectId: ({ subject }) => (subject as { id: string }).id,
  subjectType: ({ subject }) => (subject as { type: string }).type,
  tag: () => 'core',
  tenantId: () => 'beta',
  until: () => '2090-01-01T00:00:00Z',
  userId: () => beta.user,
  within: () => '10.12.0.0/16',
};

/** What a filter needs besides: positions are those of one tenant's chain, after what is archived. */
const needsOf = ({ path }: Route, name: string): Record<string, string> =>
  path === '/api/audit' && name === 'after' ? { tenantId: 'beta', after: '2' } : {};

/** The values of a parameter with a list of values. */
const choicesOf = ({ enum: values, anyOf, items }: Schema): readonly unknown[] =>
  values ?? (anyOf ?? (items ? [items] : [])).flatMap(choicesOf);

/** A record that the field `name` of an inventory resource can refer to. */
function referencedBy({ path }: Route, name: string): string | undefined {
  const [, resource = ''] = /^\/api\/inventory\/([^/]+)/.exec(path) ?? [];
  const { reference } = RESOURCES[resource as ResourceName]?.fields[name] ?? {};
  return reference && { ...shared, ...beta }[reference];
}

/** The label of a record that a reference names: `siteId.name`. */
const labelFor = (name: string): string | undefined => {
  const [, by] = name.split('.');
  const labels: Readonly<Record<string, string>> = { cidr: '10.12.0.0/16', address: '10.12.2.3' };
  return by === undefined || OPERATOR.test(name) ? undefined : (labels[by] ?? LABEL);
};

/** An id that a schema of ids allows. */
const idFor = ({ pattern = '' }: Schema): string | undefined => {
  const [, kind] = /([a-z]{3})_\[0-9a-z\]\{26\}/.exec(pattern) ?? [];
  return kind && `${kind}_01jd0cmxk5e5v8kyzwq0q8s3rt`;
};

const parametersOf = ({ query }: Route) =>
  Object.entries((query?.properties ?? {}) as Record<string, Schema>);

/** A value that a parameter of a list can have, of `record` if possible. */
const valueOf = (route: Route, record: Item, name: string, schema: Schema): unknown =>
  VALUES[name.replace(OPERATOR, '')]?.(record) ??
  labelFor(name) ??
  record[name.replace(OPERATOR, '')] ??
  referencedBy(route, name) ??
  idFor(schema.items ?? schema) ??
  sampleOf(schema.type === 'array' ? (schema.items ?? {}) : schema);

/** The queries of a list: none, each filter with a value of `record`, each order, the next page. */
function queriesOf(route: Route, record: Item, cursor: string | null | undefined): string[] {
  const parameters = parametersOf(route);
  const required = new Set((route.query?.required ?? []) as string[]);
  const text = (query: Record<string, unknown>) =>
    new URLSearchParams(
      Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
    );
  const always = Object.fromEntries(
    parameters
      .filter(
        ([name]) =>
          (required.has(name) && !NOT_FILTERS.has(name)) ||
          // Without a scope it asks for rights at the platform.
          (route.path === '/api/rbac/explain' && name === 'tenantId'),
      )
      .map(([name, schema]) => [name, valueOf(route, record, name, schema)]),
  );
  const more = parameters.flatMap(([name, schema]): Record<string, unknown>[] => {
    if (name === 'sort' || name === 'format')
      return choicesOf(schema)
        .slice(0, isThorough() ? undefined : 3)
        .map((value) => ({ [name]: value }));
    if (name === 'cursor') return cursor ? [{ limit: 1, cursor }] : [];
    if (name === 'limit') return [{ limit: 1 }];
    // All facets in one question, with the count of the same records.
    if (name === 'facets')
      return [{ count: true, facets: choicesOf(schema).slice(0, 8).join(',') }];
    // They are made of the same parts for every list.
    if ((OPERATOR.test(name) || name.includes('.')) && !isThorough()) return [];
    if (schema.type === 'object') return [];
    // It is for one permission only.
    if (route.path === '/api/rbac/explain' && name === 'jobType') return [];
    // Exports filter as lists do.
    return NOT_FILTERS.has(name) || (route.path.endsWith('/export') && name !== 'q')
      ? []
      : [{ [name]: valueOf(route, record, name, schema), ...needsOf(route, name) }];
  });
  return [{}, ...more].map((query) => `?${text({ ...always, ...query }).toString()}`);
}

type Question = { url: string; isFirst: boolean };

/** The questions to a route: to a list with all queries, to a record as it is. */
const questionsTo = async (route: Route): Promise<Question[]> =>
  (await urlsOf(route)).map((url, i) => ({ url, isFirst: i === 0 }));

async function urlsOf(route: Route): Promise<string[]> {
  if (route.path.includes('{'))
    return [pathOf(route, assertDefined(targetOf(route, { ...shared, ...beta }), route.path))];
  const [client] = callers.map((caller) => caller.client);
  const list = route.path.replace(/\/export$/, '');
  const canPage = route.query?.properties.cursor !== undefined;
  const { body } = await assertDefined(client, 'client').get<Answer>(
    `${list}${canPage ? '?limit=1' : ''}`,
  );
  const items = body.items ?? body.backups;
  if (canPage && items?.length === 0) throw new Error(`beta has nothing in ${list}`);
  return queriesOf(route, items?.[0] ?? {}, body.nextCursor).map((query) => route.path + query);
}

/** Events of all tenants have one sequence: a remaining risk in docs/threat-model.md. */
const SEQUENCE = /"lastSequence":\d+/;

/** How long the oldest job has waited follows the clock. */
const CLOCK = /"oldestSeconds":\d+/g;

/** The exports that a caller may have concurrently. */
const CONCURRENT_EXPORTS = 4;

async function answersTo(questions: readonly Question[]): Promise<Map<string, string>> {
  const answers = new Map<string, string>();
  const [exports = [], others = []] = [true, false].map((isExport) =>
    questions.filter(({ url }) => /\/export\b/.test(url) === isExport),
  );
  await askAll(others, answers);
  await askAll(exports, answers, CONCURRENT_EXPORTS);
  return answers;
}

async function askAll(
  questions: readonly Question[],
  answers: Map<string, string>,
  width?: number,
) {
  await inParallel(
    callers.flatMap(({ name, client, asksAll }) =>
      questions
        .filter(({ isFirst }) => isFirst || asksAll)
        .map(({ url }) => ({ name, client, url })),
    ),
    async ({ name, client, url }) => {
      const answer = await client.get(url);
      answers.set(`${name} ${url}`, learned(answer).replace(SEQUENCE, '').replaceAll(CLOCK, ''));
    },
    width,
  );
}

test('nothing that one tenant asks depends on what another one has', async () => {
  const questions = (await Promise.all(routes.map(questionsTo))).flat();
  const before = await answersTo(questions);
  expect(
    [...before]
      // The tenant has no artifact of this name.
      .filter(([request, text]) => !text.startsWith('[200,') && !request.endsWith('/other'))
      .map(([request, text]) => [request, text.slice(-300)]),
  ).toEqual([]);

  await seedTenantEstate(app, { tenant: 'acme', label: LABEL, network: 13 }, shared);

  const after = await answersTo(questions);
  const different = [...before].filter(([request, text]) => after.get(request) !== text);
  expect(different.map(([request, text]) => [request, text, after.get(request)])).toEqual([]);
}, 60_000);

/** Filters that compare as others do. */
const REPEATED = /\.(?:gt|lt)$/;

type Query = Record<string, string>;

/** What some filters take their values from. */
const ANY_RECORD = {
  source: { kind: 'api' },
  subject: { type: 'job', id: 'job_1' },
  cidr: '10.12.0.0/16',
  address: '10.12.2.3',
  startAddress: '10.12.2.3',
  endAddress: '10.12.2.3',
};

/**
 * The questions to a list: each filter with each operator and a count; each order; each facet; and pairs of
 * filters in an order, a few for each list.
 */
function planQuestions(route: Route): Query[] {
  const parameters = parametersOf(route);
  const choices = (name: string) =>
    parameters
      .filter(([each]) => each === name)
      .flatMap(([, schema]) => choicesOf(schema).map(String));
  const [sorts, facets] = [choices('sort'), choices('facets')];
  const filters = parameters.flatMap(([name, schema]): Query[] =>
    NOT_FILTERS.has(name) || name === 'facets' || REPEATED.test(name) || schema.type === 'object'
      ? []
      : [
          {
            [name]: String(valueOf(route, ANY_RECORD, name, schema)),
            ...needsOf(route, name),
          },
        ],
  );
  const counted = (i: number): Query => ({
    count: 'true',
    ...(facets.length > 0 && { facets: facets[i % facets.length] ?? '' }),
  });
  return [
    {},
    ...filters.map((filter) => ({ ...filter, count: 'true' })),
    ...sorts.map((sort) => ({ sort })),
    ...facets.map((_, i) => counted(i)),
    ...filters.flatMap((filter, i) =>
      i % 4 === 0
        ? [
            {
              ...filters[(i * 7 + 3) % filters.length],
              ...filter,
              sort: sorts[i % sorts.length] ?? '',
            },
          ]
        : [],
    ),
  ];
}

/** Sends a question to the handler of a list. */
function ask(route: Route, caller: Caller, texts: Query): Promise<HttpResponse> {
  const properties = route.query?.properties ?? {};
  const query = declaredParameters(texts, properties);
  const errors = compileCheck(route.query ?? {})(query);
  if (errors.length > 0) throw new Error(`${route.path} ${JSON.stringify([texts, errors])}`);
  return route.handle({
    caller,
    params: {},
    query,
    body: undefined,
    prefer: { waitMs: 0, timing: false },
    ifMatch: undefined,
    header: () => undefined,
    origin: 'http://localhost',
    isOwnOrigin: () => true,
    signal: new AbortController().signal,
    upload: undefined,
  });
}

/** Large tables are imitated with a function of PostgreSQL 18, the version that is bundled. */
const testPlans = process.env.TEST_POSTGRES_BIN === undefined ? test : test.skip;

testPlans('no question to a list reads a large table as a whole', async () => {
  const { db } = app.deps;
  const role = assertDefined(BUILT_IN_ROLES.get('platform-admin'), 'role');
  const callerWith = (grant: Grant): Caller => ({
    kind: 'gateway',
    actorId: 'boss',
    tenantId: 'platform',
    rights: { grants: [grant] },
    requestId: 'req_plans',
    address: null,
  });
  const boss = callerWith(grantAtTenant(role, 'platform'));
  /** Jobs belong to sites and devices: the rights of their readers are conditions of the list. */
  const atSite = callerWith({ role, level: 'site', targetId: beta.sites });
  const atDevice = callerWith({ role, level: 'device', targetId: beta.devices });
  const ofTenant = { ...callerWith(grantAtTenant(role, 'beta')), tenantId: 'beta' };
  const readersOf = ({ path }: Route) =>
    path === '/api/jobs' ? [boss, ofTenant, atSite, atDevice] : [boss, ofTenant];
  const statements = new Map<string, Statement & { question: string }>();
  const lists = routes.filter(({ path, query }) => !path.includes('{') && query?.properties.count);
  expect(lists.length).toBeGreaterThan(30);
  const choices = new Set<string>();
  for (const route of lists) {
    for (const [name, schema] of parametersOf(route))
      if (choicesOf(schema).length > 0)
        choices.add(name.replaceAll(/[A-Z]/g, (l) => `_${l.toLowerCase()}`));
    for (const query of planQuestions(route)) {
      const note = ({ sql, bindings }: Statement) => {
        // A recursion, which resolves names of the people of a page, is estimated by a guess, and so are the members of
        // a group, which an index finds: as 5,000 of a million users.
        const isGuess = !/^\(?select\b/i.test(sql) || sql.includes('external_groups @>');
        if (!isGuess && !statements.has(sql))
          statements.set(sql, {
            sql,
            bindings,
            question: `${route.path} ${JSON.stringify(query)}`,
          });
      };
      db.on('query', note);
      for (const reader of readersOf(route)) await ask(route, reader, query);
      db.removeListener('query', note);
    }
  }
  expect(statements.size).toBeGreaterThan(1_000);
  const found = await expensiveStatements(db, statements.values(), [...choices]);
  expect(
    found.map(({ statement, ...why }) => ({
      question: statement.question,
      sql: statement.sql,
      ...why,
    })),
  ).toEqual([]);
});
