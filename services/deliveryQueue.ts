import { NothingChanged, unlessNothing, type Commit, type Work } from '../db/commit.ts';
import {
  assignJobs,
  findCancelling,
  findToCancel,
  forgetCancelled,
  hasOwed,
  isCancelling,
  lockQueue,
  markCancelled,
  takeOwed,
  takePlace,
  type OwedDelivery,
} from '../db/deliveryQueue.ts';
import type { Knex } from '../db/core/knex.ts';
import { Job } from '../db/models/Job.ts';
import { systemCaller } from '../domain/shared/caller.ts';
import { isFinal } from '../domain/jobs/jobs.ts';
import { PLATFORM } from '../domain/access/scope.ts';
import { DELIVER, EXCHANGE_MS, retryPolicyOf } from '../domain/webhooks/webhooks.ts';
import type { Log } from '../platform/log.ts';
import type { DispatchTask } from '../temporal/contracts.ts';
import type { JobEnds } from './jobEnds.ts';
import type { JobStarts } from './jobStarts.ts';
import type { JobTypes } from './jobTypes/registry.ts';
import { webhookSubject } from './webhookTrail.ts';

export type DeliveryQueue = ReturnType<typeof createDeliveryQueue>;

/** Deliveries of one webhook that may be under way at once, and while its endpoint only fails. */
const ROOM = 50;
const FAILING_ROOM = 5;

/**
 * A retry that finds no room comes again when about half of those that share it may have had their turn: an endpoint that only
 * fails may take the whole time of an exchange for each, one that answers is quicker.
 */
const ANSWERED_MS = 1_000;
const MIN_PUT_OFF_MS = 2_000;
const MAX_PUT_OFF_MS = 600_000;

/** Jobs made, or cancelled, by one commit. */
const BATCH = 200;
const CANCEL_BATCH = 100;

const CAUSE = 'delivery-queue';

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  jobTypes: JobTypes;
  starts: JobStarts;
  ends: JobEnds;
  log: Log;
};

/**
 * Makes jobs for deliveries, of each webhook so many at once as it has room for. The others wait as rows: an endpoint
 * that hangs holds its own deliveries back, and nobody else's.
 */
export function createDeliveryQueue({ db, commit, jobTypes, starts, ends, log }: Deps) {
  const type = jobTypes.get(DELIVER);

  /** Makes a job for each of some deliveries, in the transaction of `work`; `placed`: they take a place of their webhook. */
  async function makeJobs(
    work: Work<DispatchTask>,
    deliveries: readonly OwedDelivery[],
    { placed }: { placed: boolean },
  ): Promise<Job[]> {
    const trx = await work.trx();
    const pairs = deliveries.map(({ id, webhookId, tenantId, retryPolicy }) => ({
      deliveryId: id,
      job: starts.make(
        type,
        { type: DELIVER, payload: { deliveryId: id }, retryPolicy: retryPolicyOf(retryPolicy) },
        systemCaller(tenantId, CAUSE),
        { source: { kind: 'webhook', id: webhookId } },
        work.now,
      ),
    }));
    const made = await Job.query(trx).insert(pairs.map(({ job }) => job));
    await assignJobs(
      trx,
      pairs.map(({ deliveryId, job }) => ({ deliveryId, jobId: job.id })),
      placed,
      work.now,
    );
    for (const job of made) work.dispatch(starts.startOf(job, type));
    return made;
  }

  const cancelSome = (webhookId: string, tenantId: string, reason: string): Promise<void> =>
    commit(systemCaller(tenantId, CAUSE), async (work) => {
      const trx = await work.trx();
      const some = await findToCancel(trx, webhookId, CANCEL_BATCH);
      // Jobs before deliveries, in the order in which the end of a job takes them.
      const jobs = await Job.query(trx)
        .whereIn(
          'id',
          some.flatMap(({ jobId }) => jobId ?? []),
        )
        .orderBy('id')
        .forUpdate();
      const count = await markCancelled(trx, some, reason, work.now);
      if (count === 0) throw new NothingChanged();
      for (const job of jobs) if (!isFinal(job.status)) await ends.cancel(work, job);
      work.audit('webhook.cancel_deliveries', webhookSubject({ id: webhookId }), {
        after: { deliveries: count, reason },
      });
    });

  return {
    /** Takes a place for the next attempt of a delivery's job; without room, how many milliseconds to wait before asking again. */
    async admit(jobId: string): Promise<number | null> {
      const full = await takePlace(db, { jobId, room: ROOM, failingRoom: FAILING_ROOM });
      if (!full) return null;
      const turnMs =
        ((full.places === ROOM ? ANSWERED_MS : EXCHANGE_MS) * full.waiting) / full.places / 2;
      return Math.min(Math.max(turnMs, MIN_PUT_OFF_MS), MAX_PUT_OFF_MS) * (0.5 + Math.random());
    },

    /** A job for one delivery at once, in the transaction of `work`; it waits for its place when its attempt begins. */
    async makeJob(work: Work<DispatchTask>, delivery: OwedDelivery): Promise<Job> {
      const [job] = await makeJobs(work, [delivery], { placed: false });
      if (!job) throw new Error('A delivery got no job');
      return job;
    },

    /**
     * One round. `waiting`: some may be left, since their webhook has no room or another process is at it; `more`: a next
     * round would find work at once.
     */
    async queue(): Promise<{ waiting: boolean; more: boolean }> {
      if (!(await hasOwed(db))) return { waiting: false, more: false };
      return commit(systemCaller(PLATFORM, CAUSE), async (work) => {
        const trx = await work.trx();
        if (!(await lockQueue(trx))) throw new NothingChanged();
        const owed = await takeOwed(trx, { room: ROOM, failingRoom: FAILING_ROOM, limit: BATCH });
        if (owed.length === 0) throw new NothingChanged();
        await makeJobs(work, owed, { placed: true });
        for (const [webhookId, some] of Map.groupBy(owed, (delivery) => delivery.webhookId)) {
          work.audit('webhook.deliver', webhookSubject({ id: webhookId }), {
            after: { deliveries: some.length },
            tenantId: some[0]?.tenantId ?? PLATFORM,
          });
        }
        return { waiting: true, more: owed.length === BATCH };
      }).catch(unlessNothing({ waiting: true, more: false }));
    },

    /** Cancels what waits for webhooks that were disabled or deleted. True: some may be left. */
    async cancel(): Promise<boolean> {
      if (!(await isCancelling(db))) return false;
      await forgetCancelled(db);
      const webhooks = await findCancelling(db);
      for (const { id, tenantId, reason } of webhooks) {
        // One that fails is tried again in a later round; it does not hold up the others.
        await cancelSome(id, tenantId, reason)
          .catch(unlessNothing(undefined))
          .catch((error: unknown) =>
            log.warn({ err: error, webhookId: id }, 'deliveries could not be cancelled'),
          );
      }
      return webhooks.length > 0;
    },
  };
}
