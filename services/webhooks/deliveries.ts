import type { Commit } from '../../db/commit.ts';
import { findDelivery, pageOfDeliveries, type DeliveryView } from '../../db/webhooks/deliveryViews.ts';
import type { Page, PageRequest } from '../../db/core/keyset.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Delivery } from '../../db/models/Delivery.ts';
import type { Job } from '../../db/models/Job.ts';
import { Webhook } from '../../db/models/Webhook.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, notFound } from '../../domain/shared/errors.ts';
import type { DeliveryStatus } from '../../domain/webhooks/webhooks.ts';
import type { DispatchTask } from '../../temporal/contracts.ts';
import type { Access } from '../access.ts';
import type { DeliveryQueue } from '../deliveryQueue.ts';
import type { Webhooks } from '../webhooks.ts';

export type Deliveries = ReturnType<typeof createDeliveries>;

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  access: Access;
  webhooks: Webhooks;
  queue: DeliveryQueue;
};

/** What was, or is to be, sent to webhooks. */
export function createDeliveries({ db, commit, access, webhooks, queue }: Deps) {
  async function read(caller: Caller, id: string): Promise<DeliveryView> {
    const delivery = await findDelivery(db, id, access.scope(caller, 'webhook:read'));
    if (!delivery) throw notFound('delivery', id);
    return delivery;
  }

  return {
    /** Error: `not_found`. */
    read,

    /** A webhook's deliveries, newest first. Error: `not_found` for the webhook. */
    async list(
      caller: Caller,
      webhookId: string,
      status: DeliveryStatus | undefined,
      page: PageRequest,
    ): Promise<Page<DeliveryView>> {
      await webhooks.read(caller, webhookId);
      return pageOfDeliveries(db, { webhookId, status }, page);
    },

    /**
     * Makes a delivery that has ended, or waits for its next attempt, again and at once, with a job of its own and the same
     * `webhook-id`. Returns that job. Errors: `not_found`, `permission_denied`, `delivery_pending`, `webhook_disabled`.
     */
    async redeliver(caller: Caller, id: string): Promise<Job> {
      const { webhookId, tenantId } = await read(caller, id);
      await access.require(caller, 'webhook:write', { tenantId });
      return commit({ ...caller, tenantId }, async (work) => {
        const trx = await work.trx();
        // Whoever disables the webhook waits, and finds this delivery pending.
        const webhook = await Webhook.query(trx).findById(webhookId).forShare().throwIfNotFound();
        if (!webhook.enabled)
          throw new AppError(
            'webhook_disabled',
            `The webhook is ${webhook.deletedAt ? 'deleted' : 'disabled; enable it first'}.`,
          );
        const before = await Delivery.query(trx).findById(id).forUpdate().throwIfNotFound();
        // One that waits for its next attempt gets a new job; the one before it finds that out when its time comes.
        if (before.status === 'pending' && (before.underWay || before.jobId === null))
          throw new AppError('delivery_pending', 'The delivery is under way, or next in its turn.');
        await Delivery.query(trx)
          .findById(id)
          .patch({ status: 'pending', reason: null, owedAt: work.now });
        const job = await queue.makeJob(work, {
          id,
          webhookId,
          tenantId,
          retryPolicy: webhook.retryPolicy,
        });
        work.audit(
          'delivery.redeliver',
          { type: 'delivery', id },
          { before: { status: before.status, jobId: before.jobId }, after: { jobId: job.id } },
        );
        return job;
      });
    },
  };
}
