import { NothingChanged, unlessNothing, type Commit } from '../db/commit.ts';
import { Webhook } from '../db/models/Webhook.ts';
import { systemCaller } from '../domain/shared/caller.ts';
import { FAILING_LIMIT_MS, type DisabledReason } from '../domain/webhooks/webhooks.ts';
import type { Log } from '../platform/log.ts';
import type { DispatchTask } from '../temporal/contracts.ts';
import { webhookEvent, webhookSubject, webhookView } from './webhookTrail.ts';

export type WebhookDisable = ReturnType<typeof createWebhookDisable>;

/** What a webhook's row says when it is disabled; its waiting deliveries are cancelled in the background. */
export const disabled = (disabledReason: DisabledReason, now: Date) => ({
  enabled: false,
  disabledAt: now,
  disabledReason,
  ...cancelling(`webhook_${disabledReason === 'request' ? 'disabled' : disabledReason}`, now),
});

/** What it says while they are, and what they say then. */
export const cancelling = (cancelReason: string, now: Date) => ({
  cancelBefore: now,
  cancelReason,
});

/** True when nothing has got through for as long as a webhook may fail. */
export const failsForLong = (failingSince: Date | null, now: Date): boolean =>
  failingSince !== null && now.getTime() - failingSince.getTime() >= FAILING_LIMIT_MS;

/** Disables webhooks that nobody answers for any more. */
export const createWebhookDisable =
  ({ commit, log }: { commit: Commit<DispatchTask>; log: Log }) =>
  /** Disables a webhook, with an event that says why; one that is disabled, or works again, is left alone. */
  async (
    webhook: { id: string; tenantId: string },
    reason: Exclude<DisabledReason, 'request'>,
    cause: string,
  ): Promise<void> => {
    const { id, tenantId } = webhook;
    const done = await commit(systemCaller(tenantId, cause), async (work) => {
      const trx = await work.trx();
      const before = await Webhook.query(trx).findById(id).forUpdate();
      // Another attempt may have got through, or have disabled it.
      if (
        !before?.enabled ||
        (reason === 'failing' && !failsForLong(before.failingSince, work.now))
      )
        throw new NothingChanged();
      const after = await Webhook.query(trx).patchAndFetchById(id, {
        ...disabled(reason, work.now),
        updatedAt: work.now,
        version: before.version + 1,
      });
      work.audit('webhook.disable', webhookSubject(after), {
        before: webhookView(before),
        after: webhookView(after),
      });
      work.emit('webhook.disabled', webhookSubject(after), { ...webhookEvent(after), reason });
      return true;
    }).catch(unlessNothing(false));
    if (done) log.warn({ webhookId: id, reason }, 'a webhook was disabled');
  };
