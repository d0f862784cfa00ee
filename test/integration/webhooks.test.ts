import { describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { SUPPORTED_EVENT_TYPES } from '../../domain/events/events.ts';
import { eventually } from '../support/eventually.ts';
import { ended, quick, withSink } from '../support/hooks.ts';
import { admin, person } from '../support/users.ts';

const { bed, inTenant, register, echo, deliveriesOf, untilDeliveries } = withSink();

describe('registering', () => {
  test('shows the secret once and tells a webhook that wants it of itself', async () => {
    const client = inTenant();
    const made = await client.post('/api/webhooks', {
      endpointUrl: bed.sink.url('/self'),
      eventTypes: ['*'],
    });
    expect(made.status).toBe(201);
    expect(made.headers.get('location')).toBe(`/api/webhooks/${made.body.id}`);
    expect(made.body).toMatchObject({
      enabled: true,
      eventTypes: ['*'],
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
      disabledReason: null,
    });
    expect((await client.get(`/api/webhooks/${made.body.id}`)).body.secret).toBe('********');
    expect((await client.get('/api/webhooks')).body.items[0].secret).toBe('********');
    const [first] = await eventually(
      () => bed.sink.at('/self'),
      (got) => got.length > 0,
    );
    expect(JSON.parse(first?.body ?? '')).toMatchObject({
      type: 'webhook.created',
      data: { webhookId: made.body.id },
    });
    expect(
      new Webhook(made.body.secret).verify(
        first?.body ?? '',
        first?.headers as Record<string, string>,
      ),
    ).toMatchObject({ type: 'webhook.created' });
  });

  test('stores the secret sealed, and neither events nor trail tell it or the path of the URL', async () => {
    const client = inTenant();
    const secret = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
    const made = await register(client, '/services/T0/very-secret-path', { secret });
    expect(made.secret).toBe(secret);
    await client.put(`/api/webhooks/${made.id}`, { secret: 'another secret of 24 bytes' });
    const { db } = bed.app.deps;
    const told = JSON.stringify([
      await db('webhooks').where({ id: made.id }).select('secret', 'previous_secret'),
      await db('events').where({ subject_id: made.id }),
      await db('audit_entries').where({ subject_id: made.id }),
    ]);
    expect(told).not.toMatch(/whsec_|another secret|very-secret-path/);
    expect(told).toContain(bed.sink.base);
  });

  test.each([
    ['another scheme', { endpointUrl: 'ftp://example.net/' }, '/endpointUrl'],
    ['no URL', { endpointUrl: 'example.net' }, '/endpointUrl'],
    ['credentials', { endpointUrl: 'https://user:pass@example.net/' }, '/endpointUrl'],
    ['an address inside', { endpointUrl: 'http://10.0.0.1/' }, '/endpointUrl'],
    [
      'an address inside in another notation',
      { endpointUrl: 'http://0x0a000001/' },
      '/endpointUrl',
    ],
    [
      'an address inside, mapped',
      { endpointUrl: 'http://[::ffff:169.254.169.254]/' },
      '/endpointUrl',
    ],
    ['no type', { eventTypes: [] }, '/eventTypes'],
    ['an unknown type', { eventTypes: ['job.created', 'job.exploded'] }, '/eventTypes/1'],
    ['types that are no list', { eventTypes: 'job.created' }, '/eventTypes'],
    ['a short secret', { secret: 'short' }, '/secret'],
    [
      'a secret that is no base64',
      { secret: 'whsec_%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%' },
      '/secret',
    ],
    ['the mask as a secret', { secret: '********' }, '/secret'],
    ['an unknown field', { endpoint: 'x' }, '/endpoint'],
    [
      'more attempts than the plan has',
      { retryPolicy: { maxAttempts: 11 } },
      '/retryPolicy/maxAttempts',
    ],
  ])('refuses %s', async (_what, wrong, pointer) => {
    const answer = await inTenant().post('/api/webhooks', {
      endpointUrl: 'https://example.net/',
      eventTypes: ['*'],
      ...wrong,
    });
    expect([
      answer.status,
      answer.body.code,
      answer.body.errors?.map((e: any) => e.pointer),
    ]).toEqual([400, 'invalid_request', [pointer]]);
  });

  test('names every bad field', async () => {
    const answer = await inTenant().post('/api/webhooks', {
      endpointUrl: 'gopher://x',
      eventTypes: [],
      enabled: 'yes',
    });
    expect(answer.body.errors.map((e: any) => e.pointer).sort()).toEqual([
      '/enabled',
      '/endpointUrl',
      '/eventTypes',
    ]);
  });

  test('lists what can be subscribed to, and takes * in both forms', async () => {
    const client = inTenant();
    const { body } = await client.get('/api/webhooks');
    expect(body).toMatchObject({ items: [], nextCursor: null });
    expect(body.supportedEventTypes).toEqual(SUPPORTED_EVENT_TYPES);
    expect(body.supportedEventTypes).toEqual(
      expect.arrayContaining([
        'webhook.created',
        'webhook.deleted',
        'inventory.device.created',
        'job.created',
      ]),
    );
    await register(client, '/forms', { eventTypes: ['webhook.deleted'] });
    expect((await client.get('/api/webhooks?eventType=job.failed')).body.items).toEqual([]);
    expect((await client.get('/api/webhooks?eventType=webhook.deleted')).body.items).toHaveLength(
      1,
    );
    for (const eventTypes of ['*', ['job.failed', '*']])
      expect((await register(client, '/forms', { eventTypes })).eventTypes).toEqual(['*']);
  });

  test('needs the tenant named, permissions, and shows nothing to other tenants', async () => {
    const client = inTenant();
    const made = await register(client, '/isolated');
    for (const path of ['/api/webhooks', '/api/events', `/api/webhooks/${made.id}`]) {
      const anonymous = await bed.app.client.get(path);
      expect([anonymous.status, anonymous.body.code]).toEqual([401, 'identity_required']);
    }
    const stranger = inTenant();
    expect((await stranger.get(`/api/webhooks/${made.id}`)).status).toBe(404);
    expect((await stranger.get(`/api/webhooks/${made.id}/deliveries`)).status).toBe(404);
    for (const what of ['test', 'rotate-secret', 'replay'])
      expect(
        (
          await stranger.post(
            `/api/webhooks/${made.id}/${what}`,
            what === 'replay' ? { afterSequence: 0 } : {},
          )
        ).status,
      ).toBe(404);
    expect((await stranger.put(`/api/webhooks/${made.id}`, { enabled: false })).status).toBe(404);
    expect((await stranger.delete(`/api/webhooks/${made.id}`)).status).toBe(404);
    const viewer = bed.app.client.as({ roles: 'viewer', tenant: made.tenantId });
    expect((await viewer.get(`/api/webhooks/${made.id}`)).status).toBe(200);
    for (const path of ['', '/test', '/rotate-secret', '/replay']) {
      const denied = await viewer.post(
        path === '' ? '/api/webhooks' : `/api/webhooks/${made.id}${path}`,
        { endpointUrl: bed.sink.url('/x'), eventTypes: ['*'] },
      );
      expect(denied.status).toBe(403);
    }
    expect((await viewer.put(`/api/webhooks/${made.id}`, {})).status).toBe(403);
    expect((await viewer.delete(`/api/webhooks/${made.id}`)).status).toBe(403);
  });

  test('repeated with its Idempotency-Key makes one webhook, and the secret is not told again', async () => {
    const client = inTenant();
    const body = { endpointUrl: bed.sink.url('/key'), eventTypes: ['job.failed'] };
    const first = await client.post('/api/webhooks', body, { 'idempotency-key': 'once' });
    const again = await client.post('/api/webhooks', body, { 'idempotency-key': 'once' });
    expect([again.status, again.body.id, again.body.secret]).toEqual([
      201,
      first.body.id,
      '********',
    ]);
    expect((await client.get('/api/webhooks')).body.items).toHaveLength(1);
  });

  test('who sees a tenant and writes in another one changes nothing there', async () => {
    const client = inTenant();
    const made = await register(client, '/seen');
    await echo(client);
    const [delivery] = await untilDeliveries(client, made.id, ended(1));
    const { client: mixed } = await person(
      bed.app,
      { roleId: 'viewer', tenantId: made.tenantId },
      { roleId: 'operator', tenantId: 'elsewhere' },
    );
    expect((await mixed.get(`/api/webhooks/${made.id}`)).status).toBe(200);
    for (const [method, path, body] of [
      ['PUT', `/api/webhooks/${made.id}`, {}],
      ['DELETE', `/api/webhooks/${made.id}`, undefined],
      ['POST', `/api/webhooks/${made.id}/test`, undefined],
      ['POST', `/api/webhooks/${made.id}/rotate-secret`, {}],
      ['POST', `/api/webhooks/${made.id}/replay`, { afterSequence: 0 }],
      ['POST', `/api/deliveries/${delivery.id}/redeliver`, undefined],
    ] as const) {
      expect([path, (await mixed.send(method, path, body)).status]).toEqual([path, 403]);
    }
  });

  test('ends at a hundred in a tenant, with many at once', async () => {
    const client = inTenant();
    const answers = await Promise.all(
      Array.from({ length: 104 }, () =>
        client.post('/api/webhooks', {
          endpointUrl: 'https://example.net/',
          eventTypes: ['job.failed'],
          enabled: false,
        }),
      ),
    );
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(100);
    expect(
      new Set(answers.filter((answer) => answer.status !== 201).map((answer) => answer.body.code)),
    ).toEqual(new Set(['limit_reached']));
    const page = (await client.get('/api/webhooks?limit=60')).body;
    const rest = (await client.get(`/api/webhooks?limit=60&cursor=${page.nextCursor}`)).body;
    expect(new Set([...page.items, ...rest.items].map((item: any) => item.id)).size).toBe(100);
  });
});

describe('changing', () => {
  test('any subset, with versions', async () => {
    const client = inTenant();
    const made = await register(client, '/subset', { description: 'first', ...quick });
    const path = `/api/webhooks/${made.id}`;
    const { headers } = await client.get(path);
    const changed = await client.put(
      path,
      { description: 'second' },
      { 'if-match': headers.get('etag') ?? '' },
    );
    expect(changed.body).toMatchObject({
      description: 'second',
      endpointUrl: made.endpointUrl,
      eventTypes: ['job.created'],
      retryPolicy: quick.retryPolicy,
      version: 2,
    });
    const stale = { 'if-match': headers.get('etag') ?? '' };
    expect((await client.put(path, { description: 'third' }, stale)).status).toBe(412);
    expect((await client.delete(path, stale)).status).toBe(412);
    expect((await client.post(`${path}/rotate-secret`, {}, stale)).status).toBe(412);
    expect((await client.put(path, { retryPolicy: { maxAttempts: 2 } })).body.retryPolicy).toEqual({
      maxAttempts: 2,
      maxIntervalSeconds: 0.05,
    });
    expect((await client.put(path, { secret: '********' })).status).toBe(200);
    expect(
      (await client.put(path, { endpointUrl: 'http://127.0.0.1.:1/', eventTypes: [] })).body.errors,
    ).toHaveLength(1);
    const kinds = (await client.get(`/api/events?subject=${made.id}&after=0`)).body.items.map(
      (event: any) => event.type,
    );
    expect(kinds).toEqual([
      'webhook.created',
      'webhook.updated',
      'webhook.updated',
      'webhook.updated',
    ]);
  });

  test('disabled it stays, and gets no deliveries; enabled again it gets what comes then', async () => {
    const client = inTenant();
    const made = await register(client, '/toggle', { enabled: false });
    await echo(client);
    // Published while it is disabled: what a list shows is.
    await client.get('/api/events');
    await client.put(`/api/webhooks/${made.id}`, { enabled: true });
    const second = await echo(client);
    await eventually(
      () => bed.sink.bodies('/toggle'),
      (bodies) => bodies.length > 0,
    );
    const off = await client.put(`/api/webhooks/${made.id}`, { enabled: false });
    expect(off.body).toMatchObject({
      enabled: false,
      disabledReason: 'request',
      disabledAt: expect.any(String),
    });
    await echo(client);
    await client.get('/api/events');
    expect(bed.sink.bodies('/toggle').map((body) => body.data.jobId)).toEqual([second.id]);
    expect(await deliveriesOf(client, made.id)).toHaveLength(1);
  });

  test('deleted it is gone, with its secrets, and tells others of it', async () => {
    const client = inTenant();
    await register(client, '/witness', { eventTypes: ['webhook.deleted'] });
    const made = await register(client, '/deleted');
    expect((await client.delete(`/api/webhooks/${made.id}`)).status).toBe(204);
    expect((await client.get(`/api/webhooks/${made.id}`)).status).toBe(404);
    expect((await client.delete(`/api/webhooks/${made.id}`)).status).toBe(404);
    expect(await bed.app.deps.db('webhooks').where({ id: made.id }).first()).toMatchObject({
      secret: '',
      previous_secret: null,
    });
    const [told] = await eventually(
      () => bed.sink.bodies('/witness'),
      (bodies) => bodies.length > 0,
    );
    expect(told).toMatchObject({
      type: 'webhook.deleted',
      data: { webhookId: made.id, enabled: false },
    });
  });
});

test('a webhook of the platform sees all tenants, one of a tenant its own', async () => {
  const [blue, red] = [inTenant(), inTenant()];
  const platform = bed.app.client.as({ tenant: 'platform' });
  const all = await register(platform, '/platform', { eventTypes: ['job.created'] });
  await register(blue, '/blue');
  const [inBlue, inRed] = [await echo(blue), await echo(red)];
  await eventually(
    () => bed.sink.bodies('/platform').map((body) => body.data.jobId),
    (ids) => [inBlue.id, inRed.id].every((id) => ids.includes(id)),
  );
  await eventually(
    () => bed.sink.bodies('/blue'),
    (bodies) => bodies.length > 0,
  );
  expect(bed.sink.bodies('/blue').map((body) => body.data.jobId)).toEqual([inBlue.id]);
  const event = (await blue.get(`/api/events?subject=job:${inBlue.id}&type=job.created`)).body
    .items[0];
  const seen = (await blue.get(`/api/events/${event.id}`)).body.deliveries;
  expect(seen.map((d: any) => d.webhookId)).not.toContain(all.id);
  expect(
    (await platform.get(`/api/events/${event.id}`)).body.deliveries.map((d: any) => d.webhookId),
  ).toContain(all.id);
  expect(
    (
      await admin(bed.app).get(`/api/deliveries/${seen[0].id}`, {
        'x-service-tenant-id': 'platform',
      })
    ).status,
  ).toBe(200);
});
