import { crc32 } from 'node:zlib';
import { Type } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import { SUPPORTED_EVENT_TYPES } from '../../domain/events/events.ts';
import type { Deliveries } from '../../services/webhooks/deliveries.ts';
import type { Jobs, JobWithLogs } from '../../services/jobs.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import type { ReplayFrom, WebhookReplays } from '../../services/webhooks/replays.ts';
import type { WebhookTest } from '../../services/webhookTest.ts';
import type { Webhooks, WebhookWithSecret } from '../../services/webhooks.ts';
import { accepted, created, noContent, ok, type Answer } from '../kit/answer.ts';
import { etagOf, expectedVersion } from '../kit/etag.ts';
import { jobAtEnd } from '../kit/jobAtEnd.ts';
import { listOf, pageOf } from '../http/pagination.ts';
import { dateOf } from '../kit/queryTime.ts';
import { route, type Route } from '../kit/route.ts';
import { jobPresenter } from '../jobs/presenter.ts';
import { deliveryRecord, webhookRecord } from '../presenters/webhooks.ts';
import { Id } from '../http/schemas.ts';
import { JobRecord } from '../jobs/schemas.ts';
import {
  DeliveryQuery,
  DeliveryRecord,
  ReplayRequest,
  RotateRequest,
  TestReport,
  WebhookChange,
  WebhookList,
  WebhookQuery,
  WebhookRecord,
  WebhookRequest,
  WebhookWithDeliveries,
} from './schemas.ts';

const area = 'Webhooks';
const closed = { additionalProperties: false };
const tenantNamed = true;

const OneWebhook = Type.Object({ id: Id('whk') }, closed);
const OneDelivery = Type.Object({ id: Id('dlv') }, closed);

type Deps = {
  webhooks: Webhooks;
  webhookTest: WebhookTest;
  webhookReplays: WebhookReplays;
  deliveries: Deliveries;
  jobs: Jobs;
  jobTypes: JobTypes;
};

/** Endpoints that are told of events, and what was sent to them. */
export function webhookRoutes({
  webhooks,
  webhookTest,
  webhookReplays,
  deliveries,
  jobs,
  jobTypes,
}: Deps): Route[] {
  const present = jobPresenter(jobTypes);
  const again = (delivery: Awaited<ReturnType<Deliveries['read']>>): Answer =>
    accepted(deliveryRecord(delivery), { location: `/api/deliveries/${delivery.id}` });
  const begun = ({ job, logs }: JobWithLogs): Answer =>
    accepted(present.record(job, logs), { location: `/api/jobs/${job.id}` });
  const one = ({ webhook, secret }: WebhookWithSecret): Answer => ({
    ...ok(webhookRecord(webhook, secret), {
      etag: etagOf(webhook.version, webhook.failingSince?.getTime() ?? 0),
      ...(secret !== null && { 'cache-control': 'no-store' }),
    }),
    showOnce: secret !== null,
  });
  const made = (result: WebhookWithSecret): Answer => {
    const { body, headers, ...more } = one(result);
    return {
      ...more,
      ...created(`/api/webhooks/${result.webhook.id}`, body, {
        ...headers,
        'cache-control': 'no-store',
      }),
    };
  };

  const atEnd = jobAtEnd(jobs);

  const deliveryPage = (caller: Caller, id: string, { status, ...page }: DeliveryQuery) =>
    pageOf(
      `deliveries:${id}`,
      'dlv',
      page,
      (asked) => deliveries.list(caller, id, status, asked),
      deliveryRecord,
    );

  return [
    route({
      method: 'GET',
      path: '/api/webhooks',
      area,
      tenantNamed,
      permission: 'webhook:read',
      summary: 'List webhooks, newest first, with the supported event types',
      query: WebhookQuery,
      answers: { 200: WebhookList },
      handle: async ({ caller, query: { limit, cursor, ...filter } }) =>
        ok({
          ...(await pageOf(
            'webhooks',
            'whk',
            { limit, cursor },
            (page) => webhooks.list(caller, filter, page),
            (webhook) => webhookRecord(webhook),
          )),
          supportedEventTypes: SUPPORTED_EVENT_TYPES,
        }),
    }),
    route({
      method: 'POST',
      path: '/api/webhooks',
      area,
      tenantNamed,
      permission: 'webhook:write',
      summary: 'Register a webhook; the answer shows its secret, this once',
      body: WebhookRequest,
      secretBody: true,
      answers: { 201: WebhookRecord },
      recover: async (caller, id) =>
        made({ webhook: await webhooks.read(caller, id), secret: null }),
      handle: async ({ caller, body }) => made(await webhooks.create(caller, body)),
    }),
    route({
      method: 'GET',
      path: '/api/webhooks/{id}',
      area,
      tenantNamed,
      permission: 'webhook:read',
      summary: 'Read a webhook with its deliveries',
      params: OneWebhook,
      query: DeliveryQuery,
      answers: { 200: WebhookWithDeliveries },
      handle: async ({ caller, params, query }) => {
        const webhook = await webhooks.read(caller, params.id);
        const { items, nextCursor } = await deliveryPage(caller, params.id, query);
        const body = { ...webhookRecord(webhook), deliveries: items, nextCursor };
        // Deliveries come and go without a new version of the webhook.
        return ok(body, { etag: etagOf(webhook.version, crc32(JSON.stringify(body))) });
      },
    }),
    route({
      method: 'PUT',
      path: '/api/webhooks/{id}',
      area,
      tenantNamed,
      permission: 'webhook:write',
      summary: 'Change, disable or enable a webhook',
      params: OneWebhook,
      body: WebhookChange,
      secretBody: true,
      answers: { 200: WebhookRecord },
      headers: ['If-Match'],
      handle: async ({ caller, params, body, ifMatch }) =>
        one({
          webhook: await webhooks.update(caller, params.id, body, expectedVersion(ifMatch)),
          secret: null,
        }),
    }),
    route({
      method: 'DELETE',
      path: '/api/webhooks/{id}',
      area,
      tenantNamed,
      permission: 'webhook:delete',
      summary: 'Delete a webhook; its waiting deliveries are cancelled',
      params: OneWebhook,
      answers: { 204: null },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) => {
        await webhooks.remove(caller, params.id, expectedVersion(ifMatch));
        return noContent();
      },
    }),
    route({
      method: 'POST',
      path: '/api/webhooks/{id}/test',
      area,
      tenantNamed,
      permission: 'webhook:write',
      summary: 'Send a test message now, and see what comes back',
      params: OneWebhook,
      answers: { 200: TestReport },
      handle: async ({ caller, params }) => {
        const exchange = await webhookTest.run(caller, params.id);
        return ok({
          ok: exchange.error === null,
          ...exchange,
          retryAfterMs: exchange.retryAfterMs ?? null,
        });
      },
    }),
    route({
      method: 'POST',
      path: '/api/webhooks/{id}/rotate-secret',
      area,
      tenantNamed,
      permission: 'webhook:write',
      summary:
        'Give a webhook a new secret, which the answer shows; the old one signs beside it for a day',
      params: OneWebhook,
      body: RotateRequest,
      secretBody: true,
      answers: { 200: WebhookRecord },
      headers: ['If-Match'],
      recover: async (caller, id) =>
        one({ webhook: await webhooks.read(caller, id), secret: null }),
      handle: async ({ caller, params, body, ifMatch }) =>
        one(await webhooks.rotateSecret(caller, params.id, body.secret, expectedVersion(ifMatch))),
    }),
    route({
      method: 'POST',
      path: '/api/webhooks/{id}/replay',
      area,
      tenantNamed,
      permission: 'webhook:write',
      summary: 'Send events of the log to a webhook again, as a job',
      params: OneWebhook,
      body: ReplayRequest,
      answers: { 202: JobRecord },
      recover: async (caller, id) => begun(await jobs.read(caller, id)),
      headers: ['Prefer'],
      handle: async (request) =>
        begun(
          await atEnd(
            request,
            await webhookReplays.replay(
              request.caller,
              request.params.id,
              replayFrom(request.body),
            ),
          ),
        ),
    }),
    route({
      method: 'GET',
      path: '/api/webhooks/{id}/deliveries',
      area,
      tenantNamed,
      permission: 'webhook:read',
      summary: "List a webhook's deliveries, newest first",
      params: OneWebhook,
      query: DeliveryQuery,
      answers: { 200: listOf(DeliveryRecord, 'DeliveryList') },
      handle: async ({ caller, params, query }) => ok(await deliveryPage(caller, params.id, query)),
    }),
    route({
      method: 'GET',
      path: '/api/deliveries/{id}',
      area,
      tenantNamed,
      permission: 'webhook:read',
      summary: 'Read a delivery with its attempts',
      params: OneDelivery,
      answers: { 200: DeliveryRecord },
      handle: async ({ caller, params }) =>
        ok(deliveryRecord(await deliveries.read(caller, params.id))),
    }),
    route({
      method: 'POST',
      path: '/api/deliveries/{id}/redeliver',
      area,
      tenantNamed,
      permission: 'webhook:write',
      summary: 'Make a delivery that has ended again',
      params: OneDelivery,
      answers: { 202: DeliveryRecord },
      headers: ['Prefer'],
      recover: async (caller, id) => again(await deliveries.read(caller, id)),
      handle: async (request) => {
        const {
          caller,
          params: { id },
        } = request;
        await atEnd(request, await deliveries.redeliver(caller, id));
        return again(await deliveries.read(caller, id));
      },
    }),
  ];
}

function replayFrom({ afterSequence, since }: ReplayRequest): ReplayFrom {
  if ((afterSequence === undefined) === (since === undefined)) {
    throw invalidField('body', '', 'one_of', 'must have either afterSequence or since');
  }
  return since === undefined
    ? { afterSequence: afterSequence ?? 0 }
    : { since: dateOf('since', since, 'body') };
}
