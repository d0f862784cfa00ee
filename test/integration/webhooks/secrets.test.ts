import { describe, expect, test } from '@jest/globals';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import type { TestReport, WebhookRecord } from '../../../api/webhooks/schemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { ROTATION_OVERLAP_MS } from '../../../domain/webhooks/webhooks.ts';
import { createVault } from '../../../platform/vault.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { expectProblem } from '../../support/problem.ts';
import { respondWith } from '../../support/sink.ts';
import { verifyMessage, withWebhookReceiver } from '../../support/webhooks.ts';

const { fixture, asNewTenant, register, createJob, getDeliveries, patchRow } =
  withWebhookReceiver();

const formatted = (text: string) => `whsec_${Buffer.from(text).toString('base64')}`;

test('after a rotation both secrets sign for a day', async () => {
  const client = asNewTenant();
  const webhook = await register(client, '/rotated');
  const path = `/api/webhooks/${webhook.id}`;
  const nextRequest = async (count: number) => {
    await createJob(client);
    const requests = await eventually(
      () => fixture.sink.requestsTo('/rotated'),
      (all) => all.length === count,
    );
    return requests.at(-1);
  };
  const rotated = await client.post<WebhookRecord>(`${path}/rotate-secret`, {}).expect(200);
  expect(rotated.secret).toMatch(/^whsec_/);
  expect(rotated.secret).not.toBe(webhook.secret);
  expect(webhook.previousSecretUntil).toBeNull();
  const overlapMs = Date.parse(rotated.previousSecretUntil ?? '') - Date.parse(rotated.updatedAt);
  expect(overlapMs).toBe(ROTATION_OVERLAP_MS);
  const first = await nextRequest(1);
  for (const secret of [webhook.secret, rotated.secret]) verifyMessage(secret, first);

  await patchRow(webhook.id, { previous_secret_until: new Date() });
  const second = await nextRequest(2);
  verifyMessage(rotated.secret, second);
  expect(() => verifyMessage(webhook.secret, second)).toThrow();

  await client.put(path, { secret: 'chosen with PUT, and long enough' }).expect(200);
  const third = await nextRequest(3);
  for (const secret of [rotated.secret, formatted('chosen with PUT, and long enough')])
    verifyMessage(secret, third);

  const own = 'a text of thirty-two bytes, yes!';
  const chosen = await client
    .post<WebhookRecord>(`${path}/rotate-secret`, { secret: own })
    .expect(200);
  expect(chosen.secret).toBe(formatted(own));
});

test('the present secret that is sent again does not end the time of the one before', async () => {
  const client = asNewTenant();
  const webhook = await register(client, '/kept');
  const path = `/api/webhooks/${webhook.id}`;
  const secret = 'chosen with PUT, and long enough';
  const changed = await client.put<WebhookRecord>(path, { secret }).expect(200);
  for (const sent of [secret, formatted(secret)]) {
    const again = await client.put<WebhookRecord>(path, { secret: sent }).expect(200);
    expect(again.previousSecretUntil).toBe(changed.previousSecretUntil);
  }
  await client.post(`${path}/rotate-secret`, { secret }).expect(200);
  await createJob(client);
  const [request] = await eventually(
    () => fixture.sink.requestsTo('/kept'),
    (all) => all.length === 1,
  );
  for (const each of [webhook.secret, formatted(secret)]) verifyMessage(each, request);
});

test('a rotation that is repeated with its Idempotency-Key masks the secret', async () => {
  const client = asNewTenant();
  const webhook = await register(client, '/rotated-once');
  const rotate = () =>
    client
      .post<WebhookRecord>(
        `/api/webhooks/${webhook.id}/rotate-secret`,
        {},
        { 'idempotency-key': 'rotation' },
      )
      .expect(200);
  expect((await rotate()).secret).toMatch(/^whsec_/);
  expect(await rotate()).toMatchObject({ id: webhook.id, secret: '********', version: 2 });
});

test.each([
  ['a word', 's3cr3t!!', ['short_secret']],
  ['256 characters', '\u{1f511}'.repeat(256), []],
  ['whsec_ without base64', 'whsec_not base64, but long enough', ['secret_not_base64']],
])('a secret may be any text: %s; its bytes are the key', async (what, secret, warnings) => {
  const client = asNewTenant();
  const path = `/text-${encodeURIComponent(what)}`;
  const webhook = await register(client, path, { secret });
  const codes = (answer: WebhookRecord) => (answer.warnings ?? []).map(({ code }) => code);
  expect([webhook.secret, codes(webhook)]).toEqual([formatted(secret), warnings]);
  await createJob(client);
  const [request] = await eventually(
    () => fixture.sink.requestsTo(path),
    (all) => all.length === 1,
  );
  const { body, headers } = assertDefined(request, 'the request');
  new StandardWebhook(Buffer.from(secret), { format: 'raw' }).verify(
    body,
    headers as Record<string, string>,
  );
  const record = `/api/webhooks/${webhook.id}`;
  const answers = [
    await client.put<WebhookRecord>(record, { secret }).expect(200),
    await client.post<WebhookRecord>(`${record}/rotate-secret`, { secret }).expect(200),
  ];
  for (const answer of answers) expect(codes(answer)).toEqual(warnings);
  expect(await client.get<WebhookRecord>(record).expect(200)).not.toHaveProperty('warnings');
});

test('a test that is repeated with its Idempotency-Key sends one message', async () => {
  const client = asNewTenant();
  fixture.sink.respond('/tested-once', respondWith(418));
  const webhook = await register(client, '/tested-once');
  const runTest = () =>
    client.post<TestReport>(
      `/api/webhooks/${webhook.id}/test`,
      {},
      { 'idempotency-key': 'a-test' },
    );
  const report = await runTest().expect(200);
  expect(report.httpStatus).toBe(418);
  expect(await runTest().expect(200)).toEqual(report);
  expect(fixture.sink.requestsTo('/tested-once')).toHaveLength(1);
  // As if the process had stopped between the commit and the response.
  await fixture.app.deps.db('idempotency_keys').where({ key: 'a-test' }).update({ answer: null });
  await expectProblem(runTest(), 409, 'conflict');
  expect(fixture.sink.requestsTo('/tested-once')).toHaveLength(1);
});

test('a test sends one signed message and records no delivery', async () => {
  const client = asNewTenant();
  fixture.sink.respond('/tested', respondWith(418, {}, 'short and stout'));
  const webhook = await register(client, '/tested', { enabled: false });
  const runTest = () => client.post<TestReport>(`/api/webhooks/${webhook.id}/test`).expect(200);
  expect(await runTest()).toMatchObject({
    ok: false,
    httpStatus: 418,
    responseBody: 'short and stout',
    error: { code: 'http_status' },
  });
  const [request] = fixture.sink.requestsTo('/tested');
  expect(verifyMessage(webhook.secret, request)).toMatchObject({
    type: 'webhook.test',
    subject: { type: 'webhook', id: webhook.id },
    actorId: 'alice',
    data: { webhookId: webhook.id },
  });
  fixture.sink.respond('/tested', respondWith(200));
  expect(await runTest()).toMatchObject({ ok: true, httpStatus: 200, error: null });
  expect(await getDeliveries(client, webhook.id)).toEqual([]);
  const { db } = fixture.app.deps;
  const entries = await db('audit_entries').where({
    subject_id: webhook.id,
    action: 'webhook.test',
  });
  expect(entries).toHaveLength(2);
});

describe.each([
  ['is missing', 'lost'],
  ['is replaced by one of the same name', 'test'],
])('a secret whose master key %s', (what, keyId) => {
  /** A secret as a process with another key has encrypted it. */
  const foreign = ({ id }: WebhookRecord) =>
    createVault([{ id: keyId, key: Buffer.alloc(32, 9) }]).seal(formatted(what), `webhook:${id}`);
  const runTest = (client: TestClient, { id }: WebhookRecord) =>
    client.post<TestReport>(`/api/webhooks/${id}/test`).expect(200);

  test('fails a test, and can be replaced: the new one signs immediately', async () => {
    const client = asNewTenant();
    const endpoint = `/replaced-${keyId}`;
    const webhook = await register(client, endpoint);
    await patchRow(webhook.id, { secret: foreign(webhook) });
    expect(await runTest(client, webhook)).toMatchObject({
      ok: false,
      httpStatus: null,
      error: { code: 'secret_unreadable' },
    });
    expect(fixture.sink.requestsTo(endpoint)).toEqual([]);
    const secret = 'chosen with PUT, and long enough';
    const changed = await client
      .put<WebhookRecord>(`/api/webhooks/${webhook.id}`, { secret })
      .expect(200);
    expect(changed.previousSecretUntil).toBeNull();
    expect(await runTest(client, webhook)).toMatchObject({ ok: true });
    await createJob(client);
    const requests = await eventually(
      () => fixture.sink.requestsTo(endpoint),
      (all) => all.length === 2,
    );
    for (const request of requests) verifyMessage(formatted(secret), request);
  });

  test('hinders nothing when it is the previous one', async () => {
    const client = asNewTenant();
    const webhook = await register(client, `/previous-${keyId}`);
    await patchRow(webhook.id, {
      previous_secret: foreign(webhook),
      previous_secret_until: new Date(Date.now() + ROTATION_OVERLAP_MS),
    });
    expect(await runTest(client, webhook)).toMatchObject({ ok: true });
    verifyMessage(webhook.secret, fixture.sink.requestsTo(`/previous-${keyId}`)[0]);
  });
});
