import { NoChange, ignoreNoChange, type Commit, type Work } from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Webhook } from '../../db/models/Webhook.ts';
import type { DeliveryEndpoint } from '../../db/webhooks/deliveryAttempts.ts';
import { acceptedAfter } from '../../db/webhooks/health.ts';
import { jobWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { FAILING_LIMIT_MS, type DisabledReason } from '../../domain/webhooks/webhooks.ts';
import type { Log } from '../../platform/log.ts';
import type { HealthRecorder } from './health.ts';
import { webhookAudit, webhookEventData } from './webhookAudit.ts';

export type AutoDisable = ReturnType<typeof createAutoDisable>;

type FailingWebhook = Pick<
  DeliveryEndpoint,
  'webhookId' | 'tenantId' | 'endpointUrl' | 'failingSince'
>;

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

/**
 * The columns that make the relay cancel the pending deliveries, with the reason they show. `now`: by the clock of the
 * database, as the times at which deliveries are queued.
 */
export const cancellationFields = (cancelReason: string, now: Date) => ({
  cancelBefore: now,
  cancelReason,
});

/** True when every attempt has failed for as long as a webhook may fail. */
const hasFailedTooLong = (failingSince: Date | null, now: Date): boolean =>
  failingSince !== null && now.getTime() - failingSince.getTime() >= FAILING_LIMIT_MS;

/** Why a webhook is disabled. An endpoint was removed if it said so in an attempt. */
type DisableCause =
  { reason: 'failing' } | { reason: 'endpoint_removed'; /** Of the attempt. */ startedAt: Date };

/**
 * True when the cause does not concern the webhook as it is now: an attempt has succeeded since, or
 * a user has changed it since the attempt started. The attempt may have been sent to another endpoint
 * then, or the webhook was enabled because the endpoint exists again. It may end hours later, when
 * its process has died.
 */
const isOutdated = (cause: DisableCause, { failingSince, updatedAt }: Webhook, now: Date) =>
  cause.reason === 'failing' ? !hasFailedTooLong(failingSince, now) : updatedAt >= cause.startedAt;

/**
 * Disables a webhook as part of a commit and emits `webhook.disabled` with the reason. Returns false
 * when there is nothing to do: it is disabled or deleted already, works again, or was changed.
 */
export async function disableIn(work: Work, id: string, cause: DisableCause): Promise<boolean> {
  const { reason } = cause;
  const trx = await work.trx();
  const before = await Webhook.query(trx).findById(id).forUpdate();
  const now = await readDatabaseTime(trx);
  if (!before?.enabled || isOutdated(cause, before, now)) return false;
  const after = await Webhook.query(trx).patchAndFetchById(id, {
    ...disabledFields(reason, now),
    updatedAt: now,
    version: before.version + 1,
  });
  webhookAudit.acted(work, 'disable', after, { before, after });
  const data = { ...webhookEventData(after), reason };
  work.emit('webhook.disabled', webhookAudit.subject(after), data);
  return true;
}

type Deps = { db: Knex; commit: Commit; health: HealthRecorder; log: Log };

/** Disables webhooks whose attempts have failed for too long. */
export const createAutoDisable =
  ({ db, commit, health, log }: Deps) =>
  /**
   * After a failed attempt of the job: disables the webhook, in a commit of its own, if it had failed
   * for too long when the attempt started.
   */
  async (webhook: FailingWebhook, jobId: string): Promise<void> => {
    const { webhookId, tenantId, endpointUrl, failingSince } = webhook;
    if (!failingSince || !hasFailedTooLong(failingSince, new Date())) return;
    const now = await readDatabaseTime(db);
    if (!hasFailedTooLong(failingSince, now)) return;
    const acceptedAt = await acceptedAfter(db, webhookId, failingSince);
    if (acceptedAt) {
      // It fails since now: its process has died before it could write that the webhook worked again.
      health.note({ webhookId, endpointUrl, hasFailed: false, hasAnswered: true, at: acceptedAt });
      health.note({ webhookId, endpointUrl, hasFailed: true, at: now });
      return;
    }
    const caller = systemCaller(tenantId, jobWorkflowId(jobId));
    const wasDisabled = await commit(caller, async (work) => {
      if (!(await disableIn(work, webhookId, { reason: 'failing' }))) throw new NoChange();
      return true;
    }).catch(ignoreNoChange(false));
    if (wasDisabled) log.warn({ webhookId }, 'a webhook was disabled: all its attempts fail');
  };
