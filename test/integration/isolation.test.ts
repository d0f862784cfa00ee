import type { ServerResponse } from 'node:http';
import { describe, expect, test } from '@jest/globals';
import { beginAttempt, endAttempt } from '../../db/webhooks/deliveryAttempts.ts';
import { eventually } from '../support/eventually.ts';
import { ended, withSink } from '../support/hooks.ts';

const { bed, inTenant, register, echo, deliveriesOf, untilDeliveries } = withSink();
const db = () => bed.app.deps.db;

/** An endpoint that answers nobody until it is let go. */
function hang(path: string) {
  const held = new Set<ServerResponse>();
  let most = 0;
  let open = false;
  bed.sink.behave(path, (_got, response) => {
    if (open) return void response.writeHead(204).end();
    held.add(response);
    most = Math.max(most, held.size);
    response.once('close', () => held.delete(response));
  });
  return {
    /** Requests that wait for their answer, and the most that ever did. */
    held: () => held.size,
    most: () => most,
    letGo() {
      open = true;
      for (const response of held) response.writeHead(204).end();
    },
  };
}

const jobsOf = async (webhookId: string) =>
  (await db()('jobs').where({ source_id: webhookId })).length;

describe('an endpoint that hangs', () => {
  test('has fifty deliveries under way and the others wait for it, while another one is served', async () => {
    const client = inTenant();
    const hanging = hang('/hang');
    const slow = await register(client, '/hang');
    await Promise.all(Array.from({ length: 70 }, () => echo(client)));
    await eventually(hanging.held, (held) => held === 50);
    // A webhook that comes behind all of them.
    const quick = await register(client, '/beside', {
      eventTypes: ['job.cancelled', 'job.created'],
    });
    const began = performance.now();
    await echo(client);
    await untilDeliveries(client, quick.id, ended(1));
    expect(performance.now() - began).toBeLessThan(3_000);
    const waiting = await client.get(
      `/api/webhooks/${slow.id}/deliveries?limit=100&status=pending`,
    );
    expect(waiting.body.items).toHaveLength(71);
    hanging.letGo();
    await eventually(
      async () =>
        (await client.get(`/api/webhooks/${slow.id}/deliveries?limit=100&status=succeeded`)).body
          .items.length,
      (count) => count === 71,
      { withinMs: 40_000 },
    );
    expect(hanging.most()).toBe(50);
  });

  test('that has only failed has five', async () => {
    const client = inTenant();
    const hanging = hang('/hang-failing');
    const made = await register(client, '/hang-failing');
    await db()('webhooks').where({ id: made.id }).update({ failing_since: new Date() });
    await Promise.all(Array.from({ length: 12 }, () => echo(client)));
    await eventually(hanging.held, (held) => held === 5);
    expect(await jobsOf(made.id)).toBe(5);
    hanging.letGo();
    await untilDeliveries(client, made.id, ended(12));
    expect((await client.get(`/api/webhooks/${made.id}`)).body.failingSince).toBeNull();
  });

  test('gets its retries in its places too, and redeliveries', async () => {
    const client = inTenant();
    bed.sink.behave('/hang-retries', (_got, response) => response.writeHead(500).end());
    const made = await register(client, '/hang-retries', {
      retryPolicy: { maxIntervalSeconds: 2 },
    });
    await Promise.all(Array.from({ length: 12 }, () => echo(client)));
    await untilDeliveries(
      client,
      made.id,
      (all) =>
        all.length === 12 && all.every((d) => d.attempts.some((a: any) => a.httpStatus === 500)),
    );
    const hanging = hang('/hang-retries');
    const { body } = await client.get(`/api/webhooks/${made.id}`);
    for (const delivery of body.deliveries.slice(0, 8))
      await client.post(`/api/deliveries/${delivery.id}/redeliver`);
    await eventually(hanging.held, (held) => held === 5);
    // By now all twelve have been due, and eight asked for besides.
    await eventually(
      () =>
        db()('job_logs')
          .whereLike('message', 'Attempt % started')
          .whereIn(
            'job_id',
            body.deliveries.map((d: any) => d.jobId),
          ),
      (rows) => rows.length >= 12,
    );
    expect(hanging.held()).toBe(5);
    expect(
      (await db()('deliveries').where({ webhook_id: made.id, under_way: true, status: 'pending' }))
        .length,
    ).toBe(5);
    hanging.letGo();
    await eventually(
      async () =>
        (await deliveriesOf(client, made.id)).filter((d) => d.status === 'succeeded').length,
      (count) => count === 12,
      { withinMs: 50_000 },
    );
  });

  test('disabled, what waits without a job is cancelled as well', async () => {
    const client = inTenant();
    const hanging = hang('/hang-disabled');
    const made = await register(client, '/hang-disabled', { retryPolicy: { maxAttempts: 1 } });
    await Promise.all(Array.from({ length: 60 }, () => echo(client)));
    await eventually(hanging.held, (held) => held === 50);
    await client.put(`/api/webhooks/${made.id}`, { enabled: false });
    const without = await eventually(
      () => db()('deliveries').where({ webhook_id: made.id, job_id: null, status: 'cancelled' }),
      (rows) => rows.length > 0,
    );
    expect(new Set(without.map((row: any) => row.reason))).toEqual(new Set(['webhook_disabled']));
    hanging.letGo();
    await eventually(
      () => db()('deliveries').where({ webhook_id: made.id, status: 'pending' }),
      (rows) => rows.length === 0,
    );
  });

  test('and drips is cut off after fifteen seconds, headers or not', async () => {
    const client = inTenant();
    bed.sink.behave('/drip', (_got, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write('.'), 200);
      response.on('close', () => clearInterval(timer));
    });
    const made = await register(client, '/drip', { retryPolicy: { maxAttempts: 1 } });
    await echo(client);
    const [delivery] = await untilDeliveries(client, made.id, ended(1));
    expect(delivery).toMatchObject({
      status: 'failed',
      reason: 'timed_out',
      attempts: [{ httpStatus: null, error: { code: 'timed_out' } }],
    });
    expect(delivery.attempts[0].durationMs).toBeGreaterThan(14_500);
    expect(delivery.attempts[0].durationMs).toBeLessThan(17_000);
  });
});

/** What an attempt's worker finds when it comes after one that died. */
test('an attempt that was cut off is closed by the next, and one that succeeded is not made again', async () => {
  const client = inTenant();
  hang('/cut');
  const made = await register(client, '/cut');
  await echo(client);
  const [{ id: deliveryId, jobId }] = await untilDeliveries(
    client,
    made.id,
    (all) => all[0]?.attemptCount === 1,
  );
  const begin = (job: string) => beginAttempt(db(), { deliveryId, jobId: job, now: new Date() });
  const end = (number: number, httpStatus: number) =>
    endAttempt(db(), {
      deliveryId,
      number,
      webhookId: made.id,
      blameless: false,
      now: new Date(),
      outcome: {
        durationMs: 1,
        httpStatus,
        error: httpStatus < 300 ? null : { code: 'http_status', message: 'x' },
        requestHeaders: {},
        answer: '',
        answerTruncated: false,
      },
    });
  const failingSince = async () =>
    (await db()('webhooks').where({ id: made.id }).first()).failing_since;

  expect(await begin('job_of_somebody_else')).toBeUndefined();
  expect(await begin(jobId)).toMatchObject({ number: 2 });
  const [first] = await db()('delivery_attempts').where({ delivery_id: deliveryId, number: 1 });
  expect(first).toMatchObject({ error: { code: 'interrupted' }, finished_at: expect.any(Date) });
  await end(2, 500);
  const since = await failingSince();
  expect(since).toEqual(expect.any(Date));
  expect(await begin(jobId)).toMatchObject({ number: 3 });
  await end(3, 500);
  expect(await failingSince()).toEqual(since);
  expect(await begin(jobId)).toMatchObject({ number: 4 });
  await end(4, 204);
  expect(await failingSince()).toBeNull();
  expect(await begin(jobId)).toMatchObject({ number: null, enabled: true });
  await client.put(`/api/webhooks/${made.id}`, { enabled: false });
  expect(await begin(jobId)).toMatchObject({ number: null, enabled: false });
});
