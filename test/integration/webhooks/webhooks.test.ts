import { describe, expect, test } from '@jest/globals';
import type { EventList, EventWithDeliveries } from '../../../api/events/schemas.ts';
import type { WebhookRecord } from '../../../api/webhooks/schemas.ts';
import { findLastDeliveries } from '../../../db/webhooks/lastDeliveries.ts';
import { SUPPORTED_EVENT_TYPES } from '../../../domain/events/events.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { expectRowShape } from '../../support/rowShape.ts';
import { respondWith } from '../../support/sink.ts';
import { admin, createUser, type Page } from '../../support/users.ts';
import {
  allFinished,
  fastRetries,
  verifyMessage,
  withWebhookReceiver,
} from '../../support/webhooks.ts';

const { fixture, asNewTenant, register, createJob, readWebhook, getDeliveries, waitForDelivery } =
  withWebhookReceiver();

const listWebhooks = (client: TestClient, query = '') =>
  client
    .get<Page<WebhookRecord> & { supportedEventTypes: string[] }>(`/api/webhooks${query}`)
    .expect(200);

/** Waits until a path has received messages. */
const waitForMessages = (path: string) =>
  eventually(
    () => fixture.sink.bodiesTo(path),
    (bodies) => bodies.length > 0,
  );

describe('creating a webhook', () => {
  test('shows the secret once, and sends the webhook its own webhook.created', async () => {
    const client = asNewTenant();
    const response = await client.post<WebhookRecord>('/api/webhooks', {
      endpointUrl: fixture.sink.url('/self'),
      eventTypes: ['*'],
    });
    expect(response.status).toBe(201);
    const webhook = response.body;
    expect(response.headers.get('location')).toBe(`/api/webhooks/${webhook.id}`);
    expect(webhook).toMatchObject({
      enabled: true,
      eventTypes: ['*'],
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
      disabledReason: null,
    });
    expect((await readWebhook(client, webhook.id)).secret).toBe('********');
    expect((await listWebhooks(client)).items[0]?.secret).toBe('********');
    const [message] = await waitForMessages('/self');
    expect(message).toMatchObject({ type: 'webhook.created', data: { webhookId: webhook.id } });
    const [request] = fixture.sink.requestsTo('/self');
    expect(verifyMessage(webhook.secret, request)).toMatchObject({ type: 'webhook.created' });
  });

  test('encrypts the secret; events and audit log contain neither it nor the path', async () => {
    const client = asNewTenant();
    const secret = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
    const webhook = await register(client, '/services/T0/very-secret-path', { secret });
    expect(webhook.secret).toBe(secret);
    await client
      .put(`/api/webhooks/${webhook.id}`, { secret: 'another secret of 24 bytes' })
      .expect(200);
    const { db } = fixture.app.deps;
    const stored = JSON.stringify([
      await db('webhooks').where({ id: webhook.id }).select('secret', 'previous_secret'),
      await db('events').where({ subject_id: webhook.id }),
      await db('audit_entries').where({ subject_id: webhook.id }),
    ]);
    expect(stored).not.toMatch(/whsec_|another secret|very-secret-path/);
    expect(stored).toContain(fixture.sink.base);
  });

  test('says in the audit log that its endpoint has changed, also when only the path has', async () => {
    const client = asNewTenant();
    const webhook = await register(client, '/services/one');
    const path = `/api/webhooks/${webhook.id}`;
    await client.put(path, { endpointUrl: `${fixture.sink.base}/services/two` }).expect(200);
    await client.put(path, { description: 'the same endpoint' }).expect(200);
    const entries = await fixture.app.deps
      .db('audit_entries')
      .where({ subject_id: webhook.id, action: 'webhook.update' })
      .orderBy('id');
    expect(entries.map(({ after }) => after.endpointChanged)).toEqual([true, false]);
    expect(JSON.stringify(entries)).not.toContain('/services/');
  });

  test.each([
    ['another scheme', { endpointUrl: 'ftp://example.net/' }, '/endpointUrl'],
    ['no URL', { endpointUrl: 'example.net' }, '/endpointUrl'],
    ['credentials', { endpointUrl: 'https://user:pass@example.net/' }, '/endpointUrl'],
    ['an internal address', { endpointUrl: 'http://10.0.0.1/' }, '/endpointUrl'],
    ['a hexadecimal internal address', { endpointUrl: 'http://0x0a000001/' }, '/endpointUrl'],
    [
      'a mapped internal address',
      { endpointUrl: 'http://[::ffff:169.254.169.254]/' },
      '/endpointUrl',
    ],
    ['no event type', { eventTypes: [] }, '/eventTypes'],
    ['an unknown type', { eventTypes: ['job.created', 'job.exploded'] }, '/eventTypes/1'],
    ['types that are no list', { eventTypes: 'job.created' }, '/eventTypes'],
    ['a short secret', { secret: 'short' }, '/secret'],
    ['a long secret', { secret: 'x'.repeat(257) }, '/secret'],
    ['the mask as a secret', { secret: '********' }, '/secret'],
    ['an unknown field', { endpoint: 'x' }, '/endpoint'],
    [
      'more attempts than the plan has',
      { retryPolicy: { maxAttempts: 11 } },
      '/retryPolicy/maxAttempts',
    ],
  ])('refuses %s', async (_what, wrong, pointer) => {
    const problem = await asNewTenant()
      .post<ProblemBody>('/api/webhooks', {
        endpointUrl: 'https://example.net/',
        eventTypes: ['*'],
        ...wrong,
      })
      .expect(400);
    expect(problem.code).toBe('invalid_request');
    expect(problem.errors?.map((error) => error.pointer)).toEqual([pointer]);
  });

  test('reports every invalid field', async () => {
    const problem = await asNewTenant()
      .post<ProblemBody>('/api/webhooks', {
        endpointUrl: 'gopher://x',
        eventTypes: [],
        enabled: 'yes',
      })
      .expect(400);
    expect(problem.errors?.map(({ pointer }) => pointer).sort()).toEqual([
      '/enabled',
      '/endpointUrl',
      '/eventTypes',
    ]);
  });

  test('accepts every listed event type, and * alone or in a list', async () => {
    const client = asNewTenant();
    const list = await listWebhooks(client);
    expect(list).toMatchObject({ items: [], nextCursor: null });
    expect(list.supportedEventTypes).toEqual(SUPPORTED_EVENT_TYPES);
    expect(list.supportedEventTypes).toEqual(
      expect.arrayContaining([
        'webhook.created',
        'webhook.deleted',
        'inventory.device.created',
        'job.created',
      ]),
    );
    await register(client, '/forms', { eventTypes: ['webhook.deleted'] });
    expect((await listWebhooks(client, '?eventType=job.failed')).items).toEqual([]);
    const several = '?eventType=job.failed,webhook.deleted';
    for (const query of ['?eventType=webhook.deleted', several])
      expect((await listWebhooks(client, query)).items).toHaveLength(1);
    for (const eventTypes of ['*', ['job.failed', '*']])
      expect((await register(client, '/forms', { eventTypes })).eventTypes).toEqual(['*']);
  });

  test('repeated with its Idempotency-Key creates one webhook and masks its secret', async () => {
    const client = asNewTenant();
    const create = () =>
      client
        .post<WebhookRecord>(
          '/api/webhooks',
          { endpointUrl: fixture.sink.url('/key'), eventTypes: ['job.failed'] },
          { 'idempotency-key': 'once' },
        )
        .expect(201);
    const first = await create();
    expect(await create()).toMatchObject({ id: first.id, secret: '********' });
    expect((await listWebhooks(client)).items).toHaveLength(1);
  });

  test('is in a list with its newest delivery and what the endpoint answered', async () => {
    const client = asNewTenant();
    const [answers, fails, silent] = [
      await register(client, '/last-answers'),
      await register(client, '/last-fails', { ...fastRetries, eventTypes: ['job.succeeded'] }),
      await register(client, '/last-none', { eventTypes: ['job.failed'] }),
    ];
    fixture.sink.respond('/last-fails', respondWith(500));
    await createJob(client);
    await createJob(client);
    await waitForDelivery(client, answers.id, allFinished(2));
    const failed = await waitForDelivery(client, fails.id, allFinished(2));
    const { items } = await listWebhooks(client);
    const lastOf = ({ id }: WebhookRecord) => items.find((item) => item.id === id)?.lastDelivery;
    expect(lastOf(answers)).toMatchObject({ status: 'succeeded', httpStatus: 204 });
    expect(lastOf(fails)).toMatchObject({
      id: failed.id,
      status: 'failed',
      httpStatus: 500,
      errorCode: 'http_status',
    });
    expect(lastOf(silent)).toBeNull();
    const [row] = await findLastDeliveries(fixture.app.deps.db, [fails.id]);
    expectRowShape(row, {
      webhookId: 'string',
      id: 'string',
      status: 'string',
      reason: 'nullable',
      updatedAt: 'date',
      httpStatus: 'nullable',
      errorCode: 'nullable',
    });
  });

  test('stops at 100 webhooks of a tenant, also with concurrent requests', async () => {
    const client = asNewTenant();
    const responses = await Promise.all(
      Array.from({ length: 104 }, () =>
        client.post<ProblemBody>('/api/webhooks', {
          endpointUrl: 'https://example.net/',
          eventTypes: ['job.failed'],
          enabled: false,
        }),
      ),
    );
    expect(responses.filter(({ status }) => status === 201)).toHaveLength(100);
    const refused = responses.filter(({ status }) => status !== 201);
    expect(new Set(refused.map(({ body }) => body.code))).toEqual(new Set(['quota_exceeded']));
    const page = await listWebhooks(client, '?limit=60');
    const rest = await listWebhooks(client, `?limit=60&cursor=${page.nextCursor}`);
    expect(new Set([...page.items, ...rest.items].map(({ id }) => id)).size).toBe(100);
  });
});

describe('access to a webhook', () => {
  test('requires authentication', async () => {
    const { id } = await register(asNewTenant(), '/isolated');
    for (const path of ['/api/webhooks', '/api/events', `/api/webhooks/${id}`]) {
      const problem = await fixture.app.client.get<ProblemBody>(path).expect(401);
      expect(problem.code).toBe('identity_required');
    }
  });

  test('ends at its tenant', async () => {
    const { id } = await register(asNewTenant(), '/isolated');
    const path = `/api/webhooks/${id}`;
    const stranger = asNewTenant();
    await stranger.get(path).expect(404);
    await stranger.get(`${path}/deliveries`).expect(404);
    await stranger.post(`${path}/test`, {}).expect(404);
    await stranger.post(`${path}/rotate-secret`, {}).expect(404);
    await stranger.post(`${path}/replay`, { afterSequence: 0 }).expect(404);
    await stranger.put(path, { enabled: false }).expect(404);
    await stranger.delete(path).expect(404);
  });

  test('depends on the permission', async () => {
    const { id, tenantId } = await register(asNewTenant(), '/isolated');
    const path = `/api/webhooks/${id}`;
    const viewer = fixture.app.client.as({ roles: 'viewer', tenant: tenantId });
    await viewer.get(path).expect(200);
    const body = { endpointUrl: fixture.sink.url('/x'), eventTypes: ['*'] };
    await viewer.post('/api/webhooks', body).expect(403);
    for (const operation of ['test', 'rotate-secret', 'replay'])
      await viewer.post(`${path}/${operation}`, body).expect(403);
    await viewer.put(path, {}).expect(403);
    await viewer.delete(path).expect(403);
  });

  test('does not follow from a write permission in another tenant', async () => {
    const client = asNewTenant();
    const { id, tenantId } = await register(client, '/seen');
    await createJob(client);
    const delivery = await waitForDelivery(client, id);
    const { client: mixed } = await createUser(
      fixture.app,
      { roleId: 'viewer', tenantId },
      { roleId: 'operator', tenantId: 'elsewhere' },
    );
    const path = `/api/webhooks/${id}`;
    await mixed.get(path).expect(200);
    await mixed.put(path, {}).expect(403);
    await mixed.delete(path).expect(403);
    await mixed.post(`${path}/test`).expect(403);
    await mixed.post(`${path}/rotate-secret`, {}).expect(403);
    await mixed.post(`${path}/replay`, { afterSequence: 0 }).expect(403);
    await mixed.post(`/api/deliveries/${delivery.id}/redeliver`).expect(403);
  });

  test('of the platform covers all tenants, of a tenant its own events', async () => {
    const [blue, red] = [asNewTenant(), asNewTenant()];
    const platform = fixture.app.client.as({ tenant: 'platform' });
    const platformWebhook = await register(platform, '/platform', { eventTypes: ['job.created'] });
    await register(blue, '/blue');
    const [blueJob, redJob] = [await createJob(blue), await createJob(red)];
    await eventually(
      () => fixture.sink.bodiesTo('/platform').map(({ data }) => data.jobId),
      (jobIds) => [blueJob.id, redJob.id].every((id) => jobIds.includes(id)),
    );
    const messages = await waitForMessages('/blue');
    expect(messages.map(({ data }) => data.jobId)).toEqual([blueJob.id]);
    const { items } = await blue
      .get<EventList>(`/api/events?subject=job:${blueJob.id}&type=job.created`)
      .expect(200);
    const path = `/api/events/${items[0]?.id}`;
    const { deliveries } = await blue.get<EventWithDeliveries>(path).expect(200);
    expect(deliveries.map(({ webhookId }) => webhookId)).not.toContain(platformWebhook.id);
    const all = await platform.get<EventWithDeliveries>(path).expect(200);
    expect(all.deliveries.map(({ webhookId }) => webhookId)).toContain(platformWebhook.id);
    await admin(fixture.app)
      .get(`/api/deliveries/${deliveries[0]?.id}`, { 'x-service-tenant-id': 'platform' })
      .expect(200);
  });
});

describe('changing a webhook', () => {
  test('changes the fields that are sent, and checks the version', async () => {
    const client = asNewTenant();
    const webhook = await register(client, '/subset', { description: 'first', ...fastRetries });
    const path = `/api/webhooks/${webhook.id}`;
    const stale = { 'if-match': (await client.get(path)).headers.get('etag') ?? '' };
    const changed = await client.put(path, { description: 'second' }, stale).expect(200);
    expect(changed).toMatchObject({
      description: 'second',
      endpointUrl: webhook.endpointUrl,
      eventTypes: ['job.created'],
      retryPolicy: fastRetries.retryPolicy,
      version: 2,
    });
    await client.put(path, { description: 'third' }, stale).expect(412);
    await client.delete(path, stale).expect(412);
    await client.post(`${path}/rotate-secret`, {}, stale).expect(412);
    const shortened = await client
      .put<WebhookRecord>(path, { retryPolicy: { maxAttempts: 2 } })
      .expect(200);
    expect(shortened.retryPolicy).toEqual({ maxAttempts: 2, maxIntervalSeconds: 0.05 });
    await client.put(path, { secret: '********' }).expect(200);
    const problem = await client
      .put<ProblemBody>(path, { endpointUrl: 'http://127.0.0.1.:1/', eventTypes: [] })
      .expect(400);
    expect(problem.errors).toHaveLength(1);
    const { items } = await client
      .get<EventList>(`/api/events?subject=${webhook.id}&after=0`)
      .expect(200);
    expect(items.map(({ type }) => type)).toEqual([
      'webhook.created',
      'webhook.updated',
      'webhook.updated',
      'webhook.updated',
    ]);
  });

  /** Waits until the event of a new job is published and has its deliveries, if any. */
  const fannedOut = ({ id }: { id: string }) =>
    eventually(
      () =>
        fixture.app.deps
          .db('events AS e')
          .leftJoin('event_fan_outs AS f', 'f.tenant_id', 'e.tenant_id')
          .where({ 'e.subject_id': id, 'e.type': 'job.created', 'f.tenant_id': null })
          .whereNotNull('e.sequence')
          .select('e.id'),
      (events) => events.length === 1,
    );

  test('delivers only the events from while it is enabled', async () => {
    const client = asNewTenant();
    const webhook = await register(client, '/toggle', { enabled: false });
    const path = `/api/webhooks/${webhook.id}`;
    await fannedOut(await createJob(client));
    await client.put(path, { enabled: true }).expect(200);
    const second = await createJob(client);
    await waitForMessages('/toggle');
    const disabled = await client.put<WebhookRecord>(path, { enabled: false }).expect(200);
    expect(disabled).toMatchObject({
      enabled: false,
      disabledReason: 'request',
      disabledAt: expect.any(String),
    });
    await fannedOut(await createJob(client));
    expect(fixture.sink.bodiesTo('/toggle').map(({ data }) => data.jobId)).toEqual([second.id]);
    expect(await getDeliveries(client, webhook.id)).toHaveLength(1);
  });

  test('deletes it with its secrets, and emits webhook.deleted', async () => {
    const client = asNewTenant();
    await register(client, '/witness', { eventTypes: ['webhook.deleted'] });
    const { id } = await register(client, '/deleted');
    const path = `/api/webhooks/${id}`;
    await client.delete(path).expect(204);
    await client.get(path).expect(404);
    await client.delete(path).expect(404);
    const row: unknown = await fixture.app.deps.db('webhooks').where({ id }).first();
    expect(row).toMatchObject({ secret: '', previous_secret: null });
    const [message] = await waitForMessages('/witness');
    expect(message).toMatchObject({
      type: 'webhook.deleted',
      data: { webhookId: id, enabled: false },
    });
  });
});
