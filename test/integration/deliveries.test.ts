import { describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { replayEvents } from '../../db/replay.ts';
import { startApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { ended, quick, withSink } from '../support/hooks.ts';
import { status } from '../support/sink.ts';

const { bed, inTenant, register, echo, deliveriesOf, untilDeliveries } = withSink();

describe('a delivery', () => {
  test('is signed, carries the event, and is recorded with its attempt', async () => {
    const client = inTenant();
    bed.sink.behave(
      '/signed',
      status(200, { 'content-type': 'text/html' }, '<b>hello</b>\n\u0007\u001b[2J\u009b\u202e'),
    );
    const made = await register(client, '/signed');
    const job = await echo(client);
    const [delivery] = await untilDeliveries(client, made.id, ended(1));
    const [got] = bed.sink.at('/signed');
    const body = new Webhook(made.secret).verify(
      got?.body ?? '',
      got?.headers as Record<string, string>,
    );
    expect(body).toEqual({
      type: 'job.created',
      timestamp: job.createdAt,
      sequence: expect.any(Number),
      tenantId: job.tenantId,
      data: {
        jobId: job.id,
        type: 'core.echo',
        status: 'queued',
        attempts: 0,
        source: { kind: 'api', id: null },
        error: null,
      },
    });
    expect(() =>
      new Webhook(made.secret).verify(
        `${got?.body ?? ''} `,
        got?.headers as Record<string, string>,
      ),
    ).toThrow();
    expect(delivery).toMatchObject({
      status: 'succeeded',
      reason: null,
      eventType: 'job.created',
      eventId: got?.headers['webhook-id'],
      attemptCount: 1,
    });
    expect(delivery.attempts).toEqual([
      {
        number: 1,
        jobId: delivery.jobId,
        startedAt: expect.any(String),
        finishedAt: expect.any(String),
        durationMs: expect.any(Number),
        httpStatus: 200,
        error: null,
        requestHeaders: {
          'content-type': 'application/json',
          'user-agent': 'Holdfast-Webhooks',
          'webhook-id': delivery.eventId,
          'webhook-timestamp': got?.headers['webhook-timestamp'],
        },
        answer: '<b>hello</b>\n\\u0007\\u001b[2J\\u009b\\u202e',
        answerTruncated: false,
      },
    ]);
    const event = (await client.get(`/api/events/${delivery.eventId}`)).body;
    expect(event).toMatchObject({
      id: delivery.eventId,
      type: 'job.created',
      subject: { type: 'job', id: job.id },
      deliveries: [{ id: delivery.id, attempts: [{ number: 1 }] }],
    });
    expect((await client.get(`/api/deliveries/${delivery.id}`)).body).toEqual(delivery);
    const deliver = (await client.get(`/api/jobs/${delivery.jobId}`)).body;
    expect(deliver).toMatchObject({
      type: 'webhook.deliver',
      status: 'succeeded',
      source: { kind: 'webhook', id: made.id },
      payload: { deliveryId: delivery.id },
    });
    expect(await bed.app.deps.db('events').where({ subject_id: delivery.jobId })).toEqual([]);
  });

  test('is tried again with the same id until it succeeds', async () => {
    const client = inTenant();
    bed.sink.behave('/flaky', (_got, response, nth) =>
      response.writeHead(nth < 3 ? 500 : 200).end(),
    );
    const made = await register(client, '/flaky', quick);
    await echo(client);
    const [delivery] = await untilDeliveries(client, made.id, ended(1));
    expect(delivery).toMatchObject({ status: 'succeeded', attemptCount: 3 });
    expect(delivery.attempts.map((a: any) => a.error?.code ?? null)).toEqual([
      'http_status',
      'http_status',
      null,
    ]);
    expect(new Set(bed.sink.at('/flaky').map((got) => got.headers['webhook-id']))).toEqual(
      new Set([delivery.eventId]),
    );
    expect(new Set(bed.sink.at('/flaky').map((got) => got.body)).size).toBe(1);
    expect((await client.get(`/api/webhooks/${made.id}`)).body.failingSince).toBeNull();
  });

  test('fails when the plan is over, and says since when the webhook fails', async () => {
    const client = inTenant();
    bed.sink.behave('/down', status(500));
    const made = await register(client, '/down', quick);
    await echo(client);
    const [delivery] = await untilDeliveries(client, made.id, ended(1));
    expect(delivery).toMatchObject({ status: 'failed', reason: 'http_status', attemptCount: 3 });
    expect((await client.get(`/api/webhooks/${made.id}`)).body.failingSince).toEqual(
      expect.any(String),
    );
    const failed = await client.get(`/api/webhooks/${made.id}/deliveries?status=failed`);
    expect(failed.body.items.map((d: any) => d.id)).toEqual([delivery.id]);
    expect(
      (await client.get(`/api/webhooks/${made.id}/deliveries?status=succeeded`)).body.items,
    ).toEqual([]);
  });

  test('follows the plan unless the webhook shortens it', async () => {
    const client = inTenant();
    bed.sink.behave('/plan', status(500));
    const made = await register(client, '/plan');
    const job = await echo(client);
    const [delivery] = await untilDeliveries(
      client,
      made.id,
      (all) => all[0]?.attemptCount === 1 && all[0].attempts[0].finishedAt !== null,
    );
    const { retryPolicy, id } = (await client.get(`/api/jobs/${delivery.jobId}`)).body;
    expect(retryPolicy).toMatchObject({
      maxAttempts: 10,
      intervalsSeconds: [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400],
      jitter: 0.1,
    });
    const said = await eventually(
      async () =>
        (await client.get(`/api/jobs/${id}/logs`)).body.items
          .map((l: any) => /next attempt in ([\d.]+) s/.exec(l.message)?.[1])
          .find(Boolean) as string | undefined,
      Boolean,
    );
    expect(Number(said)).toBeGreaterThanOrEqual(5);
    expect(Number(said)).toBeLessThanOrEqual(5.5);
    expect(job.retryPolicy.intervalsSeconds).toBeUndefined();
  });

  test.each([429, 502, 503, 504])('obeys Retry-After with %d', async (code) => {
    const client = inTenant();
    const path = `/later${code}`;
    bed.sink.behave(path, (_got, response, nth) =>
      response.writeHead(nth === 1 ? code : 200, { 'retry-after': '1' }).end(),
    );
    const made = await register(client, path, quick);
    await echo(client);
    await untilDeliveries(client, made.id, ended(1));
    const [first, second] = bed.sink.at(path);
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test('does not obey Retry-After of other failures', async () => {
    const client = inTenant();
    bed.sink.behave('/never', (_got, response, nth) =>
      response.writeHead(nth === 1 ? 500 : 200, { 'retry-after': '3600' }).end(),
    );
    const made = await register(client, '/never', quick);
    await echo(client);
    expect(await untilDeliveries(client, made.id, ended(1))).toMatchObject([
      { status: 'succeeded' },
    ]);
  });

  test('is not led elsewhere by a redirect', async () => {
    const client = inTenant();
    bed.sink.behave('/moved', status(307, { location: bed.sink.url('/elsewhere') }));
    const made = await register(client, '/moved', { retryPolicy: { maxAttempts: 1 } });
    await echo(client);
    expect(await untilDeliveries(client, made.id, ended(1))).toMatchObject([
      { status: 'failed', attempts: [{ httpStatus: 307, error: { code: 'http_status' } }] },
    ]);
    expect(bed.sink.at('/elsewhere')).toEqual([]);
  });

  test('keeps the first 4 KiB of an answer that never ends', async () => {
    const client = inTenant();
    bed.sink.behave('/endless', (_got, response) => {
      response.writeHead(200);
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(1_024)));
      };
      response.on('drain', more);
      more();
    });
    const made = await register(client, '/endless');
    await echo(client);
    const [delivery] = await untilDeliveries(client, made.id, ended(1));
    // A page of deliveries stays small.
    expect(delivery).toMatchObject({
      status: 'succeeded',
      attempts: [{ answer: 'x'.repeat(200), answerTruncated: true }],
    });
    expect((await client.get(`/api/deliveries/${delivery.id}`)).body.attempts).toMatchObject([
      { answer: 'x'.repeat(4_096), answerTruncated: true },
    ]);
  });

  test('to an address inside is not made, whatever its name', async () => {
    const client = inTenant();
    const strict = await startApp({ HOLDFAST_OUTBOUND_ALLOW: '' });
    try {
      const stranger = strict.client.as({ tenant: 'inside' });
      const made = (
        await stranger.post('/api/webhooks', {
          endpointUrl: bed.sink.url('/inside').replace('127.0.0.1', 'localhost'),
          eventTypes: ['job.created'],
          ...quick,
        })
      ).body;
      await echo(stranger);
      expect(await untilDeliveries(stranger, made.id, ended(1))).toMatchObject([
        { status: 'failed', reason: 'address_not_allowed', attemptCount: 3 },
      ]);
      expect(bed.sink.at('/inside')).toEqual([]);
      expect(
        (
          await stranger.post('/api/webhooks', {
            endpointUrl: bed.sink.url('/inside'),
            eventTypes: ['*'],
          })
        ).body.errors[0].code,
      ).toBe('address_not_allowed');
    } finally {
      await strict.stop();
    }
    expect((await client.get('/api/webhooks')).status).toBe(200);
  });
});

describe('one that nobody wants any more', () => {
  test('410 disables the webhook, with an event that says why, and cancels what waits', async () => {
    const client = inTenant();
    bed.sink.behave('/gone', (_got, response, nth) =>
      response.writeHead(nth === 1 ? 500 : 410).end(),
    );
    await register(client, '/watcher', { eventTypes: ['webhook.disabled'] });
    const made = await register(client, '/gone', { retryPolicy: { maxIntervalSeconds: 3_600 } });
    await echo(client);
    await untilDeliveries(client, made.id, (all) => all[0]?.attempts[0]?.httpStatus === 500);
    await echo(client);
    const deliveries = await untilDeliveries(client, made.id, ended(2));
    expect(deliveries.map((d) => [d.status, d.reason])).toEqual([
      ['failed', 'gone'],
      ['cancelled', 'webhook_gone'],
    ]);
    expect((await client.get(`/api/webhooks/${made.id}`)).body).toMatchObject({
      enabled: false,
      disabledReason: 'gone',
    });
    const [told] = await eventually(
      () => bed.sink.bodies('/watcher'),
      (bodies) => bodies.length > 0,
    );
    expect(told).toMatchObject({
      type: 'webhook.disabled',
      data: { webhookId: made.id, reason: 'gone' },
    });
    const waiting = (await client.get(`/api/jobs/${deliveries[1].jobId}`)).body;
    expect(waiting).toMatchObject({ status: 'cancelled' });
  });

  test('failing for five days disables it, and a success in between does not', async () => {
    const client = inTenant();
    bed.sink.behave('/failing', status(500));
    const made = await register(client, '/failing', { retryPolicy: { maxAttempts: 1 } });
    const days = (count: number) => new Date(Date.now() - count * 86_400_000);
    await bed.app.deps
      .db('webhooks')
      .where({ id: made.id })
      .update({ failing_since: days(4.9) });
    await echo(client);
    await untilDeliveries(client, made.id, ended(1));
    expect((await client.get(`/api/webhooks/${made.id}`)).body.enabled).toBe(true);
    bed.sink.behave('/failing', status(200));
    await bed.app.deps
      .db('webhooks')
      .where({ id: made.id })
      .update({ failing_since: days(5.1) });
    await echo(client);
    await untilDeliveries(client, made.id, ended(2));
    expect((await client.get(`/api/webhooks/${made.id}`)).body).toMatchObject({
      enabled: true,
      failingSince: null,
    });
    bed.sink.behave('/failing', status(500));
    await bed.app.deps
      .db('webhooks')
      .where({ id: made.id })
      .update({ failing_since: days(5.1) });
    await echo(client);
    await untilDeliveries(client, made.id, ended(3));
    expect((await client.get(`/api/webhooks/${made.id}`)).body).toMatchObject({
      enabled: false,
      disabledReason: 'failing',
    });
    const back = await client.put(`/api/webhooks/${made.id}`, { enabled: true });
    expect(back.body).toMatchObject({ enabled: true, disabledReason: null, failingSince: null });
  });

  test('disabled or deleted by somebody, its waiting deliveries are cancelled with that reason', async () => {
    const client = inTenant();
    bed.sink.behave('/waiting', status(503, { 'retry-after': '600' }));
    const made = await register(client, '/waiting');
    await Promise.all(Array.from({ length: 12 }, () => echo(client)));
    await untilDeliveries(
      client,
      made.id,
      (all) => all.length === 12 && all.filter((d) => d.attemptCount > 0).length >= 5,
    );
    await client.put(`/api/webhooks/${made.id}`, { enabled: false });
    const deliveries = await untilDeliveries(client, made.id, ended(12));
    expect(new Set(deliveries.map((d) => `${d.status} ${d.reason}`))).toEqual(
      new Set(['cancelled webhook_disabled']),
    );
    await eventually(
      () => bed.app.deps.db('webhooks').where({ id: made.id }).first(),
      (row) => row.cancel_before === null,
    );

    await client.put(`/api/webhooks/${made.id}`, { enabled: true });
    const job = await echo(client);
    const event = (await client.get(`/api/events?subject=${job.id}&type=job.created`)).body
      .items[0];
    await untilDeliveries(client, made.id, (all) => all.length === 13);
    await client.delete(`/api/webhooks/${made.id}`);
    const {
      deliveries: [last],
    } = await eventually(
      async () => (await client.get(`/api/events/${event.id}`)).body,
      (read) => read.deliveries[0].status === 'cancelled',
    );
    expect(last.reason).toBe('webhook_deleted');
  });
});

describe('once more', () => {
  test('rotation signs with both secrets for a day', async () => {
    const client = inTenant();
    const made = await register(client, '/rotated');
    const rotated = await client.post(`/api/webhooks/${made.id}/rotate-secret`, {});
    expect(rotated.body.secret).toMatch(/^whsec_/);
    expect(rotated.body.secret).not.toBe(made.secret);
    await echo(client);
    const [got] = await eventually(
      () => bed.sink.at('/rotated'),
      (all) => all.length === 1,
    );
    for (const secret of [made.secret, rotated.body.secret])
      new Webhook(secret).verify(got?.body ?? '', got?.headers as Record<string, string>);
    await bed.app.deps
      .db('webhooks')
      .where({ id: made.id })
      .update({ previous_secret_until: new Date() });
    await echo(client);
    const [, later] = await eventually(
      () => bed.sink.at('/rotated'),
      (all) => all.length === 2,
    );
    new Webhook(rotated.body.secret).verify(
      later?.body ?? '',
      later?.headers as Record<string, string>,
    );
    expect(() =>
      new Webhook(made.secret).verify(later?.body ?? '', later?.headers as Record<string, string>),
    ).toThrow();
    await client.put(`/api/webhooks/${made.id}`, { secret: 'chosen with PUT, and long enough' });
    await echo(client);
    const [, , both] = await eventually(
      () => bed.sink.at('/rotated'),
      (all) => all.length === 3,
    );
    for (const secret of [
      rotated.body.secret,
      `whsec_${Buffer.from('chosen with PUT, and long enough').toString('base64')}`,
    ]) {
      new Webhook(secret).verify(both?.body ?? '', both?.headers as Record<string, string>);
    }
    const own = 'a text of thirty-two bytes, yes!';
    const chosen = await client.post(`/api/webhooks/${made.id}/rotate-secret`, { secret: own });
    expect(chosen.body.secret).toBe(`whsec_${Buffer.from(own).toString('base64')}`);
  });

  test('a test sends one signed message at once and records no delivery', async () => {
    const client = inTenant();
    bed.sink.behave('/tested', status(418, {}, 'short and stout'));
    const made = await register(client, '/tested', { enabled: false });
    const report = await client.post(`/api/webhooks/${made.id}/test`);
    expect(report.body).toMatchObject({
      ok: false,
      httpStatus: 418,
      answer: 'short and stout',
      error: { code: 'http_status' },
    });
    const [got] = bed.sink.at('/tested');
    expect(
      new Webhook(made.secret).verify(got?.body ?? '', got?.headers as Record<string, string>),
    ).toMatchObject({ type: 'webhook.test', data: { webhookId: made.id } });
    bed.sink.behave('/tested', status(200));
    expect((await client.post(`/api/webhooks/${made.id}/test`)).body).toMatchObject({
      ok: true,
      httpStatus: 200,
      error: null,
    });
    expect(await deliveriesOf(client, made.id)).toEqual([]);
    expect(
      await bed.app.deps.db('audit_entries').where({ subject_id: made.id, action: 'webhook.test' }),
    ).toHaveLength(2);
  });

  test('a delivery that has ended can be made again; one under way cannot', async () => {
    const client = inTenant();
    bed.sink.behave('/again', status(500));
    const made = await register(client, '/again', { retryPolicy: { maxAttempts: 1 } });
    await echo(client);
    const [failed] = await untilDeliveries(client, made.id, ended(1));
    bed.sink.behave(
      '/again',
      (_got, response) => void setTimeout(() => response.writeHead(200).end(), 500),
    );
    const again = await client.post(`/api/deliveries/${failed.id}/redeliver`);
    expect([again.status, again.body.status]).toEqual([202, 'pending']);
    expect(again.body.jobId).not.toBe(failed.jobId);
    await eventually(
      () => bed.sink.at('/again'),
      (all) => all.length === 2,
    );
    const twice = await client.post(`/api/deliveries/${failed.id}/redeliver`);
    expect([twice.status, twice.body.code]).toEqual([409, 'delivery_pending']);
    const [done] = await untilDeliveries(client, made.id, ended(1));
    expect(done).toMatchObject({
      id: failed.id,
      status: 'succeeded',
      reason: null,
      attemptCount: 2,
    });
    expect(new Set(bed.sink.at('/again').map((got) => got.headers['webhook-id'])).size).toBe(1);
    await client.put(`/api/webhooks/${made.id}`, { enabled: false });
    expect((await client.post(`/api/deliveries/${failed.id}/redeliver`)).body.code).toBe(
      'webhook_disabled',
    );
    expect((await inTenant().post(`/api/deliveries/${failed.id}/redeliver`)).status).toBe(404);
  });

  test('a replay sends what was missed and what had ended, once', async () => {
    const client = inTenant();
    const made = await register(client, '/replayed');
    const before = await echo(client);
    await untilDeliveries(client, made.id, ended(1));
    await client.put(`/api/webhooks/${made.id}`, { enabled: false });
    const missed = [(await echo(client)).id, (await echo(client)).id];
    await client.get('/api/events');
    expect(
      (await client.post(`/api/webhooks/${made.id}/replay`, { afterSequence: 0 })).body.code,
    ).toBe('webhook_disabled');
    await client.put(`/api/webhooks/${made.id}`, { enabled: true });
    const job = await client.post(`/api/webhooks/${made.id}/replay`, { afterSequence: 0 });
    expect([job.status, job.body.type]).toEqual([202, 'webhook.replay']);
    const done = (await client.get(`/api/jobs/${job.body.id}`, { prefer: 'wait=20' })).body;
    expect(done).toMatchObject({ status: 'succeeded', result: { deliveries: 3, complete: true } });
    // The replay is a job as well, and tells of itself.
    await untilDeliveries(client, made.id, ended(4));
    const got = bed.sink
      .bodies('/replayed')
      .filter((body) => body.data.type === 'core.echo')
      .map((body) => body.data.jobId as string);
    expect(got.sort()).toEqual([before.id, before.id, ...missed].sort());
    const event = (await client.get(`/api/events?subject=${missed[0]}&type=job.created`)).body
      .items[0];
    const fromThen = await client.post(
      `/api/webhooks/${made.id}/replay`,
      { since: event.createdAt },
      { prefer: 'wait=20' },
    );
    expect(fromThen.body.result.deliveries).toBeGreaterThanOrEqual(2);
    expect(fromThen.body.payload.afterSequence).toBeLessThan(event.sequence);
    expect(fromThen.body.payload.afterSequence).toBeGreaterThanOrEqual(event.sequence - 3);
    const since = await client.post(`/api/webhooks/${made.id}/replay`, {
      since: new Date(Date.now() + 60_000).toISOString(),
    });
    expect(
      (await client.get(`/api/jobs/${since.body.id}`, { prefer: 'wait=20' })).body.result,
    ).toMatchObject({ deliveries: 0, complete: true });
    for (const body of [{}, { afterSequence: 1, since: new Date().toISOString() }])
      expect((await client.post(`/api/webhooks/${made.id}/replay`, body)).status).toBe(400);
  });

  test('one that waits for its next attempt can be made now, alone or by a replay; the job before it ends by itself', async () => {
    const client = inTenant();
    bed.sink.behave('/waits', status(500));
    const made = await register(client, '/waits', { retryPolicy: { maxIntervalSeconds: 2 } });
    for (let n = 0; n < 2; n++) await echo(client);
    const waiting = await untilDeliveries(
      client,
      made.id,
      (all) => all.length === 2 && all.every((d) => d.attempts[0]?.httpStatus === 500),
    );
    bed.sink.behave('/waits', status(200));
    const now = await client.post(`/api/deliveries/${waiting[0].id}/redeliver`, undefined, {
      prefer: 'wait=10',
    });
    expect([now.status, now.headers.get('location')]).toEqual([
      202,
      `/api/deliveries/${waiting[0].id}`,
    ]);
    expect(now.body).toMatchObject({ status: 'succeeded', attemptCount: 2 });
    const replay = await client.post(
      `/api/webhooks/${made.id}/replay`,
      { afterSequence: waiting[1].sequence - 1 },
      { prefer: 'wait=10' },
    );
    expect(replay.body).toMatchObject({ status: 'succeeded', result: { deliveries: 2 } });
    await eventually(
      () => deliveriesOf(client, made.id),
      (all) => all.filter((d) => d.status === 'succeeded').length >= 2,
    );
    for (const { jobId } of waiting) {
      const before = await eventually(
        async () => (await client.get(`/api/jobs/${jobId}`)).body,
        (job) => job.status !== 'running',
      );
      expect(before).toMatchObject({ status: 'succeeded', result: { superseded: true } });
    }
  });

  test('disabled, repaired, enabled and replayed while the cancellation is still under way, everything arrives', async () => {
    const client = inTenant();
    bed.sink.behave('/repaired', status(500));
    const made = await register(client, '/repaired', {
      retryPolicy: { maxIntervalSeconds: 3_600 },
    });
    const jobs: string[] = [];
    for (let n = 0; n < 30; n++) jobs.push((await echo(client)).id);
    await untilDeliveries(
      client,
      made.id,
      (all) => all.length === 30 && all.filter((d) => d.attemptCount > 0).length > 20,
    );
    await client.put(`/api/webhooks/${made.id}`, { enabled: false });
    bed.sink.behave('/repaired', status(200));
    const received = bed.sink.at('/repaired').length;
    await client.put(`/api/webhooks/${made.id}`, { enabled: true });
    const replay = await client.post(
      `/api/webhooks/${made.id}/replay`,
      { afterSequence: 0 },
      { prefer: 'wait=20' },
    );
    expect(replay.body.result.complete).toBe(true);
    const got = () =>
      new Set(
        bed.sink
          .bodies('/repaired')
          .slice(received)
          .map((body) => body.data.jobId),
      );
    await eventually(got, (ids) => jobs.every((id) => ids.has(id)));
  });

  test('a replay that is begun again leaves alone what it has done', async () => {
    const client = inTenant();
    const made = await register(client, '/resumed');
    for (let n = 0; n < 3; n++) await echo(client);
    await untilDeliveries(client, made.id, ended(3));
    const { db, ids } = bed.app.deps;
    const from = { after: 0, upTo: Number.MAX_SAFE_INTEGER, limit: 200, now: new Date(), ids };
    const webhook = { id: made.id, tenantId: made.tenantId, eventTypes: made.eventTypes };
    const replay = async (jobId: string) => {
      const { owed } = await db.transaction((trx) =>
        replayEvents(trx, { ...from, webhook, jobId }),
      );
      await untilDeliveries(client, made.id, ended(3));
      return owed;
    };
    expect(await replay('job_one')).toBe(3);
    expect(await replay('job_one')).toBe(0);
    expect(await replay('job_two')).toBe(3);
    expect(bed.sink.at('/resumed')).toHaveLength(9);
  });

  test('jobs of deliveries are made by their operations only', async () => {
    const client = inTenant();
    const direct = await client.post('/api/jobs', {
      type: 'webhook.deliver',
      payload: { deliveryId: 'dlv_x' },
    });
    expect([direct.status, direct.body.errors[0].code]).toEqual([400, 'not_direct']);
    const made = await register(client, '/direct');
    await echo(client);
    const [delivery] = await untilDeliveries(client, made.id, ended(1));
    expect((await client.post(`/api/jobs/${delivery.jobId}/retry`)).body).toMatchObject({
      status: 409,
      code: 'job_not_retryable',
    });
  });

  test('a cancelled delivery job cancels its delivery', async () => {
    const client = inTenant();
    bed.sink.behave('/cancelled', status(500));
    const made = await register(client, '/cancelled');
    await echo(client);
    const [waiting] = await untilDeliveries(
      client,
      made.id,
      (all) => all[0]?.attempts[0]?.httpStatus === 500,
    );
    expect((await client.post(`/api/jobs/${waiting.jobId}/cancel`)).status).toBe(202);
    expect(await untilDeliveries(client, made.id, ended(1))).toMatchObject([
      { status: 'cancelled' },
    ]);
  });
});
