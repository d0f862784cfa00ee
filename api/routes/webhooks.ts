import { crc32 } from 'node:zlib';
import { Type, type Static } from 'typebox';
import { invalidField } from '../../domain/errors.ts';
import { SUPPORTED_EVENT_TYPES } from '../../domain/events.ts';
import { DELIVERY_STATUSES, DeliveryRetryPolicy } from '../../domain/webhooks.ts';
import type { Deliveries } from '../../services/deliveries.ts';
import type { Jobs, JobWithLogs } from '../../services/jobs.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import type { ReplayFrom, WebhookReplays } from '../../services/webhookReplays.ts';
import type { WebhookTest } from '../../services/webhookTest.ts';
import type { WebhookFields, Webhooks, WebhookWithSecret } from '../../services/webhooks.ts';
import { accepted, created, noContent, ok, type Answer } from '../kit/answer.ts';
import { etagOf, expectedVersion } from '../kit/etag.ts';
import { listOf, pageOf, pageQuery } from '../kit/pagination.ts';
import { dateOf } from '../kit/queryTime.ts';
import { route, type Route } from '../kit/route.ts';
import { jobPresenter } from '../presenters/jobs.ts';
import { deliveryRecord, webhookRecord } from '../presenters/webhooks.ts';
import { TenantId } from '../schemas/access.ts';
import { Id, Name, Nullable, Timestamp } from '../schemas/common.ts';
import { JobRecord } from '../schemas/jobs.ts';
import { AttemptRecord, DeliveryRecord, EndpointUrl, EventTypes, WebhookRecord, WebhookWithDeliveries } from '../schemas/webhooks.ts';

const area = 'Webhooks';
const closed = { additionalProperties: false };
const tenantNamed = true;

const Secret = Type.String({ minLength: 1, maxLength: 256, description: 'whsec_ and 24 to 64 bytes in base64, or a text of 24 to 64 bytes. Made up unless given.' });
const fields = {
  endpointUrl: EndpointUrl, eventTypes: EventTypes, enabled: Type.Optional(Type.Boolean({ default: true })), secret: Type.Optional(Secret),
  description: Type.Optional(Type.String({ maxLength: 255, pattern: '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]*$' })),
  retryPolicy: Type.Optional(Type.Partial(DeliveryRetryPolicy, { ...closed, description: 'Shortens the plan: 0, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h.' })),
};
const WebhookRequest = Type.Object(fields, { title: 'WebhookRequest', ...closed });
const WebhookChange = Type.Object(
  {
    endpointUrl: Type.Optional(EndpointUrl), eventTypes: Type.Optional(EventTypes), enabled: Type.Optional(Type.Boolean()),
    secret: Type.Optional(Type.String({ ...Secret, description: 'The old one signs beside it for a day. ******** changes nothing.' })),
    description: fields.description,
    retryPolicy: fields.retryPolicy,
  },
  { title: 'WebhookChange', ...closed },
);
const WebhookQuery = Type.Object(
  { enabled: Type.Optional(Type.Boolean()), eventType: Type.Optional(Name({ description: 'Those that get this type.' })), tenantId: Type.Optional(TenantId()), ...pageQuery },
  closed,
);
const WebhookList = Type.Object(
  { ...listOf(WebhookRecord, 'WebhookList').properties, supportedEventTypes: Type.Array(Type.String()) }, { title: 'WebhookList' },
);
const DeliveryQuery = Type.Object({ status: Type.Optional(Type.Enum([...DELIVERY_STATUSES])), ...pageQuery }, closed);
const RotateRequest = Type.Object({ secret: Type.Optional(Secret) }, { title: 'RotateSecretRequest', ...closed });
const ReplayRequest = Type.Object(
  {
    afterSequence: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Events after this one.' })),
    since: Type.Optional(Type.String({ ...Timestamp, description: 'Events from this time on.' })),
  },
  { title: 'ReplayRequest', ...closed },
);
const TestReport = Type.Object(
  {
    ok: Type.Boolean(),
    ...Type.Pick(AttemptRecord, ['durationMs', 'httpStatus', 'error', 'requestHeaders', 'answer', 'answerTruncated']).properties,
    retryAfterMs: Nullable(Type.Number()),
  },
  { title: 'WebhookTestReport', ...closed },
);
const OneWebhook = Type.Object({ id: Id('whk') }, closed);
const OneDelivery = Type.Object({ id: Id('dlv') }, closed);

type Deps = { webhooks: Webhooks; webhookTest: WebhookTest; webhookReplays: WebhookReplays; deliveries: Deliveries; jobs: Jobs; jobTypes: JobTypes };

/** Endpoints that are told of events, and what was sent to them. */
export function webhookRoutes({ webhooks, webhookTest, webhookReplays, deliveries, jobs, jobTypes }: Deps): Route[] {
  const present = jobPresenter(jobTypes);
  const begun = ({ job, logs }: JobWithLogs): Answer => accepted(present.record(job, logs), { location: `/api/jobs/${job.id}` });
  const tagged = (webhook: WebhookWithSecret['webhook']) => ({ etag: etagOf(webhook.version, webhook.failingSince?.getTime() ?? 0) });
  const one = ({ webhook, secret }: WebhookWithSecret): Answer => ok(webhookRecord(webhook, secret), { ...tagged(webhook), ...(secret !== null && { 'cache-control': 'no-store' }) });
  const made = ({ webhook, secret }: WebhookWithSecret): Answer => ({
    ...created(`/api/webhooks/${webhook.id}`, webhookRecord(webhook, secret), { ...tagged(webhook), 'cache-control': 'no-store' }),
    showOnce: secret !== null,
  });
  const deliveryPage = (caller: Parameters<Deliveries['list']>[0], id: string, { status, ...page }: Static<typeof DeliveryQuery>) =>
    pageOf(`deliveries:${id}`, 'dlv', page, (asked) => deliveries.list(caller, id, status, asked), deliveryRecord);

  return [
    route({
      method: 'GET', path: '/api/webhooks', area, tenantNamed, permission: 'webhook:read', summary: 'List webhooks, newest first, with the supported event types',
      query: WebhookQuery, answers: { 200: WebhookList },
      handle: async ({ caller, query: { limit, cursor, ...filter } }) => ok({
        ...(await pageOf('webhooks', 'whk', { limit, cursor }, (page) => webhooks.list(caller, filter, page), (webhook) => webhookRecord(webhook))),
        supportedEventTypes: SUPPORTED_EVENT_TYPES,
      }),
    }),
    route({
      method: 'POST', path: '/api/webhooks', area, tenantNamed, permission: 'webhook:write', summary: 'Register a webhook; the answer shows its secret, this once',
      body: WebhookRequest, secretBody: true, answers: { 201: WebhookRecord },
      recover: async (caller, id) => made({ webhook: await webhooks.read(caller, id), secret: null }),
      handle: async ({ caller, body }) => made(await webhooks.create(caller, body as WebhookFields)),
    }),
    route({
      method: 'GET', path: '/api/webhooks/{id}', area, tenantNamed, permission: 'webhook:read', summary: 'Read a webhook with its deliveries',
      params: OneWebhook, query: DeliveryQuery, answers: { 200: WebhookWithDeliveries },
      handle: async ({ caller, params, query }) => {
        const webhook = await webhooks.read(caller, params.id);
        const { items, nextCursor } = await deliveryPage(caller, params.id, query);
        const body = { ...webhookRecord(webhook), deliveries: items, nextCursor };
        // Deliveries come and go without a new version of the webhook.
        return ok(body, { etag: etagOf(webhook.version, crc32(JSON.stringify(body))) });
      },
    }),
    route({
      method: 'PUT', path: '/api/webhooks/{id}', area, tenantNamed, permission: 'webhook:write', summary: 'Change, disable or enable a webhook',
      params: OneWebhook, body: WebhookChange, secretBody: true, answers: { 200: WebhookRecord }, headers: ['If-Match'],
      handle: async ({ caller, params, body, ifMatch }) =>
        one({ webhook: await webhooks.update(caller, params.id, body as Partial<WebhookFields>, expectedVersion(ifMatch)), secret: null }),
    }),
    route({
      method: 'DELETE', path: '/api/webhooks/{id}', area, tenantNamed, permission: 'webhook:delete', summary: 'Delete a webhook; its waiting deliveries are cancelled',
      params: OneWebhook, answers: { 204: null }, headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) => {
        await webhooks.remove(caller, params.id, expectedVersion(ifMatch));
        return noContent();
      },
    }),
    route({
      method: 'POST', path: '/api/webhooks/{id}/test', area, tenantNamed, permission: 'webhook:write', summary: 'Send a test message now, and see what comes back',
      params: OneWebhook, answers: { 200: TestReport },
      handle: async ({ caller, params, signal }) => {
        const exchange = await webhookTest.run(caller, params.id, signal);
        return ok({ ok: exchange.error === null, ...exchange, retryAfterMs: exchange.retryAfterMs ?? null });
      },
    }),
    route({
      method: 'POST', path: '/api/webhooks/{id}/rotate-secret', area, tenantNamed, permission: 'webhook:write',
      summary: 'Give a webhook a new secret, which the answer shows; the old one signs beside it for a day',
      params: OneWebhook, body: RotateRequest, secretBody: true, answers: { 200: WebhookRecord }, headers: ['If-Match'],
      handle: async ({ caller, params, body, ifMatch }) => one(await webhooks.rotateSecret(caller, params.id, body.secret, expectedVersion(ifMatch))),
    }),
    route({
      method: 'POST', path: '/api/webhooks/{id}/replay', area, tenantNamed, permission: 'webhook:write',
      summary: 'Send events of the log to a webhook again, as a job',
      params: OneWebhook, body: ReplayRequest, answers: { 202: JobRecord },
      recover: async (caller, id) => begun(await jobs.read(caller, id)),
      handle: async ({ caller, params, body }) => begun({ job: await webhookReplays.replay(caller, params.id, replayFrom(body)), logs: [] }),
    }),
    route({
      method: 'GET', path: '/api/webhooks/{id}/deliveries', area, tenantNamed, permission: 'webhook:read', summary: "List a webhook's deliveries, newest first",
      params: OneWebhook, query: DeliveryQuery, answers: { 200: listOf(DeliveryRecord, 'DeliveryList') },
      handle: async ({ caller, params, query }) => ok(await deliveryPage(caller, params.id, query)),
    }),
    route({
      method: 'GET', path: '/api/deliveries/{id}', area, tenantNamed, permission: 'webhook:read', summary: 'Read a delivery with its attempts',
      params: OneDelivery, answers: { 200: DeliveryRecord },
      handle: async ({ caller, params }) => ok(deliveryRecord(await deliveries.read(caller, params.id))),
    }),
    route({
      method: 'POST', path: '/api/deliveries/{id}/redeliver', area, tenantNamed, permission: 'webhook:write', summary: 'Make a delivery that has ended again',
      params: OneDelivery, answers: { 202: DeliveryRecord },
      recover: async (caller, id) => accepted(deliveryRecord(await deliveries.read(caller, id))),
      handle: async ({ caller, params }) => accepted(deliveryRecord(await deliveries.redeliver(caller, params.id))),
    }),
  ];
}

function replayFrom({ afterSequence, since }: Static<typeof ReplayRequest>): ReplayFrom {
  if ((afterSequence === undefined) === (since === undefined)) {
    throw invalidField('body', afterSequence === undefined ? '/afterSequence' : '/since', 'exclusive', 'give either afterSequence or since');
  }
  return since === undefined ? { afterSequence: afterSequence ?? 0 } : { since: dateOf('since', since) };
}
