import type { Knex } from '../../db/core/knex.ts';
import { announceWorker, removeWorker, type WorkerSlots } from '../../db/jobs/workers.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import type { JobTypes } from '../jobTypes/registry.ts';

type Deps = {
  db: Knex;
  ids: Ids;
  log: Log;
  workerSlots: WorkerSlots;
  jobTypes: Pick<JobTypes, 'ownNames'>;
  isWorkerRunning(): boolean;
  /** False while Temporal does not answer this process: it gets no work, although its worker polls. */
  isTemporalReady(): boolean;
  /** False while workers of another version get the work. */
  isCurrentVersion(): boolean;
};

const INTERVAL_MS = 10_000;

/** A worker that does not poll, or gets no work, is checked again after this time. */
const NOT_RUNNING_MS = 1_000;

/**
 * Says in the database that this worker runs, what it offers and which job types it knows, while it polls for
 * work and gets some.
 */
export function createWorkerPresence({
  db,
  ids,
  log,
  workerSlots,
  jobTypes,
  isWorkerRunning,
  isTemporalReady,
  isCurrentVersion,
}: Deps) {
  const id = ids.next('wrk');
  let isAnnounced = false;

  async function announce(): Promise<false | number> {
    if (!isCurrentVersion()) {
      if (isAnnounced) await removeWorker(db, id);
      isAnnounced = false;
      return NOT_RUNNING_MS;
    }
    if (!isWorkerRunning() || !isTemporalReady()) return NOT_RUNNING_MS;
    isAnnounced = true;
    await announceWorker(db, id, workerSlots, jobTypes.ownNames());
    return false;
  }

  const loop = createLoop({ name: 'worker presence', everyMs: INTERVAL_MS, log }, announce);

  return {
    start: loop.start,

    /** What this worker offered does not count any more. */
    async stop(): Promise<void> {
      if (!loop.isRunning()) return;
      await loop.stop();
      await removeWorker(db, id).catch((error: unknown) =>
        log.warn({ err: error }, 'the worker is counted for some seconds more'),
      );
    },
  };
}
