import type { Commit } from '../db/commit.ts';
import type { Caller } from '../domain/shared/caller.ts';
import { AppError } from '../domain/shared/errors.ts';
import type { Clock } from '../platform/clock.ts';
import type { Ids } from '../platform/ids.ts';
import type { DispatchTask } from '../temporal/contracts.ts';
import type { WebhookSecrets } from './webhookSecrets.ts';
import type { Exchange, WebhookSend } from './webhooks/sender.ts';
import { webhookSubject } from './webhookTrail.ts';
import type { Webhooks } from './webhooks.ts';

export type WebhookTest = ReturnType<typeof createWebhookTest>;

/** Tests of one process under way at once, and those of one tenant. */
const MAX_AT_ONCE = 20;
const MAX_OF_TENANT = 3;

type Deps = {
  commit: Commit<DispatchTask>;
  webhooks: Webhooks;
  secrets: WebhookSecrets;
  send: WebhookSend;
  clock: Clock;
  ids: Ids;
};

/** Trying a webhook out, enabled or not. */
export function createWebhookTest({ commit, webhooks, secrets, send, clock, ids }: Deps) {
  /** Tenants of the tests under way. */
  const underWay: string[] = [];

  return {
    /**
     * Sends a signed message of the type `webhook.test`, once, and tells what came of it; it goes on when nobody waits any
     * more. It is no event, and no delivery is recorded. Errors: `not_found`, `permission_denied`, `too_many_requests`, `master_key_missing`.
     */
    async run(caller: Caller, id: string): Promise<Exchange> {
      const webhook = await webhooks.findToAct(caller, id, 'webhook:write');
      const ofTenant = underWay.filter((tenantId) => tenantId === webhook.tenantId).length;
      if (underWay.length >= MAX_AT_ONCE || ofTenant >= MAX_OF_TENANT) {
        throw new AppError('too_many_requests', 'Too many tests are under way.', {
          retryAfterSeconds: 5,
        });
      }
      underWay.push(webhook.tenantId);
      try {
        const now = clock.now();
        const message = {
          id: ids.next('evt'),
          type: 'webhook.test',
          timestamp: now,
          sequence: null,
          tenantId: webhook.tenantId,
          data: { webhookId: id },
        };
        const exchange = await send(
          webhook.endpointUrl,
          secrets.signing(id, webhook, now),
          message,
        );
        await commit({ ...caller, tenantId: webhook.tenantId }, (work) => {
          const { httpStatus, error } = exchange;
          work.audit('webhook.test', webhookSubject(webhook), {
            after: { httpStatus, error: error?.code ?? null },
          });
        });
        return exchange;
      } finally {
        underWay.splice(underWay.indexOf(webhook.tenantId), 1);
      }
    },
  };
}
