import type { DispatchUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import {
  grantSlots,
  lockSlots,
  poolsWithWaitingJobs,
  readSlotDemands,
  returnSlots,
  waitForSlot,
  type SlotQueue,
  type StartableTypes,
} from '../../db/jobs/slots.ts';
import { totalSlots, type WorkerSlots } from '../../db/jobs/workers.ts';
import { listOffered, poolCapacity } from '../../db/runners/runners.ts';
import { shareOut } from '../../domain/dispatch/shares.ts';
import type { OutboxTask } from '../../domain/dispatch/tasks.ts';
import { useConnectionsForProcess } from '../../platform/connectionUser.ts';
import { joinRuns } from '../../platform/joinRuns.ts';
import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { JobFactory } from './createJob.ts';
import { AttemptFailed } from './lifecycle.ts';

export type JobSlots = ReturnType<typeof createJobSlots>;

type Deps = {
  db: Knex;
  dispatchUnaudited: DispatchUnaudited;
  jobTypes: JobTypes;
  jobFactory: JobFactory;
  log: Log;
  /** What one worker offers, until the workers have said what they offer. */
  workerSlots: WorkerSlots;
  sharePercent: number;
};

/** Slots that end in other processes are granted again this late, in milliseconds. */
const INTERVAL_MS = 1_000;

/** Another process is granting slots: it may have read before our job was there. */
const LOCKED_RETRY_MS = 50;

/**
 * An attempt that finds no slot asks again after this long for each job that gets a slot before it,
 * or for each that asks too, if those are fewer. The next one asks every second, so that it finds
 * its slot soon; many that ask do so some ten times a second together.
 */
const ASK_AGAIN_MS_PER_JOB = 100;
const MIN_ASK_AGAIN_MS = 1_000;
const MAX_COUNTED = 600;

/** How long an attempt waits until it asks again, in milliseconds. `random` is from 0 to 1. */
export const askAgainMs = ({ ahead, asking }: SlotQueue, random: number): number =>
  Math.max(Math.min(ahead, asking) * ASK_AGAIN_MS_PER_JOB, MIN_ASK_AGAIN_MS) * (0.5 + random);

/**
 * The slots of jobs that run long. A job waits for its slot as a row, without a workflow; tenants
 * share the slots (`shareOut`), and each tenant's jobs get theirs in the order of creation. A
 * slot belongs to a job until the job ends, waits for its next attempt or cannot begin it, whichever
 * worker makes its attempts; the reconciler ends jobs that nobody runs, so no slot is lost.
 */
export function createJobSlots({
  db,
  dispatchUnaudited,
  jobTypes,
  jobFactory,
  log,
  workerSlots,
  sharePercent,
}: Deps) {
  /** Grants the free slots to waiting jobs, and starts those. False if another process does now. */
  async function grantFree(): Promise<boolean> {
    const pools = await poolsWithWaitingJobs(db);
    if (pools.length === 0) return true;
    let isLocked = false;
    await dispatchUnaudited(async (trx) => {
      isLocked = !(await lockSlots(trx));
      if (isLocked) return [];
      const granted: OutboxTask[] = [];
      for (const pool of pools) granted.push(...(await grantInPool(trx, pool)));
      return granted;
    });
    return !isLocked;
  }

  /** What workers offer, or the runners of a pool, and the share of one tenant. */
  async function capacityOf(trx: Knex, pool: string) {
    if (pool === '') {
      const { activity } = await totalSlots(trx, workerSlots);
      return { capacity: activity, sharePercent };
    }
    const { slots, sharePercent: own } = await poolCapacity(trx, pool);
    return { capacity: slots, sharePercent: own ?? sharePercent };
  }

  /**
   * The types whose jobs can start: those of this process, or what the runners of a pool offer. A process of
   * another version grants slots to the types that this one does not know.
   */
  async function startableTypes(trx: Knex, pool: string): Promise<StartableTypes> {
    if (pool === '') return { names: jobTypes.ownNames(), digests: null };
    const offered = await listOffered(trx, pool);
    return {
      names: [...new Set(offered.map(({ name }) => name))],
      digests: offered.map(({ digest }) => digest),
    };
  }

  /** Grants the free slots of one pool, and returns the starts of the jobs that got them. */
  async function grantInPool(trx: Knex, pool: string): Promise<OutboxTask[]> {
    const share = await capacityOf(trx, pool);
    if (share.capacity === 0) return [];
    const types = await startableTypes(trx, pool);
    if (types.names.length === 0) return [];
    const demands = await readSlotDemands(trx, pool, types, share.capacity);
    const grants = shareOut(demands, share);
    if (grants.size === 0) return [];
    const jobs = await grantSlots(trx, pool, grants, types);
    // Those that are not queued have a workflow, which asks again.
    const queued = jobs.filter(({ status }) => status === 'queued');
    if (queued.some(({ type }) => !jobTypes.find(type))) await jobTypes.refresh();
    // A type may have been deleted since.
    const unknown = queued.filter(({ type }) => !jobTypes.find(type));
    if (unknown.length > 0)
      await returnSlots(
        trx,
        unknown.map(({ id }) => id),
      );
    return queued.flatMap((job) => {
      const type = jobTypes.find(job.type);
      return type ? [jobFactory.startTask(job, type)] : [];
    });
  }

  /** Resolves after a round that began after the call. Calls during a round share the next one. */
  const round = joinRuns(() => useConnectionsForProcess(grantFree));

  const loop = createLoop({ name: 'slots', everyMs: INTERVAL_MS, log }, async () =>
    (await round()) ? false : LOCKED_RETRY_MS,
  );

  return {
    /** A job waits for a slot, or has released one. */
    wake: loop.wake,

    /**
     * Calls `claim`, which claims a job only if the job has a slot. Without one, the job waits for
     * it. Error: `AttemptFailed('no_slot')`, with the time after which to ask again.
     */
    async claim<T>(jobId: string, claim: () => Promise<T | undefined>): Promise<T | undefined> {
      const claimed = await claim();
      if (claimed !== undefined) return claimed;
      const waiting = await waitForSlot(db, jobId, MAX_COUNTED);
      if (waiting !== null) await round();
      // Without waiting, it may have got a slot just now; or there is nothing to do.
      const second = await claim();
      if (second !== undefined || waiting === null) return second;
      throw new AttemptFailed('no_slot', askAgainMs(waiting, Math.random()));
    },

    start: loop.start,
    stop: loop.stop,
  };
}
