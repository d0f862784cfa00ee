import { Type } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Jobs } from '../../services/jobs/jobs.ts';
import type { Webhooks } from '../../services/webhooks/webhooks.ts';
import type { Deliveries, DeliveryView } from '../../services/webhooks/deliveries.ts';
import { accepted, ok, type HttpResponse } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { closed, Id } from '../http/schemas.ts';
import { waitForJob } from '../jobs/waitForJob.ts';
import { deliveryRecord } from './presenter.ts';
import { DELIVERIES, DeliveryRecord } from './schemas.ts';

const tag = 'Webhooks';
const requiresTenantHeader = true;

const WebhookDeliveryQuery = Type.Omit(
  DELIVERIES.query,
  ['webhookId', 'webhookId.not', 'tenantId', 'tenantId.not'],
  closed,
);
const WebhookParams = Type.Object({ id: Id('whk') }, closed);
const DeliveryParams = Type.Object({ id: Id('dlv') }, closed);

/** The query of the deliveries of one webhook: that of all deliveries, with the webhook. */
const ofWebhook = (webhookId: string, query: object) => ({ ...query, webhookId: [webhookId] });

/** One page of the deliveries of a webhook, newest first. */
export const pageOfDeliveries = (
  deliveries: Deliveries,
  caller: Caller,
  webhookId: string,
  query: object,
) =>
  DELIVERIES.page(
    ofWebhook(webhookId, query),
    (request) => deliveries.list(caller, request),
    deliveryRecord,
  );

const redeliveryAccepted = (delivery: DeliveryView): HttpResponse =>
  accepted(`/api/deliveries/${delivery.id}`, deliveryRecord(delivery));

/** Routes of the deliveries of webhooks. */
export function deliveryRoutes({
  webhooks,
  deliveries,
  jobs,
}: {
  webhooks: Webhooks;
  deliveries: Deliveries;
  jobs: Jobs;
}): Route[] {
  const waitIfPreferred = waitForJob(jobs, 'webhook:write');

  return [
    route({
      method: 'GET',
      path: '/api/deliveries',
      tag,
      requiresTenantHeader,
      permission: 'webhook:read',
      operationId: 'listDeliveries',
      summary: 'List deliveries to all webhooks',
      query: DELIVERIES.query,
      responses: { 200: DELIVERIES.schema },
      handle: ({ caller, query }) =>
        DELIVERIES.respond(query, (request) => deliveries.list(caller, request), deliveryRecord),
    }),
    route({
      method: 'GET',
      path: '/api/webhooks/{id}/deliveries',
      tag,
      requiresTenantHeader,
      permission: 'webhook:read',
      operationId: 'listWebhookDeliveries',
      summary: 'List the deliveries of a webhook',
      params: WebhookParams,
      query: WebhookDeliveryQuery,
      responses: { 200: DELIVERIES.schema },
      handle: async ({ caller, params, query }) => {
        await webhooks.read(caller, params.id);
        return DELIVERIES.respond(
          ofWebhook(params.id, query),
          (request) => deliveries.list(caller, request),
          deliveryRecord,
        );
      },
    }),
    route({
      method: 'GET',
      path: '/api/deliveries/{id}',
      tag,
      requiresTenantHeader,
      permission: 'webhook:read',
      operationId: 'getDelivery',
      summary: 'Get a delivery with its attempts',
      params: DeliveryParams,
      responses: { 200: DeliveryRecord },
      handle: async ({ caller, params }) =>
        ok(deliveryRecord(await deliveries.read(caller, params.id))),
    }),
    route({
      method: 'POST',
      path: '/api/deliveries/{id}/redeliver',
      tag,
      requiresTenantHeader,
      permission: 'webhook:write',
      operationId: 'redeliverDelivery',
      summary: 'Send a delivery again',
      description:
        'For a delivery that has finished or waits for its next attempt. The message has the ' +
        'same `webhook-id`; the delivery gets a new job.',
      params: DeliveryParams,
      responses: { 202: DeliveryRecord },
      headers: ['Prefer'],
      replayResponse: async (caller, id) =>
        redeliveryAccepted(await deliveries.read(caller, id, 'webhook:write')),
      handle: async (request) => {
        const { id } = request.params;
        await waitIfPreferred(request, await deliveries.redeliver(request.caller, id));
        return redeliveryAccepted(await deliveries.read(request.caller, id, 'webhook:write'));
      },
    }),
  ];
}
