import { NoChange, ignoreNoChange, type Commit, type Work } from '../../db/core/commit.ts';
import { Webhook } from '../../db/models/Webhook.ts';
import type { DeliveryEndpoint } from '../../db/webhooks/deliveryAttempts.ts';
import { jobWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { FAILING_LIMIT_MS, type DisabledReason } from '../../domain/webhooks/webhooks.ts';
import type { Log } from '../../platform/log.ts';
import { webhookAudit, webhookEventData } from './webhookAudit.ts';

export type AutoDisable = ReturnType<typeof createAutoDisable>;

type FailingWebhook = Pick<DeliveryEndpoint, 'webhookId' | 'tenantId' | 'failingSince'>;

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
const hasFailedTooLong = (failingSince: Date | null, now: Date): boolean =>
  failingSince !== null && now.getTime() - failingSince.getTime() >= FAILING_LIMIT_MS;

/**
 * Disables a webhook as part of a commit and emits `webhook.disabled` with the reason. Returns false
 * when there is nothing to do: it is disabled or deleted already, or works again.
 */
export async function disableIn(
  work: Work,
  id: string,
  reason: Exclude<DisabledReason, 'request'>,
): Promise<boolean> {
  const trx = await work.trx();
  const before = await Webhook.query(trx).findById(id).forUpdate();
  if (!before?.enabled) return false;
  // A concurrent attempt may have succeeded.
  if (reason === 'failing' && !hasFailedTooLong(before.failingSince, work.now)) return false;
  const after = await Webhook.query(trx).patchAndFetchById(id, {
    ...disabledFields(reason, work.now),
    updatedAt: work.now,
    version: before.version + 1,
  });
  webhookAudit.acted(work, 'disable', after, { before, after });
  const data = { ...webhookEventData(after), reason };
  work.emit('webhook.disabled', webhookAudit.subject(after), data);
  return true;
}

/** Disables webhooks whose attempts have failed for too long. */
export const createAutoDisable =
  ({ commit, log }: { commit: Commit; log: Log }) =>
  /**
   * After a failed attempt of the job: disables the webhook, in a commit of its own, if it had failed
   * for too long when the attempt started.
   */
  async ({ webhookId, tenantId, failingSince }: FailingWebhook, jobId: string): Promise<void> => {
    if (!hasFailedTooLong(failingSince, new Date())) return;
    const caller = systemCaller(tenantId, jobWorkflowId(jobId));
    const wasDisabled = await commit(caller, async (work) => {
      if (!(await disableIn(work, webhookId, 'failing'))) throw new NoChange();
      return true;
    }).catch(ignoreNoChange(false));
    if (wasDisabled) log.warn({ webhookId }, 'a webhook was disabled: all its attempts fail');
  };
