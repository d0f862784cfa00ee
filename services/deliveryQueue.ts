import { NothingChanged, type Commit, type Work } from '../db/commit.ts';
import {
  assignJobs, findCancelling, findToCancel, hasOwed, isCancelling, lockQueue, markCancelled, takeOwed, type OwedDelivery,
} from '../db/deliveries.ts';
import type { Knex } from '../db/knex.ts';
import { Job } from '../db/models/Job.ts';
import { systemCaller } from '../domain/caller.ts';
import { isFinal } from '../domain/jobs.ts';
import { PLATFORM } from '../domain/scope.ts';
import { DELIVER, retryOf } from '../domain/webhooks.ts';
import type { DispatchTask } from '../temporal/contracts.ts';
import type { JobEnds } from './jobEnds.ts';
import type { JobTypes } from './jobTypes/registry.ts';
import type { JobStarts } from './jobStarts.ts';
import { webhookSubject } from './webhookTrail.ts';

export type DeliveryQueue = ReturnType<typeof createDeliveryQueue>;

/** Deliveries of one webhook that may be under way at once, and while its endpoint only fails. */
const ROOM = 50;
const FAILING_ROOM = 5;

/** Jobs made, or cancelled, by one commit. */
const BATCH = 200;
const CANCEL_BATCH = 100;

const CAUSE = 'delivery-queue';

type Deps = { db: Knex; commit: Commit<DispatchTask>; jobTypes: JobTypes; starts: JobStarts; ends: JobEnds };

/**
 * Makes jobs for deliveries, of each webhook so many at once as it has room for. What waits here costs nothing: an
 * endpoint that hangs holds its own deliveries back, and nobody else's.
 */
export function createDeliveryQueue({ db, commit, jobTypes, starts, ends }: Deps) {
  const type = jobTypes.get(DELIVER);

  /** Makes a job for each of some deliveries, in the transaction of `work`. */
  async function makeJobs(work: Work<DispatchTask>, deliveries: readonly Pick<OwedDelivery, 'id' | 'webhookId' | 'tenantId' | 'retryPolicy'>[]): Promise<Job[]> {
    const trx = await work.trx();
    const jobs = deliveries.map(({ id: deliveryId, webhookId, tenantId, retryPolicy }) => starts.make(
      type, { type: DELIVER, payload: { deliveryId }, retryPolicy: retryOf(retryPolicy) }, systemCaller(tenantId, CAUSE),
      { source: { kind: 'webhook', id: webhookId } }, work.now,
    ));
    const made = await Job.query(trx).insert(jobs);
    await assignJobs(trx, made.map((job, i) => ({ deliveryId: deliveries[i]?.id ?? '', jobId: job.id })), work.now);
    for (const job of made) work.dispatch(starts.startOf(job, type));
    return made;
  }

  /** Undoes a commit that has found nothing to do. */
  const unlessNothing = <T>(none: T) => (error: unknown): T => {
    if (error instanceof NothingChanged) return none;
    throw error;
  };

  const cancelSome = (webhookId: string, tenantId: string, reason: string): Promise<void> =>
    commit(systemCaller(tenantId, CAUSE), async (work) => {
      const trx = await work.trx();
      const some = await findToCancel(trx, webhookId, CANCEL_BATCH);
      // Jobs before deliveries, in the order in which the end of a job takes them.
      const jobs = await Job.query(trx).whereIn('id', some.flatMap(({ jobId }) => jobId ?? [])).orderBy('id').forUpdate();
      const count = await markCancelled(trx, some.map(({ id }) => id), reason, work.now);
      if (count === 0) throw new NothingChanged();
      for (const job of jobs) if (!isFinal(job.status)) ends.cancel(work, job);
      work.audit('webhook.cancel_deliveries', webhookSubject({ id: webhookId }), { after: { deliveries: count, reason } });
    });

  return {
    makeJobs,

    /**
     * One round. `waiting`: some are left, since their webhook has no room or another process is at it; `more`: a next
     * round would find work at once.
     */
    async queue(): Promise<{ waiting: boolean; more: boolean }> {
      if (!(await hasOwed(db))) return { waiting: false, more: false };
      return commit(systemCaller(PLATFORM, CAUSE), async (work) => {
        const trx = await work.trx();
        if (!(await lockQueue(trx))) throw new NothingChanged();
        const owed = await takeOwed(trx, { room: ROOM, failingRoom: FAILING_ROOM, limit: BATCH });
        if (owed.length === 0) throw new NothingChanged();
        await makeJobs(work, owed);
        for (const [webhookId, some] of Map.groupBy(owed, (delivery) => delivery.webhookId)) {
          work.audit('webhook.deliver', webhookSubject({ id: webhookId }), { after: { deliveries: some.length }, tenantId: some[0]?.tenantId ?? PLATFORM });
        }
        return { waiting: true, more: owed.length === BATCH };
      }).catch(unlessNothing({ waiting: true, more: false }));
    },

    /** Cancels what waits for webhooks that were disabled or deleted. True: there is more. */
    async cancel(): Promise<boolean> {
      if (!(await isCancelling(db))) return false;
      const webhooks = await findCancelling(db);
      for (const { id, tenantId, reason } of webhooks) await cancelSome(id, tenantId, reason).catch(unlessNothing(undefined));
      return webhooks.length > 0;
    },

  };
}
