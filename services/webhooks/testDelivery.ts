import type { Commit } from '../../db/core/commit.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { isUsableAnswer } from '../../domain/webhooks/webhooks.ts';
import type { Slots } from '../../platform/slots.ts';
import type { Ids } from '../../platform/ids.ts';
import type { HealthRecorder } from './health.ts';
import type { WebhookSecrets } from './secrets.ts';
import { cannotSign, type SendResult, type WebhookSender } from './sender.ts';
import { webhookAudit } from './webhookAudit.ts';
import type { Webhooks } from './webhooks.ts';

export type TestDelivery = ReturnType<typeof createTestDelivery>;

type Deps = {
  commit: Commit;
  health: HealthRecorder;
  webhooks: Webhooks;
  secrets: WebhookSecrets;
  sendWebhook: WebhookSender;
  ids: Ids;
  slots: { webhookTests: Slots };
};

/** Test messages to webhooks, enabled or not. */
export function createTestDelivery({
  commit,
  health,
  webhooks,
  secrets,
  sendWebhook,
  ids,
  slots,
}: Deps) {
  return {
    /**
     * Sends one signed message of the type `webhook.test` and returns the outcome. The message is
     * not an event and has no delivery. The test continues when the client disconnects. Errors:
     * `not_found`, `permission_denied`, `too_many_requests`.
     */
    async run(caller: Caller, id: string): Promise<SendResult> {
      const webhook = await webhooks.findToAct(caller, id, 'webhook:write');
      return slots.webhookTests.run(
        { ...caller, tenantId: webhook.tenantId },
        undefined,
        async () => {
          const now = new Date();
          const message = {
            id: ids.next('evt'),
            type: 'webhook.test',
            timestamp: now,
            sequence: null,
            tenantId: webhook.tenantId,
            subject: webhookAudit.subject(webhook),
            actorId: caller.actorId,
            data: { webhookId: id },
          };
          const result = secrets.canOpen(id, webhook.secret)
            ? await sendWebhook(
                webhook.endpointUrl,
                secrets.signingSecrets(id, webhook, now),
                message,
              )
            : cannotSign();
          // No attempt has failed or succeeded, but the queue may go on with the deliveries that wait.
          if (isUsableAnswer(result.httpStatus))
            health.note({
              webhookId: id,
              endpointUrl: webhook.endpointUrl,
              hasAnswered: true,
              at: new Date(),
            });
          await commit({ ...caller, tenantId: webhook.tenantId }, (work) => {
            const { httpStatus, error } = result;
            webhookAudit.acted(work, 'test', webhook, {
              extra: { httpStatus, error: error?.code ?? null },
            });
            work.result(id);
          });
          return result;
        },
      );
    },
  };
}
