import type { Knex } from '../../db/core/knex.ts';
import { extendLeases } from '../../db/webhooks/firstAttempts.ts';
import { ENDPOINT_REMOVED } from '../../domain/webhooks/webhooks.ts';
import { jobLog, type Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { waitUntilIdle } from '../../platform/waitUntilIdle.ts';
import type { AutoDisable } from './autoDisable.ts';
import type { FirstAttemptRecorder } from './firstAttemptRecorder.ts';
import { measureAttempt } from './measureAttempt.ts';
import { failureOf, type FirstAttempt, type SendEvent } from './sendEvent.ts';

export type FirstAttempts = ReturnType<typeof createFirstAttempts>;

type Deps = {
  db: Knex;
  log: Log;
  metrics: Metrics;
  sendEvent: SendEvent;
  recorder: FirstAttemptRecorder;
  disable: AutoDisable;
  /** A process that has not extended its leases for this long is taken for dead, in milliseconds. */
  heartbeatMs: number;
  stopGraceMs: number;
  maxDeliveryRuns: number;
  /** False while workers of another version get the work. */
  isCurrentVersion(): boolean;
};

/** Shorter leases would take a busy process for a dead one. */
const MIN_LEASE_MS = 5_000;

/** How long the outcomes of attempts that were given up may take to be written. */
const STOP_RECORD_MS = 5_000;

/**
 * Makes the first attempts of deliveries, concurrently and without workflows: most deliveries need no
 * other. Each attempt ends by itself, so an endpoint that hangs holds up none of the others. A failed
 * one goes on with the workflow of its job, and so does one whose process has died: its lease
 * expires.
 */
export function createFirstAttempts({
  db,
  log,
  metrics,
  sendEvent,
  recorder,
  disable,
  heartbeatMs,
  stopGraceMs,
  maxDeliveryRuns,
  isCurrentVersion,
}: Deps) {
  const leaseMs = Math.max(heartbeatMs, MIN_LEASE_MS);
  const inProgress = new Map<string, { attempt: FirstAttempt; controller: AbortController }>();
  let accepts = false;
  let onEnded: () => void = () => undefined;

  async function make(attempt: FirstAttempt, signal: AbortSignal): Promise<void> {
    const startedAt = new Date();
    const { outcome, notEndpointFault } = await sendEvent(attempt, signal);
    const finishedAt = new Date();
    measureAttempt(metrics, attempt, outcome, finishedAt);
    const failure = failureOf(outcome);
    await recorder({ attempt, outcome, failure, notEndpointFault, startedAt, finishedAt });
    if (failure && failure.code !== ENDPOINT_REMOVED && !notEndpointFault)
      await disable(attempt, attempt.jobId);
  }

  async function run(attempt: FirstAttempt): Promise<void> {
    const { deliveryId, jobId } = attempt;
    const controller = new AbortController();
    inProgress.set(deliveryId, { attempt, controller });
    try {
      await make(attempt, controller.signal);
    } catch (error) {
      jobLog(log, jobId).error({ err: error, deliveryId }, 'an attempt could not be recorded');
    } finally {
      inProgress.delete(deliveryId);
      onEnded();
    }
  }

  /** Extends the leases. Aborts attempts that are not ours any more. */
  async function extend(): Promise<false> {
    const entries = [...inProgress.values()];
    if (entries.length === 0) return false;
    const held = await extendLeases(
      db,
      entries.map(({ attempt }) => attempt),
      leaseMs,
    );
    for (const { attempt, controller } of entries)
      if (!held.has(attempt.deliveryId)) controller.abort();
    return false;
  }

  const loop = createLoop(
    { name: 'extend leases', everyMs: Math.min(leaseMs / 3, 1_000), log },
    extend,
  );

  const isIdle = () => inProgress.size === 0;
  const acceptsNow = (): boolean => accepts && isCurrentVersion();

  return {
    /** How many attempts this process can start now. */
    freeSlots: (): number => (acceptsNow() ? Math.max(maxDeliveryRuns - inProgress.size, 0) : 0),

    /** False in a process without workers, in one that stops, and while another version gets the work. */
    accepts: acceptsNow,

    /** How long attempts belong to this process after it has started or extended them. */
    leaseMs,

    /**
     * Makes attempts that were committed as started. A process that has stopped in the meantime leaves them:
     * their leases expire.
     */
    make(attempts: readonly FirstAttempt[]): void {
      if (accepts) for (const attempt of attempts) void run(attempt);
    },

    /** Accepts attempts from now on. `ended` is called after each. */
    start(ended: () => void): void {
      accepts = true;
      onEnded = ended;
      loop.start();
    },

    /**
     * Accepts no more attempts. Resolves when those in progress have ended; after the grace time they
     * are interrupted, and workflows go on with them.
     */
    async stop(): Promise<void> {
      accepts = false;
      await waitUntilIdle(isIdle, stopGraceMs);
      for (const { controller } of inProgress.values()) controller.abort();
      await waitUntilIdle(isIdle, STOP_RECORD_MS);
      await loop.stop();
    },
  };
}
