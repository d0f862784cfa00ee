import { Type } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import { SUPPORTED_EVENT_TYPES } from '../../domain/events/events.ts';
import type { WebhookData } from '../../domain/webhooks/records.ts';
import type { Deliveries } from '../../services/webhooks/deliveries.ts';
import type { Jobs, JobWithLogs } from '../../services/jobs/jobs.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import type { ReplayFrom, WebhookReplays } from '../../services/webhooks/replays.ts';
import type { TestDelivery } from '../../services/webhooks/testDelivery.ts';
import type { Webhooks, WebhookWithSecret } from '../../services/webhooks/webhooks.ts';
import { accepted, created, noContent, ok, type HttpResponse } from '../http/response.ts';
import { expectedVersion } from '../http/etag.ts';
import { waitForJob } from '../jobs/waitForJob.ts';
import { parseTime } from '../http/queryTime.ts';
import { route, type Route } from '../http/route.ts';
import { jobPresenter } from '../jobs/presenter.ts';
import { deliveryRoutes, pageOfDeliveries } from './deliveryRoutes.ts';
import { listedWebhook, webhookRecord } from './presenter.ts';
import { closed, Id } from '../http/schemas.ts';
import { JobRecord } from '../jobs/schemas.ts';
import {
  EmbeddedQuery,
  ReplayRequest,
  RotateRequest,
  TestReport,
  WebhookChange,
  WEBHOOKS,
  WebhookRecord,
  WebhookRequest,
  WebhookWithDeliveries,
} from './schemas.ts';

const tag = 'Webhooks';
const requiresTenantHeader = true;

const WebhookParams = Type.Object({ id: Id('whk') }, closed);

type Deps = {
  webhooks: Webhooks;
  testDelivery: TestDelivery;
  webhookReplays: WebhookReplays;
  deliveries: Deliveries;
  jobs: Jobs;
  jobTypes: JobTypes;
};

/** Routes of webhooks, with those of their deliveries. */
export function webhookRoutes({
  webhooks,
  testDelivery,
  webhookReplays,
  deliveries,
  jobs,
  jobTypes,
}: Deps): Route[] {
  const jobPresent = jobPresenter(jobTypes);
  const jobAccepted = async (found: JobWithLogs, caller: Caller): Promise<HttpResponse> =>
    accepted(`/api/jobs/${found.job.id}`, await jobPresent.record(found, caller));
  const webhookResponse = (
    caller: Caller,
    { webhook, secret, warnings }: WebhookWithSecret,
  ): HttpResponse => ({
    ...ok(webhookRecord(caller, webhook, secret, warnings), {
      ...(secret !== null && { 'cache-control': 'no-store' }),
    }),
    containsSecret: secret !== null,
  });
  const webhookCreated = (caller: Caller, result: WebhookWithSecret): HttpResponse => {
    const { body, headers, ...more } = webhookResponse(caller, result);
    return {
      ...more,
      ...created(`/api/webhooks/${result.webhook.id}`, body, {
        ...headers,
        'cache-control': 'no-store',
      }),
    };
  };

  const waitIfPreferred = waitForJob(jobs, 'webhook:write');

  return [
    route({
      method: 'GET',
      path: '/api/webhooks',
      tag,
      requiresTenantHeader,
      permission: 'webhook:read',
      operationId: 'listWebhooks',
      summary: 'List webhooks',
      description:
        'Newest first. The response also lists all event types that webhooks can subscribe to.',
      query: WEBHOOKS.query,
      responses: { 200: WEBHOOKS.schema },
      handle: ({ caller, query }) =>
        WEBHOOKS.respond(
          query,
          (request, filter) => webhooks.list(caller, filter, request),
          (listed) => listedWebhook(caller, listed),
          () => ({ supportedEventTypes: SUPPORTED_EVENT_TYPES }),
        ),
    }),
    route({
      method: 'POST',
      path: '/api/webhooks',
      tag,
      requiresTenantHeader,
      permission: 'webhook:write',
      operationId: 'createWebhook',
      summary: 'Create a webhook',
      description:
        'The response shows the secret of the webhook; later responses mask it. A webhook of ' +
        'the tenant `platform` receives the events of all tenants.',
      body: WebhookRequest,
      example: {
        endpointUrl: 'https://hooks.example.net/holdfast',
        eventTypes: ['job.failed', 'backup.failed'],
        description: 'Alerts of the operations team',
      },
      secretBody: true,
      responses: { 201: WebhookRecord },
      replayResponse: async (caller, id) =>
        webhookCreated(caller, withoutSecret(await webhooks.read(caller, id, 'webhook:write'))),
      handle: async ({ caller, body }) =>
        webhookCreated(caller, await webhooks.create(caller, body)),
    }),
    route({
      method: 'GET',
      path: '/api/webhooks/{id}',
      tag,
      requiresTenantHeader,
      permission: 'webhook:read',
      operationId: 'getWebhook',
      summary: 'Get a webhook with its deliveries',
      params: WebhookParams,
      query: EmbeddedQuery,
      responses: { 200: WebhookWithDeliveries },
      handle: async ({ caller, params, query }) => {
        const webhook = await webhooks.read(caller, params.id);
        const { items, nextCursor } = await pageOfDeliveries(deliveries, caller, params.id, query);
        return ok({ ...webhookRecord(caller, webhook), deliveries: items, nextCursor });
      },
    }),
    route({
      method: 'PUT',
      path: '/api/webhooks/{id}',
      tag,
      requiresTenantHeader,
      permission: 'webhook:write',
      operationId: 'updateWebhook',
      summary: 'Update, disable or enable a webhook',
      description:
        'Disabling cancels the pending deliveries. A webhook that is enabled again receives the ' +
        'events from then on.',
      params: WebhookParams,
      body: WebhookChange,
      example: { enabled: false },
      secretBody: true,
      responses: { 200: WebhookRecord },
      headers: ['If-Match'],
      current: async ({ caller, params }) =>
        webhookRecord(caller, await webhooks.findToAct(caller, params.id, 'webhook:write')),
      volatile: ['failingSince', 'lastDelivery', 'deliveries', 'nextCursor'],
      handle: async ({ caller, params, body, ifMatch }) =>
        webhookResponse(
          caller,
          await webhooks.update(caller, params.id, body, expectedVersion(ifMatch)),
        ),
    }),
    route({
      method: 'DELETE',
      path: '/api/webhooks/{id}',
      tag,
      requiresTenantHeader,
      permission: 'webhook:delete',
      operationId: 'deleteWebhook',
      summary: 'Delete a webhook',
      description: 'Cancels its pending deliveries. Its finished deliveries remain readable.',
      params: WebhookParams,
      responses: { 204: null },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) => {
        await webhooks.remove(caller, params.id, expectedVersion(ifMatch));
        return noContent();
      },
    }),
    route({
      method: 'POST',
      path: '/api/webhooks/{id}/test',
      tag,
      requiresTenantHeader,
      permission: 'webhook:write',
      operationId: 'testWebhook',
      summary: 'Send a test message to a webhook',
      description:
        'Sends one signed message of the type `webhook.test` and returns the outcome. It is not ' +
        'an event and has no delivery. Disabled webhooks can be tested.',
      params: WebhookParams,
      responses: { 200: TestReport },
      replayResponse: async (caller, id) => {
        await webhooks.read(caller, id, 'webhook:write');
        // Only the stored response has the outcome.
        return null;
      },
      handle: async ({ caller, params }) => {
        const result = await testDelivery.run(caller, params.id);
        return ok({
          ok: result.error === null,
          ...result,
          retryAfterMs: result.retryAfterMs ?? null,
        });
      },
    }),
    route({
      method: 'POST',
      path: '/api/webhooks/{id}/rotate-secret',
      tag,
      requiresTenantHeader,
      permission: 'webhook:write',
      operationId: 'rotateWebhookSecret',
      summary: 'Rotate the secret of a webhook',
      description:
        'The response shows the new secret. For a day, messages carry signatures of both secrets.',
      params: WebhookParams,
      body: RotateRequest,
      example: {},
      secretBody: true,
      responses: { 200: WebhookRecord },
      headers: ['If-Match'],
      replayResponse: async (caller, id) =>
        webhookResponse(caller, withoutSecret(await webhooks.read(caller, id, 'webhook:write'))),
      handle: async ({ caller, params, body, ifMatch }) =>
        webhookResponse(
          caller,
          await webhooks.rotateSecret(caller, params.id, body.secret, expectedVersion(ifMatch)),
        ),
    }),
    route({
      method: 'POST',
      path: '/api/webhooks/{id}/replay',
      tag,
      requiresTenantHeader,
      permission: 'webhook:write',
      operationId: 'replayWebhookEvents',
      summary: 'Replay events to a webhook',
      description:
        'Starts a job that queues deliveries of up to 10,000 past events that the webhook ' +
        'subscribes to. 410 `events_purged`: events after that sequence or time are purged, or lost in a restore.',
      problems: [410],
      params: WebhookParams,
      body: ReplayRequest,
      example: { since: '2026-11-21T09:00:00.000Z' },
      responses: { 202: JobRecord },
      replayResponse: async (caller, id) =>
        jobAccepted(await jobs.read(caller, id, 'webhook:write'), caller),
      headers: ['Prefer'],
      handle: async (request) =>
        jobAccepted(
          await waitIfPreferred(
            request,
            await webhookReplays.replay(
              request.caller,
              request.params.id,
              replayFrom(request.body),
            ),
          ),
          request.caller,
        ),
    }),
    ...deliveryRoutes({ webhooks, deliveries, jobs }),
  ];
}

const withoutSecret = (webhook: WebhookData): WebhookWithSecret => ({
  webhook,
  secret: null,
  warnings: [],
});

/** Error: `invalid_request` unless the body has exactly one of both fields. */
function replayFrom({ afterSequence, since }: ReplayRequest): ReplayFrom {
  if ((afterSequence === undefined) === (since === undefined)) {
    throw invalidField('body', '', 'one_of', 'must have either afterSequence or since');
  }
  return since === undefined
    ? { afterSequence: afterSequence ?? 0 }
    : { since: parseTime('since', since, 'body') };
}
