import { Type } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Jobs } from '../../services/jobs/jobs.ts';
import type { Deliveries, DeliveryView } from '../../services/webhooks/deliveries.ts';
import { paginate } from '../http/pagination.ts';
import { accepted, ok, type HttpResponse } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { Id } from '../http/schemas.ts';
import { waitForJob } from '../jobs/waitForJob.ts';
import { deliveryRecord } from './presenter.ts';
import { DeliveryList, DeliveryQuery, DeliveryRecord } from './schemas.ts';

const tag = 'Webhooks';
const closed = { additionalProperties: false };
const requiresTenantHeader = true;

const WebhookParams = Type.Object({ id: Id('whk') }, closed);
const DeliveryParams = Type.Object({ id: Id('dlv') }, closed);

/** One page of the deliveries of a webhook, newest first. Error: `not_found` for the webhook. */
export const pageOfDeliveries = (
  deliveries: Deliveries,
  caller: Caller,
  webhookId: string,
  { status, ...page }: DeliveryQuery,
) =>
  paginate(
    `deliveries:${webhookId}`,
    'dlv',
    page,
    (request) => deliveries.list(caller, webhookId, status, request),
    deliveryRecord,
  );

const redeliveryAccepted = (delivery: DeliveryView): HttpResponse =>
  accepted(deliveryRecord(delivery), { location: `/api/deliveries/${delivery.id}` });

/** Routes of the deliveries of webhooks. */
export function deliveryRoutes({
  deliveries,
  jobs,
}: {
  deliveries: Deliveries;
  jobs: Jobs;
}): Route[] {
  const waitIfPreferred = waitForJob(jobs, 'webhook:write');

  return [
    route({
      method: 'GET',
      path: '/api/webhooks/{id}/deliveries',
      tag,
      requiresTenantHeader,
      permission: 'webhook:read',
      operationId: 'listWebhookDeliveries',
      summary: 'List the deliveries of a webhook',
      description: 'Newest first.',
      params: WebhookParams,
      query: DeliveryQuery,
      responses: { 200: DeliveryList },
      handle: async ({ caller, params, query }) =>
        ok(await pageOfDeliveries(deliveries, caller, params.id, query)),
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
