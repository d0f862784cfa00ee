import type { Commit } from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import {
  findDelivery,
  listDeliveries,
  type DeliveryView,
} from '../../db/webhooks/deliveryViews.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Delivery } from '../../db/models/Delivery.ts';
import { Webhook } from '../../db/models/Webhook.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { JobData } from '../../domain/jobs/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, notFound } from '../../domain/shared/errors.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import type { Access } from '../access/access.ts';
import type { DeliveryQueue } from './deliveryQueue.ts';

export type { DeliveryView } from '../../db/webhooks/deliveryViews.ts';
export type Deliveries = ReturnType<typeof createDeliveries>;

type Deps = {
  db: Knex;
  commit: Commit;
  access: Access;
  deliveryQueue: DeliveryQueue;
};

/** Deliveries of events to webhooks. */
export function createDeliveries({ db, commit, access, deliveryQueue }: Deps) {
  async function read(
    caller: Caller,
    id: string,
    actedWith: Permission = 'webhook:read',
  ): Promise<DeliveryView> {
    const delivery = await findDelivery(db, id, access.scope(caller, 'webhook:read', actedWith));
    if (!delivery) throw notFound('delivery', id);
    return delivery;
  }

  return {
    /**
     * A delivery that the caller may read, or has just acted on with `actedWith`. Error:
     * `not_found`.
     */
    read,

    /** Deliveries inside the caller's scope, also to deleted webhooks. */
    list: (caller: Caller, request: ListRequest): Promise<ListAnswer<DeliveryView>> =>
      listDeliveries(db, access.scope(caller, 'webhook:read'), request),

    /**
     * Sends a delivery again that has finished or waits for its next attempt. It gets a new job,
     * which is returned; the message has the same `webhook-id`. Errors: `not_found`,
     * `permission_denied`, `delivery_pending`, `webhook_disabled`.
     */
    async redeliver(caller: Caller, id: string): Promise<JobData> {
      const { webhookId, tenantId } = await read(caller, id, 'webhook:write');
      await access.require(caller, 'webhook:write', { tenantId });
      return commit({ ...caller, tenantId }, async (work) => {
        const trx = await work.trx();
        // A commit that disables the webhook waits, and then cancels this delivery.
        const webhook = await Webhook.query(trx).findById(webhookId).forShare().throwIfNotFound();
        if (!webhook.enabled)
          throw new AppError(
            'webhook_disabled',
            `The webhook is ${webhook.deletedAt ? 'deleted' : 'disabled; enable it first'}.`,
          );
        const before = await Delivery.query(trx).findById(id).forUpdate().throwIfNotFound();
        // The earlier job of a delivery that waits for a retry ends when its attempt is due.
        if (before.status === 'pending' && (before.inFlight || before.jobId === null))
          throw new AppError(
            'delivery_pending',
            'The delivery is being sent, or waits for a free slot.',
          );
        await Delivery.query(trx)
          .findById(id)
          .patch({ status: 'pending', reason: null, queuedAt: await readDatabaseTime(trx) });
        const job = await deliveryQueue.createJob(work, {
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
        work.result(id);
        return job;
      });
    },
  };
}
