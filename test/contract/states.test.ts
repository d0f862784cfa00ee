import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../support/app.ts';
import { createArchiveFolder } from '../support/backups.ts';
import type { ProblemBody, TestClient } from '../support/client.ts';
import { OIDC_CONFIG, type TargetId } from '../support/contract/operations.ts';
import { targetMaker } from '../support/contract/targets.ts';
import { eventually } from '../support/eventually.ts';
import { startSink, type Sink } from '../support/sink.ts';
import { createUser, PASSWORD } from '../support/users.ts';

/** The states, events and errors of the published interface, as a client sees them that knows nothing else. */
let app: TestApp;
let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
let sink: Sink;
let idOf: TargetId;
let root: TestClient;
beforeAll(async () => {
  archives = await createArchiveFolder();
  sink = await startSink();
  app = await startApp(archives.env);
  idOf = targetMaker(app);
  root = app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' });
});
afterAll(async () => {
  await app.stop();
  await sink.stop();
  await archives.remove();
});

type Fields = Record<string, unknown>;
type Listed = { items: Fields[] };

describe('approval requests', () => {
  const decider = () =>
    app.client.as({ actor: 'decider', roles: 'platform-admin', tenant: 'platform' });
  const request = (fields: object = {}) =>
    root.post<Fields>('/api/workflows', {
      type: 'change',
      title: 'a request',
      payload: {},
      assignedUserIds: ['decider'],
      assignedRoleIds: [],
      ...fields,
    });

  test('approving a pending request enqueues the bound job', async () => {
    const { id, status } = await request({
      jobType: 'core.echo',
      jobPayload: { text: 'hello' },
    }).expect(201);
    expect(status).toBe('pending');
    await decider()
      .post(`/api/workflows/${String(id)}/approve`)
      .expect(200);
    const { status: decided, jobId } = await eventually(
      () => root.get<Fields>(`/api/workflows/${String(id)}`).expect(200),
      (current) => typeof current.jobId === 'string',
    );
    expect(decided).toBe('approved');
    const job = await eventually(
      () => root.get<Fields>(`/api/jobs/${String(jobId)}`).expect(200),
      (current) => current.status === 'succeeded',
    );
    expect(job.type).toBe('core.echo');
  });

  test('rejecting leaves nothing to decide', async () => {
    const { id } = await request().expect(201);
    const { status } = await decider()
      .post<Fields>(`/api/workflows/${String(id)}/reject`)
      .expect(200);
    expect(status).toBe('rejected');
    expect((await decider().post(`/api/workflows/${String(id)}/approve`)).status).toBe(409);
  });

  test('a change that does not validate never enters the queue', async () => {
    const countOf = async () =>
      (await root.get<{ counts: { pending: number } }>('/api/workflows').expect(200)).counts
        .pending;
    const before = await countOf();
    const { status } = await request({
      validationRequest: { resource: 'prefixes', operation: 'create', record: { cidr: 'no' } },
    });
    expect([status >= 400, await countOf()]).toEqual([true, before]);
  });
});

describe('inventory validation', () => {
  const validate = (record: object) =>
    root.post<Fields>('/api/validation/inventory', {
      resource: 'prefixes',
      operation: 'create',
      record,
    });
  const RECORD = {
    cidr: '198.51.100.0/24',
    vrfId: null,
    parentPrefixId: null,
    status: 'active',
    allocationMode: 'static',
    tenantId: 'platform',
  };

  test.each([
    ['is valid', RECORD, 200],
    ['has invalid fields', { ...RECORD, cidr: 'no network' }, 400],
  ])('a candidate that %s', async (_, record, expected) => {
    const { status, body } = await validate(record);
    expect([status, body]).toMatchObject([
      expected,
      {
        resource: 'prefixes',
        operation: 'create',
        actorId: 'root',
        validation: {
          valid: expected === 200,
          errors: expected === 200 ? [] : [{ pointer: '/cidr' }],
          conflicts: [],
          warnings: [],
        },
        candidateRecord: { cidr: record.cidr },
      },
    ]);
  });

  test('a candidate with conflicts', async () => {
    await root.post('/api/inventory/prefixes', { cidr: '203.0.113.0/24' }).expect(201);
    const { status, body } = await validate({ cidr: '203.0.113.0/24' });
    expect([status, body.validation]).toMatchObject([409, { valid: false, errors: [] }]);
    expect((body.validation as { conflicts: unknown[] }).conflicts).not.toEqual([]);
  });

  test('nothing is persisted', async () => {
    await validate({ cidr: '198.51.100.0/24' }).expect(200);
    const { items } = await root
      .get<Listed>('/api/inventory/prefixes?cidr=198.51.100.0/24')
      .expect(200);
    expect(items).toEqual([]);
  });
});

describe('webhooks and events', () => {
  const register = (fields: object) =>
    root.post<Fields & ProblemBody>('/api/webhooks', {
      endpointUrl: sink.url('/hook'),
      eventTypes: ['job.created'],
      enabled: true,
      ...fields,
    });

  test.each([
    ['another scheme', { endpointUrl: 'ftp://hooks.example.net/' }],
    ['no event type', { eventTypes: [] }],
    ['an unknown event type', { eventTypes: ['nothing.happened'] }],
  ])('a registration with %s is refused', async (_, fields) => {
    expect((await register(fields)).status).toBe(400);
  });

  test('a registration emits webhook.created, a deletion webhook.deleted', async () => {
    const { id } = await register({
      endpointUrl: sink.url('/all'),
      eventTypes: '*',
    }).expect(201);
    await root.delete(`/api/webhooks/${String(id)}`).expect(204);
    for (const type of ['webhook.created', 'webhook.deleted']) {
      const { items } = await root.get<Listed>(`/api/events?type=${type}`).expect(200);
      expect(items[0]).toMatchObject({ type, data: { webhookId: id } });
    }
  });

  test('an enabled webhook gets the events that it names, a disabled one none', async () => {
    const { id } = await register({}).expect(201);
    const asleep = await register({ endpointUrl: sink.url('/disabled') }).expect(201);
    await root.put(`/api/webhooks/${String(asleep.id)}`, { enabled: false }).expect(200);
    await root.post('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);
    await eventually(
      () => Promise.resolve(sink.bodiesTo('/hook')),
      (bodies) => bodies.some(({ type }) => type === 'job.created'),
    );
    expect(sink.requestsTo('/disabled')).toEqual([]);
    const webhook = await eventually(
      () => root.get<{ deliveries: Fields[] }>(`/api/webhooks/${String(id)}`).expect(200),
      ({ deliveries }) => deliveries.some(({ status }) => status === 'succeeded'),
    );
    const eventId = String(webhook.deliveries[0]?.eventId);
    const event = await root.get<Fields>(`/api/events/${eventId}`).expect(200);
    expect(event).toMatchObject({ id: eventId, deliveries: [{ attempts: [{}] }] });
    const { items: ofDisabled } = await root
      .get<Listed>(`/api/webhooks/${String(asleep.id)}/deliveries`)
      .expect(200);
    expect(ofDisabled).toEqual([]);
  });

  test('the supported event types include those that the interface names', async () => {
    const { supportedEventTypes } = await root
      .get<{ supportedEventTypes: string[] }>('/api/webhooks')
      .expect(200);
    expect(supportedEventTypes).toEqual(
      expect.arrayContaining([
        'webhook.created',
        'webhook.deleted',
        'inventory.device.created',
        'job.created',
      ]),
    );
  });
});

describe('jobs, schedules and backups', () => {
  test('a job has its status, retries, result and logs', async () => {
    const { id } = await root
      .post<Fields>('/api/jobs', { type: 'core.echo', payload: { text: 'hello' } })
      .expect(201);
    const job = await eventually(
      () => root.get<Fields>(`/api/jobs/${String(id)}`).expect(200),
      ({ status }) => status === 'succeeded',
    );
    expect(job).toMatchObject({ type: 'core.echo', retryCount: 0, result: { text: 'hello' } });
    expect(Array.isArray(job.logs)).toBe(true);
    await root.get<Listed>(`/api/jobs/${String(id)}/logs`).expect(200);
  });

  test('the creator of a job can be named', async () => {
    const { createdBy } = await root
      .post<Fields>('/api/jobs', { type: 'core.echo', payload: {}, createdBy: 'carol' })
      .expect(201);
    expect(createdBy).toBe('carol');
  });

  test('a backup schedule enqueues jobs of the type backup.create', async () => {
    const { jobType } = await root
      .post<Fields>('/api/backup/schedules', {
        name: 'nightly',
        cronExpression: '30 2 * * *',
        mode: 'full',
        label: 'nightly',
      })
      .expect(201);
    expect(jobType).toBe('backup.create');
  });

  test('a backup shows what a restore would do, and restores', async () => {
    const { backups, logs, sections, engines } = await root.get<Fields>('/api/backup').expect(200);
    for (const list of [backups, logs, sections, engines]) expect(Array.isArray(list)).toBe(true);
    const backupId = await idOf('backup');
    const shown = await root.get<Fields>(`/api/backup/${backupId}`).expect(200);
    expect(shown.restorePreview).toBeDefined();
    await root.post('/api/backup/restore/validate', { backupId }).expect(200);
    await root.post('/api/backup/restore', { backupId }).expect(202);
  });
});

describe('what was read can be written back', () => {
  test.each([
    ['schedule', '/api/schedules'],
    ['webhook', '/api/webhooks'],
    ['provider', '/api/auth/providers'],
  ] as const)('a %s', async (target, path) => {
    const id = await idOf(target);
    const before = await root.get<Fields>(`${path}/${id}`).expect(200);
    await root.put(`${path}/${id}`, before).expect(200);
    const after = await root.get<Fields>(`${path}/${id}`).expect(200);
    expect({ ...after, version: 0, updatedAt: '' }).toEqual({
      ...before,
      version: 0,
      updatedAt: '',
    });
  });

  test.each([
    ['schedule', '/api/schedules'],
    ['webhook', '/api/webhooks'],
    ['provider', '/api/auth/providers'],
  ] as const)('a %s, but not with another id', async (target, path) => {
    const id = await idOf(target);
    const record = await root.get<Fields>(`${path}/${id}`).expect(200);
    const { status, body } = await root.put<ProblemBody>(`${path}/${id}`, {
      ...record,
      id: await idOf(target),
    });
    expect([status, body.errors?.map(({ pointer }) => pointer)]).toEqual([400, ['/id']]);
  });
});

describe('signing in', () => {
  const anonymous = () => app.client.as({ token: null });

  test('a local login returns tokens for a session that can be read, refreshed and ended', async () => {
    const { username } = await createUser(app, 'viewer');
    const tokens = await anonymous()
      .post<{ accessToken: string; refreshToken: string }>('/api/auth/login/local', {
        username,
        password: PASSWORD,
      })
      .expect(200);
    const session = app.client.as({ token: tokens.accessToken });
    await session.get('/api/auth/session').expect(200);
    const refreshed = await anonymous()
      .post<{ accessToken: string }>('/api/auth/refresh', { refreshToken: tokens.refreshToken })
      .expect(200);
    const next = app.client.as({ token: refreshed.accessToken });
    await next.get('/api/auth/session').expect(200);
    expect((await next.post('/api/auth/logout')).status).toBe(204);
    expect((await next.get('/api/auth/session')).status).toBe(401);
  });

  test.each([
    ['/api/auth/login/local', { username: 'nobody', password: 'nothing' }, 401],
    ['/api/auth/login/local', {}, 400],
    ['/api/auth/login/ldap', {}, 400],
    ['/api/auth/refresh', { refreshToken: 'hfr_unknown' }, 401],
  ])('POST %s with %j is refused', async (path, body, expected) => {
    expect((await anonymous().post(path, body)).status).toBe(expected);
  });

  test.each([
    ['POST', '/api/auth/login/ldap', { username: 'ada', password: 'secret' }],
    ['POST', '/api/auth/login/oidc/start', {}],
    ['POST', '/api/auth/login/saml/start', {}],
    ['GET', '/api/auth/oidc/callback', undefined],
    ['GET', '/api/auth/oidc/callback?state=unknown&code=unknown', undefined],
    ['POST', '/api/auth/saml/callback', undefined],
  ])('%s %s without such a provider is a problem of the client', async (method, path, body) => {
    const { status, headers } = await anonymous().send(method, path, body);
    expect([400, 401, 404, 409, 415]).toContain(status);
    expect(headers.get('content-type')).toMatch(/^application\/problem\+json|^text\/html/);
  });

  test('secrets of a provider are masked, and kept when they are written back', async () => {
    const id = await idOf('provider');
    const { config } = await root.get<{ config: Fields }>(`/api/auth/providers/${id}`).expect(200);
    expect(JSON.stringify(config)).not.toContain(OIDC_CONFIG.clientSecret);
    const list = await root.get('/api/auth/providers').expect(200);
    expect(JSON.stringify(list)).not.toContain(OIDC_CONFIG.clientSecret);
    const enabled = await anonymous().get('/api/auth/providers/enabled').expect(200);
    expect(JSON.stringify(enabled)).not.toContain('clientSecret');
  });
});
