import type { Commit } from '../../db/core/commit.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import type { Ids } from '../../platform/ids.ts';
import type { WebhookSecrets } from './secrets.ts';
import type { SendResult, WebhookSender } from './sender.ts';
import { webhookAudit } from './webhookAudit.ts';
import type { Webhooks } from './webhooks.ts';

export type TestDelivery = ReturnType<typeof createTestDelivery>;

/** How many tests a process runs concurrently, in total and for one tenant. */
const MAX_CONCURRENT = 20;
const MAX_PER_TENANT = 3;

type Deps = {
  commit: Commit;
  webhooks: Webhooks;
  secrets: WebhookSecrets;
  sendWebhook: WebhookSender;
  ids: Ids;
};

/** Test messages to webhooks, enabled or not. */
export function createTestDelivery({ commit, webhooks, secrets, sendWebhook, ids }: Deps) {
  /** The tenant of each test in progress. */
  const activeTenants: string[] = [];

  return {
    /**
     * Sends one signed message of the type `webhook.test` and returns the outcome. The message is
     * not an event and has no delivery. The test continues when the client disconnects. Errors:
     * `not_found`, `permission_denied`, `too_many_requests`, `master_key_missing`.
     */
    async run(caller: Caller, id: string): Promise<SendResult> {
      const webhook = await webhooks.findToAct(caller, id, 'webhook:write');
      const activeOfTenant = activeTenants.filter(
        (tenantId) => tenantId === webhook.tenantId,
      ).length;
      if (activeTenants.length >= MAX_CONCURRENT || activeOfTenant >= MAX_PER_TENANT) {
        throw new AppError('too_many_requests', 'Too many webhook tests are in progress.', {
          retryAfterSeconds: 5,
        });
      }
      activeTenants.push(webhook.tenantId);
      try {
        const now = new Date();
        const message = {
          id: ids.next('evt'),
          type: 'webhook.test',
          timestamp: now,
          sequence: null,
          tenantId: webhook.tenantId,
          data: { webhookId: id },
        };
        const result = await sendWebhook(
          webhook.endpointUrl,
          secrets.signingSecrets(id, webhook, now),
          message,
        );
        await commit({ ...caller, tenantId: webhook.tenantId }, (work) => {
          const { httpStatus, error } = result;
          webhookAudit.acted(work, 'test', webhook, {
            extra: { httpStatus, error: error?.code ?? null },
          });
        });
        return result;
      } finally {
        activeTenants.splice(activeTenants.indexOf(webhook.tenantId), 1);
      }
    },
  };
}
