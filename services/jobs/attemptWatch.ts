import type { Knex } from '../../db/core/knex.ts';
import { findCurrentAttempts } from '../../db/jobs/jobs.ts';
import type { Job } from '../../db/models/Job.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { useConnectionsForProcess } from '../../platform/connectionUser.ts';
import { jobLog, type Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import { AttemptFailed } from './lifecycle.ts';

export type AttemptWatch = ReturnType<typeof createAttemptWatch>;

/** Why an attempt ends that is not the current one of its job any more: what it does counts for nothing. */
export class AttemptSuperseded extends Error {
  constructor() {
    super('another attempt counts');
  }
}

type Watched = {
  job: Job;
  controller: AbortController;
  /** When the request to cancel the job was seen first, of `performance.now`. */
  cancelSeenAt: number | undefined;
};

/** Checks within one heartbeat timeout, and the longest time between two of them. */
const CHECKS_PER_TIMEOUT = 4;
const MAX_CHECK_MS = 5_000;

/**
 * Ends the running attempts of this process whose record says so, also while the process does not reach Temporal. Temporal
 * then takes the worker for lost and starts the next attempt, while the process may still be making this one. Attempts of short jobs need no
 * watch, they end within seconds.
 */
export function createAttemptWatch({
  db,
  log,
  heartbeatMs,
}: {
  db: Knex;
  log: Log;
  heartbeatMs: number;
}) {
  const running = new Set<Watched>();

  /** Temporal hands a cancellation on within the heartbeat timeout. After it, the record has to be enough. */
  function abortIfCancelled(watched: Watched): void {
    watched.cancelSeenAt ??= performance.now();
    if (performance.now() - watched.cancelSeenAt < heartbeatMs) return;
    watched.controller.abort(new AttemptFailed('cancelled', null));
  }

  /** One query for all attempts. */
  async function check(): Promise<false> {
    const entries = [...running];
    if (entries.length === 0) return false;
    const current = await useConnectionsForProcess(() =>
      findCurrentAttempts(
        db,
        entries.map(({ job: { id, runId, attempts } }) => ({
          jobId: id,
          runId: assertDefined(runId, 'job.runId'),
          attempt: attempts,
        })),
      ),
    );
    entries.forEach((watched, n) => {
      const found = current.get(n);
      if (found?.isCancelRequested) abortIfCancelled(watched);
      if (found || !running.has(watched)) return;
      const { job, controller } = watched;
      jobLog(log, job.id, job.workflowId).warn(
        { attempt: job.attempts },
        'an attempt is ended, because another one counts or the job has ended',
      );
      controller.abort(new AttemptSuperseded());
    });
    return false;
  }

  const everyMs = Math.min(heartbeatMs / CHECKS_PER_TIMEOUT, MAX_CHECK_MS);
  const loop = createLoop({ name: 'attempts', everyMs, log }, check);

  return {
    /**
     * Watches a claimed attempt until it is disposed of. `signal` aborts with `AttemptSuperseded` or with
     * `AttemptFailed('cancelled')`.
     */
    watch(job: Job): Disposable & { signal: AbortSignal } {
      const watched: Watched = { job, controller: new AbortController(), cancelSeenAt: undefined };
      running.add(watched);
      return {
        signal: watched.controller.signal,
        [Symbol.dispose]: () => void running.delete(watched),
      };
    },

    start: loop.start,
    stop: loop.stop,
  };
}
