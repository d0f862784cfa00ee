import { NoChange, ignoreNoChange, type Commit } from '../../db/core/commit.ts';
import { Webhook } from '../../db/models/Webhook.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { FAILING_LIMIT_MS, type DisabledReason } from '../../domain/webhooks/webhooks.ts';
import type { Log } from '../../platform/log.ts';
import { webhookAudit, webhookEventData } from './webhookAudit.ts';

export type AutoDisable = ReturnType<typeof createAutoDisable>;

/**
 * The columns that disable a webhook. The relay cancels its pending deliveries afterwards, in the
 * background.
 */
export const disabledFields = (disabledReason: DisabledReason, now: Date) => ({
  enabled: false,
  disabledAt: now,
  disabledReason,
  ...cancellationFields(
    disabledReason === 'request' ? 'webhook_disabled' : `webhook_${disabledReason}`,
    now,
  ),
});

/** The columns that make the relay cancel the pending deliveries, with the reason they show. */
export const cancellationFields = (cancelReason: string, now: Date) => ({
  cancelBefore: now,
  cancelReason,
});

/** True when every attempt has failed for as long as a webhook may fail. */
export const hasFailedTooLong = (failingSince: Date | null, now: Date): boolean =>
  failingSince !== null && now.getTime() - failingSince.getTime() >= FAILING_LIMIT_MS;

/** Disables webhooks whose endpoint does not accept messages any more. */
export const createAutoDisable =
  ({ commit, log }: { commit: Commit; log: Log }) =>
  /**
   * Disables a webhook and emits `webhook.disabled` with the reason. `cause` names the workflow
   * that found the reason. Does nothing when the webhook is already disabled, or works again.
   */
  async (
    { id, tenantId }: { id: string; tenantId: string },
    reason: Exclude<DisabledReason, 'request'>,
    cause: string,
  ): Promise<void> => {
    const wasDisabled = await commit(systemCaller(tenantId, cause), async (work) => {
      const trx = await work.trx();
      const before = await Webhook.query(trx).findById(id).forUpdate();
      if (!before?.enabled) throw new NoChange();
      // A concurrent attempt may have succeeded.
      const isFailing = hasFailedTooLong(before.failingSince, work.now);
      if (reason === 'failing' && !isFailing) throw new NoChange();
      const after = await Webhook.query(trx).patchAndFetchById(id, {
        ...disabledFields(reason, work.now),
        updatedAt: work.now,
        version: before.version + 1,
      });
      webhookAudit.acted(work, 'disable', after, { before, after });
      const data = { ...webhookEventData(after), reason };
      work.emit('webhook.disabled', webhookAudit.subject(after), data);
      return true;
    }).catch(ignoreNoChange(false));
    if (wasDisabled) log.warn({ webhookId: id, reason }, 'a webhook was disabled');
  };
