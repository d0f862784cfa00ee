import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Type } from 'typebox';
import type { Explanation } from '../../../api/access/routes.ts';
import type { RoleRecord } from '../../../api/access/schemas.ts';
import type { ApprovalRecord } from '../../../api/approvals/schemas.ts';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type { ProviderRecord } from '../../../api/auth/providerRoutes.ts';
import type { TokenWithSecret } from '../../../api/auth/tokenSchemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { JobTypeRecord } from '../../../api/jobs/typeSchemas.ts';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { PERMISSIONS } from '../../../domain/access/permissions.ts';
import { defineJobType, JobFailure } from '../../../domain/jobs/jobType.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { approveAndWait, assignedToApprovers } from '../../support/approvals.ts';
import type { ProblemBody, TestClient, TestRequest, TestResponse } from '../../support/client.ts';
import { expectInvalid, expectProblem } from '../../support/problem.ts';
import { backdateSchedule, minuteFromNow, waitForRuns } from '../../support/schedules.ts';
import { createToken } from '../../support/tokens.ts';
import { admin, createUser, type Page } from '../../support/users.ts';

/** Called by each attempt of a job of the type `net.probe`. */
let onAttempt: () => Promise<void> = () => Promise.resolve();

const probe = defineJobType({
  name: 'net.probe',
  summary: 'Needs a role that names it',
  payload: Type.Object({}, { additionalProperties: false }),
  access: 'granted',
  lane: 'inline',
  timeoutMs: 5_000,
  retry: { maxAttempts: 2, initialIntervalSeconds: 0.05 },
  run: async () => {
    await onAttempt();
    return {};
  },
});
const job = { type: 'net.probe', payload: {} };

let app: TestApp;
let root: TestClient;
/** Operators of the tenant; the second has a role that names the type, the third one elsewhere. */
let unnamed: TestClient;
let named: TestClient;

const setPatterns = (jobTypes: string[], id = 'net') =>
  admin(app).put<RoleRecord>(`/api/rbac/roles/${id}`, { jobTypes }).expect(200);

beforeAll(async () => {
  app = await startApp({}, { extraJobTypes: [probe] });
  root = app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'red' });
  const net = { id: 'net', name: 'Network jobs', permissions: ['job:read'], jobTypes: ['net.*'] };
  const made = await admin(app).post<RoleRecord>('/api/rbac/roles', net).expect(201);
  expect(made).toMatchObject({ jobTypes: ['net.*'], version: 1 });
  unnamed = app.client.as({ actor: 'una', roles: 'operator', tenant: 'red' });
  named = app.client.as({ actor: 'nadja', roles: 'operator,net', tenant: 'red' });
});
afterAll(() => app.stop());

let schedules = 0;
const createSchedule = (client: TestClient, fields: object = {}) =>
  client
    .post<ScheduleRecord>('/api/schedules', {
      name: `probe ${++schedules}`,
      cronExpression: '0 3 1 1 *',
      jobType: 'net.probe',
      payload: {},
      ...fields,
    })
    .expect(201);
const request = (client: TestClient, overrides: object = {}) =>
  client.post<ApprovalRecord>('/api/workflows', {
    title: 'probe',
    ...assignedToApprovers,
    jobType: 'net.probe',
    ...overrides,
  });

/** Every way in which a caller has a job of the type created, and what it answers if they may. */
const WAYS: Record<string, [number, (client: TestClient) => Promise<TestResponse>]> = {
  'POST /api/jobs': [201, (client) => client.post('/api/jobs', job)],
  'a retry': [
    201,
    async (client) => {
      const { id } = await root
        .post<JobRecord>('/api/jobs', job, { prefer: 'wait=20' })
        .expect(201);
      return client.post(`/api/jobs/${id}/retry`);
    },
  ],
  "the trigger of an administrator's schedule": [
    202,
    async (client) => client.post(`/api/schedules/${(await createSchedule(root)).id}/trigger`),
  ],
  'the trigger of an own schedule': [
    202,
    async (client) => client.post(`/api/schedules/${(await createSchedule(client)).id}/trigger`),
  ],
  'a backfill': [
    202,
    async (client) => {
      const { id } = await createSchedule(root);
      const range = { since: '2026-01-01T00:00:00Z', until: '2026-01-02T00:00:00Z' };
      return client.post(`/api/schedules/${id}/backfill`, range);
    },
  ],
  'resuming a schedule': [
    200,
    async (client) => {
      const { id } = await createSchedule(root, { enabled: false });
      return client.post(`/api/schedules/${id}/resume`, {});
    },
  ],
  'an approval request': [201, (client) => request(client)],
};

describe('a job of a type with the access granted', () => {
  test.each(Object.entries(WAYS))(
    'is not created by %s without a role that names it',
    async (_way, [status, send]) => {
      const refused = await send(unnamed);
      expect([refused.status, refused.body]).toMatchObject([
        403,
        {
          code: 'permission_denied',
          detail: 'No role that you hold at tenant red names the job type net.probe.',
        },
      ]);
      const { items } = await root
        .get<Page<AuditEntryRecord>>('/api/audit?action=access.denied&actorId=una&limit=1')
        .expect(200);
      expect(items[0]?.after).toMatchObject({ jobType: 'net.probe', tenantId: 'red' });
      expect((await send(named)).status).toBe(status);
    },
  );

  test('is not created with a name elsewhere, nor by a token without the type', async () => {
    const person = await createUser(
      app,
      { roleId: 'operator', tenantId: 'red' },
      { roleId: 'operator', tenantId: 'blue' },
      { roleId: 'net', tenantId: 'blue' },
    );
    const createAt = (client: TestClient, tenant: string) =>
      client.post('/api/jobs', job, { 'x-service-tenant-id': tenant });
    await expectProblem(createAt(person.client, 'red'), 403, 'permission_denied');
    await createAt(person.client, 'blue').expect(201);
    const token = await createToken(app, person, { jobTypes: ['core.*'] });
    const refused = createAt(token.client, 'blue');
    const { detail } = await expectProblem(refused, 403, 'permission_denied');
    expect(detail).toBe('The token does not allow jobs of the type net.probe.');
  });

  test('is not created by a schedule whose owner has no such role, nor for a change of it', async () => {
    const own = await createSchedule(unnamed);
    expect(own.warnings).toEqual([
      {
        code: 'owner_denied',
        pointer: '/jobType',
        message: expect.stringContaining('names the job type net.probe'),
      },
    ]);
    const { code } = await named.post<ProblemBody>(`/api/schedules/${own.id}/trigger`).expect(409);
    expect(code).toBe('schedule_not_runnable');
    // Who decides when its jobs run owns it, unless they may create these jobs.
    const other = await createSchedule(named);
    const cronExpression = '0 4 1 1 *';
    const changed = (client: TestClient, fields: object) =>
      client.put<ScheduleRecord>(`/api/schedules/${other.id}`, fields).expect(200);
    expect((await changed(unnamed, { cronExpression })).owner).toBe('una');
    expect((await changed(named, { takeOver: true })).owner).toBe('nadja');
  });

  test('is skipped at an occurrence, and not executed when approved, after the role has lost it', async () => {
    const { id } = await createSchedule(named, { cronExpression: '* * * * *' });
    const approval = await request(named).expect(201);
    await setPatterns(['net.audit']);
    try {
      const dueAt = minuteFromNow(-1);
      await backdateSchedule(app, id, dueAt);
      await app.deps.runner.fireOccurrence(id, dueAt);
      const runs = await waitForRuns(root, id, ({ length }) => length > 0);
      expect(runs[0]).toMatchObject({ outcome: 'skipped', reason: 'owner_denied' });
      const decider = app.client.as({ actor: 'dora', roles: 'approver', tenant: 'red' });
      const executed = await approveAndWait(decider, approval.id);
      expect(executed).toMatchObject({ execution: 'failed', error: { code: 'permission_lost' } });
    } finally {
      await setPatterns(['net.*']);
      await root.delete(`/api/schedules/${id}`).expect(204);
    }
  });

  test('ends before its next attempt when the role loses it', async () => {
    onAttempt = async () => {
      await setPatterns([]);
      throw new JobFailure('unreachable', 'The first attempt fails');
    };
    try {
      const ended = await named
        .post<JobRecord>('/api/jobs', job, { prefer: 'wait=20' })
        .expect(201);
      expect(ended).toMatchObject({ status: 'failed', error: { code: 'permission_lost' } });
    } finally {
      onAttempt = () => Promise.resolve();
      await setPatterns(['net.*']);
    }
  });

  test('is explained, and GET /api/job-types says who may run it', async () => {
    const mayRun = async (client: TestClient) => {
      const { items } = await client.get<Page<JobTypeRecord>>('/api/job-types').expect(200);
      const found = ['net.probe', 'core.echo', 'webhook.deliver'].map((name) =>
        items.find((each) => each.name === name),
      );
      return found.map((each) => [each?.access, each?.mayRun]);
    };
    expect(await mayRun(named)).toEqual([
      ['granted', true],
      ['open', true],
      ['open', false],
    ]);
    expect(await mayRun(unnamed)).toEqual([
      ['granted', false],
      ['open', true],
      ['open', false],
    ]);
    const person = await createUser(
      app,
      { roleId: 'operator', tenantId: 'red' },
      { roleId: 'net', tenantId: 'blue' },
    );
    const explain = (query: string) =>
      admin(app).get<Explanation>(`/api/rbac/explain?userId=${person.id}&${query}`);
    const asked = 'permission=job:write&jobType=net.probe';
    expect(await explain(`${asked}&tenantId=red`).expect(200)).toMatchObject({
      allowed: false,
      reason: 'Held by 1 grant. No role that is granted here names the job type net.probe.',
      grants: [{ roleId: 'operator' }],
      jobTypeGrants: [],
    });
    await root
      .post('/api/rbac/assignments', { userId: person.id, roleId: 'net', tenantId: 'red' })
      .expect(201);
    expect(await explain(`${asked}&tenantId=red`).expect(200)).toMatchObject({
      allowed: true,
      jobTypeGrants: [{ roleId: 'net', tenantId: 'red' }],
    });
    expect((await explain(`${asked}&tenantId=blue`).expect(200)).allowed).toBe(false);
    const open = 'permission=job:write&jobType=core.echo&tenantId=red';
    expect(await explain(open).expect(200)).toMatchObject({ allowed: true, jobTypeGrants: [] });
    await expectInvalid(explain('permission=job:read&jobType=net.probe'), '/jobType');
    await expectInvalid(explain('permission=job:write&jobType=net.unknown'), '/jobType');
  });
});

describe('nobody grants the use of a job type that they do not have', () => {
  test('by roles, grants, accounts, tokens or providers', async () => {
    const platform = admin(app);
    await platform
      .post('/api/rbac/roles', { id: 'giver', name: 'Giver', permissions: PERMISSIONS })
      .expect(201);
    const giver = app.client.as({ actor: 'gina', roles: 'giver' });
    const holder = await createUser(app, 'net');
    const account = await platform
      .post<{ id: string }>('/api/service-accounts', { name: 'prober', ownerId: holder.id })
      .expect(201);
    await platform.post('/api/rbac/assignments', { userId: account.id, roleId: 'net' }).expect(201);
    const provider = await platform
      .post<ProviderRecord>('/api/auth/providers', {
        kind: 'ldap',
        name: 'Directory',
        config: { url: 'ldaps://ldap.example.net', userBaseDn: 'dc=example' },
      })
      .expect(201);
    const mapping = { providerId: provider.id, roleId: 'net', externalGroup: 'one' };
    await platform.post('/api/rbac/provider-mappings', mapping).expect(201);
    await platform
      .post('/api/rbac/roles', { id: 'grows', name: 'x', permissions: ['job:read'] })
      .expect(201);
    const tokens = `/api/service-accounts/${account.id}/tokens`;
    const token = await platform.post<TokenWithSecret>(tokens, { name: 'first' }).expect(201);
    const other = await createUser(app);
    const role = { name: 'y', permissions: ['job:read'], jobTypes: ['net.audit'] };
    const ways: [number, () => TestRequest<unknown>][] = [
      [201, () => giver.post('/api/rbac/roles', role)],
      [200, () => giver.put('/api/rbac/roles/grows', { jobTypes: ['net.audit'] })],
      [201, () => giver.post('/api/rbac/assignments', { userId: other.id, roleId: 'net' })],
      [201, () => giver.post('/api/rbac/provider-mappings', { ...mapping, externalGroup: 'two' })],
      [200, () => giver.post(`/api/users/${holder.id}/reset-password`, {})],
      [200, () => giver.put(`/api/users/${holder.id}`, { displayName: 'z' })],
      [200, () => giver.put(`/api/service-accounts/${account.id}`, { displayName: 'z' })],
      [201, () => giver.post(tokens, { name: 'second' })],
      [200, () => giver.post(`/api/auth/tokens/${token.id}/rotate`, {})],
      [
        200,
        () =>
          giver.put(`/api/auth/providers/${provider.id}`, {
            config: { url: 'ldaps://other.example.net', userBaseDn: 'dc=example' },
          }),
      ],
    ];
    for (const [, grant] of ways) {
      const { detail } = await expectProblem(grant(), 403, 'permission_denied');
      expect(detail).toMatch(/^No role that you hold at the platform names the job type net\./);
    }
    // Part of a pattern is not enough for the whole of it; what a role has already is not granted again.
    await setPatterns(['net.audit'], 'giver');
    await expectProblem(
      giver.put('/api/rbac/roles/grows', { jobTypes: ['net.*'] }),
      403,
      'permission_denied',
    );
    await giver.put('/api/rbac/roles/net', { jobTypes: ['net.*', 'net.scan'] }).expect(200);
    await setPatterns(['*'], 'giver');
    for (const [status, grant] of ways) expect((await grant()).status).toBe(status);
  });
});
