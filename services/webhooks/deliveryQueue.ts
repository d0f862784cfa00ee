import {
  NoChange,
  ignoreNoChange,
  type Commit,
  type DispatchUnaudited,
  type Work,
} from '../../db/core/commit.ts';
import {
  assignJob,
  findCancellingWebhooks,
  findCancellableDeliveries,
  finishCancellation,
  hasPendingDeliveries,
  markDeliveriesCancelled,
  claimPendingDeliveries,
  type CancellingWebhook,
  type ClaimedDelivery,
  type PendingDelivery,
} from '../../db/webhooks/deliveryQueue.ts';
import {
  endExpiredLeases,
  hasExpiredLeases,
  startFirstAttempts,
} from '../../db/webhooks/firstAttempts.ts';
import {
  freeAbandonedSlots,
  takeSlots,
  withoutSlot,
  type SlotContention,
} from '../../db/webhooks/deliverySlots.ts';
import { totalSlots, type WorkerSlots } from '../../db/jobs/workers.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Job } from '../../db/models/Job.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import { isFinal } from '../../domain/jobs/jobs.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import {
  DELIVER_JOB_TYPE,
  EXCHANGE_TIMEOUT_MS,
  jobRetryPolicy,
} from '../../domain/webhooks/webhooks.ts';
import { createBatches } from '../../platform/batches.ts';
import { useConnectionsForProcess } from '../../platform/connectionUser.ts';
import type { Log } from '../../platform/log.ts';
import type { JobCompletion } from '../jobs/completion.ts';
import type { JobFactory } from '../jobs/createJob.ts';
import { planRetry } from '../jobs/lifecycle.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { FirstAttempt } from './sendEvent.ts';
import { webhookAudit } from './webhookAudit.ts';

export type DeliveryQueue = ReturnType<typeof createDeliveryQueue>;

/**
 * How many deliveries of one webhook may be in flight: few until its endpoint has accepted one, and
 * again while every attempt fails. An attempt that times out costs as much as one that succeeds, so
 * a tenant has few of these, however many webhooks it has.
 *
 * A delivery that has failed keeps a job and a workflow until its last attempt, for days. While an endpoint
 * cannot be reached, few deliveries get that far; the others wait as rows. An endpoint that rejects events may have
 * many: the events that it accepts must not wait behind them. Beyond these, it is tried with the newest event, too.
 */
const SLOT_LIMITS = {
  maxInFlight: 50,
  maxInFlightFailing: 2,
  maxFailingOfTenant: 8,
  keptForRetries: 2,
  maxOpen: 10_000,
  maxOpenFailing: 500,
  maxOpenUnreachable: 50,
  maxCounted: 10_000,
};

/**
 * A retry that finds no free slot waits until about half of the deliveries that share the slots may
 * have had their turn. A failing endpoint may use the whole time limit of each request.
 */
const TYPICAL_SEND_MS = 1_000;
const MIN_SLOT_WAIT_MS = 2_000;
const MAX_SLOT_WAIT_MS = 600_000;

/** How many deliveries one commit starts, or cancels. */
const BATCH = 200;
const CANCEL_BATCH = 100;

const CAPACITY_CACHE_MS = 1_000;

/**
 * Leases have expired for good when this many checks in succession have found some. After an outage of
 * the database all have expired, and their processes extend them within a second.
 */
const EXPIRED_CHECKS = 3;
const CHECK_LEASES_EVERY_MS = 1_000;

const CHECK_SLOTS_EVERY_MS = 60_000;

/** How an attempt failed whose process has died. */
const LOST = new JobFailure('worker_lost', 'The worker stopped during the attempt');

/** How many attempts take their slots together. */
const MAX_BATCH = 100;

const CAUSE = 'delivery-queue';

type Deps = {
  db: Knex;
  commit: Commit;
  dispatchUnaudited: DispatchUnaudited;
  jobTypes: JobTypes;
  jobFactory: JobFactory;
  jobCompletion: JobCompletion;
  log: Log;
  /** What one worker offers, until the workers have said what they offer. */
  workerSlots: WorkerSlots;
  sharePercent: number;
};

/** Deliveries that were started together; see `startPending`. */
type StartedBatch = { more: boolean; waiting: boolean; attempts: readonly FirstAttempt[] };

/**
 * Starts deliveries while their webhook has free slots and their tenant has not its share of all
 * slots: each gets a job, whose first attempt this process makes. The other deliveries wait as rows, so
 * an endpoint that hangs delays its own deliveries only, and a tenant whose endpoints all hang only its
 * own.
 */
export function createDeliveryQueue({
  db,
  commit,
  dispatchUnaudited,
  jobTypes,
  jobFactory,
  jobCompletion,
  log,
  workerSlots,
  sharePercent,
}: Deps) {
  let capacity: { slots: number; until: number } | undefined;
  /** The limits. What the workers offer is read once a second. */
  async function readLimits(on: Knex) {
    if (!capacity || capacity.until < performance.now()) {
      const { delivery: slots } = await totalSlots(on, workerSlots);
      capacity = { slots, until: performance.now() + CAPACITY_CACHE_MS };
    }
    return { ...SLOT_LIMITS, capacity: capacity.slots, sharePercent };
  }

  /** Attempts that start together take their slots together, on one connection. */
  const takeSlot = createBatches<string, SlotContention | null>(MAX_BATCH, (jobIds) =>
    useConnectionsForProcess(async () => {
      const needing = await withoutSlot(db, jobIds);
      if (needing.length === 0) return () => null;
      const refused = await db.transaction(async (trx) =>
        takeSlots(trx, needing, await readLimits(trx)),
      );
      return (jobId: string) => refused.get(jobId) ?? null;
    }),
  );

  let expiredChecks = 0;
  let nextLeaseCheckAt = 0;
  /** True if there are leases that their process does not extend any more. */
  async function findAbandoned(): Promise<boolean> {
    if (performance.now() < nextLeaseCheckAt) return false;
    const before = expiredChecks;
    // A check that fails begins a new succession.
    expiredChecks = 0;
    const isExpired = await hasExpiredLeases(db);
    expiredChecks = isExpired ? before + 1 : 0;
    nextLeaseCheckAt = performance.now() + CHECK_LEASES_EVERY_MS;
    return expiredChecks >= EXPIRED_CHECKS;
  }

  let nextSlotCheckAt = 0;
  async function freeAbandoned(): Promise<void> {
    if (performance.now() < nextSlotCheckAt) return;
    const slots = await freeAbandonedSlots(db);
    nextSlotCheckAt = performance.now() + CHECK_SLOTS_EVERY_MS;
    if (slots > 0) log.warn({ slots }, 'slots of deliveries were kept without an attempt');
  }

  /** The row of a new job that sends a delivery. */
  const buildJob = ({ id, webhookId, tenantId, retryPolicy }: PendingDelivery, now: Date) =>
    jobFactory.build(
      {
        type: jobTypes.get(DELIVER_JOB_TYPE),
        payload: { deliveryId: id },
        retryPolicy: jobRetryPolicy(retryPolicy),
        caller: systemCaller(tenantId, CAUSE),
        source: { kind: 'webhook', id: webhookId },
      },
      now,
    );

  /** Starts the first attempts of claimed deliveries, in the commit of `work`. */
  function startAttempts(
    work: Work,
    claimed: readonly ClaimedDelivery[],
    leaseMs: number,
  ): FirstAttempt[] {
    const { now } = work;
    const starting = claimed.map((delivery) => ({ delivery, job: buildJob(delivery, now) }));
    work.change(
      startFirstAttempts(
        starting.map(({ delivery: { id, number }, job }) => ({
          deliveryId: id,
          number,
          job: { ...job, status: 'running', attempts: 1, logCount: 1, startedAt: now },
        })),
        { leaseMs, now },
      ),
    );
    return starting.map(({ delivery: { id, ...delivery }, job }) => ({
      ...delivery,
      deliveryId: id,
      jobId: job.id,
      retryPolicy: job.retryPolicy,
    }));
  }

  /** Cancels a batch of the deliveries of a webhook. False if there were none. */
  const cancelBatch = ({ id, tenantId, reason }: CancellingWebhook): Promise<boolean> =>
    commit(systemCaller(tenantId, CAUSE), async (work) => {
      const trx = await work.trx();
      const batch = await findCancellableDeliveries(trx, id, CANCEL_BATCH);
      // Locks jobs before deliveries, as the completion of a job does.
      const jobs = await Job.query(trx)
        .whereIn(
          'id',
          batch.flatMap(({ jobId }) => jobId ?? []),
        )
        .orderBy('id')
        .forUpdate();
      const count = await markDeliveriesCancelled(trx, batch, reason, work.now);
      if (count === 0) throw new NoChange();
      for (const job of jobs)
        if (!isFinal(job.status)) await jobCompletion.requestCancel(work, job);
      work.audit('webhook.cancel_deliveries', webhookAudit.subject({ id }), {
        after: { deliveries: count, reason },
      });
      return true;
    }).catch(ignoreNoChange(false));

  return {
    /**
     * Takes a slot for the next attempt of a delivery's job. Returns null, or in milliseconds how
     * long to wait before the next try when no slot is free.
     */
    async acquireSlot(jobId: string): Promise<number | null> {
      const contention = await takeSlot(jobId);
      if (!contention) return null;
      const turnMs =
        ((contention.failing ? EXCHANGE_TIMEOUT_MS : TYPICAL_SEND_MS) * contention.waiting) /
        contention.slots /
        2;
      return Math.min(Math.max(turnMs, MIN_SLOT_WAIT_MS), MAX_SLOT_WAIT_MS) * (0.5 + Math.random());
    },

    /**
     * Creates a job for one delivery in the transaction of `work`, without waiting for a free slot:
     * the attempt takes one when it starts.
     */
    async createJob(work: Work, delivery: PendingDelivery): Promise<Job> {
      const trx = await work.trx();
      const job = await Job.query(trx).insert(buildJob(delivery, work.now));
      await assignJob(trx, { deliveryId: delivery.id, jobId: job.id }, work.now);
      work.dispatch(jobFactory.startTask(job, jobTypes.get(DELIVER_JOB_TYPE)));
      return job;
    },

    /** True when deliveries wait to be started. */
    hasPending: (): Promise<boolean> => hasPendingDeliveries(db),

    /**
     * Starts up to `limit` pending deliveries, one batch: the caller makes their first attempts, which
     * are its own for `leaseMs`, and longer if it extends that. None are started without a free slot,
     * and while another process starts deliveries. `more`: the next batch can follow immediately.
     * `waiting`: some are left, and not only for the next probe of their endpoint.
     */
    async startPending({
      limit,
      leaseMs,
    }: {
      limit: number;
      leaseMs: number;
    }): Promise<StartedBatch> {
      const size = Math.min(limit, BATCH);
      let waiting = true;
      const none = () => ({ more: false, waiting, attempts: [] });
      if (limit === 0) return none();
      const started = await commit(systemCaller(PLATFORM, CAUSE), async (work) => {
        const trx = await work.trx();
        const limits = await readLimits(trx);
        const probesNewest = Math.random() < 0.5;
        const options = { ...limits, limit: size, probesNewest };
        const { claimed, areLeft } = await claimPendingDeliveries(trx, options);
        waiting = areLeft;
        if (claimed.length === 0) throw new NoChange();
        const attempts = startAttempts(work, claimed, leaseMs);
        for (const [webhookId, some] of Map.groupBy(attempts, (attempt) => attempt.webhookId)) {
          work.audit('webhook.deliver', webhookAudit.subject({ id: webhookId }), {
            after: { deliveries: some.length },
            tenantId: assertDefined(some[0], 'batch[0]').tenantId,
          });
        }
        return { more: claimed.length === size && size < limit, waiting, attempts };
      }).catch(ignoreNoChange(undefined));
      return started ?? none();
    },

    /**
     * Starts workflows for deliveries whose process has died during their first attempt, one batch.
     * Their next attempts are due as after any other failure. Frees slots without an attempt.
     */
    async continueAbandoned(): Promise<void> {
      await freeAbandoned();
      if (!(await findAbandoned())) return;
      await dispatchUnaudited(async (trx) => {
        const abandoned = await endExpiredLeases(trx, BATCH);
        if (abandoned.length > 0)
          log.warn({ deliveries: abandoned.length }, 'first attempts of deliveries were abandoned');
        return abandoned.map(({ jobId, tenantId, retryPolicy }) =>
          jobFactory.startTask(
            { id: jobId, type: DELIVER_JOB_TYPE, tenantId },
            jobTypes.get(DELIVER_JOB_TYPE),
            { code: LOST.code, retryInMs: planRetry(retryPolicy, 1, LOST).retryInMs },
          ),
        );
      });
    },

    /**
     * Cancels pending deliveries of webhooks that were disabled or deleted, one batch for each, until
     * `signal` aborts. True when some may be left.
     */
    async cancelForDisabledWebhooks(signal: AbortSignal): Promise<boolean> {
      const webhooks = await findCancellingWebhooks(db);
      for (const webhook of webhooks) {
        if (signal.aborted) break;
        try {
          if (!(await cancelBatch(webhook))) await finishCancellation(db, webhook.id);
        } catch (error) {
          // It is retried in the next round and does not delay other webhooks.
          log.warn({ err: error, webhookId: webhook.id }, 'deliveries could not be cancelled');
        }
      }
      return webhooks.length > 0;
    },
  };
}
